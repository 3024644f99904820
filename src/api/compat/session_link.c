/* POST /api/sessions/:id/link: the chat that shows a session. */
#include <stdlib.h>
#include <string.h>

#include "api/core/request.h"
#include "api/resources/sessions.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform.h"
#include "remote/session_link.h"

struct link_ask {
        const json_t *thread, *channel, *user;
        const char *adapter;
};

static const struct field link_fields[] = {
        { "thread_id", FIELD_ANY, FIELD_AT(link_ask, thread),
          .help = "The thread, as text or number; not needed with channel_id." },
        { "adapter", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(link_ask, adapter),
          .help = "Name of the adapter. Absent: sessions.adapter, else the only one of Discord." },
        { "channel_id", FIELD_ANY, FIELD_AT(link_ask, channel),
          .help = "The channel of the thread; where threads have ids of their own, as on Discord, "
                  "it is not needed." },
        { "user_id", FIELD_ANY, FIELD_AT(link_ask, user),
          .help = "The platform's id of the person whose session it is: they may steer it." },
        FIELD_END,
};

struct link_job {
        struct api_job job; /* first */
        struct arena arena; /* has all strings */
        struct session_caller by;
        struct remote *remote;
        struct bus *bus;
        const char *session, *identity;
        const char *thread; /* as it was given */
        struct chat_key chat;
        int64_t now_ms, active;
        /* results */
        struct session_row *row;
        char *own_thread; /* begun there before; NULL: none */
        struct bus_batch batch;
};

static int write_link(struct store_tx *tx, void *arg, struct error *err)
{
        struct link_job *j = arg;
        struct session_row *row = NULL;
        struct chat_key chat = j->chat;

        bus_batch_reset(&j->batch);
        free(j->row);
        j->row = NULL;
        if (session_link_check(tx, &j->by, &j->chat, err) < 0 ||
            session_find_or_add(tx, &j->by, j->session, j->active, j->now_ms, &row, err) < 0 ||
            !row)
                return -1;
        j->row = row;
        free(j->own_thread);
        if (session_link_thread(tx, row->id, &chat, &j->own_thread, err) < 0)
                return -1;
        if (j->own_thread)
                chat.thread = j->own_thread;
        if (session_link_write(tx, &j->batch, row, &chat, j->identity, j->now_ms, err) < 0)
                return -1;
        row->adapter = chat.adapter;
        row->channel = chat.channel;
        row->thread = chat.thread;
        if (j->identity)
                row->identity = j->identity;
        return 0;
}

static void on_linked(void *arg, const struct error *err)
{
        struct link_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        struct buf json;

        if (!err && x) {
                bus_publish(j->bus, &j->batch);
                remote_linked(j->remote, j->row);
                remote_wake(j->remote);
        }
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&json, 0);
                jsonw_open(&json, '{');
                jsonw_str(&json, "status", "ok");
                jsonw_str(&json, "session_id", j->session);
                jsonw_str(&json, "adapter", j->chat.adapter);
                jsonw_str(&json, "channel", j->chat.channel);
                jsonw_str(&json, "thread", j->thread);
                jsonw_close(&json, '}');
                reply_json(x, 200, &json);
        }
        free(j->row);
        free(j->own_thread);
        bus_batch_release(&j->batch);
        arena_release(&j->arena);
        free(j);
}

/* A text or number; NULL: absent, or -1 in *bad: something else. */
static const char *id_of(const json_t *value, struct arena *a, bool *bad)
{
        const char *text = json_string_value(value);

        if (json_is_integer(value))
                text = arena_printf(a, "%lld", (long long)json_integer_value(value));
        if ((value && !json_is_null(value) && !text) || (text && strlen(text) > 512))
                *bad = true;
        return text && *text ? arena_strdup(a, text) : NULL;
}

