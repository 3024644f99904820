/*
 * handover: chats in which a person has taken over from the agent.
 *
 * A handover covers a thread, or a channel with all its threads. It ends when it is resumed, or by
 * itself at a given time. Meanwhile events are stored and decided as usual but start no agent; what
 * they say goes into the conversation's transcript (decision.remember), so the agent knows it when
 * it comes back.
 *
 * A change counts once it is committed (write_through.h). The chat commands /pause and /resume are
 * written in the transaction of their decision and count from that decision on.
 */
#ifndef DISPATCH_HANDOVER_H
#define DISPATCH_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/road.h"
#include "rows/handover_row.h"
#include "store/store.h"

struct handovers;

#define HANDOVER_MAX 10000 /* chats handed over at the same time */

/* Reads the table; blocks. Free it after the store is closed. */
struct handovers *handovers_open(struct store *s, struct error *err);
void handovers_free(struct handovers *hs);

/* The handover in force in a chat, borrowed until the next change; NULL: none. */
const struct handover *handover_find(const struct handovers *hs, const struct chat_key *chat);
/* All in force, oldest first: an array of *count, yours to free; elements are borrowed. */
const struct handover **handover_list(const struct handovers *hs, size_t *count);

/* Pauses the agent, or replaces the handover of that chat. since_ms 0: now. ERR_LIMIT. */
void handover_pause(struct handovers *hs, const struct handover *h, store_done_fn *done, void *arg);
/* ERR_MISSING unless exactly this chat is handed over. */
void handover_resume(struct handovers *hs, const struct chat_key *chat, store_done_fn *done,
                     void *arg);

/* As part of a decision. False, and nothing is changed: there are too many, or it was none. */
bool handover_pause_with(struct handovers *hs, const struct handover *h, struct decision *out);
bool handover_resume_with(struct handovers *hs, const struct chat_key *chat, struct decision *out);

#endif
