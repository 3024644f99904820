/*
 * session_find: the session that somebody means, if they may know of it.
 */
#ifndef REMOTE_SESSION_FIND_H
#define REMOTE_SESSION_FIND_H

#include "rows/session_row.h"

#define SESSION_PREFIX_MIN 4 /* bytes of an id that is not written out */

/* Who asks: sessions of other owners are missing, unless it may see all. */
struct session_caller {
        int64_t owner; /* id of the API key; 0: the operator */
        bool all;
};

/* All run inside a store function. */

/* By the program's id. 1: *out is yours to free; 0: there is none, or it is another's; -1. */
int session_find(struct store_tx *tx, const struct session_caller *by, const char *session,
                 struct session_row **out, struct error *err);
/*
 * The same, or adds it. 0 or -1: ERR_MISSING: it is another's; ERR_LIMIT: `active` are already.
 */
int session_find_or_add(struct store_tx *tx, const struct session_caller *by, const char *session,
                        int64_t active, int64_t now_ms, struct session_row **out,
                        struct error *err);
/*
 * As people write it: "ses-3", the program's id, or the beginning of one that no other of the
 * newest sessions has. 0, or -1 with ERR_MISSING, or ERR_CONFLICT when several begin so.
 */
int session_resolve(struct store_tx *tx, const struct session_caller *by, const char *text,
                    struct session_row **out, struct error *err);

/*
 * Who has this account ("discord:42"). 0 or -1. *person 0 and *name NULL: nobody that is known;
 * *name is yours to free.
 */
int session_find_person(struct store_tx *tx, const char *account, int64_t *person, char **name,
                        struct error *err);

#endif
