/*
 * Telegram as a platform: the settings, and the link that listens.
 *
 *     greeting ──► settling ──► listening ◄──► waiting
 *        └──────────────┴────────────┴──► stopped
 *
 * Polling keeps no position of its own: Telegram remembers what was confirmed, and only committed
 * updates are confirmed.
 */
#include "platform/telegram/telegram.h"

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
#include "platform/kinds.h"

#define GREET_MS       15000
#define POLL_MARGIN_MS 10000 /* our deadline is later than Telegram's */
/* between looks while an update is pending; Telegram slows down whoever asks faster */
#define BESIDE_MS       600
#define BACKOFF_MS      1000
#define BACKOFF_MAX_MS  60000
#define CONFLICT_MS     2000
#define CONFLICT_MAX_MS 30000
#define WATCH_MS        120000
#define BATCH_MAX       100 /* Telegram's */
#define SECRET_SIZE     48

/* ---- settings ---- */

#define AT(field) offsetof(struct telegram_conf, field)

static const char *const modes[] = { "polling", "webhook", NULL };

/* clang-format off */
static const struct setting telegram_settings[] = {
        { "botToken", SETTING_SECRET, NULL, .at = AT(token),
          .help = "The token that @BotFather gave, as a handle such as `env:TELEGRAM_BOT_TOKEN`." },
        { "apiBase", SETTING_URL, "\"https://api.telegram.org\"", .at = AT(api_base),
          .help = "Where the Bot API is: Telegram's own server, a self-hosted one, or a simulator." },
        { "mode", SETTING_CHOICE, "\"polling\"", .choices = modes, .at = AT(mode),
          .help = "`polling` asks Telegram for updates; `webhook` lets Telegram post them to `http.publicUrl`." },
        { "webhookSecret", SETTING_SECRET, "null", .at = AT(webhook_secret),
          .help = "What Telegram must show with each post, 1 to 256 characters of A-Z, a-z, 0-9, _ and -; without it a new one "
                  "is made at each start." },
        { "pollSeconds", SETTING_INT, "30", 1, 50, .at = AT(poll_seconds),
          .help = "How long Telegram holds a question for updates when there are none." },
        { "mediaMaxBytes", SETTING_INT, "20971520", 0, 209715200, .at = AT(media_max_bytes),
          .help = "Larger attachments are not downloaded; 0: none are. Telegram's own server gives out 20 MB at most." },
        { "streaming", SETTING_BOOL, "true", .at = AT(streaming),
          .help = "A long answer appears while it is being written, by editing one message." },
        { "commands", SETTING_STRINGS, "[]", .at = AT(commands),
          .help = "The bot's menu, each as `name - what it does`; published when it changed. Without it the menu is left as it is." },
        SETTING_END,
};
/* clang-format on */

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static int mistake(struct settings_source *src, const char *path, const char *key,
                   struct error *err, const char *what)
{
        char *at = *path ? mem_printf("%s.%s", path, key) : mem_strdup(key);
        int rc = settings_error(src, at, err, "%s", what);

        free(at);
        return rc;
}

static int telegram_check(struct settings_source *src, const char *path, const void *conf,
                          struct error *err)
{
        const struct telegram_conf *c = conf;
        const struct secret *s = c->webhook_secret;

        if (secret_length(c->token) == 0 ||
            strspn(secret_reveal(c->token), WORD ":") != secret_length(c->token))
                return mistake(
                        src, path, "botToken", err,
                        "this does not look like a token of @BotFather (such as 123456:ABC-DEF)");
        if (s && (secret_length(s) == 0 || secret_length(s) > 256 ||
                  strspn(secret_reveal(s), WORD) != secret_length(s)))
                return mistake(
                        src, path, "webhookSecret", err,
                        "a webhook secret has 1 to 256 characters of A-Z, a-z, 0-9, _ and -");
        if (c->commands.count > 100)
                return mistake(src, path, "commands", err, "a bot has at most 100 commands");
        for (size_t i = 0; i < c->commands.count; i++) {
                const char *wrong = tg_command_check(c->commands.items[i]);

                if (wrong)
                        return mistake(src, path, "commands", err, wrong);
        }
        return 0;
}

