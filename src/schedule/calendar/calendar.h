/*
 * calendar: events that people plan together, such as game nights.
 *
 *     commands, tools, REST ──► calendar_request ──► calendar_events, calendar_members
 *     reactions, the platform's calendar ──┘              │ rows that are ahead
 *                                                         ▼
 *                          calendar_announce ──► outbox: announcement, edits, platform event
 *
 * What people see follows the rows: after each commit, and at the start, calendar_announce looks
 * for rows that are ahead of their announcement, so that a crash between the two loses nothing.
 */
#ifndef SCHEDULE_CALENDAR_CALENDAR_H
#define SCHEDULE_CALENDAR_CALENDAR_H

#include "schedule/calendar/calendar_request.h"

/* q has the result; err: the store failed. q is freed after the call. */
typedef void calendar_done_fn(void *arg, struct calendar_request *q, const struct error *err);

/* A request with the configuration in force. */
struct calendar_request *calendar_request_for(struct schedule *s, enum calendar_action action);
/* Carries it out in a transaction of its own. Takes q; calls done once, later. */
void calendar_submit(struct schedule *s, struct calendar_request *q, calendar_done_fn *done,
                     void *arg);
/* The request's transaction is committed: publishes what it journaled, and shows it. */
void calendar_committed(struct schedule *s, struct calendar_request *q);
/* The platform of a configured adapter, borrowed; NULL: there is no such adapter. */
const char *calendar_platform_of(struct schedule *s, const char *adapter);

/* ---- the feed: key-less, with a token of its own ---- */

#define CALENDAR_TOKEN_SIZE 44
/* Inside a store function. Makes a new token; the one before is worth nothing then. */
int calendar_feed_renew(struct store_tx *tx, char token[CALENDAR_TOKEN_SIZE], struct error *err);
int calendar_feed_disable(struct store_tx *tx, struct error *err);
/* Is it the token? 1; 0; -1. */
int calendar_feed_check(struct store_tx *tx, const char *token, struct error *err);
/* Events since a month ago, as iCalendar. */
int calendar_feed_write(struct store_tx *tx, int64_t now_ms, struct buf *out, struct error *err);

#endif
