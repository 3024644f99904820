#include "rows/delivery_row.h"

#include <string.h>

#include "base/mem.h"

static const char *const kind_names[] = {
        [DELIVER_SEND] = "send",
        [DELIVER_EDIT] = "edit",
        [DELIVER_DELETE] = "delete",
        [DELIVER_REACT] = "react",
        [DELIVER_UNREACT] = "unreact",
        [DELIVER_THREAD] = "thread",
        [DELIVER_TYPE] = "type",
        [DELIVER_UPLOAD] = "upload",
        [DELIVER_CANCEL_DEFERRED] = "cancel_deferred",
};

static const char *const state_names[] = {
        [DELIVERY_QUEUED] = "queued",
        [DELIVERY_SENDING] = "sending",
        [DELIVERY_SENT] = "sent",
        [DELIVERY_FAILED] = "failed",
        [DELIVERY_UNKNOWN] = "unknown",
        [DELIVERY_EXPIRED] = "expired",
        [DELIVERY_SUPERSEDED] = "superseded",
};

const char *delivery_kind_name(enum delivery_kind kind)
{
        return kind_names[kind];
}

const char *delivery_state_name(enum delivery_state state)
{
        return state_names[state];
}

bool delivery_kind_parse(const char *name, enum delivery_kind *out)
{
        for (size_t i = 0; i < COUNT(kind_names); i++) {
                if (strcmp(kind_names[i], name) == 0) {
                        *out = (enum delivery_kind)i;
                        return true;
                }
        }
        return false;
}

bool delivery_state_parse(const char *name, enum delivery_state *out)
{
        for (size_t i = 0; i < COUNT(state_names); i++) {
                if (strcmp(state_names[i], name) == 0) {
                        *out = (enum delivery_state)i;
                        return true;
                }
        }
        return false;
}
