#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/id.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "rows/chat_session_row.h"
#include "rows/turn_row.h"

#define KEYS_MAX    16                       /* per session; the oldest is evicted */
#define TURN_MAX_MS ((int64_t)24 * 3600000)  /* an open turn keeps its session live this long */
#define ROW_MAX_MS  ((int64_t)15 * 86400000) /* above any setting */

struct session_chat {
        char *key;
        struct chat_session *session;
        TAILQ_ENTRY(session_chat) next;
};

struct chat_session {
        char *name;
        int64_t active_ms;
        unsigned open; /* turns that have not ended */
        TAILQ_HEAD(session_chats, session_chat) chats;
        unsigned chat_count;
        TAILQ_ENTRY(chat_session) next;
};

struct chat_sessions {
        struct map by_key, by_name;
        TAILQ_HEAD(session_list, chat_session) list; /* quiet longest first */
        size_t max;
        int64_t longest_ms;
};

struct chat_sessions *chat_sessions_new(size_t max)
{
        struct chat_sessions *cs = mem_zalloc(sizeof(*cs));

        map_init(&cs->by_key);
        map_init(&cs->by_name);
        TAILQ_INIT(&cs->list);
        cs->max = max;
        return cs;
}

static void drop_chat(struct chat_sessions *cs, struct session_chat *c)
{
        map_remove(&cs->by_key, c->key);
        TAILQ_REMOVE(&c->session->chats, c, next);
        c->session->chat_count--;
        free(c->key);
        free(c);
}

static void evict(struct chat_sessions *cs, struct chat_session *s)
{
        struct session_chat *c;

        while ((c = TAILQ_FIRST(&s->chats)))
                drop_chat(cs, c);
        map_remove(&cs->by_name, s->name);
        TAILQ_REMOVE(&cs->list, s, next);
        free(s->name);
        free(s);
}

void chat_sessions_free(struct chat_sessions *cs)
{
        struct chat_session *s;

        if (!cs)
                return;
        while ((s = TAILQ_FIRST(&cs->list)))
                evict(cs, s);
        map_release(&cs->by_key);
        map_release(&cs->by_name);
        free(cs);
}

void chat_sessions_set_longest(struct chat_sessions *cs, int64_t seconds)
{
        cs->longest_ms = seconds * 1000;
}

size_t chat_sessions_count(const struct chat_sessions *cs)
{
        return cs->by_name.count;
}

/* ---- sessions in memory ---- */

static bool is_live(const struct chat_session *s, int64_t window_ms, int64_t now_ms)
{
        int64_t quiet_ms = now_ms - s->active_ms; /* negative if the clock was set back */

        return quiet_ms < window_ms || (s->open > 0 && quiet_ms < TURN_MAX_MS);
}

const char *chat_session_find(const struct chat_sessions *cs, const char *key, int64_t seconds,
                              int64_t now_ms)
{
        const struct session_chat *c = seconds > 0 ? map_get(&cs->by_key, key) : NULL;

        return c && is_live(c->session, seconds * 1000, now_ms) ? c->session->name : NULL;
}

void chat_session_touch(struct chat_sessions *cs, const char *key, const char *session, int turns,
                        int64_t now_ms)
{
        struct chat_session *s = map_get(&cs->by_name, session), *first;
        struct session_chat *c;

        if (s) {
                TAILQ_REMOVE(&cs->list, s, next);
        } else {
                while ((first = TAILQ_FIRST(&cs->list)) &&
                       (!is_live(first, cs->longest_ms, now_ms) || cs->by_name.count >= cs->max))
                        evict(cs, first);
                s = mem_zalloc(sizeof(*s));
                s->name = mem_strdup(session);
                TAILQ_INIT(&s->chats);
                map_put(&cs->by_name, session, s);
        }
        TAILQ_INSERT_TAIL(&cs->list, s, next);
        if (s->active_ms < now_ms)
                s->active_ms = now_ms;
        if (turns > 0)
                s->open++;
        else if (turns < 0 && s->open > 0)
                s->open--;
        c = key ? map_get(&cs->by_key, key) : NULL;
        if (!key || (c && c->session == s))
                return;
        if (c)
                drop_chat(cs, c);
        if (s->chat_count >= KEYS_MAX)
                drop_chat(cs, TAILQ_FIRST(&s->chats));
        c = mem_zalloc(sizeof(*c));
        c->key = mem_strdup(key);
        c->session = s;
        TAILQ_INSERT_TAIL(&s->chats, c, next);
        s->chat_count++;
        map_put(&cs->by_key, key, c);
}

int chat_session_restore(struct chat_sessions *cs, struct store_tx *tx, int64_t now_ms,
                         struct error *err)
{
        struct store_stmt *s =
                chat_session_row_list(tx, now_ms - cs->longest_ms - TURN_MAX_MS, (int64_t)cs->max);
        struct chat_session_row row;
        struct turn_pending turn;
        int rc;

        while ((rc = chat_session_row_next(s, &row, err)) == 1)
                chat_session_touch(cs, row.chat, row.session, 0, row.active_ms);
        if (rc < 0)
                return -1;
        s = turn_row_list_pending(tx);
        while ((rc = turn_row_next_pending(s, &turn, err)) == 1) {
                if (turn.session)
                        chat_session_touch(cs, NULL, turn.session, 1, turn.created_ms);
        }
        return rc;
}

/* ---- keys and names ---- */

static const char *or_empty(const char *text)
{
        return text ? text : "";
}

/* Stored: never change the format. */
static void add_thread_key(const char *adapter, const char *channel, const char *thread,
                           struct buf *out)
{
        buf_addf(out, "%s\nthread\n%s\n%s", or_empty(adapter), or_empty(channel), or_empty(thread));
}

