#include "dispatch/desk.h"

#include <stdlib.h>

#include "base/mem.h"

struct desk *desk_open(struct store *s, struct error *err)
{
        struct desk *desk = mem_zalloc(sizeof(*desk));

        desk->store = s;
        if ((desk->handover = handover_open(s, err)) && (desk->rules = stored_rules_open(s, err)) &&
            (desk->access = access_rules_open(s, err)) &&
            (desk->pairing = pairing_open(s, desk->access, err)))
                return desk;
        desk_free(desk);
        return NULL;
}

void desk_free(struct desk *desk)
{
        if (!desk)
                return;
        handover_free(desk->handover);
        stored_rules_free(desk->rules);
        pairing_free(desk->pairing);
        access_rules_free(desk->access);
        free(desk);
}