/* ---- the link ---- */

static void greet(struct telegram *tg);
static void settle(struct telegram *tg);
static void look(struct telegram *tg, int64_t seconds);

bool tg_polls(const struct telegram *tg)
{
        return strcmp(tg->conf->mode, "polling") == 0;
}

/* The one door. */
static void link_enter(struct telegram *tg, enum tg_state state)
{
        static const char *const names[] = { "greeting", "settling", "listening", "waiting",
                                             "stopped" };

        if (tg->state != state)
                log_debug("telegram link", LOG_S("adapter", tg->adapter->name),
                          LOG_S("from", names[tg->state]), LOG_S("to", names[state]));
        tg->state = state;
}

void tg_stop(struct telegram *tg, const char *why)
{
        link_enter(tg, TG_STOPPED);
        timer_stop(tg->timer);
        timer_stop(tg->watch);
        tg_call_abort(tg->call);
        tg->call = NULL;
        adapter_stopped(tg->adapter, why);
}

static void stop_bad_token(struct telegram *tg)
{
        char why[200];

        snprintf(why, sizeof(why),
                 "Telegram does not know this bot token: put the one @BotFather shows into "
                 "adapters.%.60s.botToken",
                 tg->adapter->name);
        tg_stop(tg, why);
}

/* Telegram did not answer as it should: tell, wait, begin again. */
static void link_failed(struct telegram *tg, const struct tg_answer *answer)
{
        int64_t wait = backoff_half_jitter_ms(tg->failures++, BACKOFF_MS, BACKOFF_MAX_MS);

        if (answer->retry_after_ms > wait)
                wait = answer->retry_after_ms;
        link_enter(tg, TG_WAITING);
        adapter_lost(tg->adapter, answer->why);
        timer_start(tg->timer, wait);
}

