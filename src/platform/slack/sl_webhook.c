#include "platform/slack/sl_webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_route.h"

#define SIGNATURE "X-Slack-Signature"
#define TIMESTAMP "X-Slack-Request-Timestamp"
#define RETRY     "X-Slack-Retry-Num"
#define VERSION   "v0="

#define ANSWER_MS 2700 /* Slack waits for three seconds */
#define FIELD_MAX 200  /* fields of a form; Slack's have about fifteen */

/* A post that is being stored. */
struct sl_webhook_post {
        struct sl_webhook *w;    /* NULL: it is closed */
        struct http_exchange *x; /* NULL: refused, because it took too long */
        int64_t until_ms;
        TAILQ_ENTRY(sl_webhook_post) next;
};

struct sl_webhook {
        struct sl_webhook_options o;
        struct sl_webhook_handlers on;
        void *arg;
        TAILQ_HEAD(, sl_webhook_post) posts; /* oldest first */
        struct timer *timer;                 /* of the oldest that waits for its answer */
        int64_t warned_ms;                   /* of a rate limit; 0: never */
        bool proved, doubted;                /* a post was signed rightly; wrongly before that */
};

/* ---- proof ---- */

bool sl_webhook_is_signed(const struct secret *secret, const char *timestamp, const char *signature,
                          const char *body, size_t n)
{
        unsigned char given[SHA256_SIZE], digest[SHA256_SIZE];
        struct buf text;

        if (!timestamp || !signature || strncmp(signature, VERSION, strlen(VERSION)) != 0 ||
            !crypto_unhex(signature + strlen(VERSION), given, sizeof(given)))
                return false;
        buf_init(&text, 0);
        buf_addf(&text, "v0:%s:", timestamp);
        buf_add(&text, body, n);
        crypto_hmac_sha256(secret_reveal(secret), secret_length(secret), text.data, text.len,
                           digest);
        buf_release(&text);
        return crypto_equal(given, sizeof(given), digest, sizeof(digest));
}

static bool refuse_signature(struct http_exchange *x)
{
        http_refuse(x, 401, "UNAUTHORIZED", "the signature is missing or wrong");
        return false;
}

bool sl_webhook_admit(const struct sl_webhook *w, struct http_exchange *x)
{
        const char *signature = http_header(x, SIGNATURE);
        unsigned char raw[SHA256_SIZE];

        (void)w;
        if (!signature || strncmp(signature, VERSION, strlen(VERSION)) != 0 ||
            !crypto_unhex(signature + strlen(VERSION), raw, sizeof(raw)))
                return refuse_signature(x);
        if (!adapter_post_is_recent(http_header(x, TIMESTAMP))) {
                http_refuse(x, 401, "UNAUTHORIZED",
                            TIMESTAMP " must be the time in seconds, within %d of this machine's",
                            ADAPTER_POST_SECONDS);
                return false;
        }
        return true;
}

/* ---- reading ---- */

static enum sl_posted read_json(json_t *root, json_t **payload, enum sl_arrival *kind)
{
        const char *type = json_str(root, "type", "");

        *payload = root;
        if (strcmp(type, "event_callback") == 0) {
                *kind = SL_EVENT;
                return SL_POSTED_PAYLOAD;
        }
        if (strcmp(type, "url_verification") == 0 && json_str(root, "challenge", NULL))
                return SL_POSTED_CHALLENGE;
        if (strcmp(type, "app_rate_limited") == 0)
                return SL_POSTED_NOTICE;
        json_decref(root);
        *payload = NULL;
        return SL_POSTED_OTHER;
}

/* A form with "payload" is an interaction, one with "command" a slash command. */
static enum sl_posted read_form(const struct http_pair *pairs, size_t count, json_t **payload,
                                enum sl_arrival *kind)
{
        json_t *fields;

