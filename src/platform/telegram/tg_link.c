/*
 * The connection to Telegram.
 *
 *     greeting ──► configuring ──► listening ◄──► waiting
 *        └──────────────┴──────────────┴──► stopped
 *
 * Polling stores no position: Telegram remembers what was confirmed, and only committed updates are
 * confirmed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/telegram/telegram.h"

#define CALL_MS        15000
#define POLL_MARGIN_MS 10000 /* our deadline is later than Telegram's */
/* between polls while an update is pending; Telegram slows down clients that poll faster */
#define POLL_PAUSE_MS      600
#define CONFLICT_MS        2000
#define CONFLICT_MAX_MS    30000
#define CONFLICT_WINDOW_MS 300000 /* in which conflicts add up */
#define WATCH_MS           120000
#define WATCH_DOUBTS_MS    10000 /* while a send without an answer waits for news */
#define BATCH_MAX          100   /* Telegram's limit */
#define SECRET_SIZE        48

static void greet(struct telegram *tg);
static void configure(struct telegram *tg);
static void poll(struct telegram *tg, int64_t seconds);

bool tg_link_polls(const struct telegram *tg)
{
        return strcmp(tg->conf->mode, "polling") == 0;
}

static void enter(struct telegram *tg, enum tg_state state)
{
        static const char *const names[] = { "greeting", "configuring", "listening", "waiting",
                                             "stopped" };

        if (tg->state != state)
                log_debug("telegram link", LOG_S("adapter", tg->adapter->name),
                          LOG_S("from", names[tg->state]), LOG_S("to", names[state]));
        tg->state = state;
}

static void ask(struct telegram *tg, const char *method, json_t *params, int64_t total_ms,
                tg_answer_fn *done)
{
        struct tg_request q = {
                .method = method, .params = params, .total_ms = total_ms, .repeatable = true
        };

        tg->call = tg_call_start(tg, &q, done, tg);
        json_decref(params);
}

void tg_link_bad_token(struct telegram *tg)
{
        enter(tg, TG_STOPPED);
        timer_stop(tg->timer);
        timer_stop(tg->watch);
        tg_call_abort(tg->call);
        tg->call = NULL;
        adapter_bad_token(tg->adapter);
}

/* A proxy that answers 401 or 404 knows nothing about tokens. */
static bool is_bad_token(const struct tg_answer *answer)
{
        return answer->genuine && (answer->status == 401 || answer->status == 404);
}

static void on_failure(struct telegram *tg, const struct tg_answer *answer)
{
        if (is_bad_token(answer)) {
                tg_link_bad_token(tg);
                return;
        }
        enter(tg, TG_WAITING);
        timer_start(tg->timer,
                    tg->self.id == 0
                            ? adapter_retry_first(tg->adapter, answer->why, tg->conf->api_base,
                                                  answer->retry_after_ms)
                            : adapter_retry(tg->adapter, answer->why, answer->retry_after_ms));
}

/* ---- greeting ---- */

static void on_greeted(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        const json_t *me = answer->result;
        char id[24];

        tg->call = NULL;
        if (!answer->ok || json_int(me, "id", 0) == 0) {
                on_failure(tg, answer);
                return;
        }
        free(tg->username);
        free(tg->name);
        tg->username = mem_strdup(json_str(me, "username", NULL));
        tg->name = mem_strdup(json_str(me, "first_name", ""));
        tg->self = (struct tg_self){ .id = json_int(me, "id", 0), .username = tg->username };
        snprintf(id, sizeof(id), "%" PRId64, tg->self.id);
        tg->private_topics = json_flag(me, "has_topics_enabled", false);
        adapter_set_profile(tg->adapter, tg->username ? tg->username : tg->name, id);
        log_info("telegram bot", LOG_S("adapter", tg->adapter->name), LOG_S("name", tg->name),
                 LOG_S("username", tg->username), LOG_I("id", tg->self.id),
                 LOG_S("readsAllGroupMessages", json_flag(me, "can_read_all_group_messages", false)
                                                        ? "yes"
                                                        : "no, privacy mode is on"));
        tg_commands_publish(tg);
        configure(tg);
}

