#include "sim/telegram/tg_webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_world.h"

#define DEFAULT_CONNECTIONS 40
#define MAX_CONNECTIONS     100
#define FIRST_DELAY_MS      200
#define MAX_DELAY_MS        60000
#define ANSWER_MS           60000

/* The updates of one chat. */
struct lane {
        struct webhook *webhook;
        int64_t chat;
        struct update_list updates;
        struct http_call *http;
        struct timer *retry;
        unsigned attempts;
        bool ready; /* in the webhook's list */
        TAILQ_ENTRY(lane) next;
};

TAILQ_HEAD(lanes, lane);

struct webhook {
        struct bot *bot;
        char *url, *secret, *certificate; /* certificate: a temporary file */
        struct http_client *own_client;   /* trusts the certificate */
        int64_t max_connections;
        unsigned in_flight;
        struct map lanes;
        struct lanes ready;
        int64_t error_date;
        char error[200];
};

static void pump(struct webhook *w);

struct webhook *tg_webhook_new(struct bot *b)
{
        struct webhook *w = mem_zalloc(sizeof(*w));

        w->bot = b;
        map_init(&w->lanes);
        TAILQ_INIT(&w->ready);
        return w;
}

bool tg_webhook_is_set(const struct webhook *w)
{
        return w->url != NULL;
}

/* ---- lanes ---- */

static struct lane *lane_of(struct webhook *w, int64_t chat)
{
        struct tg_world_key key = tg_world_key(chat);
        struct lane *l = map_get(&w->lanes, key.text);

        if (l)
                return l;
        l = mem_zalloc(sizeof(*l));
        l->webhook = w;
        l->chat = chat;
        TAILQ_INIT(&l->updates);
        map_put(&w->lanes, key.text, l);
        return l;
}

static void lane_ready(struct lane *l)
{
        if (l->ready || l->http || (l->retry && timer_active(l->retry)))
                return;
        l->ready = true;
        TAILQ_INSERT_TAIL(&l->webhook->ready, l, next);
}

static void lane_unready(struct lane *l)
{
        if (l->ready)
                TAILQ_REMOVE(&l->webhook->ready, l, next);
        l->ready = false;
}

static void lane_free(struct lane *l)
{
        struct update *u;

        lane_unready(l);
        if (l->http) {
                http_call_abort(l->http);
                l->webhook->in_flight--;
        }
        for (u = TAILQ_FIRST(&l->updates); u; u = TAILQ_NEXT(u, lane_next))
                u->lane = NULL;
        timer_free(l->retry);
        free(l);
}

void tg_webhook_offer(struct webhook *w, struct update *u)
{
        u->lane = lane_of(w, u->chat);
        TAILQ_INSERT_TAIL(&u->lane->updates, u, lane_next);
        lane_ready(u->lane);
        pump(w);
}

void tg_webhook_withdraw(struct webhook *w, struct update *u)
{
        struct lane *l = u->lane;

        (void)w;
        if (!l)
                return;
        u->lane = NULL;
        TAILQ_REMOVE(&l->updates, u, lane_next);
        if (!TAILQ_EMPTY(&l->updates))
                return;
        map_remove(&l->webhook->lanes, tg_world_key(l->chat).text);
        lane_free(l);
}

/* ---- posting ---- */

static void on_retry(void *arg)
{
        struct lane *l = arg;

        lane_ready(l);
        pump(l->webhook);
}

static void on_accepted(struct lane *l)
{
        struct webhook *w = l->webhook;
        struct update *u = TAILQ_FIRST(&l->updates);

        l->attempts = 0;
        if (u->again) {
                u->again = false;
                lane_ready(l);
                return;
        }
        if (TAILQ_NEXT(u, lane_next))
                lane_ready(l);
        tg_updates_remove(w->bot->updates, u); /* frees the lane if it was the last */
}

static void on_refused(struct lane *l, const struct http_result *r)
{
        struct webhook *w = l->webhook;
        int64_t delay = FIRST_DELAY_MS << (l->attempts < 9 ? l->attempts : 9);

        w->error_date = clock_wall_ms() / 1000;
        if (r->status)
                snprintf(w->error, sizeof(w->error), "Wrong response from the webhook: %d",
                         r->status);
        else
                snprintf(w->error, sizeof(w->error), "Connection failed: %.150s",
                         r->why ? r->why : "");
        l->attempts++;
        if (r->retry_after_ms > delay)
                delay = r->retry_after_ms;
        if (!l->retry)
                l->retry = timer_new(w->bot->world->base.loop, on_retry, l);
        timer_start(l->retry, delay < MAX_DELAY_MS ? delay : MAX_DELAY_MS);
}

static void on_done(void *arg, const struct http_result *r)
{
        struct lane *l = arg;
        struct webhook *w = l->webhook;
        struct bot *bot = w->bot;
        bool good = r->status >= 200 && r->status < 300;
        json_t *reply = NULL;

        l->http = NULL;
        w->in_flight--;
        if (good && r->body_n > 0)
                reply = json_read(r->body, r->body_n, NULL);
        if (good)
                on_accepted(l);
        else
                on_refused(l, r);
        if (json_is_object(reply) && json_str(reply, "method", NULL))
                tg_call_from_webhook(bot, reply);
        json_decref(reply);
        pump(w);
}

