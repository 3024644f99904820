#include <stdlib.h>

#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"

#define FIRST_CAP 64

struct dc_pending_entry {
        struct dc_passed what;
        bool done;
};

void dc_pending_release(struct dc_pending *p)
{
        free(p->ring);
        *p = (struct dc_pending){ 0 };
}

static void grow(struct dc_pending *p)
{
        size_t cap = p->cap ? p->cap * 2 : FIRST_CAP;
        struct dc_pending_entry *ring = mem_array(cap, sizeof(*ring));

        for (uint64_t n = p->first; n < p->first + p->count; n++)
                ring[n % cap] = p->ring[n % p->cap];
        free(p->ring);
        p->ring = ring;
        p->cap = cap;
}

uint64_t dc_pending_add(struct dc_pending *p, const struct dc_passed *what)
{
        uint64_t number = p->first + p->count;

        if (p->count == p->cap)
                grow(p);
        p->ring[number % p->cap] = (struct dc_pending_entry){ .what = *what };
        p->count++;
        p->open++;
        return number;
}

void dc_pending_done(struct dc_pending *p, uint64_t number)
{
        struct dc_pending_entry *e;

        if (number < p->first || number - p->first >= p->count)
                return;
        e = &p->ring[number % p->cap];
        if (!e->done)
                p->open--;
        e->done = true;
}

bool dc_pending_take(struct dc_pending *p, struct dc_passed *what)
{
        const struct dc_pending_entry *e = p->count > 0 ? &p->ring[p->first % p->cap] : NULL;

        if (!e || !e->done)
                return false;
        *what = e->what;
        p->first++;
        p->count--;
        return true;
}