static void greet(struct telegram *tg)
{
        enter(tg, TG_GREETING);
        ask(tg, "getMe", NULL, CALL_MS, on_greeted);
}

/* ---- configuring: a webhook to remove when polling, ours to set otherwise ---- */

static json_t *allowed_updates(void)
{
        return json_pack("[s, s, s, s, s, s, s]", "message", "edited_message", "channel_post",
                         "edited_channel_post", "message_reaction", "callback_query",
                         "my_chat_member");
}

static void on_configured(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;

        tg->call = NULL;
        if (!answer->ok) {
                on_failure(tg, answer);
                return;
        }
        tg->configured = true;
        if (tg->loaded)
                tg_link_listen(tg);
        else
                tg_reconcile_open(tg); /* tg_link_listen follows */
}

void tg_link_listen(struct telegram *tg)
{
        tg->loaded = true;
        enter(tg, TG_LISTENING);
        adapter_ready(tg->adapter);
        if (tg_link_polls(tg))
                poll(tg, 0); /* shows at once whether another process polls */
        else
                timer_start(tg->watch, WATCH_MS);
}

static void on_old_webhook(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        const char *url = json_str(answer->result, "url", "");

        if (!answer->ok || url[0] == '\0') {
                on_configured(tg, answer);
                return;
        }
        log_info("removing the webhook of this bot; waiting updates are kept",
                 LOG_S("adapter", tg->adapter->name));
        ask(tg, "deleteWebhook", json_pack("{s:b}", "drop_pending_updates", 0), CALL_MS,
            on_configured);
}

static void configure(struct telegram *tg)
{
        json_t *params;

        enter(tg, TG_CONFIGURING);
        if (tg_link_polls(tg)) {
                ask(tg, "getWebhookInfo", NULL, CALL_MS, on_old_webhook);
                return;
        }
        params = json_object();
        json_object_set_new(params, "url", json_string(tg->webhook_url));
        json_object_set_new(params, "secret_token", json_string(tg->webhook_secret));
        json_object_set_new(params, "allowed_updates", allowed_updates());
        json_object_set_new(params, "drop_pending_updates", json_false());
        ask(tg, "setWebhook", params, CALL_MS, on_configured);
}

/* ---- watching the webhook ---- */

/* Sets a missing webhook again, but does not fight over one set by another process. */
static void on_watched(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        int64_t failed_ms = json_int(answer->result, "last_error_date", 0) * 1000;
        const char *error = json_str(answer->result, "last_error_message", NULL);
        const char *url = json_str(answer->result, "url", NULL);

        tg->call = NULL;
        if (is_bad_token(answer)) {
                tg_link_bad_token(tg);
                return;
        }
        timer_start(tg->watch, TAILQ_EMPTY(&tg->doubts) ? WATCH_MS : WATCH_DOUBTS_MS);
        if (!answer->ok || !url)
                return;
        if (json_int(answer->result, "pending_update_count", -1) == 0)
                tg_reconcile_quiet(tg, tg->polled_ms);
        if (url[0] == '\0') {
                configure(tg);
                return;
        }
        if (strcmp(url, tg->webhook_url) != 0) {
                adapter_lost(tg->adapter, "this bot's webhook points at another address: stop the "
                                          "program that set it and restart this adapter, or give "
                                          "it a bot of its own");
                return;
        }
        adapter_ready(tg->adapter);
        if (error && clock_wall_ms() - failed_ms < WATCH_MS)
                log_warn("Telegram cannot post updates to us", LOG_S("adapter", tg->adapter->name),
                         LOG_I("waiting", json_int(answer->result, "pending_update_count", 0)),
                         LOG_S("why", error));
}

static void on_watch(void *arg)
{
        struct telegram *tg = arg;

        if (tg->state != TG_LISTENING || tg->call)
                return; /* on_configured or on_watched starts the watch again */
        tg->polled_ms = loop_now_ms(tg->adapter->loop);
        ask(tg, "getWebhookInfo", NULL, CALL_MS, on_watched);
}

