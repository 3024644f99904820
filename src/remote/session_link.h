/*
 * session_link: shows a session in a chat. All run inside a store function.
 */
#ifndef REMOTE_SESSION_LINK_H
#define REMOTE_SESSION_LINK_H

#include "bus/bus.h"
#include "remote/session_find.h"

/*
 * May its program show a session there? 0, or -1 with ERR_CONFLICT: it is a thread that was begun
 * for a session of another owner, whose commands it would get.
 */
int session_link_check(struct store_tx *tx, const struct session_caller *by,
                       const struct chat_key *chat, struct error *err);
/*
 * The thread that was begun for the session in this chat, in which it stays when it is linked there
 * again: *out is yours to free; NULL: there is none. 0 or -1.
 */
int session_link_thread(struct store_tx *tx, int64_t session, const struct chat_key *chat,
                        char **out, struct error *err);
/*
 * Shows the session in this chat, with session.chat.linked. identity: whose it is; NULL: as before.
 */
int session_link_write(struct store_tx *tx, struct bus_batch *batch, const struct session_row *row,
                       const struct chat_key *chat, const char *identity, int64_t now_ms,
                       struct error *err);

#endif
