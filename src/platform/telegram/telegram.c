/* Telegram as a platform: the settings, opening and closing. */
#include "platform/telegram/telegram.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/platform.h"

#define AT(field) offsetof(struct telegram_conf, field)
#define WORD      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static const char *const modes[] = { "polling", "webhook", NULL };
static const char *const unsure[] = { "report", "repeat", "ask", NULL };

/* clang-format off */
static const struct setting telegram_settings[] = {
        { "botToken", SETTING_SECRET, NULL, .at = AT(token),
          .help = "The token that @BotFather gave, as a handle such as `env:TELEGRAM_BOT_TOKEN`." },
        { "apiBase", SETTING_URL, "\"https://api.telegram.org\"", .at = AT(api_base),
          .help = "Base URL of the Bot API: Telegram's own server, a self-hosted one, or a "
                  "simulator." },
        { "mode", SETTING_CHOICE, "\"polling\"", .choices = modes, .at = AT(mode),
          .help = "`polling` asks Telegram for updates; `webhook` lets Telegram post them to "
                  "`http.publicUrl`." },
        { "webhookSecret", SETTING_SECRET, "null", SETTING_SECRET_SHORTEST,
          .at = AT(webhook_secret),
          .help = "The secret token that Telegram sends with each post, 16 to 256 characters of "
                  "A-Z, a-z, 0-9, _ and -; by default a new one is made at each start." },
        { "pollSeconds", SETTING_INT, "30", 1, 50, .at = AT(poll_seconds),
          .help = "How long Telegram may hold a poll when there are no updates." },
        { "mediaMaxBytes", SETTING_INT, "20971520", 0, 209715200, .at = AT(media_max_bytes),
          .help = "Larger attachments are not downloaded; 0: none are. Telegram's own server "
                  "serves 20 MB at most." },
        { "reconcileAfterMs", SETTING_INT, "3000", 0, 600000, .at = AT(reconcile_after_ms),
          .help = "Wait this long after a lost response before asking whether the send arrived: "
                  "Telegram may still be working on it." },
        { "whenUnsure", SETTING_CHOICE, "\"report\"", .choices = unsure, .at = AT(when_unsure),
          .help = "What to do if it stays unknown whether a message arrived: `report` makes it a "
                  "dead letter, `repeat` sends it again once, marked with \xf0\x9f\x94\x81, `ask` "
                  "lets an admin decide." },
        { "streaming", SETTING_BOOL, "true", .at = AT(streaming),
          .help = "A long answer appears while it is being written, by editing one message." },
        { "commands", SETTING_STRINGS, "[]", .at = AT(commands),
          .help = "The bot's command menu, each as `name - what it does`, or `default` for "
                  "Dragoman's own, such as `/remind`; published when it changed. If not set, the "
                  "menu is left as it is." },
        SETTING_END,
};
/* clang-format on */

static int telegram_check(struct settings_source *src, const char *path, const void *conf,
                          struct error *err)
{
        const struct telegram_conf *c = conf;
        const struct secret *s = c->webhook_secret;

        if (secret_length(c->token) == 0 ||
            strspn(secret_reveal(c->token), WORD ":") != secret_length(c->token))
                return settings_member_error(
                        src, path, "botToken", err,
                        "this does not look like a token of @BotFather (such as 123456:ABC-DEF)");
        if (s && (secret_length(s) > 256 || strspn(secret_reveal(s), WORD) != secret_length(s)))
                return settings_member_error(
                        src, path, "webhookSecret", err,
                        "a webhook secret has 16 to 256 characters of A-Z, a-z, 0-9, _ and -");
        if (c->commands.count > 100)
                return settings_member_error(src, path, "commands", err,
                                             "a bot has at most 100 commands");
        for (size_t i = 0; i < c->commands.count; i++) {
                const char *wrong = tg_command_check(c->commands.items[i]);

                if (wrong)
                        return settings_member_error(src, path, "commands", err, "%s", wrong);
        }
        return 0;
}

/* Groups and channels are negative. */
static bool telegram_is_id(const char *text)
{
        size_t n = strspn(text += *text == '-', "0123456789");

        return n > 0 && n <= 19 && text[n] == '\0';
}

