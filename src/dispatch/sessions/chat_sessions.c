#include "dispatch/sessions/chat_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"

#define PLACES_MAX  16                      /* of one session; the oldest is forgotten */
#define TURN_MAX_MS ((int64_t)24 * 3600000) /* no turn keeps a conversation open longer */
/* no row is worth keeping longer: no window is that long */
#define ROW_MAX_MS ((int64_t)15 * 86400000)

struct place {
        char *key;
        struct session *session;
        TAILQ_ENTRY(place) next;
};
TAILQ_HEAD(places, place);

struct session {
        char *name;
        int64_t active_ms;
        unsigned open; /* turns that have not ended */
        struct places places;
        unsigned place_count;
        TAILQ_ENTRY(session) next;
};
TAILQ_HEAD(sessions, session);

struct chat_sessions {
        struct map by_place, by_name;
        struct sessions sessions; /* who was quiet longest comes first */
        size_t max;
        int64_t longest_ms;
};

struct chat_sessions *chat_sessions_new(size_t max)
{
        struct chat_sessions *w = mem_zalloc(sizeof(*w));

        map_init(&w->by_place);
        map_init(&w->by_name);
        TAILQ_INIT(&w->sessions);
        w->max = max;
        return w;
}

static void forget_place(struct chat_sessions *w, struct place *p)
{
        map_remove(&w->by_place, p->key);
        TAILQ_REMOVE(&p->session->places, p, next);
        p->session->place_count--;
        free(p->key);
        free(p);
}

static void forget(struct chat_sessions *w, struct session *s)
{
        struct place *p;

        while ((p = TAILQ_FIRST(&s->places)))
                forget_place(w, p);
        map_remove(&w->by_name, s->name);
        TAILQ_REMOVE(&w->sessions, s, next);
        free(s->name);
        free(s);
}

void chat_sessions_free(struct chat_sessions *w)
{
        struct session *s;

        if (!w)
                return;
        while ((s = TAILQ_FIRST(&w->sessions)))
                forget(w, s);
        map_release(&w->by_place);
        map_release(&w->by_name);
        free(w);
}

void chat_sessions_set_longest(struct chat_sessions *w, int64_t seconds)
{
        w->longest_ms = seconds * 1000;
}

size_t chat_sessions_count(const struct chat_sessions *w)
{
        return w->by_name.count;
}

/* ---- places and sessions ---- */

static const char *shown(const char *text)
{
        return text ? text : "";
}

void chat_session_thread_key(const char *adapter, const char *channel, const char *thread,
                             struct buf *out)
{
        buf_addf(out, "%s\nthread\n%s\n%s", shown(adapter), shown(channel), shown(thread));
}

void chat_session_key(const struct incoming *in, struct buf *out)
{
        if (in->chat == CHAT_DM)
                buf_addf(out, "%s\ndm\n%s", shown(in->adapter), shown(in->channel));
        else if (in->thread)
                chat_session_thread_key(in->adapter, in->channel, in->thread, out);
        else
                buf_addf(out, "%s\nperson\n%s\n%s", shown(in->adapter), shown(in->channel),
                         shown(in->sender_id));
}

/* Random, version 4 of RFC 9562. */
static void add_uuid(struct buf *out)
{
        unsigned char b[16];

        id_random_bytes(b, sizeof(b));
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        for (size_t i = 0; i < sizeof(b); i++)
                buf_addf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

void chat_session_name(const char *platform, const struct incoming *in, struct buf *out)
{
        if (in->chat == CHAT_DM)
                buf_addf(out, "%s-dm:", platform);
        else
                buf_addf(out, "%s-channel-%s:", platform,
                         in->thread ? in->thread : shown(in->channel));
        add_uuid(out);
}

/* ---- asking ---- */

static bool is_live(const struct session *s, int64_t window_ms, int64_t now_ms)
{
        int64_t quiet_ms = now_ms - s->active_ms; /* below 0: the clock was set back */

        return quiet_ms < window_ms || (s->open > 0 && quiet_ms < TURN_MAX_MS);
}

const char *chat_session_find(const struct chat_sessions *w, const char *place, int64_t seconds,
                              int64_t now_ms)
{
        const struct place *p = seconds > 0 ? map_get(&w->by_place, place) : NULL;

        return p && is_live(p->session, seconds * 1000, now_ms) ? p->session->name : NULL;
}

/* ---- telling ---- */

static void make_room(struct chat_sessions *w, int64_t now_ms)
{
        struct session *s;

        while ((s = TAILQ_FIRST(&w->sessions)) &&
               (!is_live(s, w->longest_ms, now_ms) || w->by_name.count >= w->max))
                forget(w, s);
}

/* Found or made, and the last of the row. */
static struct session *touch(struct chat_sessions *w, const char *name, int64_t now_ms)
{
        struct session *s = map_get(&w->by_name, name);

        if (s) {
                TAILQ_REMOVE(&w->sessions, s, next);
        } else {
                make_room(w, now_ms);
                s = mem_zalloc(sizeof(*s));
                s->name = mem_strdup(name);
                TAILQ_INIT(&s->places);
                map_put(&w->by_name, name, s);
        }
        TAILQ_INSERT_TAIL(&w->sessions, s, next);
        if (s->active_ms < now_ms)
                s->active_ms = now_ms;
        return s;
}

static void belong(struct chat_sessions *w, struct session *s, const char *key)
{
        struct place *p = key ? map_get(&w->by_place, key) : NULL;

        if (!key || (p && p->session == s))
                return;
        if (p)
                forget_place(w, p);
        if (s->place_count >= PLACES_MAX)
                forget_place(w, TAILQ_FIRST(&s->places));
        p = mem_zalloc(sizeof(*p));
        p->key = mem_strdup(key);
        p->session = s;
        TAILQ_INSERT_TAIL(&s->places, p, next);
        s->place_count++;
        map_put(&w->by_place, key, p);
}

void chat_session_touch(struct chat_sessions *w, const char *place, const char *session,
                        bool new_turn, int64_t now_ms)
{
        struct session *s = touch(w, session, now_ms);

        s->open += new_turn;
        belong(w, s, place);
}

void chat_session_ended(struct chat_sessions *w, const char *session, const char *place,
                        int64_t now_ms)
{
        struct session *s = touch(w, session, now_ms);

        s->open -= s->open > 0;
        belong(w, s, place);
}

/* ---- the table ---- */

struct row {
        char *place, *session;
        int64_t now_ms;
};

static int write_place(struct store_tx *tx, const struct row *r, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO chat_sessions(chat, session, active_ms) VALUES(?1, ?2, ?3)"
                    " ON CONFLICT(chat) DO UPDATE SET session = ?2, active_ms = ?3");

        store_bind_text(s, 1, r->place);
        store_bind_text(s, 2, r->session);
        store_bind_int(s, 3, r->now_ms);
        return store_run(s, err);
}

