/*
 * Reports of platforms to the rest of the program. adapter_enter alone changes an adapter's state.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/adapters.h"

#define RETRY_MS     1000
#define RETRY_MAX_MS 60000

const char *adapter_state_name(enum adapter_state s)
{
        static const char *const names[] = {
                [ADAPTER_OFF] = "off",         [ADAPTER_CONNECTING] = "connecting",
                [ADAPTER_UP] = "connected",    [ADAPTER_LOST] = "lost",
                [ADAPTER_STOPPED] = "stopped",
        };

        return names[s];
}

/* ---- the journal ---- */

/* A state change being journaled. */
struct adapter_event {
        struct bus *bus; /* NULL: do not publish */
        struct bus_batch batch;
        char *adapter, *payload;
        const char *type; /* a constant */
        int64_t time_ms;
        LIST_ENTRY(adapter_event) next;
};

static int write_event(struct store_tx *tx, void *arg, struct error *err)
{
        struct adapter_event *e = arg;
        const struct bus_event event = {
                .type = e->type, .time_ms = e->time_ms, .adapter = e->adapter, .payload = e->payload
        };
        int64_t seq;

        bus_batch_reset(&e->batch);
        return bus_append(tx, &e->batch, &event, &seq, err) < 0 ? -1 : 0;
}

static void on_written(void *arg, const struct error *err)
{
        struct adapter_event *e = arg;

        if (err)
                log_warn("cannot journal adapter state change", LOG_S("adapter", e->adapter),
                         LOG_S("event", e->type), LOG_S("why", err->text));
        else if (e->bus)
                bus_publish(e->bus, &e->batch);
        if (e->bus)
                LIST_REMOVE(e, next);
        bus_batch_release(&e->batch);
        free(e->adapter);
        free(e->payload);
        free(e);
}

void adapter_events_forget(struct adapters *as)
{
        struct adapter_event *e;

        while ((e = LIST_FIRST(&as->events))) {
                LIST_REMOVE(e, next);
                e->bus = NULL;
        }
}

static void journal(const struct adapter *a, const char *type, const char *why)
{
        struct adapter_event *e;
        struct buf payload;

        if (!a->store)
                return;
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "platform", a->ops->name);
        jsonw_str(&payload, "state", adapter_state_name(a->state));
        jsonw_opt(&payload, "why", why[0] ? why : NULL);
        jsonw_close(&payload, '}');
        e = mem_zalloc(sizeof(*e));
        e->bus = a->all->bus;
        e->adapter = mem_strdup(a->name);
        e->payload = buf_take(&payload);
        e->type = type;
        e->time_ms = clock_wall_ms();
        LIST_INSERT_HEAD(&a->all->events, e, next);
        store_write(a->store, write_event, on_written, e);
}

/* ---- states ---- */

/* The event and log level for entering a state. */
/* clang-format off */
static const struct {
        const char *event;
        enum log_level level;
} entered[] = {
        [ADAPTER_OFF]        = { "adapter.stopped",   LOG_INFO },
        [ADAPTER_CONNECTING] = { NULL,                LOG_DEBUG },
        [ADAPTER_UP]         = { "adapter.connected", LOG_INFO },
        [ADAPTER_LOST]       = { "adapter.lost",      LOG_WARN },
        [ADAPTER_STOPPED]    = { "adapter.stopped",   LOG_WARN },
};
/* clang-format on */

void adapter_enter(struct adapter *a, enum adapter_state state, const char *why)
{
        const char *text = why ? why : "";
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, sizeof(a->why) - 1);
        bool moved = a->state != state;

        if (!moved && strncmp(a->why, text, n) == 0 && a->why[n] == '\0')
                return;
        snprintf(a->why, sizeof(a->why), "%.*s", (int)n, text);
        log_write(entered[state].level, "adapter state", LOG_S("adapter", a->name),
                  LOG_S("from", adapter_state_name(a->state)),
                  LOG_S("to", adapter_state_name(state)), LOG_S("why", a->why), LOG_END);
        a->state = state;
        a->since_ms = clock_wall_ms();
        if (state == ADAPTER_UP || state == ADAPTER_OFF)
                a->down_ms = 0;
        else if (a->down_ms == 0)
                a->down_ms = a->since_ms;
        if (moved && entered[state].event) /* another reason for the same state is only logged */
                journal(a, entered[state].event, a->why);
        if (state == ADAPTER_UP && a->road)
                outbox_wake(a->road, a->name);
}

void adapter_set_profile(struct adapter *a, const char *name, const char *id)
{
        snprintf(a->bot_name, sizeof(a->bot_name), "%s", name);
        snprintf(a->bot_id, sizeof(a->bot_id), "%s", id);
}

