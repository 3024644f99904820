#include "cli/chat.h"

#include <stdlib.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "net/backoff.h"

#define WAIT_MS    60000 /* as in INBOUND */
#define INBOUND    "/api/v2/messages/inbound?wait=60000"
#define SLACK_MS   30000
#define GIVE_UP_MS 30000 /* of uninterrupted failures */
#define PAUSE_MS   100
#define PAUSE_MAX  2000

struct chat_message {
        struct client *client;
        chat_reply_fn *done;
        void *arg;
        char *body;
        char id[ID_TRACE_SIZE];
        struct http_call *call;
        struct timer *timer;
        int64_t failing_since_ms; /* 0: not failing */
        unsigned failures;
};

const char *chat_message_id(const struct chat_message *m)
{
        return m->id;
}

void chat_message_free(struct chat_message *m)
{
        if (!m)
                return;
        http_call_abort(m->call);
        timer_free(m->timer);
        free(m->body);
        free(m);
}

static void finish(struct chat_message *m, const struct chat_reply *reply, const struct error *err)
{
        m->done(m->arg, reply, err);
        chat_message_free(m);
}

static void retry(struct chat_message *m, const struct error *err, int64_t after_ms)
{
        int64_t now = loop_now_ms(client_loop(m->client));
        int64_t pause_ms = backoff_ms(m->failures++, PAUSE_MS, PAUSE_MAX);

        if (m->failing_since_ms == 0)
                m->failing_since_ms = now;
        if (now - m->failing_since_ms >= GIVE_UP_MS) {
                finish(m, NULL, err);
                return;
        }
        timer_start(m->timer, after_ms > pause_ms ? after_ms : pause_ms);
}

static void take_reply(struct chat_message *m, const json_t *json)
{
        const json_t *data = json_object_get(json, "data"), *reply = json_object_get(data, "reply");
        struct chat_reply r = { .status = json_str(reply, "status", NULL),
                                .text = json_str(reply, "text", NULL),
                                .reason = json_str(reply, "reason", NULL),
                                .turn = json_str(reply, "turnId", NULL),
                                .event = json_str(data, "eventId", NULL),
                                .trace = json_str(data, "traceId", NULL) };

        m->failing_since_ms = 0;
        m->failures = 0;
        if (r.status)
                finish(m, &r, NULL);
        else
                timer_start(m->timer, 0); /* not answered yet: post again and wait */
}

static void on_done(void *arg, const struct http_result *result)
{
        struct chat_message *m = arg;
        struct error err = { 0 };
        json_t *json = NULL;

        m->call = NULL;
        if (client_result(m->client, result, &json, &err) == 0)
                take_reply(m, json);
        else if (err.kind == ERR_NET || err.kind == ERR_LIMIT || err.kind == ERR_TIMEOUT ||
                 err.kind == ERR_PROTOCOL)
                retry(m, &err, result->retry_after_ms);
        else
                finish(m, NULL, &err);
        json_decref(json);
}

static void post(void *arg)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct chat_message *m = arg;
        struct client_request request = {
                .method = "POST", .path = INBOUND, .body = m->body, .total_ms = WAIT_MS + SLACK_MS
        };
        struct error err = { 0 };

        m->call = client_start(m->client, &request, &handlers, m, &err);
        if (!m->call)
                retry(m, &err, 0);
}

struct chat_message *chat_message_new(struct client *c, const struct chat_text *text,
                                      chat_reply_fn *done, void *arg)
{
        struct chat_message *m = mem_zalloc(sizeof(*m));
        const char *user = getenv("USER");
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "instanceId", text->adapter);
        jsonw_str(&b, "chatId", text->channel);
        jsonw_strn(&b, "text", text->text, text->text_n);
        jsonw_str(&b, "externalId", id_trace(m->id));
        jsonw_open_member(&b, "sender", '{');
        jsonw_str(&b, "id", user && *user ? user : "terminal");
        jsonw_close(&b, '}');
        jsonw_close(&b, '}');
        m->body = buf_take(&b);
        m->client = c;
        m->done = done;
        m->arg = arg;
        m->timer = timer_new(client_loop(c), post, m);
        timer_start(m->timer, 0);
        return m;
}
