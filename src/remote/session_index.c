/*
 * session_index: which chat, and which message in a chat without threads, shows which session.
 *
 * Ended sessions are not listed, so that their chat is an ordinary one again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "remote/remote_private.h"
#include "rows/session_view_row.h"

#define READ_MAX     10000 /* at the start, the newest */
#define SHARED_MAX   100   /* sessions of one chat */
#define MESSAGES_MAX 50000 /* then all are forgotten: replies to them are ordinary messages */

/* The sessions of a chat or message, a list; the one that was linked last comes first. */
struct session_link {
        int64_t session;
        char *identity; /* whose it is; NULL: not said */
        struct session_link *older;
};

static void links_free(struct session_link *link)
{
        while (link) {
                struct session_link *older = link->older;

                free(link->identity);
                free(link);
                link = older;
        }
}

/* The list without the session. */
static struct session_link *without(struct session_link *first, int64_t session)
{
        for (struct session_link **at = &first; *at;) {
                struct session_link *link = *at;

                if (link->session != session) {
                        at = &link->older;
                        continue;
                }
                *at = link->older;
                link->older = NULL;
                links_free(link);
        }
        return first;
}

/* The list with no more than the newest ones. */
static void cut(struct session_link *first)
{
        for (size_t n = 1; first; first = first->older, n++) {
                if (n == SHARED_MAX) {
                        links_free(first->older);
                        first->older = NULL;
                }
        }
}

static struct session_link *link_new(int64_t session, const char *identity)
{
        struct session_link *link = mem_zalloc(sizeof(*link));

        link->session = session;
        link->identity = mem_strdup(identity);
        return link;
}

static void put(struct map *map, const char *key, int64_t session, const char *identity)
{
        struct session_link *link = link_new(session, identity);

        link->older = without(map_get(map, key), session);
        cut(link);
        map_put(map, key, link);
}

/* Behind those that are there. */
static void put_older(struct map *map, const char *key, int64_t session, const char *identity)
{
        struct session_link *first = map_get(map, key), *last = first;

        if (!first) {
                put(map, key, session, identity);
                return;
        }
        while (last->older)
                last = last->older;
        last->older = link_new(session, identity);
        cut(first);
}

/* It may have been shown elsewhere before. */
static void forget(struct map *map, int64_t session)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(map, &i, &key, &value);) {
                struct session_link *rest = without(value, session);

                if (!rest)
                        map_remove(map, key);
                else if (rest != value)
                        map_put(map, key, rest);
        }
}

static void forget_all(struct map *map)
{
        void *value;

        for (size_t i = 0; map_each(map, &i, NULL, &value);)
                links_free(value);
        map_release(map);
        map_init(map);
}

static char *message_key(const char *adapter, const char *channel, const char *message)
{
        return chat_key_text(&(struct chat_key){ adapter, channel, message });
}

static int read_messages(struct store_tx *tx, struct remote *r, struct error *err)
{
        struct store_stmt *s = session_message_row_list(tx, READ_MAX);
        struct session_message_row row;
        int rc;

        while ((rc = session_message_row_next(s, &row, err)) == 1) {
                char *key = message_key(row.adapter, row.channel, row.message);

                put(&r->messages, key, row.session, row.identity);
                free(key);
        }
        return rc;
}

static int read_links(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_filter f = { .owner = -1, .linked = true, .limit = READ_MAX };
        struct store_stmt *s = session_row_list(tx, &f);
        struct remote *r = arg;
        struct session_row row;
        int rc;

        session_index_close(r);
        while ((rc = session_row_next(s, &row, err)) == 1) {
                struct chat_key chat = { row.adapter, row.channel, row.thread };
                char *key = chat_key_text(&chat);

                if (row.state != SESSION_ENDED)
                        put_older(&r->links, key, row.id, row.identity);
                free(key);
        }
        return rc < 0 ? -1 : read_messages(tx, r, err);
}

int session_index_open(struct remote *r, struct error *err)
{
        return store_read_now(r->env.store, read_links, r, err);
}

void session_index_close(struct remote *r)
{
        forget_all(&r->links);
        forget_all(&r->messages);
}

void session_index_put(struct remote *r, const struct session_row *row)
{
        struct chat_key chat = { row->adapter, row->channel, row->thread };
        char *key;

        forget(&r->links, row->id);
        if (row->state == SESSION_ENDED)
                forget(&r->messages, row->id);
        if (!row->adapter || row->state == SESSION_ENDED)
                return;
        key = chat_key_text(&chat);
        put(&r->links, key, row->id, row->identity);
        free(key);
}

static const struct session_link *find(const struct remote *r, const struct chat_key *chat)
{
        char *key = chat_key_text(chat);
        const struct session_link *link = map_get(&r->links, key);

        free(key);
        return link;
}

bool session_index_has(const struct remote *r, const struct session_row *row)
{
        const struct session_link *link =
                find(r, &(struct chat_key){ row->adapter, row->channel, row->thread });

        while (link && link->session != row->id)
                link = link->older;
        return link;
}

void remote_linked(struct remote *r, const struct session_row *row)
{
        bool shown = session_view_wake(r, row, true, true);

        /* a channel where a thread may begin for it is not its own before the view knows better */
        if (shown && !row->thread && r->conf.threads && !session_index_has(r, row))
                forget(&r->links, row->id);
        else
                session_index_put(r, row);
}

void session_index_add_message(struct remote *r, const struct session_row *row,
                               const struct chat_key *chat, const char *message)
{
        char *key = message_key(chat->adapter, chat->channel, message);

        if (r->messages.count >= MESSAGES_MAX)
                forget_all(&r->messages);
        if (row->state != SESSION_ENDED)
                put(&r->messages, key, row->id, row->identity);
        free(key);
}

/* ---- finding ---- */

static const struct session_link *find_message(const struct remote *r, const struct chat_key *chat,
                                               const char *message)
{
        const struct session_link *link;
        char *key;

        if (!message || r->messages.count == 0)
                return NULL;
        key = message_key(chat->adapter, chat->channel, message);
        link = map_get(&r->messages, key);
        free(key);
        return link;
}

int64_t session_index_find(const struct remote *r, const struct chat_key *chat,
                           const char *reply_to, const char **owner)
{
        /* a thread may be linked without its channel, where threads have ids of their own */
        struct chat_key alone = { chat->adapter, chat->thread, NULL };
        const struct session_link *found;

        *owner = NULL;
        if (r->links.count + r->messages.count == 0 || !chat->adapter || !chat->channel)
                return 0;
        found = find_message(r, chat, reply_to);
        if (!found)
                found = find(r, chat);
        if (!found && chat->thread)
                found = find(r, &alone);
        if (!found)
                return 0;
        *owner = found->identity;
        return found->session;
}

int64_t remote_session_at(const struct remote *r, const struct chat_key *chat)
{
        const char *owner;

        return session_index_find(r, chat, NULL, &owner);
}