        for (size_t i = 0; i < count; i++)
                if (strcmp(pairs[i].name, "payload") == 0) {
                        *payload = json_read_lenient(pairs[i].value, strlen(pairs[i].value), NULL);
                        if (json_is_object(*payload)) {
                                *kind = SL_INTERACTIVE;
                                return SL_POSTED_PAYLOAD;
                        }
                        json_decref(*payload);
                        *payload = NULL;
                        return SL_POSTED_OTHER;
                }
        fields = json_object();
        for (size_t i = 0; i < count && i < FIELD_MAX; i++) {
                char *name = utf8_clean(pairs[i].name, strlen(pairs[i].name)),
                     *value = utf8_clean(pairs[i].value, strlen(pairs[i].value));

                json_object_set_new(fields, name, json_string(value));
                free(name);
                free(value);
        }
        *payload = fields;
        if (json_str(fields, "command", NULL)) {
                *kind = SL_COMMAND;
                return SL_POSTED_PAYLOAD;
        }
        if (json_str(fields, "ssl_check", NULL)) /* Slack looks at our certificate */
                return SL_POSTED_NOTICE;
        json_decref(fields);
        *payload = NULL;
        return SL_POSTED_OTHER;
}

enum sl_posted sl_webhook_read(const char *body, size_t n, bool form, json_t **payload,
                               enum sl_arrival *kind)
{
        enum sl_posted posted = SL_POSTED_OTHER;
        struct http_pair *pairs = NULL;
        size_t count;
        char *text;

        *payload = NULL;
        if (!form)
                return read_json(json_read_lenient(body, n, NULL), payload, kind);
        text = mem_strndup(body, n);
        if (http_route_parse_query(text, &pairs, &count) == 0)
                posted = read_form(pairs, count, payload, kind);
        free(pairs);
        free(text);
        return posted;
}

/* ---- storing and answering ---- */

static void on_stored(void *arg, bool stored, const json_t *response)
{
        struct sl_webhook_post *p = arg;

        if (p->w)
                TAILQ_REMOVE(&p->w->posts, p, next);
        if (p->x && !stored)
                http_refuse(p->x, 503, "UNAVAILABLE",
                            "the event could not be stored; please try again");
        else if (p->x && response)
                http_answer_json(p->x, 200, json_deep_copy(response));
        else if (p->x)
                http_answer(p->x, 200, "text/plain", "", 0);
        free(p);
}

static void refuse_late(struct sl_webhook_post *p)
{
        http_refuse(p->x, 503, "UNAVAILABLE", "the event is not stored yet; please try again");
        p->x = NULL;
}

static void on_timer(void *arg)
{
        struct sl_webhook *w = arg;
        int64_t now = loop_now_ms(w->o.loop);
        struct sl_webhook_post *p;

        TAILQ_FOREACH(p, &w->posts, next) {
                if (!p->x)
                        continue;
                if (p->until_ms > now) {
                        timer_start(w->timer, p->until_ms - now);
                        return;
                }
                refuse_late(p);
        }
}

static void store(struct sl_webhook *w, struct http_exchange *x, enum sl_arrival kind,
                  json_t *payload)
{
        const char *retry = http_header(x, RETRY);
        struct sl_webhook_post *p = mem_zalloc(sizeof(*p));

        p->w = w;
        p->x = x;
        p->until_ms = loop_now_ms(w->o.loop) + w->o.answer_ms;
        TAILQ_INSERT_TAIL(&w->posts, p, next);
        if (!timer_active(w->timer))
                timer_start(w->timer, w->o.answer_ms);
        w->on.take(w->arg, kind, payload,
                   retry && retry[0] >= '0' && retry[0] <= '9' && !retry[1] ? retry[0] - '0' : 0,
                   on_stored, p);
}

static void warn_rate(struct sl_webhook *w)
{
        int64_t now = loop_now_ms(w->o.loop);

        if (w->warned_ms > 0 && now - w->warned_ms < 60000)
                return;
        w->warned_ms = now;
        log_warn("Slack withholds events: more than 30000 an hour", LOG_S("adapter", w->o.name));
}

