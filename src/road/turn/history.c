/*
 * history: the transcript lines an agent gets.
 *
 * Without a session, the conversation so far. With one, the session's lines in any lane plus those
 * said to no agent in this lane meanwhile, preceded by a few earlier lines so that a new session
 * has context. These are counted from the session's start and stay the same while it lasts.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "road/turn/turn.h"
#include "rows/conversation_row.h"

#define EARLIER_LINES  8
#define EARLIER_AGE_MS 86400000LL

struct history_read {
        struct turn *turn;
        struct arena *arena;
        const char *session;
        int64_t conversation, limit, now_ms;
        struct transcript_line *lines; /* filled from the end */
        unsigned unused;               /* slots at the beginning */
};

/* Rows come newest first. */
static int add_lines(struct history_read *h, struct store_stmt *s, struct error *err)
{
        struct transcript_row row;
        int rc;

        while ((rc = transcript_row_next(s, &row, err)) == 1) {
                if (h->unused == 0) {
                        rows_end(s);
                        return 0;
                }
                h->lines[--h->unused] = (struct transcript_line){
                        .role = arena_strdup(h->arena, row.role),
                        .name = arena_strdup(h->arena, row.name),
                        .text = arena_strdup(h->arena, row.text),
                        .time_ms = row.time_ms,
                        .turn = row.turn,
                };
        }
        return rc;
}

static int read_history(struct store_tx *tx, void *arg, struct error *err)
{
        struct history_read *h = arg;
        /* a new session starts after all lines */
        int64_t start_line = INT64_MAX, start_ms = h->now_ms;
        struct history_start from;

        h->lines = arena_alloc(h->arena, (size_t)h->limit * sizeof(*h->lines));
        h->unused = (unsigned)h->limit;
        if (conversation_row_history_start(tx, h->conversation, &from, err) < 0)
                return -1;
        if (!h->session)
                return add_lines(
                        h, transcript_row_list_conversation(tx, h->conversation, &from, h->limit),
                        err);
        if (transcript_row_session_start(tx, h->session, &from, &start_line, &start_ms, err) < 0 ||
            add_lines(h,
                      transcript_row_list_session(tx, h->session, h->conversation, &from,
                                                  start_line, h->limit),
                      err) < 0)
                return -1;
        return add_lines(h,
                         transcript_row_list_before(tx, h->conversation, &from, start_line,
                                                    start_ms - EARLIER_AGE_MS, EARLIER_LINES),
                         err);
}

static void on_history(void *arg, const struct error *err)
{
        struct history_read *h = arg;
        struct turn *t = h->turn;

        t->road->writes--;
        if (err)
                log_warn("cannot read the history; the agent starts without it",
                         LOG_S("turn", t->key), LOG_S("why", err->text));
        t->run.history = err ? NULL : h->lines + h->unused;
        t->run.history_count = err ? 0 : (unsigned)h->limit - h->unused;
        free(h);
        turn_hand_over(t);
}

void history_begin(struct turn *t)
{
        struct road *r = t->road;
        struct history_read *h = mem_zalloc(sizeof(*h));

        h->turn = t;
        h->arena = &t->arena;
        h->session = t->run.session;
        h->conversation = t->run.conversation;
        h->limit = r->limits.history_messages;
        h->now_ms = clock_wall_ms();
        r->writes++;
        store_read(r->store, read_history, on_history, h);
}