/* A proxy that answers 401 or 404 knows nothing about tokens. */
static bool is_bad_token(const struct tg_answer *answer)
{
        return answer->genuine && (answer->status == 401 || answer->status == 404);
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

/* ---- greeting ---- */

static void take_profile(struct telegram *tg, const json_t *me)
{
        char id[24];

        free(tg->username);
        free(tg->name);
        tg->username = mem_strdup(json_str(me, "username", NULL));
        tg->name = mem_strdup(json_str(me, "first_name", ""));
        tg->self = (struct tg_self){ .id = json_int(me, "id", 0), .username = tg->username };
        snprintf(id, sizeof(id), "%" PRId64, tg->self.id);
        adapter_set_profile(tg->adapter, tg->username ? tg->username : tg->name, id);
        log_info("telegram bot", LOG_S("adapter", tg->adapter->name), LOG_S("name", tg->name),
                 LOG_S("username", tg->username), LOG_I("id", tg->self.id),
                 LOG_S("readsAllGroupMessages", json_flag(me, "can_read_all_group_messages", false)
                                                        ? "yes"
                                                        : "no, privacy mode is on"));
}

static void on_greeted(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;

        tg->call = NULL;
        if (answer->ok && json_int(answer->result, "id", 0) != 0) {
                take_profile(tg, answer->result);
                tg_commands_publish(tg);
                settle(tg);
        } else if (is_bad_token(answer)) {
                stop_bad_token(tg);
        } else {
                link_failed(tg, answer);
        }
}

static void greet(struct telegram *tg)
{
        link_enter(tg, TG_GREETING);
        ask(tg, "getMe", NULL, GREET_MS, on_greeted);
}

/* ---- settling ---- */

static void start_listening(struct telegram *tg)
{
        link_enter(tg, TG_LISTENING);
        tg->failures = 0;
        adapter_ready(tg->adapter);
        if (tg_polls(tg))
                look(tg, 0); /* the first look tells at once whether somebody else is listening */
        else
                timer_start(tg->watch, WATCH_MS);
}

static void on_settled(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;

        tg->call = NULL;
        if (answer->ok)
                start_listening(tg);
        else if (is_bad_token(answer))
                stop_bad_token(tg);
        else
                link_failed(tg, answer);
}

static json_t *allowed_updates(void)
{
        return json_pack("[s, s, s, s, s, s, s]", "message", "edited_message", "channel_post",
                         "edited_channel_post", "message_reaction", "callback_query",
                         "my_chat_member");
}

static char *hook_address(const struct adapter *a)
{
        size_t n = strlen(a->public_url);

        while (n > 0 && a->public_url[n - 1] == '/')
                n--;
        return mem_printf("%.*s/api/v2/channels/telegram/%s/webhook", (int)n, a->public_url,
                          a->name);
}

static void set_webhook(struct telegram *tg)
{
        json_t *params = json_object();

        json_object_set_new(params, "url", json_string(tg->hook));
        json_object_set_new(params, "secret_token", json_string(tg->secret));
        json_object_set_new(params, "allowed_updates", allowed_updates());
        json_object_set_new(params, "drop_pending_updates", json_false());
        ask(tg, "setWebhook", params, GREET_MS, on_settled);
}

static void on_webhook_info(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        const char *url = json_str(answer->result, "url", "");

        if (!answer->ok || url[0] == '\0') {
                on_settled(tg, answer);
                return;
        }
        log_info("a webhook was set for this bot; it is removed, its waiting updates are kept",
                 LOG_S("adapter", tg->adapter->name));
        ask(tg, "deleteWebhook", json_pack("{s:b}", "drop_pending_updates", 0), GREET_MS,
            on_settled);
}

static void settle(struct telegram *tg)
{
        link_enter(tg, TG_SETTLING);
        if (tg_polls(tg))
                ask(tg, "getWebhookInfo", NULL, GREET_MS, on_webhook_info);
        else
                set_webhook(tg);
}

/* ---- webhook mode: does Telegram reach us? ---- */

/*
 * One that is gone is set again; whoever has set another one would only set it again, too. Errors
 * are Telegram's view of us.
 */
static void on_watched(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        int64_t since = json_int(answer->result, "last_error_date", 0) * 1000;
        const char *error = json_str(answer->result, "last_error_message", NULL);
        const char *url = json_str(answer->result, "url", NULL);

        tg->call = NULL;
        if (is_bad_token(answer)) {
                stop_bad_token(tg);
                return;
        }
        timer_start(tg->watch, WATCH_MS);
        if (!answer->ok || !url)
                return;
        if (url[0] == '\0') {
                settle(tg);
                return;
        }
        if (strcmp(url, tg->hook) != 0) {
                adapter_lost(
                        tg->adapter,
                        "somebody has pointed this bot's webhook at another address: stop that "
                        "program and restart this adapter, or give it a bot of its own");
                return;
        }
        adapter_ready(tg->adapter);
        if (error && clock_wall_ms() - since < WATCH_MS)
                log_warn("Telegram cannot post updates to us", LOG_S("adapter", tg->adapter->name),
                         LOG_I("waiting", json_int(answer->result, "pending_update_count", 0)),
                         LOG_S("why", error));
}

static void on_watch(void *arg)
{
        struct telegram *tg = arg;

        if (!tg->call)
                ask(tg, "getWebhookInfo", NULL, GREET_MS, on_watched);
}

/* ---- polling ---- */

/* After a quiet week the numbers may begin anywhere, lower than before as well. */
static void pass(struct telegram *tg, int64_t id)
{
        if (id >= tg->offset || tg->intake.count == 0)
                tg->offset = id + 1;
}

/* Returns how many there were. */
static size_t take_updates(struct telegram *tg, const json_t *list)
{
        size_t n = json_array_size(list), taken = 0;

        for (size_t i = 0; i < n; i++) {
                json_t *update = json_array_get(list, i);
                int64_t id = json_int(update, "update_id", -1);

                if (id < 0)
                        continue;
                if (id >= tg->offset || (taken == 0 && tg->intake.count == 0))
                        tg->offset = id + 1;
                tg_intake_add(tg, update, NULL);
                taken++;
        }
        return taken;
}

/*
 * Something in the answer is not as we read JSON, or there is too much of it, and Telegram would
 * repeat it for ever. So fewer are asked for, until one is alone: that one is left out. False when
 * these are no updates at all.
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
        log_warn("an update is left out: it cannot be read", LOG_S("adapter", tg->adapter->name),
                 LOG_I("update", id));
        pass(tg, id);
        return true;
}

/*
 * Two who ask for the same bot's updates take turns; right after a restart the other one is our own
 * former self.
 */
static void on_conflict(struct telegram *tg, const struct tg_answer *answer)
{
        bool webhook = strstr(answer->why, "webhook") != NULL;

        link_enter(tg, TG_WAITING);
        if (webhook)
                adapter_lost(tg->adapter,
                             "somebody has set a webhook for this bot while we poll: remove it "
                             "(deleteWebhook), or use mode 'webhook', or restart to take over");
        else if (tg->conflicts > 0)
                adapter_lost(tg->adapter,
                             "another process polls with this bot token: stop it, or give this "
                             "adapter a bot of its own");
        timer_start(tg->timer,
                    backoff_half_jitter_ms(tg->conflicts++, CONFLICT_MS, CONFLICT_MAX_MS));
}

/*
 * A server that does not hold the question although it has nothing to say would have us ask without
 * a pause.
 */
static bool came_too_soon(const struct telegram *tg)
{
        return tg->intake.count == 0 && tg->held_seconds > 0 &&
               loop_now_ms(tg->adapter->loop) - tg->asked_ms < BESIDE_MS;
}

static void on_updates(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;
        bool readable = answer->ok && json_is_array(answer->result);

        tg->call = NULL;
        if (readable || try_fewer(tg, answer)) {
                tg->failures = tg->conflicts = 0;
                link_enter(tg, TG_LISTENING);
                adapter_ready(tg->adapter);
                if (readable)
                        tg->batch = tg->batch * 2 < BATCH_MAX ? tg->batch * 2 : BATCH_MAX;
                if (take_updates(tg, answer->result) == 0 && came_too_soon(tg))
                        timer_start(tg->timer, BESIDE_MS);
                else
                        tg_listen_on(tg);
        } else if (is_bad_token(answer)) {
                stop_bad_token(tg);
        } else if (answer->status == 409) {
                on_conflict(tg, answer);
        } else {
                link_failed(tg, answer);
        }
}

static void look(struct telegram *tg, int64_t seconds)
{
        int64_t offset = tg_intake_offset(tg, tg->offset);
        json_t *params = json_object();

        tg->asked_ms = loop_now_ms(tg->adapter->loop);
        tg->held_seconds = seconds;
        if (offset > 0)
                json_object_set_new(params, "offset", json_integer(offset));
        json_object_set_new(params, "limit", json_integer(tg->batch));
        json_object_set_new(params, "timeout", json_integer(seconds));
        json_object_set_new(params, "allowed_updates", allowed_updates());
        ask(tg, "getUpdates", params, seconds * 1000 + POLL_MARGIN_MS, on_updates);
}

void tg_listen_on(struct telegram *tg)
{
        if (!tg_polls(tg) || tg->state != TG_LISTENING || tg->call)
                return;
        if (tg->intake.count == 0) {
                timer_stop(tg->timer);
                look(tg, tg->conf->poll_seconds);
        } else if (tg_intake_has_room(tg) && !timer_active(tg->timer)) {
                timer_start(tg->timer, BESIDE_MS);
        }
}

/* The wait is over. */
static void on_timer(void *arg)
{
        struct telegram *tg = arg;

        if (tg->state == TG_LISTENING && tg->intake.count == 0) {
                tg_listen_on(tg);
        } else if (tg->state == TG_LISTENING) {
                if (!tg->call && tg_intake_has_room(tg))
                        look(tg, 0);
        } else if (tg->self.id == 0) {
                greet(tg);
        } else if (tg_polls(tg)) {
                look(tg, 0);
        } else {
                settle(tg);
        }
}

/* ---- life ---- */

static char *make_secret(const struct telegram_conf *conf)
{
        char text[SECRET_SIZE + 1];

        if (conf->webhook_secret)
                return mem_strdup(secret_reveal(conf->webhook_secret));
        return mem_strdup(id_random_text(text, SECRET_SIZE));
}

static int telegram_open(struct adapter *a, struct error *err)
{
        struct telegram *tg;

        if (strcmp(((const struct telegram_conf *)a->conf)->mode, "webhook") == 0 && !a->public_url)
                return error_set(
                        err, ERR_INVALID,
                        "mode 'webhook' needs http.publicUrl: the https address under which "
                        "Telegram reaches us");
        tg = mem_zalloc(sizeof(*tg));
        tg->adapter = a;
        tg->conf = a->conf;
        tg->batch = BATCH_MAX;
        if (tg_lock(tg, err) < 0) {
                free(tg);
                return -1;
        }
        tg->hook = tg_polls(tg) ? NULL : hook_address(a);
        tg->secret = tg_polls(tg) ? NULL : make_secret(tg->conf);
        if (tg->secret)
                log_hide(tg->secret, strlen(tg->secret));
        LIST_INIT(&tg->calls);
        TAILQ_INIT(&tg->sends);
        tg_intake_open(tg);
        tg_memory_read(tg);
        tg->timer = timer_new(a->loop, on_timer, tg);
        tg->watch = timer_new(a->loop, on_watch, tg);
        a->self = tg;
        greet(tg);
        return 0;
}

static void telegram_close(struct adapter *a)
{
        struct telegram *tg = a->self;

        tg_intake_close(tg);
        tg_sends_release(tg);
        tg_calls_abort(tg);
        timer_free(tg->timer);
        timer_free(tg->watch);
        tg_unlock(tg);
        if (tg->secret) {
                log_unhide(tg->secret, strlen(tg->secret));
                tg_url_free(tg->secret);
        }
        json_decref(tg->memory);
        free(tg->hook);
        free(tg->username);
        free(tg->name);
        free(tg);
}

static unsigned telegram_abilities(const struct adapter *a)
{
        const struct telegram_conf *conf = a->conf;

        return a->ops->can & ~(conf->streaming ? 0u : (unsigned)ADAPTER_STREAMS);
}

/* Groups, supergroups and channels have negative ids; a public one may be named. */
static bool telegram_is_group(const struct adapter *a, const char *channel)
{
        (void)a;
        return channel[0] == '-' || channel[0] == '@';
}

const struct platform_ops telegram_platform = {
        .name = "telegram",
        .help = "A Telegram bot, by long polling or webhook.",
        .can = ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_TYPING | ADAPTER_THREADS |
               ADAPTER_REACTIONS | ADAPTER_FILES,
        .text = { .dialect = MARKDOWN_TELEGRAM_HTML,
                  .unit = UTF8_UTF16,
                  .max = 4096,
                  .caption = 1024 },
        .pace = { .per_second = 30, .per_channel_second = 1, .per_channel_minute = 20 },
        .settings = telegram_settings,
        .conf_size = sizeof(struct telegram_conf),
        .check = telegram_check,
        .open = telegram_open,
        .close = telegram_close,
        .send = tg_send,
        .webhook = tg_intake_post,
        .webhook_admits = tg_intake_admits_post,
        .abilities = telegram_abilities,
        .is_group = telegram_is_group,
};