void sl_webhook_post(struct sl_webhook *w, struct http_exchange *x)
{
        const char *type = http_header(x, "Content-Type"), *body;
        enum sl_arrival kind = SL_EVENT;
        enum sl_posted posted;
        json_t *payload;
        size_t n;

        body = http_body(x, &n);
        if (!sl_webhook_is_signed(w->o.secret, http_header(x, TIMESTAMP), http_header(x, SIGNATURE),
                                  body, n)) {
                if (!w->proved && !w->doubted)
                        w->on.proved(w->arg, false);
                w->doubted = true;
                refuse_signature(x);
                return;
        }
        if (!w->proved && w->doubted)
                w->on.proved(w->arg, true);
        w->proved = true;
        posted = sl_webhook_read(
                body, n, type && strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0,
                &payload, &kind);
        if (posted == SL_POSTED_CHALLENGE) {
                http_answer_json(
                        x, 200,
                        json_pack("{s:O}", "challenge", json_object_get(payload, "challenge")));
        } else if (posted == SL_POSTED_NOTICE) {
                if (strcmp(json_str(payload, "type", ""), "app_rate_limited") == 0)
                        warn_rate(w);
                http_answer(x, 200, "text/plain", "", 0);
        } else if (posted == SL_POSTED_OTHER) {
                http_refuse(x, 400, "VALIDATION_ERROR",
                            "this is not an event, interaction or command of Slack");
        } else if (w->on.is_full(w->arg)) {
                http_refuse(x, 503, "UNAVAILABLE", "too many events wait; please try again");
        } else {
                store(w, x, kind, payload);
        }
        json_decref(payload);
}

struct sl_webhook *sl_webhook_new(const struct sl_webhook_options *o,
                                  const struct sl_webhook_handlers *handlers, void *arg)
{
        struct sl_webhook *w = mem_zalloc(sizeof(*w));

        w->o = *o;
        if (w->o.answer_ms <= 0)
                w->o.answer_ms = ANSWER_MS;
        w->on = *handlers;
        w->arg = arg;
        TAILQ_INIT(&w->posts);
        w->timer = timer_new(o->loop, on_timer, w);
        return w;
}

void sl_webhook_free(struct sl_webhook *w)
{
        struct sl_webhook_post *p;

        if (!w)
                return;
        while ((p = TAILQ_FIRST(&w->posts))) {
                TAILQ_REMOVE(&w->posts, p, next);
                p->w = NULL; /* on_stored frees it */
                if (p->x)
                        refuse_late(p);
        }
        timer_free(w->timer);
        free(w);
}

/* ---- the adapter ---- */

static void take(void *slack, enum sl_arrival kind, json_t *payload, int retry,
                 sl_stored_fn *stored, void *stored_arg)
{
        sl_intake_take(slack, kind, payload, retry, stored, stored_arg);
}

static bool is_full(void *slack)
{
        return sl_intake_is_full(slack);
}

/* With a wrong secret every post is refused, while calls to Slack work. */
static void proved(void *slack, bool right)
{
        const struct slack *sl = slack;
        char why[300];

        snprintf(why, sizeof(why),
                 "posts are refused because their signature is wrong: put the Signing Secret of "
                 "this app (Basic Information, App Credentials) into adapters.%.60s.signingSecret",
                 sl->adapter->name);
        adapter_degraded(sl->adapter, right ? NULL : why);
}

void sl_webhook_open(struct slack *sl)
{
        static const struct sl_webhook_handlers handlers = { .take = take,
                                                             .is_full = is_full,
                                                             .proved = proved };

        sl->webhook =
                sl_webhook_new(&(struct sl_webhook_options){ .loop = sl->adapter->loop,
                                                             .name = sl->adapter->name,
                                                             .secret = sl->conf->signing_secret },
                               &handlers, sl);
        slack_up(sl);
}

void sl_webhook_close(struct slack *sl)
{
        sl_webhook_free(sl->webhook);
        sl->webhook = NULL;
}

bool sl_webhook_admits(struct adapter *a, struct http_exchange *x)
{
        const struct slack *sl = a->self;

        if (strcmp(sl->conf->mode, "http") != 0) {
                http_refuse(x, 404, "NOT_FOUND",
                            "adapter '%s' receives by Socket Mode; set its mode to \"http\" to "
                            "take posts",
                            a->name);
                return false;
        }
        if (!sl->webhook || !a->road) {
                http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' is not connected yet", a->name);
                return false;
        }
        return sl_webhook_admit(sl->webhook, x);
}

void sl_webhook_handle(struct adapter *a, struct http_exchange *x)
{
        struct slack *sl = a->self;

        sl_webhook_post(sl->webhook, x);
}
