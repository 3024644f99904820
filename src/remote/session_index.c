/*
 * session_index: which chat, and which message in a chat without threads, shows which session.
 *
 * A session that has ended has left its chat, which is an ordinary one again; its messages are
 * kept, because it may go on. Sessions that were pruned are forgotten within an hour.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "rows/session_view_row.h"

#define READ_MAX     10000 /* sessions at the start, the newest */
#define MESSAGES_MAX 50000 /* then those of the session shown longest ago are forgotten */
#define CHECK_MS     3600000

struct shown_message {
        struct shown_session *session;
        char *key; /* in session_index.messages */
        TAILQ_ENTRY(shown_message) next;
};
TAILQ_HEAD(shown_messages, shown_message);

struct shown_session {
        int64_t id;
        char *identity; /* whose it is; NULL: not said */
        bool has_ended;
        struct shown_chat *chat; /* NULL: in none */
        TAILQ_ENTRY(shown_session) in_chat;
        struct shown_message *root;
        struct shown_messages messages; /* the others, oldest first */
        unsigned message_count;
        TAILQ_ENTRY(shown_session) in_recent;
};
TAILQ_HEAD(shown_sessions, shown_session);

struct shown_chat {
        char *key;
        struct shown_sessions sessions; /* the one that was linked last comes first */
};

struct session_index {
        struct map sessions;          /* by number → shown_session */
        struct map chats;             /* → shown_chat */
        struct map messages;          /* → shown_message */
        struct shown_sessions recent; /* those with messages; the one that was shown last is last */
        struct timer *timer;
};

/* ---- sessions ---- */

static void number_key(int64_t id, char out[24])
{
        snprintf(out, 24, "%lld", (long long)id);
}

static struct shown_session *find_session(const struct session_index *x, int64_t id)
{
        char key[24];

        number_key(id, key);
        return map_get(&x->sessions, key);
}

static struct shown_session *get(struct session_index *x, const struct session_row *row)
{
        struct shown_session *s = find_session(x, row->id);
        char key[24];

        if (!s) {
                number_key(row->id, key);
                s = mem_zalloc(sizeof(*s));
                s->id = row->id;
                TAILQ_INIT(&s->messages);
                map_put(&x->sessions, key, s);
        }
        free(s->identity);
        s->identity = mem_strdup(row->identity);
        s->has_ended = row->state == SESSION_ENDED;
        return s;
}

static bool has_messages(const struct shown_session *s)
{
        return s->root || s->message_count > 0;
}

static void free_if_unused(struct session_index *x, struct shown_session *s)
{
        char key[24];

        if (s->chat || has_messages(s))
                return;
        number_key(s->id, key);
        map_remove(&x->sessions, key);
        free(s->identity);
        free(s);
}

/* ---- chats ---- */

static void leave_chat(struct session_index *x, struct shown_session *s)
{
        struct shown_chat *chat = s->chat;

        if (!chat)
                return;
        TAILQ_REMOVE(&chat->sessions, s, in_chat);
        s->chat = NULL;
        if (!TAILQ_EMPTY(&chat->sessions))
                return;
        map_remove(&x->chats, chat->key);
        free(chat->key);
        free(chat);
}

static struct shown_chat *get_chat(struct session_index *x, const struct chat_key *key)
{
        char *text = chat_key_text(key);
        struct shown_chat *chat = map_get(&x->chats, text);

        if (chat) {
                free(text);
                return chat;
        }
        chat = mem_zalloc(sizeof(*chat));
        chat->key = text;
        TAILQ_INIT(&chat->sessions);
        map_put(&x->chats, text, chat);
        return chat;
}

/* first: it was linked after the others of its chat. */
static void put(struct session_index *x, const struct session_row *row, bool first)
{
        const struct chat_key chat = { row->adapter, row->channel, row->thread };
        struct shown_session *s = get(x, row);

        leave_chat(x, s);
        if (row->adapter && !s->has_ended) {
                s->chat = get_chat(x, &chat);
                if (first)
                        TAILQ_INSERT_HEAD(&s->chat->sessions, s, in_chat);
                else
                        TAILQ_INSERT_TAIL(&s->chat->sessions, s, in_chat);
        }
        free_if_unused(x, s);
}

void session_index_put(struct remote *r, const struct session_row *row)
{
        put(r->index, row, true);
}

