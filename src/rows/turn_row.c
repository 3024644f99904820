#include "rows/turn_row.h"

#include <string.h>

#include "base/mem.h"

static const char *const state_names[] = {
        [TURN_QUEUED] = "queued", [TURN_RUNNING] = "running",     [TURN_DONE] = "done",
        [TURN_FAILED] = "failed", [TURN_CANCELLED] = "cancelled", [TURN_EXPIRED] = "expired",
};

const char *turn_state_name(enum turn_state state)
{
        return state_names[state];
}

bool turn_state_parse(const char *name, enum turn_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum turn_state)i;
                        return true;
                }
        }
        return false;
}
