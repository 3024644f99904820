#include "cli/chat_message.h"

#include <stdlib.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define WAIT_MS    60000 /* one request's share of waiting, as in INBOUND */
#define INBOUND    "/api/v2/messages/inbound?wait=60000"
#define SLACK_MS   30000
#define GIVE_UP_MS 30000 /* of trouble without a break */
#define PAUSE_MS   100
#define PAUSE_MAX  2000

struct chat_message {
        struct client *client;
        chat_reply_fn *done;
        void *arg;
        char *body;
        struct http_call *call;
        struct timer *timer;
        int64_t trouble_since_ms, pause_ms; /* 0: all is well */
};

void chat_message_free(struct chat_message *a)
{
        if (!a)
                return;
        http_abort(a->call);
        timer_free(a->timer);
        free(a->body);
        free(a);
}

static void finish(struct chat_message *a, const struct chat_reply *reply, const struct error *err)
{
        a->done(a->arg, reply, err);
        chat_message_free(a);
}

static void post(void *arg);

static void try_again(struct chat_message *a, const struct error *err, int64_t after_ms)
{
        int64_t now = loop_now_ms(client_loop(a->client));

        if (a->trouble_since_ms == 0)
                a->trouble_since_ms = now;
        if (now - a->trouble_since_ms >= GIVE_UP_MS) {
                finish(a, NULL, err);
                return;
        }
        timer_start(a->timer, after_ms > a->pause_ms ? after_ms : a->pause_ms);
        a->pause_ms = a->pause_ms * 2 < PAUSE_MAX ? a->pause_ms * 2 : PAUSE_MAX;
}

static bool may_pass(const struct error *err)
{
        return err->kind == ERR_NET || err->kind == ERR_LIMIT || err->kind == ERR_TIMEOUT ||
               err->kind == ERR_PROTOCOL;
}

static void understand(struct chat_message *a, const json_t *json)
{
        const json_t *data = json_object_get(json, "data"), *reply = json_object_get(data, "reply");
        struct chat_reply told = { .status = json_str(reply, "status", NULL),
                                   .text = json_str(reply, "text", NULL),
                                   .reason = json_str(reply, "reason", NULL),
                                   .turn = json_str(reply, "turnId", NULL),
                                   .event = json_str(data, "eventId", NULL),
                                   .trace = json_str(data, "traceId", NULL) };

        a->trouble_since_ms = 0;
        a->pause_ms = PAUSE_MS;
        if (told.status)
                finish(a, &told, NULL);
        else
                timer_start(a->timer, 0); /* not yet: wait on */
}

static void on_done(void *arg, const struct http_result *result)
{
        struct chat_message *a = arg;
        struct error err = { 0 };
        json_t *json = NULL;

        a->call = NULL;
        if (client_result(a->client, result, &json, &err) == 0)
                understand(a, json);
        else if (may_pass(&err))
                try_again(a, &err, result->retry_after_ms);
        else
                finish(a, NULL, &err);
        json_decref(json);
}

static void post(void *arg)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct chat_message *a = arg;
        struct client_request request = {
                .method = "POST", .path = INBOUND, .body = a->body, .total_ms = WAIT_MS + SLACK_MS
        };
        struct error err = { 0 };

        a->call = client_start(a->client, &request, &handlers, a, &err);
        if (!a->call)
                try_again(a, &err, 0);
}

static char *body_of(const struct chat_text *m)
{
        const char *user = getenv("USER");
        char id[ID_TRACE_SIZE];
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "instanceId", m->adapter);
        jsonw_str(&b, "chatId", m->channel);
        jsonw_strn(&b, "text", m->text, m->text_n);
        jsonw_str(&b, "externalId", id_trace(id));
        jsonw_open_member(&b, "sender", '{');
        jsonw_str(&b, "id", user && *user ? user : "terminal");
        jsonw_close(&b, '}');
        jsonw_close(&b, '}');
        return buf_take(&b);
}

struct chat_message *chat_message_new(struct client *c, const struct chat_text *m,
                                      chat_reply_fn *done, void *arg)
{
        struct chat_message *a = mem_zalloc(sizeof(*a));

        a->client = c;
        a->done = done;
        a->arg = arg;
        a->body = body_of(m);
        a->pause_ms = PAUSE_MS;
        a->timer = timer_new(client_loop(c), post, a);
        timer_start(a->timer, 0);
        return a;
}