static bool telegram_needs_public_url(const void *conf)
{
        return strcmp(((const struct telegram_conf *)conf)->mode, "webhook") == 0;
}

static int telegram_open(struct adapter *a, struct error *err)
{
        const struct telegram_conf *conf = a->conf;
        struct telegram *tg;
        int lock;

        if (telegram_needs_public_url(conf) && !a->public_url)
                return error_set(err, ERR_INVALID,
                                 "mode 'webhook' needs http.publicUrl: the https address under "
                                 "which Telegram reaches us");
        lock = adapter_file_lock(a, conf->token, err);
        if (lock < 0)
                return -1;
        tg = mem_zalloc(sizeof(*tg));
        tg->adapter = a;
        tg->conf = conf;
        tg->lock = lock;
        tg->saved = adapter_file_read(a);
        LIST_INIT(&tg->calls);
        LIST_INIT(&tg->lookups);
        TAILQ_INIT(&tg->sends);
        TAILQ_INIT(&tg->doubts);
        map_init(&tg->spaces);
        tg_intake_open(tg);
        a->self = tg;
        tg_link_open(tg);
        return 0;
}

static void telegram_close(struct adapter *a)
{
        struct telegram *tg = a->self;

        tg_intake_close(tg);
        tg_sends_close(tg);
        tg_reconcile_close(tg);
        tg_chat_close(tg);
        tg_link_close(tg);
        tg_calls_abort(tg);
        adapter_file_unlock(tg->lock);
        tg_ids_release(tg);
        map_release(&tg->spaces);
        json_decref(tg->saved);
        free(tg->username);
        free(tg->name);
        free(tg);
}

static unsigned telegram_abilities(const struct adapter *a)
{
        const struct telegram_conf *conf = a->conf;

        return a->ops->can & ~(conf->streaming ? 0u : (unsigned)ADAPTER_STREAMS);
}

static enum unsure_policy telegram_when_unsure(const struct adapter *a)
{
        const struct telegram_conf *conf = a->conf;

        return strcmp(conf->when_unsure, "repeat") == 0 ? UNSURE_REPEAT
               : strcmp(conf->when_unsure, "ask") == 0  ? UNSURE_ASK
                                                        : UNSURE_REPORT;
}

/* Groups, supergroups and channels have negative ids; a public one may be named. */
static bool telegram_is_group(const struct adapter *a, const char *channel)
{
        (void)a;
        return channel[0] == '-' || channel[0] == '@';
}

const struct platform_ops telegram_platform = {
        .name = "telegram",
        .title = "Telegram",
        .help = "A Telegram bot, by long polling or webhook.",
        .token_hint = "the one @BotFather shows",
        .user_link = "tg://user?id=",
        .threads = CHAT_THREADS_VARY,
        .can = ADAPTER_EDITS | ADAPTER_STREAMS | ADAPTER_TYPING | ADAPTER_THREADS |
               ADAPTER_REACTIONS | ADAPTER_FILES | ADAPTER_READBACK | ADAPTER_DIRECT |
               ADAPTER_BUTTONS,
        .text = { .dialect = MARKDOWN_TELEGRAM_HTML,
                  .unit = UTF8_UTF16,
                  .max = 4096,
                  .caption = 1024 },
        .upload_max = 2000000000, /* to a Bot API server of one's own */
        .pace = { .per_second = 30, .per_channel_second = 1, .per_channel_minute = 20 },
        .settings = telegram_settings,
        .conf_size = sizeof(struct telegram_conf),
        .is_id = telegram_is_id,
        .needs_public_url = telegram_needs_public_url,
        .check = telegram_check,
        .open = telegram_open,
        .close = telegram_close,
        .send = tg_send,
        .reconcile = tg_reconcile,
        .read_from = tg_reconcile_from,
        .when_unsure = telegram_when_unsure,
        .webhook = tg_intake_post,
        .webhook_admits = tg_intake_admits_post,
        .abilities = telegram_abilities,
        .is_group = telegram_is_group,
        .channel_info = tg_chat_channel_info,
        .user_info = tg_chat_user_info,
        .files = &tg_intake_files,
};
