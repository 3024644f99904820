/*
 * notice: a message to a person that they did not ask for.
 *
 * It is a schedule that is due at once: quiet hours put it off, and it goes to the first of the
 * person's chats that takes it (reach.h). The day's cap is checked when it is added.
 */
#ifndef SCHEDULE_NOTICE_H
#define SCHEDULE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct schedule_conf;

/* Strings are borrowed; NULL: not given. */
struct notice_wish {
        const char *to; /* see reach_find_person */
        const char *text;
        const char *buttons;      /* JSON, see struct outgoing */
        const char *request_key;  /* the same key gives the same notice */
        const char *request_hash; /* another hash with the same key: ERR_CONFLICT */
        const char *created_by, *trace;
        bool asked; /* by the person themselves: no quiet hours, no cap */
        int64_t now_ms;
};

struct notice_receipt {
        int64_t schedule, person;
        int64_t not_before_ms; /* the end of their quiet hours; 0: it is sent now */
        bool duplicate;
};

/*
 * Inside a store function; schedule_wake follows. ERR_MISSING: no such person; ERR_CONFLICT:
 * several, no chat, or the key; ERR_LIMIT: the cap is reached.
 */
int notice_add(struct store_tx *tx, const struct schedule_conf *conf, const struct notice_wish *w,
               struct notice_receipt *out, struct error *err);

#endif