static int write_said(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;
        struct store_stmt *s = store_prepare(tx, "DELETE FROM chat_sessions WHERE active_ms < ?1");

        store_bind_int(s, 1, r->now_ms - ROW_MAX_MS);
        return store_run(s, err) < 0 ? -1 : write_place(tx, r, err);
}

static int write_ended(struct store_tx *tx, void *arg, struct error *err)
{
        const struct row *r = arg;
        struct store_stmt *s =
                store_prepare(tx, "UPDATE chat_sessions SET active_ms = ?2 WHERE session = ?1");

        store_bind_text(s, 1, r->session);
        store_bind_int(s, 2, r->now_ms);
        if (store_run(s, err) < 0)
                return -1;
        return r->place ? write_place(tx, r, err) : 0;
}

static void row_free(void *arg)
{
        struct row *r = arg;

        free(r->place);
        free(r->session);
        free(r);
}

static struct tx_extra also(store_fn *fn, const char *place, const char *session, int64_t now_ms)
{
        struct row *r = mem_zalloc(sizeof(*r));

        r->place = mem_strdup(place);
        r->session = mem_strdup(session);
        r->now_ms = now_ms;
        return (struct tx_extra){ .fn = fn, .done = row_free, .arg = r };
}

struct tx_extra chat_session_touch_extra(const char *place, const char *session, int64_t now_ms)
{
        return also(write_said, place, session, now_ms);
}

struct tx_extra chat_session_ended_extra(const char *session, const char *place, int64_t now_ms)
{
        return also(write_ended, place, session, now_ms);
}

struct restoring {
        struct chat_sessions *sessions;
        int64_t now_ms;
};

/* Oldest first, so that the row ends with who was active last. */
static int read_rows(struct store_tx *tx, const struct restoring *r, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT chat, session, active_ms FROM (SELECT chat, session, active_ms"
                    " FROM chat_sessions WHERE active_ms > ?1 ORDER BY active_ms DESC LIMIT ?2)"
                    " AS newest ORDER BY active_ms");
        int rc;

        store_bind_int(s, 1, r->now_ms - r->sessions->longest_ms - TURN_MAX_MS);
        store_bind_int(s, 2, (int64_t)r->sessions->max);
        while ((rc = store_step(s, err)) == 1)
                chat_session_touch(r->sessions, store_col_text(s, 0), store_col_text(s, 1), false,
                                   store_col_int(s, 2));
        return rc;
}

static int read_open(struct store_tx *tx, const struct restoring *r, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "SELECT session, created_ms FROM turns"
                                  " WHERE state IN ('queued', 'running') AND session IS NOT NULL");
        int rc;

        while ((rc = store_step(s, err)) == 1)
                chat_session_touch(r->sessions, NULL, store_col_text(s, 0), true,
                                   store_col_int(s, 1));
        return rc;
}

static int read_all(struct store_tx *tx, void *arg, struct error *err)
{
        return read_rows(tx, arg, err) < 0 || read_open(tx, arg, err) < 0 ? -1 : 0;
}

int chat_session_restore(struct chat_sessions *w, struct store *s, int64_t now_ms,
                         struct error *err)
{
        struct restoring r = { w, now_ms };

        return store_read_now(s, read_all, &r, err);
}
