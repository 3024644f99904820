/*
 * The API as a platform for other software. Answers are posted to `callbackUrl`, signed, with an
 * idempotency key; without a URL they are read from the journal, and done once committed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/attachment_fetch.h"
#include "platform/platform.h"

#define ANSWER_MAX      (64 * 1024)
#define PLATFORM_ID_MAX 200

struct api_conf {
        char *callback_url;
        struct secret *callback_secret;
        bool callback_idempotent;
        int64_t timeout_ms;
};

#define AT(field) offsetof(struct api_conf, field)

/* clang-format off */
static const struct setting api_settings[] = {
        { "callbackUrl", SETTING_URL, "null", .at = AT(callback_url),
          .help = "Each answer is posted here as JSON; if not set, answers are read from the "
                  "events of the HTTP API." },
        { "callbackSecret", SETTING_SECRET, "null", SETTING_SECRET_SHORTEST,
          .at = AT(callback_secret),
          .help = "Signs each post: `X-Dragoman-Signature: t=UNIX,v1=HEX`, the HMAC-SHA256 of "
                  "`UNIX.BODY`. At least 16 characters." },
        { "callbackIdempotent", SETTING_BOOL, "true", .at = AT(callback_idempotent),
          .help = "The receiver ignores a repeated `Idempotency-Key`, so a post with an unknown "
                  "outcome is repeated." },
        { "timeoutMs", SETTING_INT, "30000", 100, 600000, .at = AT(timeout_ms),
          .help = "The timeout of one post." },
        SETTING_END,
};
/* clang-format on */

struct api_adapter {
        TAILQ_HEAD(, post) posts;
};

/* A delivery being posted to callbackUrl. */
struct post {
        struct adapter *adapter;
        struct http_call *call;
        int64_t delivery, fence;
        TAILQ_ENTRY(post) next;
};

static void finish(struct post *p, const struct send_result *result)
{
        struct api_adapter *api = p->adapter->self;

        TAILQ_REMOVE(&api->posts, p, next);
        delivery_result(p->adapter->road, p->delivery, p->fence, result);
        free(p);
}

/* ---- the answer ---- */

static enum send_outcome outcome_of(const struct http_result *r, bool idempotent)
{
        int status = r->status;

        if (status == 0)
                return r->reach == HTTP_NOT_SENT ? SEND_RETRY : SEND_UNSURE;
        if (status >= 200 && status < 300)
                return SEND_DONE;
        if ((status == 502 || status == 504) && !idempotent)
                return SEND_UNSURE; /* the receiver behind a gateway may have done its work */
        return status == 408 || status == 429 || status >= 500 ? SEND_RETRY : SEND_REJECTED;
}

/* The receiver's id: {"id": "..."} or {"id": 7}; else the delivery's. */
static void platform_id(const struct http_result *r, int64_t delivery, char *out, size_t size)
{
        json_t *answer = r->body_n > 0 ? json_read(r->body, r->body_n, NULL) : NULL;
        const json_t *id = json_object_get(answer, "id");

        if (json_is_string(id) && json_string_length(id) > 0 && json_string_length(id) < size)
                snprintf(out, size, "%s", json_string_value(id));
        else if (json_is_integer(id))
                snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
        else
                snprintf(out, size, "dlv-%" PRId64, delivery);
        json_decref(answer);
}

static void on_done(void *arg, const struct http_result *r)
{
        struct post *p = arg;
        const struct api_conf *conf = p->adapter->conf;
        struct send_result result = {
                .outcome = outcome_of(r, conf->callback_idempotent),
                .retry_after_ms = r->retry_after_ms,
                .freeze_adapter = true, /* one receiver serves all channels */
        };
        char id[PLATFORM_ID_MAX], why[300];

        if (result.outcome == SEND_DONE) {
                platform_id(r, p->delivery, id, sizeof(id));
                result.platform_id = id;
        } else {
                if (r->status > 0)
                        snprintf(why, sizeof(why), "the callback answered %d", r->status);
                else
                        snprintf(why, sizeof(why), "the callback could not be made: %s", r->why);
                result.kind = adapter_http_kind(r->status, r->kind);
                result.why = why;
        }
        finish(p, &result);
}

/* ---- the post ---- */

static void add_body(const struct delivery *d, struct buf *b)
{
        char number[24], iso[CLOCK_ISO_SIZE];

        jsonw_open(b, '{');
        snprintf(number, sizeof(number), "dlv-%" PRId64, d->id);
        jsonw_str(b, "id", number);
        jsonw_str(b, "kind", delivery_kind_name(d->kind));
        jsonw_str(b, "instanceId", d->adapter);
        jsonw_str(b, "channel", d->channel);
        jsonw_str(b, "threadId", d->thread);
        if (d->turn > 0)
                snprintf(number, sizeof(number), "trn-%" PRId64, d->turn);
        jsonw_str(b, "turnId", d->turn > 0 ? number : NULL);
        jsonw_str(b, "traceId", d->trace);
        jsonw_str(b, "timestamp", clock_iso(d->created_ms, iso));
        jsonw_raw(b, "payload", d->payload);
        jsonw_close(b, '}');
}