/* The adapter that is meant, within the caller's reach; NULL: answered. */
static const struct adapter *find_adapter(struct http_exchange *x, const char *name)
{
        const struct api *a = api_of(x);
        const struct adapter *found = NULL, *at;
        size_t discord = 0;
        struct buf names;

        if (!name)
                name = remote_get_conf(a->env.remote)->adapter;
        if (name) {
                if (!request_reaches(x, name))
                        return NULL;
                found = adapters_find(a->env.adapters, name);
                if (!found)
                        reply_missing(x, "instance", name);
                return found;
        }
        buf_init(&names, 0);
        for (size_t i = 0; (at = adapters_at(a->env.adapters, i)); i++) {
                if (!key_reaches(caller_of(x), at->name))
                        continue;
                buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", at->name);
                if (strcmp(at->ops->name, "discord") == 0) {
                        found = at;
                        discord++;
                }
        }
        if (discord != 1) {
                found = NULL;
                reply_error(x, 422, "VALIDATION_ERROR", NULL,
                            "adapter: name one of %s, or set sessions.adapter",
                            names.len > 0 ? names.data : "those that your key reaches (none)");
        }
        buf_release(&names);
        return found;
}

/* false: answered. */
static bool read_chat(struct http_exchange *x, struct body *b, const struct link_ask *ask,
                      struct link_job *j)
{
        const struct adapter *adapter;
        const char *channel, *user;
        bool bad = false;

        j->thread = id_of(ask->thread, &j->arena, &bad);
        channel = id_of(ask->channel, &j->arena, &bad);
        user = id_of(ask->user, &j->arena, &bad);
        if (bad || (!j->thread && !channel)) {
                body_mistake(b, "thread_id",
                             "expected ids as text or number: a thread_id, a "
                             "channel_id, or both");
                reply_mistakes(x, b);
                return false;
        }
        adapter = find_adapter(x, ask->adapter);
        if (!adapter)
                return false;
        if (!channel && strcmp(adapter->ops->name, "discord") != 0) {
                reply_error(x, 422, "VALIDATION_ERROR", NULL,
                            "channel_id: needed, because a thread of %s is known only in its "
                            "channel",
                            adapter->ops->name);
                return false;
        }
        j->chat.adapter = arena_strdup(&j->arena, adapter->name);
        /* a thread of Discord is a channel of its own */
        j->chat.channel = channel ? channel : j->thread;
        j->chat.thread = channel ? j->thread : NULL;
        j->identity = user ? arena_printf(&j->arena, "%s:%s", adapter->ops->name, user) : NULL;
        return true;
}

static void link_chat(struct http_exchange *x)
{
        struct link_ask ask = { 0 };
        struct api *a = api_of(x);
        struct link_job *j;
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        j = mem_zalloc(sizeof(*j));
        arena_init(&j->arena);
        j->session = arena_strdup(&j->arena, http_param(x, "id"));
        if (!session_id_is_valid(j->session)) {
                reply_missing(x, "session", j->session);
        } else if (read_chat(x, &b, &ask, j)) {
                j->by = session_caller_of(caller_of(x));
                j->remote = a->env.remote;
                j->bus = a->env.bus;
                j->now_ms = clock_wall_ms();
                j->active = remote_get_conf(j->remote)->active;
                api_job_begin(&j->job, x);
                store_write(a->env.store, write_link, on_linked, j);
                j = NULL;
        }
        if (j) {
                arena_release(&j->arena);
                free(j);
        }
        body_release(&b);
}

const struct route session_link_routes[] = {
        { "POST", "/api/sessions/:id/link", SCOPE_WRITE, link_chat, REACH_HANDLER,
          .summary = "Show a session in a chat. A message that people write there steers it. 409: "
                     "it is the thread of another key's session.",
          .body = link_fields, .status = 200,
          .answer = "{\"status\": \"ok\", \"session_id\", \"adapter\", \"channel\", \"thread\"}",
          .example = ROUTE_JSON({ "thread_id" : "1189326655021121576" }) },
        ROUTE_END,
};