static void post_first(struct lane *l)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        struct webhook *w = l->webhook;
        struct update *u = TAILQ_FIRST(&l->updates), *second = TAILQ_NEXT(u, lane_next);
        const struct fault *fault;
        char secret[320];
        const char *headers[] = { "Content-Type: application/json", w->secret ? secret : NULL,
                                  NULL };
        struct http_request request = {
                .method = "POST", .url = w->url, .headers = headers, .total_ms = ANSWER_MS
        };

        fault = second ? faults_fire(&w->bot->world->base.faults, FAULT_REORDER, "webhook") : NULL;
        if (fault && fault->within_chat) {
                TAILQ_REMOVE(&l->updates, second, lane_next);
                TAILQ_INSERT_HEAD(&l->updates, second, lane_next);
                u = second;
        }
        snprintf(secret, sizeof(secret), "X-Telegram-Bot-Api-Secret-Token: %s",
                 w->secret ? w->secret : "");
        request.body = u->text;
        request.body_n = u->n;
        l->http = http_call_start(w->own_client ? w->own_client : w->bot->world->base.client,
                                  &request, &handlers, l);
        w->in_flight++;
}

static void pump(struct webhook *w)
{
        while (w->in_flight < (unsigned)w->max_connections && !TAILQ_EMPTY(&w->ready)) {
                struct lane *l = TAILQ_FIRST(&w->ready);

                lane_unready(l);
                post_first(l);
        }
}

/* ---- methods ---- */

static void reset(struct webhook *w)
{
        const char *key;
        void *lane;

        for (size_t i = 0; map_each(&w->lanes, &i, &key, &lane);)
                lane_free(lane);
        map_release(&w->lanes);
        map_init(&w->lanes);
        http_client_free(w->own_client);
        if (w->certificate)
                unlink(w->certificate);
        free(w->certificate);
        free(w->url);
        free(w->secret);
        w->own_client = NULL;
        w->url = w->secret = w->certificate = NULL;
        w->error_date = 0;
}

void tg_webhook_free(struct webhook *w)
{
        if (!w)
                return;
        reset(w);
        map_release(&w->lanes);
        free(w);
}

/* Writes the uploaded certificate to a file, as the HTTP client needs one. */
static int trust(struct webhook *w, const struct multipart_part *part, struct error *err)
{
        char path[] = "/tmp/dragoman-sim-XXXXXX";
        int fd = mkstemp(path);
        struct http_client_options options = { .ca_file = path };
        bool written = fd >= 0 && write(fd, part->data, part->n) == (ssize_t)part->n;

        if (fd >= 0)
                close(fd);
        if (!written)
                return error_set(err, ERR_IO, "cannot store the certificate");
        w->certificate = mem_strdup(path);
        w->own_client = http_client_new(w->bot->world->base.loop, &options, err);
        return w->own_client ? 0 : -1;
}

static int check(struct call *c, const char *url, const char *secret, int64_t connections)
{
        static const char allowed[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
                return tg_call_fail(
                        c, 400,
                        "Bad Request: bad webhook: An HTTPS URL must be provided for webhook");
        if (secret && (strlen(secret) > 256 || strspn(secret, allowed) != strlen(secret)))
                return tg_call_fail(c, 400,
                                    "Bad Request: secret token contains unallowed characters");
        if (connections < 1 || connections > MAX_CONNECTIONS)
                return tg_call_fail(c, 400,
                                    "Bad Request: max_connections must be between 1 and 100");
        return 0;
}

int tg_webhook_set(struct call *c)
{
        struct webhook *w = c->bot->webhook;
        const char *url = json_str(c->args, "url", ""),
                   *secret = json_str(c->args, "secret_token", NULL);
        int64_t connections = json_int(c->args, "max_connections", DEFAULT_CONNECTIONS);
        const struct multipart_part *certificate = tg_call_upload(c, "certificate");
        struct error err = { 0 };

        if (!*url)
                return tg_webhook_delete(c);
        if (check(c, url, secret, connections) != 0)
                return -1;
        tg_updates_interrupt(c->bot->updates, "terminated by setWebhook request");
        reset(w);
        if (certificate && trust(w, certificate, &err) != 0)
                return tg_call_fail(c, 400, "Bad Request: bad webhook: %s", err.text);
        w->url = mem_strdup(url);
        w->secret = secret && *secret ? mem_strdup(secret) : NULL;
        w->max_connections = connections;
        tg_updates_allow(c->bot->updates, json_object_get(c->args, "allowed_updates"));
        if (json_flag(c->args, "drop_pending_updates", false))
                tg_updates_forget_all(c->bot->updates);
        for (struct update *u = tg_updates_first(w->bot->updates); u; u = TAILQ_NEXT(u, next))
                tg_webhook_offer(w, u);
        c->note = "Webhook was set";
        return tg_call_true(c);
}

int tg_webhook_delete(struct call *c)
{
        c->note = tg_webhook_is_set(c->bot->webhook) ? "Webhook was deleted"
                                                     : "Webhook is already deleted";
        reset(c->bot->webhook);
        if (json_flag(c->args, "drop_pending_updates", false))
                tg_updates_forget_all(c->bot->updates);
        return tg_call_true(c);
}

int tg_webhook_info(struct call *c)
{
        const struct webhook *w = c->bot->webhook;

        jsonw_open(&c->out, '{');
        jsonw_str(&c->out, "url", w->url ? w->url : "");
        jsonw_bool(&c->out, "has_custom_certificate", w->certificate != NULL);
        jsonw_int(&c->out, "pending_update_count", (int64_t)tg_updates_pending(c->bot->updates));
        if (w->url)
                jsonw_int(&c->out, "max_connections", w->max_connections);
        if (w->error_date) {
                jsonw_int(&c->out, "last_error_date", w->error_date);
                jsonw_str(&c->out, "last_error_message", w->error);
        }
        tg_updates_write_allowed(c->bot->updates, &c->out);
        jsonw_close(&c->out, '}');
        return 0;
}
