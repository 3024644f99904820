#include "dispatch/runtime_policy.h"

#include <stdlib.h>

#include "base/mem.h"

static int64_t current(void *persons, int64_t person)
{
        return persons_current(persons, person);
}

static void on_rules(void *arg)
{
        struct desk *desk = arg;

        if (desk->changed)
                desk->changed(desk->changed_arg);
}

/* Rules about a person are about whoever he is now. */
static void on_persons(void *arg)
{
        access_rules_resolve(((struct desk *)arg)->access);
        on_rules(arg);
}

void desk_watch(struct desk *desk, void (*changed)(void *arg), void *arg)
{
        desk->changed = changed;
        desk->changed_arg = arg;
}

struct desk *desk_open(struct store *s, struct bus *b, struct error *err)
{
        struct desk *desk = mem_zalloc(sizeof(*desk));

        desk->store = s;
        desk->links = links_new();
        if (!(desk->handover = handover_open(s, err)) ||
            !(desk->rules = stored_rules_open(s, err)) ||
            !(desk->access = access_rules_open(s, err)) ||
            !(desk->pairing = pairing_open(s, desk->access, err)) ||
            !(desk->persons = persons_open(s, b, err))) {
                desk_free(desk);
                return NULL;
        }
        access_rules_set_persons(desk->access, current, desk->persons);
        persons_watch(desk->persons, on_persons, desk);
        stored_rules_watch(desk->rules, on_rules, desk);
        return desk;
}

void desk_leave_bus(struct desk *desk)
{
        if (desk)
                persons_leave_bus(desk->persons);
}

void desk_free(struct desk *desk)
{
        if (!desk)
                return;
        handover_free(desk->handover);
        stored_rules_free(desk->rules);
        pairing_free(desk->pairing);
        access_rules_free(desk->access);
        persons_free(desk->persons);
        links_free(desk->links);
        free(desk);
}
