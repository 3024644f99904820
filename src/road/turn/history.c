/*
 * history: what an agent reads before it answers.
 *
 * Without a session that is the conversation so far. With one it is what was said in the session,
 * in whichever lane, and what a person noted in this lane meanwhile; before it stand a few lines
 * from the time before, so that a session that begins after a pause does not begin with nothing.
 * They are counted from the session's beginning and do not change while it lasts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/road_private.h"

#define WARM_LINES  8
#define WARM_AGE_MS 86400000LL

struct history_read {
        struct turn *turn;
        struct arena *arena;
        const char *session;
        int64_t conversation, limit, now_ms;
        /* of the conversation: what is before does not count any more */
        int64_t from_line, from_turn;
        int64_t begin_line, begin_ms;  /* of the session */
        struct transcript_line *lines; /* filled from its end */
        unsigned free_lines;
};

#define COLUMNS "id, role, name, text, time_ms"
#define COUNTS  " AND id > ?2 AND (turn = 0 OR turn >= ?3)"

static int read_reset(struct store_tx *tx, struct history_read *h, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT history_from, history_turn FROM conversations WHERE id = ?1");
        int rc;

        h->from_line = h->from_turn = 0;
        store_bind_int(s, 1, h->conversation);
        rc = store_step(s, err);
        if (rc == 1) {
                h->from_line = store_col_int(s, 0);
                h->from_turn = store_col_int(s, 1);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

/* A new session begins now, after everything. */
static int read_beginning(struct store_tx *tx, struct history_read *h, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT id, time_ms FROM transcript WHERE session = ?1" COUNTS
                                  " ORDER BY id LIMIT 1");
        int rc;

        h->begin_line = INT64_MAX;
        h->begin_ms = h->now_ms;
        store_bind_text(s, 1, h->session);
        store_bind_int(s, 2, h->from_line);
        store_bind_int(s, 3, h->from_turn);
        rc = store_step(s, err);
        if (rc == 1) {
                h->begin_line = store_col_int(s, 0);
                h->begin_ms = store_col_int(s, 1);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

/* Reads from the newest back, so that the index is the order, and files from the end. */
static int file_lines(struct history_read *h, struct store_stmt *s, struct error *err)
{
        int rc;

        while ((rc = store_step(s, err)) == 1) {
                struct transcript_line *line;

                if (h->free_lines == 0) {
                        store_reset(s);
                        return 0;
                }
                line = &h->lines[--h->free_lines];
                *line = (struct transcript_line){
                        .role = arena_strdup(h->arena, store_col_text(s, 1)),
                        .name = arena_strdup(h->arena, store_col_text(s, 2)),
                        .text = arena_strdup(h->arena, store_col_text(s, 3)),
                        .time_ms = store_col_int(s, 4),
                };
        }
        return rc < 0 ? -1 : 0;
}

static int read_conversation(struct store_tx *tx, struct history_read *h, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT " COLUMNS
                                                 " FROM transcript WHERE conversation = ?1" COUNTS
                                                 " ORDER BY id DESC LIMIT ?4");

        store_bind_int(s, 1, h->conversation);
        store_bind_int(s, 2, h->from_line);
        store_bind_int(s, 3, h->from_turn);
        store_bind_int(s, 4, h->limit);
        return file_lines(h, s, err);
}

static int read_session(struct store_tx *tx, struct history_read *h, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT * FROM (SELECT " COLUMNS " FROM transcript WHERE session = ?1" COUNTS
                    " ORDER BY id DESC LIMIT ?4) AS said"
                    " UNION ALL SELECT * FROM (SELECT " COLUMNS
                    " FROM transcript WHERE conversation = ?5"
                    " AND turn = 0 AND id > ?2 AND id > ?6 ORDER BY id DESC LIMIT ?4) AS noted"
                    " ORDER BY 1 DESC LIMIT ?4");

        store_bind_text(s, 1, h->session);
        store_bind_int(s, 2, h->from_line);
        store_bind_int(s, 3, h->from_turn);
        store_bind_int(s, 4, h->limit);
        store_bind_int(s, 5, h->conversation);
        store_bind_int(s, 6, h->begin_line);
        return file_lines(h, s, err);
}

static int read_warming(struct store_tx *tx, struct history_read *h, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT " COLUMNS " FROM transcript WHERE conversation = ?1" COUNTS
                    " AND id < ?4 AND time_ms >= ?5 ORDER BY id DESC LIMIT ?6");

        store_bind_int(s, 1, h->conversation);
        store_bind_int(s, 2, h->from_line);
        store_bind_int(s, 3, h->from_turn);
        store_bind_int(s, 4, h->begin_line);
        store_bind_int(s, 5, h->begin_ms - WARM_AGE_MS);
        store_bind_int(s, 6, WARM_LINES);
        return file_lines(h, s, err);
}

static int read_history(struct store_tx *tx, void *arg, struct error *err)
{
        struct history_read *h = arg;

        h->lines = arena_alloc(h->arena, (size_t)h->limit * sizeof(*h->lines));
        h->free_lines = (unsigned)h->limit;
        if (read_reset(tx, h, err) < 0)
                return -1;
        if (!h->session)
                return read_conversation(tx, h, err);
        if (read_beginning(tx, h, err) < 0 || read_session(tx, h, err) < 0)
                return -1;
        return read_warming(tx, h, err);
}

static void on_history(void *arg, const struct error *err)
{
        struct history_read *h = arg;
        struct turn *t = h->turn;

        t->road->writes--;
        if (err)
                log_warn("cannot read the conversation so far, going on without it",
                         LOG_S("turn", t->key), LOG_S("why", err->text));
        t->run.history = err ? NULL : h->lines + h->free_lines;
        t->run.history_count = err ? 0 : (unsigned)h->limit - h->free_lines;
        free(h);
        turn_hand_over(t);
}

/*
 * Where the platform tells nobody what was said before, the lane has what the bot has heard itself.
 */
static bool is_recalled(const struct turn *t)
{
        const struct road *r = t->road;

        return t->policy.mode == MODE_AMBIENT && t->policy.channel_messages > 0 &&
               r->platforms.channel_history &&
               (r->platforms.abilities(r->platforms.adapters, t->adapter) &
                ADAPTER_CHANNEL_HISTORY) != 0;
}

void history_gather(struct turn *t)
{
        struct road *r = t->road;
        struct history_read *h;

        if (is_recalled(t)) {
                recall_begin(t, (unsigned)t->policy.channel_messages);
                return;
        }
        if (!(r->agents.abilities(r->agents.agents, t->agent) & AGENT_HISTORY) ||
            r->limits.history_messages == 0) {
                turn_hand_over(t);
                return;
        }
        h = mem_zalloc(sizeof(*h));
        h->turn = t;
        h->arena = &t->arena;
        h->session = t->session;
        h->conversation = t->run.conversation;
        h->limit = r->limits.history_messages;
        h->now_ms = clock_wall_ms();
        r->writes++;
        store_read(r->store, read_history, on_history, h);
}