void tg_link_hurry(struct telegram *tg)
{
        if (!tg_link_polls(tg) && tg->state == TG_LISTENING)
                timer_start(tg->watch, tg->conf->reconcile_after_ms + 1);
}

/* ---- polling ---- */

/*
 * Telegram would repeat an answer that is too large or malformed for ever. Asks for fewer updates
 * until the bad one is alone, then skips it. False: the answer contains no updates.
 */
static bool try_fewer(struct telegram *tg, const struct tg_answer *answer)
{
        int64_t id = tg_update_first_id(answer->body, answer->body_n);

        if (answer->status != 200 || (answer->kind != ERR_NONE && answer->kind != ERR_LIMIT) ||
            id < 0)
                return false;
        if (tg->batch > 1) {
                tg->batch = tg->batch > 10 ? 10 : 1;
                return true;
        }
        log_warn("update dropped: it cannot be read", LOG_S("adapter", tg->adapter->name),
                 LOG_I("update", id));
        if (id >= tg->offset || tg->intake.count == 0)
                tg->offset = id + 1;
        return true;
}

/* Forgets conflicts outside the window. */
static void age_conflicts(const struct telegram *tg, struct tg_conflicts *c)
{
        int64_t since = loop_now_ms(tg->adapter->loop) - CONFLICT_WINDOW_MS;
        unsigned old = 0;

        while (old < c->count && c->at_ms[old] < since)
                old++;
        c->count -= old;
        memmove(c->at_ms, c->at_ms + old, c->count * sizeof(c->at_ms[0]));
}

static void add_conflict(const struct telegram *tg, struct tg_conflicts *c)
{
        if (c->count == TG_CONFLICTS)
                memmove(c->at_ms, c->at_ms + 1, --c->count * sizeof(c->at_ms[0]));
        c->at_ms[c->count++] = loop_now_ms(tg->adapter->loop);
        age_conflicts(tg, c);
}

/*
 * Two processes that poll for one bot interrupt each other: each gets 409, then a poll that works
 * and a part of the messages, so conflicts are counted over a time, not in a row. Right after a
 * restart the other one may be our own earlier run, so a single one is not reported.
 *
 * A webhook gets all messages from the moment it is set: "terminated by setWebhook request", then
 * "can't use getUpdates method while webhook is active". It is reported at once and says nothing
 * about other pollers.
 */
static void on_conflict(struct telegram *tg, const struct tg_answer *answer)
{
        bool by_webhook = strcasestr(answer->why, "webhook");
        struct tg_conflicts *c = by_webhook ? &tg->webhooks : &tg->pollers;

        enter(tg, TG_WAITING);
        add_conflict(tg, c);
        if (by_webhook)
                adapter_lost(tg->adapter,
                             "a webhook was set for this bot while we poll: remove it "
                             "(deleteWebhook), or use mode 'webhook', or restart to take over");
        else if (c->count > 1)
                adapter_degraded(tg->adapter,
                                 "another process polls with this bot token and gets a part of the "
                                 "messages: stop it, or give this adapter a bot of its own");
        timer_start(tg->timer, backoff_half_jitter_ms(c->count - 1, CONFLICT_MS, CONFLICT_MAX_MS));
}

static void on_updates(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        bool readable = answer->ok && json_is_array(answer->result);
        size_t taken = 0;

        tg->call = NULL;
        if (!readable && !try_fewer(tg, answer)) {
                if (answer->status == 409)
                        on_conflict(tg, answer);
                else
                        on_failure(tg, answer);
                return;
        }
        age_conflicts(tg, &tg->pollers);
        if (tg->pollers.count == 0)
                adapter_degraded(tg->adapter, NULL);
        enter(tg, TG_LISTENING);
        adapter_ready(tg->adapter);
        if (readable)
                tg->batch = tg->batch * 2 < BATCH_MAX ? tg->batch * 2 : BATCH_MAX;
        if (readable && json_array_size(answer->result) == 0)
                tg_reconcile_quiet(tg, tg->polled_ms);
        for (size_t i = 0; i < json_array_size(answer->result); i++) {
                json_t *update = json_array_get(answer->result, i);
                int64_t id = json_int(update, "update_id", -1);

                if (id < 0)
                        continue;
                /* after a quiet week ids may start anywhere, also lower */
                if (id >= tg->offset || (taken == 0 && tg->intake.count == 0))
                        tg->offset = id + 1;
                tg_intake_add(tg, update, NULL);
                taken++;
        }
        /* do not poll in a tight loop when a server returns nothing at once */
        if (taken == 0 && tg->intake.count == 0 && tg->poll_seconds > 0 &&
            loop_now_ms(tg->adapter->loop) - tg->polled_ms < POLL_PAUSE_MS)
                timer_start(tg->timer, POLL_PAUSE_MS);
        else
                tg_link_poll(&tg->intake);
}