static void add_chat_key(const struct incoming *in, struct buf *out)
{
        if (in->chat == CHAT_DM)
                buf_addf(out, "%s\ndm\n%s", or_empty(in->adapter), or_empty(in->channel));
        else if (in->thread)
                add_thread_key(in->adapter, in->channel, in->thread, out);
        else
                buf_addf(out, "%s\nperson\n%s\n%s", or_empty(in->adapter), or_empty(in->channel),
                         or_empty(in->sender_id));
}

/* "discord-dm:<uuid>", "discord-channel-<channel or thread>:<uuid>" */
static void add_new_name(const char *platform, const struct incoming *in, struct buf *out)
{
        unsigned char b[16]; /* random UUID, version 4 of RFC 9562 */

        if (in->chat == CHAT_DM)
                buf_addf(out, "%s-dm:", platform);
        else
                buf_addf(out, "%s-channel-%s:", platform,
                         in->thread ? in->thread : or_empty(in->channel));
        id_random_bytes(b, sizeof(b));
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        for (size_t i = 0; i < sizeof(b); i++)
                buf_addf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

/* ---- deciding ---- */

void chat_session_continue(struct evaluation *e)
{
        const struct dispatch_adapter *a = e->adapter;
        const struct incoming *in = e->in;
        struct dispatch *d = e->d;
        /* a late event counts at the time it was written */
        int64_t time_ms = in->time_ms > 0 && in->time_ms < e->now_ms ? in->time_ms : e->now_ms;

        buf_clear(&d->chat);
        if (!a)
                return;
        e->session_seconds =
                in->chat == CHAT_DM ? a->dm_conversation_seconds : a->conversation_seconds;
        if (e->session_seconds <= 0)
                return;
        add_chat_key(in, &d->chat);
        e->live_session = chat_session_find(d->sessions, d->chat.data, e->session_seconds, time_ms);
        e->context.in_session = e->live_session != NULL;
}

/* A message answered in a new thread starts a session. */
static bool begins_thread(const struct evaluation *e)
{
        return e->rule && e->rule->mode == MODE_THREAD && e->in->chat != CHAT_DM && !e->in->thread;
}

void chat_session_assign(struct evaluation *e)
{
        struct buf *session = &e->d->session;

        /* an ambient agent talks with the whole channel */
        if (e->session_seconds <= 0 || (e->rule && e->rule->mode == MODE_AMBIENT))
                return;
        e->out->per_person = e->in->chat != CHAT_DM && !e->in->thread;
        buf_clear(session);
        if (e->live_session && !begins_thread(e))
                buf_addstr(session, e->live_session);
        else
                add_new_name(e->adapter->platform, e->in, session);
        e->out->session = session->data;
}

static int write_touch(struct store_tx *tx, void *arg, struct error *err)
{
        const struct chat_session_row *r = arg;

        if (chat_session_row_delete_before(tx, r->active_ms - ROW_MAX_MS, err) < 0)
                return -1;
        return chat_session_row_put(tx, r, err);
}

static int write_ended(struct store_tx *tx, void *arg, struct error *err)
{
        const struct chat_session_row *r = arg;

        if (chat_session_row_touch(tx, r->session, r->active_ms, err) < 0)
                return -1;
        return r->chat ? chat_session_row_put(tx, r, err) : 0;
}

static void on_row_stored(void *arg, const struct error *err)
{
        struct chat_session_row *r = arg;

        (void)err;
        free((char *)r->chat);
        free((char *)r->session);
        free(r);
}

static struct tx_extra extra_new(store_fn *fn, const char *chat, const char *session,
                                 int64_t now_ms)
{
        struct chat_session_row *r = mem_alloc(sizeof(*r));

        *r = (struct chat_session_row){ mem_strdup(chat), mem_strdup(session), now_ms };
        return (struct tx_extra){ .fn = fn, .done = on_row_stored, .arg = r };
}

void chat_session_open(struct evaluation *e)
{
        /* a thread gets its key when the answer starts it */
        const char *chat = begins_thread(e) ? NULL : e->d->chat.data;
        const char *session = e->out->session;

        if (!session)
                return;
        chat_session_touch(e->d->sessions, chat, session, e->joins_turn ? 0 : 1, e->now_ms);
        if (chat)
                evaluation_add_write(e->out, extra_new(write_touch, chat, session, e->now_ms));
}

void chat_session_restart(struct evaluation *e)
{
        struct dispatch *d = e->d;

        if (e->session_seconds <= 0)
                return;
        buf_clear(&d->session);
        add_new_name(e->adapter->platform, e->in, &d->session);
        chat_session_touch(d->sessions, d->chat.data, d->session.data, 0, e->now_ms);
        evaluation_add_write(e->out,
                             extra_new(write_touch, d->chat.data, d->session.data, e->now_ms));
}

/* ---- ending a turn ---- */

/* The chat key that continues the session: a thread started by the answer; NULL: the same. */
static const char *next_chat(struct dispatch *d, const struct turn_run *run,
                             const struct turn_outcome *outcome)
{
        if (!outcome->thread)
                return NULL;
        buf_clear(&d->chat);
        add_thread_key(run->adapter, run->channel, outcome->thread, &d->chat);
        return d->chat.data;
}

struct tx_extra chat_session_ending(struct dispatch *d, const struct turn_run *run,
                                    const struct turn_outcome *outcome)
{
        if (!run->session)
                return (struct tx_extra){ 0 };
        return extra_new(write_ended, next_chat(d, run, outcome), run->session, dispatch_now(d));
}

void chat_session_ended(struct dispatch *d, const struct turn_run *run,
                        const struct turn_outcome *outcome)
{
        if (run->session)
                chat_session_touch(d->sessions, next_chat(d, run, outcome), run->session, -1,
                                   dispatch_now(d));
}