static char *signature(const struct secret *secret, const struct buf *body)
{
        unsigned char digest[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE];
        long long now = clock_wall_ms() / 1000;
        struct buf signed_text;

        buf_init(&signed_text, 0);
        buf_addf(&signed_text, "%lld.", now);
        buf_add(&signed_text, body->data, body->len);
        crypto_hmac_sha256(secret_reveal(secret), secret_length(secret), signed_text.data,
                           signed_text.len, digest);
        buf_release(&signed_text);
        return mem_printf("X-Dragoman-Signature: t=%lld,v1=%s", now,
                          crypto_hex(digest, sizeof(digest), hex));
}

static void start_post(struct post *p, const struct delivery *d, const struct buf *body)
{
        const struct api_conf *conf = p->adapter->conf;
        static const struct http_handlers handlers = { .on_done = on_done };
        char *headers[5] = { NULL }, span[ID_SPAN_SIZE];
        size_t n = 0;

        headers[n++] = mem_strdup("Content-Type: application/json");
        headers[n++] = mem_printf("Idempotency-Key: dlv-%" PRId64 "-%s", d->id, d->trace);
        if (conf->callback_secret)
                headers[n++] = signature(conf->callback_secret, body);
        if (d->trace && strlen(d->trace) == ID_TRACE_SIZE - 1)
                headers[n++] = mem_printf("traceparent: 00-%s-%s-%s", d->trace, id_span(span),
                                          d->unsampled ? "00" : "01");
        p->call = http_call_start(p->adapter->http,
                                  &(struct http_request){
                                          .method = "POST",
                                          .url = conf->callback_url,
                                          .headers = (const char *const *)headers,
                                          .body = body->data,
                                          .body_n = body->len,
                                          .total_ms = conf->timeout_ms,
                                          .max_body = ANSWER_MAX,
                                          .repeatable = conf->callback_idempotent,
                                  },
                                  &handlers, p);
        for (size_t i = 0; i < n; i++)
                free(headers[i]);
}

static void api_send(struct adapter *a, const struct delivery *d)
{
        struct api_adapter *api = a->self;
        struct post *p = mem_zalloc(sizeof(*p));
        struct buf body;

        p->adapter = a;
        p->delivery = d->id;
        p->fence = d->fence;
        TAILQ_INSERT_TAIL(&api->posts, p, next);
        buf_init(&body, 0);
        add_body(d, &body);
        start_post(p, d, &body);
        buf_release(&body);
}

/* ---- files that came with messages: saved already ---- */

#define FILE_MAX ((int64_t)64 << 20)

static int64_t max_bytes(const struct adapter *a)
{
        (void)a;
        return FILE_MAX;
}

/* Only asked if the file is not there any more. */
static void *locate(struct adapter *a, struct attachment_fetch *f, const char *source)
{
        (void)a;
        (void)source;
        attachment_fetch_fail(f, "it is no longer kept");
        return NULL;
}

static const struct attachment_source api_files = { .max_bytes = max_bytes, .locate = locate };

/* ---- opening and closing ---- */

static int api_open(struct adapter *a, struct error *err)
{
        struct api_adapter *api = mem_zalloc(sizeof(*api));

        (void)err;
        TAILQ_INIT(&api->posts);
        a->self = api;
        adapter_ready(a);
        return 0;
}

static void api_close(struct adapter *a)
{
        const struct send_result stopped = { .outcome = SEND_UNSURE,
                                             .kind = ERR_CANCELLED,
                                             .why = "the adapter was stopped",
                                             .retry_after_ms = -1 };
        struct api_adapter *api = a->self;
        struct post *p;

        while ((p = TAILQ_FIRST(&api->posts))) {
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed ones have left the list */
                http_call_abort(p->call);
                finish(p, &stopped);
        }
        free(api);
}

static unsigned api_abilities(const struct adapter *a)
{
        const struct api_conf *conf = a->conf;

        if (!conf->callback_url)
                return ADAPTER_THREADS | ADAPTER_JOURNALED;
        return ADAPTER_THREADS | (conf->callback_idempotent ? ADAPTER_IDEMPOTENT : 0u);
}

static int api_check(struct settings_source *src, const char *path, const void *conf,
                     struct error *err)
{
        const struct api_conf *c = conf;

        if (c->callback_secret && !c->callback_url)
                return settings_error(src, path, err,
                                      "'callbackSecret' has no use without 'callbackUrl'");
        return 0;
}

const struct platform_ops api_platform = {
        .name = "api",
        .title = "API",
        .help = "Other software: posts messages over the HTTP API and gets the answers by reading "
                "events or by a callback.",
        .can = ADAPTER_JOURNALED | ADAPTER_IDEMPOTENT | ADAPTER_THREADS,
        .as_written = true,
        .trusted = true,
        .for_programs = true,
        .settings = api_settings,
        .conf_size = sizeof(struct api_conf),
        .check = api_check,
        .open = api_open,
        .close = api_close,
        .send = api_send,
        .files = &api_files,
        .abilities = api_abilities,
};