void adapter_ready(struct adapter *a)
{
        a->failures = 0;
        adapter_enter(a, ADAPTER_UP, NULL);
}

void adapter_lost(struct adapter *a, const char *why)
{
        adapter_enter(a, ADAPTER_LOST, why);
}

int64_t adapter_retry(struct adapter *a, const char *why, int64_t retry_after_ms)
{
        int64_t wait_ms = backoff_half_jitter_ms(a->failures++, RETRY_MS, RETRY_MAX_MS);

        if (retry_after_ms > wait_ms)
                wait_ms = retry_after_ms;
        adapter_lost(a, why);
        log_debug("reconnecting", LOG_S("adapter", a->name), LOG_I("inMs", wait_ms));
        return wait_ms;
}

int64_t adapter_retry_first(struct adapter *a, const char *why, const char *base,
                            int64_t retry_after_ms)
{
        char text[sizeof(a->why)];

        /* without a query, which may hold a token */
        snprintf(text, sizeof(text), "%.100s (apiBase is %.*s)", why, (int)strcspn(base, "?#"),
                 base);
        return adapter_retry(a, text, retry_after_ms);
}

void adapter_degraded(struct adapter *a, const char *why)
{
        const char *text = why ? why : "";
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, sizeof(a->trouble) - 1);

        if (strncmp(a->trouble, text, n) == 0 && a->trouble[n] == '\0')
                return;
        snprintf(a->trouble, sizeof(a->trouble), "%.*s", (int)n, text);
        if (n > 0)
                log_warn("adapter degraded", LOG_S("adapter", a->name), LOG_S("why", a->trouble));
        else
                log_info("adapter no longer degraded", LOG_S("adapter", a->name));
        journal(a, n > 0 ? "adapter.degraded" : "adapter.recovered", a->trouble);
}

void adapter_stopped(struct adapter *a, const char *why)
{
        adapter_enter(a, ADAPTER_STOPPED, why);
}

void adapter_bad_token(struct adapter *a)
{
        char why[sizeof(a->why)];

        snprintf(why, sizeof(why),
                 "%s does not know this bot token: put %s into adapters.%.60s.botToken%s%s",
                 a->ops->title, a->ops->token_hint, a->name, a->ops->token_variable ? " or " : "",
                 a->ops->token_variable ? a->ops->token_variable : "");
        adapter_stopped(a, why);
}

/* ---- the road ---- */

void adapter_received(struct adapter *a, struct incoming *in, inbox_ack_fn *ack, void *arg)
{
        assert(a->road); /* the loop does not run between road_close and adapters_free */
        in->adapter = a->name;
        in->platform = a->ops->name;
        inbox_receive(a->road, in, ack, arg);
}

const char *adapter_button_text(const char *data)
{
        static const char say[] = "say:";

        return strncmp(data, say, strlen(say)) == 0 ? data + strlen(say) : NULL;
}

void adapter_nonce(const struct adapter *a, int64_t delivery, int64_t created_ms,
                   char out[ADAPTER_NONCE_SIZE + 1])
{
        char text[160], digest[SHA256_HEX_SIZE];

        snprintf(text, sizeof(text), "%.80s %" PRId64 " %" PRId64, a->name, delivery, created_ms);
        crypto_sha256_hex(text, strlen(text), digest);
        memcpy(out, digest, ADAPTER_NONCE_SIZE);
        out[ADAPTER_NONCE_SIZE] = '\0';
}

/* ---- outcomes ---- */

bool adapter_post_is_recent(const char *timestamp)
{
        size_t n = timestamp ? strlen(timestamp) : 0;
        int64_t away;

        if (n == 0 || n > 12 || strspn(timestamp, "0123456789") != n)
                return false;
        away = clock_wall_ms() / 1000 - strtoll(timestamp, NULL, 10);
        return away >= -ADAPTER_POST_SECONDS && away <= ADAPTER_POST_SECONDS;
}

enum send_outcome adapter_http_outcome(int status, enum http_reach reach, bool repeatable)
{
        if (status == 0 && reach == HTTP_NOT_SENT)
                return SEND_RETRY;
        if (status == 401 || status == 408 || status == 429)
                return SEND_RETRY;
        if (status >= 300 && status < 500)
                return SEND_REJECTED;
        return repeatable ? SEND_RETRY : SEND_UNSURE;
}

enum error_kind adapter_http_kind(int status, enum error_kind transport)
{
        if (status == 0)
                return transport;
        if (status == 429)
                return ERR_LIMIT;
        return status == 408 || status >= 500 ? ERR_NET : ERR_REFUSED;
}