bool session_index_has(const struct remote *r, const struct session_row *row)
{
        const struct shown_session *s = find_session(r->index, row->id);
        char *key = chat_key_text(&(struct chat_key){ row->adapter, row->channel, row->thread });
        bool has = s && s->chat && strcmp(s->chat->key, key) == 0;

        free(key);
        return has;
}

void remote_linked(struct remote *r, const struct session_row *row)
{
        bool shown = session_view_wake(r, row, true, true);
        struct shown_session *s = find_session(r->index, row->id);

        /* a channel where a thread may begin for it is not its own before the view knows better */
        if (!shown || row->thread || !r->conf.threads || session_index_has(r, row)) {
                session_index_put(r, row);
        } else if (s) {
                leave_chat(r->index, s);
                free_if_unused(r->index, s);
        }
}

size_t session_index_chats(const struct remote *r)
{
        return r->index->chats.count;
}

/* ---- messages ---- */

static char *message_key(const struct chat_key *chat, const char *message)
{
        return chat_key_text(&(struct chat_key){ chat->adapter, chat->channel, message });
}

static void forget_message(struct session_index *x, struct shown_message *m)
{
        struct shown_session *s = m->session;

        map_remove(&x->messages, m->key);
        if (m == s->root) {
                s->root = NULL;
        } else {
                TAILQ_REMOVE(&s->messages, m, next);
                s->message_count--;
        }
        if (!has_messages(s))
                TAILQ_REMOVE(&x->recent, s, in_recent);
        free(m->key);
        free(m);
}

static void forget_messages(struct session_index *x, struct shown_session *s)
{
        struct shown_message *m;

        while ((m = s->root ? s->root : TAILQ_FIRST(&s->messages)))
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                forget_message(x, m);
}

static void append(struct shown_session *s, struct shown_message *m)
{
        TAILQ_INSERT_TAIL(&s->messages, m, next);
        s->message_count++;
}

static void add_message(struct session_index *x, struct shown_session *s, char *key, bool is_root)
{
        struct shown_message *m = mem_zalloc(sizeof(*m));

        if (has_messages(s))
                TAILQ_REMOVE(&x->recent, s, in_recent);
        TAILQ_INSERT_TAIL(&x->recent, s, in_recent);
        m->session = s;
        m->key = key;
        map_put(&x->messages, key, m);
        if (is_root && s->root)
                append(s, s->root);
        if (is_root)
                s->root = m;
        else
                append(s, m);
        if (s->message_count > SESSION_MESSAGES_KEPT)
                forget_message(x, TAILQ_FIRST(&s->messages));
        while (x->messages.count > MESSAGES_MAX) {
                struct shown_session *oldest = TAILQ_FIRST(&x->recent);

                forget_messages(x, oldest);
                free_if_unused(x, oldest);
        }
}

void session_index_add_message(struct remote *r, const struct session_row *row,
                               const struct chat_key *chat, const char *message, bool is_root)
{
        struct session_index *x = r->index;
        struct shown_session *s = get(x, row);
        char *key = message_key(chat, message);
        struct shown_message *known = map_get(&x->messages, key);

        if (known && known->session == s) {
                free(key);
                return;
        }
        if (known)
                forget_message(x, known);
        add_message(x, s, key, is_root);
}

/* ---- finding ---- */

static const struct shown_session *find_chat(const struct session_index *x,
                                             const struct chat_key *key)
{
        char *text = chat_key_text(key);
        const struct shown_chat *chat = map_get(&x->chats, text);

        free(text);
        return chat ? TAILQ_FIRST(&chat->sessions) : NULL;
}

static const struct shown_session *find_message(const struct session_index *x,
                                                const struct chat_key *chat, const char *message)
{
        char *key = message_key(chat, message);
        const struct shown_message *m = map_get(&x->messages, key);

        free(key);
        return m && !m->session->has_ended ? m->session : NULL;
}

int64_t session_index_find(const struct remote *r, const struct chat_key *chat,
                           const char *reply_to, const char **owner)
{
        /* a thread may be linked without its channel, where threads have ids of their own */
        const struct chat_key alone = { chat->adapter, chat->thread, NULL };
        const struct session_index *x = r->index;
        const struct shown_session *s = NULL;

        if (x->sessions.count == 0 || !chat->adapter || !chat->channel)
                return 0;
        if (reply_to)
                s = find_message(x, chat, reply_to);
        if (!s)
                s = find_chat(x, chat);
        if (!s && chat->thread)
                s = find_chat(x, &alone);
        if (s && owner)
                *owner = s->identity;
        return s ? s->id : 0;
}

