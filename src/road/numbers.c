#include "road/numbers.h"

#include "base/log.h"
#include "road/road_state.h"
#include "rows/number_row.h"

#define BLOCK 1000

int64_t numbers_left(const struct numbers *n)
{
        return n->end - n->next;
}

int64_t numbers_next(const struct numbers *n)
{
        return n->next;
}

/* ---- reserving ---- */

/* Touches nothing that taking numbers changes. */
static int write_reservation(struct store_tx *tx, void *arg, struct error *err)
{
        struct numbers *n = arg;

        return number_row_reserve(tx, n->name, n->block.count, &n->block.first, err);
}

static void add_block(struct numbers *n)
{
        if (n->block.first != n->end)
                n->next = n->block.first; /* others were reserved in between: leave a gap */
        n->end = n->block.first + n->block.count;
        n->wanted = 0;
}

static void on_reserved(void *arg, const struct error *err)
{
        struct numbers *n = arg;

        if (err)
                return;
        n->reserving = n->failing = false;
        add_block(n);
        road_numbers_refilled(n->road);
}

static void on_failed(void *arg, const struct error *err)
{
        struct numbers *n = arg;

        n->failing = true;
        if (n == &n->road->delivery_numbers)
                outbox_submit_refuse(n->road, err);
}

static void reserve(struct numbers *n)
{
        if (n->reserving)
                return;
        n->reserving = true;
        n->block.count = n->wanted > BLOCK ? n->wanted : BLOCK;
        road_write_watched(n->road, "numbers", write_reservation, on_reserved, on_failed, n);
}

/* ---- taking ---- */

bool numbers_request(struct numbers *n, size_t count)
{
        if (numbers_left(n) >= (int64_t)count)
                return true;
        if ((int64_t)count > n->wanted)
                n->wanted = (int64_t)count;
        reserve(n);
        return false;
}

bool numbers_take(struct numbers *n, size_t count, int64_t *first)
{
        if (!numbers_request(n, count))
                return false;
        *first = n->next;
        n->next += (int64_t)count;
        if (numbers_left(n) < BLOCK / 2)
                reserve(n);
        return true;
}

/* ---- opening and closing ---- */

void numbers_open(struct numbers *n, struct road *r, const char *name)
{
        struct error err;

        *n = (struct numbers){ .road = r, .name = name, .block.count = BLOCK };
        if (store_write_now(r->store, write_reservation, n, &err) == 0) {
                add_block(n);
                return;
        }
        log_warn("cannot reserve numbers; retrying", LOG_S("of", name), LOG_S("why", err.text));
        reserve(n);
}

static int write_return(struct store_tx *tx, void *arg, struct error *err)
{
        const struct numbers *n = arg;

        return number_row_return(tx, n->name, n->next, n->end, err);
}

void numbers_close(struct numbers *n)
{
        struct error err;

        if (!n->road || numbers_left(n) == 0)
                return;
        if (store_write_now(n->road->store, write_return, n, &err) < 0)
                log_info("cannot return unused numbers", LOG_S("of", n->name),
                         LOG_S("why", err.text));
}