static void poll(struct telegram *tg, int64_t seconds)
{
        int64_t offset = tg_intake_offset(tg, tg->offset);
        json_t *params = json_object();

        tg->polled_ms = loop_now_ms(tg->adapter->loop);
        tg->poll_seconds = seconds;
        if (offset > 0)
                json_object_set_new(params, "offset", json_integer(offset));
        json_object_set_new(params, "limit", json_integer(tg->batch));
        json_object_set_new(params, "timeout", json_integer(seconds));
        json_object_set_new(params, "allowed_updates", allowed_updates());
        ask(tg, "getUpdates", params, seconds * 1000 + POLL_MARGIN_MS, on_updates);
}

void tg_link_poll(struct intake *in)
{
        struct telegram *tg = in->adapter->self;

        if (!tg_link_polls(tg) || tg->state != TG_LISTENING || tg->call)
                return;
        if (in->count == 0) {
                timer_stop(tg->timer);
                /* a send without an answer waits for news */
                poll(tg, TAILQ_EMPTY(&tg->doubts)       ? tg->conf->poll_seconds
                         : tg_reconcile_needs_quiet(tg) ? 0
                                                        : 1);
        } else if (tg_intake_has_room(tg) && !timer_active(tg->timer)) {
                timer_start(tg->timer, POLL_PAUSE_MS);
        }
}

static void on_timer(void *arg)
{
        struct telegram *tg = arg;

        if (tg->state == TG_LISTENING && tg->intake.count == 0) {
                tg_link_poll(&tg->intake);
        } else if (tg->state == TG_LISTENING) {
                if (!tg->call && tg_intake_has_room(tg))
                        poll(tg, 0);
        } else if (tg->self.id == 0) {
                greet(tg);
        } else if (tg->configured && tg_link_polls(tg)) {
                poll(tg, 0); /* a webhook that was set since is not ours to remove */
        } else {
                configure(tg);
        }
}

/* ---- opening and closing ---- */

void tg_link_open(struct telegram *tg)
{
        const struct adapter *a = tg->adapter;
        const struct secret *secret = tg->conf->webhook_secret;
        char random[SECRET_SIZE + 1];
        size_t n;

        tg->batch = BATCH_MAX;
        tg->timer = timer_new(a->loop, on_timer, tg);
        tg->watch = timer_new(a->loop, on_watch, tg);
        if (!tg_link_polls(tg)) {
                n = strlen(a->public_url);
                while (n > 0 && a->public_url[n - 1] == '/')
                        n--;
                tg->webhook_url = mem_printf("%.*s/api/v2/channels/telegram/%s/webhook", (int)n,
                                             a->public_url, a->name);
                tg->webhook_secret = mem_strdup(secret ? secret_reveal(secret)
                                                       : id_random_text(random, SECRET_SIZE));
                log_hide(tg->webhook_secret, strlen(tg->webhook_secret));
        }
        greet(tg);
}

void tg_link_close(struct telegram *tg)
{
        timer_free(tg->timer);
        timer_free(tg->watch);
        if (tg->webhook_secret) {
                log_unhide(tg->webhook_secret, strlen(tg->webhook_secret));
                tg_call_url_free(tg->webhook_secret);
        }
        free(tg->webhook_url);
}