/* ---- sessions that are gone ---- */

void session_index_forget(struct remote *r, int64_t session)
{
        struct session_index *x = r->index;
        struct shown_session *s = find_session(x, session);

        if (!s)
                return;
        leave_chat(x, s);
        forget_messages(x, s);
        free_if_unused(x, s);
}

struct index_check {
        struct remote *remote;
        int64_t *ids;
        size_t count;
        size_t gone; /* result: so many of them, which are the first */
};

static int read_gone(struct store_tx *tx, void *arg, struct error *err)
{
        struct index_check *c = arg;

        c->gone = 0;
        for (size_t i = 0; i < c->count; i++) {
                int rc = session_row_exists(tx, c->ids[i], err);

                if (rc < 0)
                        return -1;
                if (rc == 0)
                        c->ids[c->gone++] = c->ids[i];
        }
        return 0;
}

static void on_gone(void *arg, const struct error *err)
{
        struct index_check *c = arg;
        struct remote *r = c->remote;

        r->writes--;
        if (err)
                log_warn("cannot read which sessions there are; retrying in an hour",
                         LOG_S("why", err->text));
        for (size_t i = 0; !err && i < c->gone; i++)
                session_index_forget(r, c->ids[i]);
        if (!r->quiet)
                timer_start(r->index->timer, CHECK_MS);
        free(c->ids);
        free(c);
}

void session_index_check(struct remote *r)
{
        struct session_index *x = r->index;
        struct index_check *c = mem_zalloc(sizeof(*c));
        void *value;

        c->remote = r;
        c->ids = mem_array(x->sessions.count, sizeof(*c->ids));
        for (size_t i = 0; map_each(&x->sessions, &i, NULL, &value);)
                c->ids[c->count++] = ((struct shown_session *)value)->id;
        r->writes++;
        store_read(r->env.store, read_gone, on_gone, c);
}

static void on_timer(void *remote)
{
        struct remote *r = remote;

        if (!r->quiet)
                session_index_check(r);
}

/* ---- opening and closing ---- */

static int read_messages(struct store_tx *tx, struct session_index *x, struct error *err)
{
        struct store_stmt *s = session_message_row_list(tx, MESSAGES_MAX);
        struct session_message_row m;
        int rc;

        while ((rc = session_message_row_next(s, &m, err)) == 1) {
                const struct chat_key chat = { m.adapter, m.channel, NULL };
                const struct session_row row = { .id = m.session,
                                                 .identity = m.identity,
                                                 .state = m.has_ended ? SESSION_ENDED
                                                                      : SESSION_ACTIVE };

                add_message(x, get(x, &row), message_key(&chat, m.message), m.is_root);
        }
        return rc;
}

static int read_index(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_filter f = { .owner = -1, .linked = true, .limit = READ_MAX };
        struct store_stmt *s = session_row_list(tx, &f);
        struct session_index *x = arg;
        struct session_row row;
        int rc;

        while ((rc = session_row_next(s, &row, err)) == 1)
                put(x, &row, false);
        return rc < 0 ? -1 : read_messages(tx, x, err);
}

int session_index_open(struct remote *r, struct error *err)
{
        struct session_index *x = mem_zalloc(sizeof(*x));

        map_init(&x->sessions);
        map_init(&x->chats);
        map_init(&x->messages);
        TAILQ_INIT(&x->recent);
        x->timer = timer_new(r->env.loop, on_timer, r);
        timer_unref(x->timer);
        r->index = x;
        return store_read_now(r->env.store, read_index, x, err);
}

void session_index_start(struct remote *r)
{
        timer_start(r->index->timer, CHECK_MS);
}

void session_index_close(struct remote *r)
{
        struct session_index *x = r->index;
        void *value;

        for (size_t i = 0; map_each(&x->sessions, &i, NULL, &value);)
                session_index_forget(r, ((struct shown_session *)value)->id);
        map_release(&x->sessions);
        map_release(&x->chats);
        map_release(&x->messages);
        timer_free(x->timer);
        free(x);
        r->index = NULL;
}
