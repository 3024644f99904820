/*
 * handover: chats in which a person has taken over from the agent.
 *
 * A pause is a row, and known in memory, so that asking costs nothing. It holds for a thread, or
 * for a channel with all its threads; it ends when somebody ends it, or by itself at a time. While
 * it holds, events are stored and decided as ever, but no agent is started; what they say is
 * remembered in the conversation (decision.remember), so that the agent knows it when it comes
 * back.
 *
 * A change counts when it is committed. The chat commands /pause and /resume write in the
 * transaction of their own decision and count from that decision on.
 */
#ifndef DISPATCH_HANDOVER_H
#define DISPATCH_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/road.h"
#include "rows/chat_key.h"
#include "store/store.h"

struct handovers;

#define HANDOVER_MAX 10000 /* chats that can be paused at the same time */

struct handover {
        struct chat_key chat;
        const char *by, *reason;    /* for people; may be NULL */
        int64_t since_ms, until_ms; /* wall clock; since 0: now; until 0: until it is resumed */
};

/*
 * Reads the pauses; blocks. The store outlives it; completions of the store may still need it: free
 * it after the store is closed.
 */
struct handovers *handover_open(struct store *s, struct error *err);
void handover_free(struct handovers *h);

/* The pause that holds there now, borrowed until the next change; NULL: none. */
const struct handover *handover_find(const struct handovers *h, const struct chat_key *chat);
/*
 * All that hold, oldest first: an array of *count, yours to free; its elements are borrowed until
 * the next change.
 */
const struct handover **handover_list(const struct handovers *h, size_t *count);

/*
 * Pauses, or changes the pause that is there. ERR_LIMIT beyond HANDOVER_MAX. Copies what it needs;
 * done is called later, on the loop.
 */
void handover_pause(struct handovers *h, const struct handover *p, store_done_fn *done, void *arg);
/* ERR_MISSING when exactly this chat is not paused. */
void handover_resume(struct handovers *h, const struct chat_key *chat, store_done_fn *done,
                     void *arg);

/*
 * The same for a decision: it is written with it (out->extra). Returns false when nothing is to be
 * changed: there are too many, or it was not paused.
 */
bool handover_pause_with(struct handovers *h, const struct handover *p, struct decision *out);
bool handover_resume_with(struct handovers *h, const struct chat_key *chat, struct decision *out);

#endif
