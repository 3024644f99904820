#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/platform.h"

#define KINDS_MAX 32

#define AT(field) offsetof(struct adapter_common, field)

/* clang-format off */
static const struct setting pace_settings[] = {
        { "perSecond", SETTING_NUMBER, "-1", -1, 10000, .at = AT(pace.per_second) - AT(pace),
          .help = "Calls per second of the whole adapter; 0: no limit, -1: the platform's "
                  "default." },
        { "perChatPerSecond", SETTING_NUMBER, "-1", -1, 10000,
          .at = AT(pace.per_chat_per_second) - AT(pace),
          .help = "Calls per second in one chat; 0: no limit, -1: the platform's default." },
        { "perGroupPerMinute", SETTING_NUMBER, "-1", -1, 100000,
          .at = AT(pace.per_group_per_minute) - AT(pace),
          .help = "Calls per minute in one group; 0: no limit, -1: the platform's default." },
        SETTING_END,
};

static const struct setting rate_settings[] = {
        { "turns", SETTING_INT, "-1", -1, 1000, .at = AT(rate.turns) - AT(rate),
          .help = "Turns one person may start in one channel within `seconds`; 0: no limit, -1: 5, "
                  "and no limit on `cli` and `api`." },
        { "seconds", SETTING_INT, "60", 1, 86400, .at = AT(rate.seconds) - AT(rate),
          .help = "The period in which turns are counted." },
        SETTING_END,
};

static const struct setting ambient_rate_settings[] = {
        { "turns", SETTING_INT, "-1", -1, 1000, .at = AT(ambient_rate.turns) - AT(ambient_rate),
          .help = "Such turns that one person may cause in one channel within `seconds`; 0: no "
                  "limit, -1: 20, and no limit on `cli` and `api`." },
        { "seconds", SETTING_INT, "60", 1, 86400,
          .at = AT(ambient_rate.seconds) - AT(ambient_rate),
          .help = "The period in which turns are counted." },
        SETTING_END,
};

static const struct setting budget_settings[] = {
        { "usdPerDay", SETTING_NUMBER, "0", 0, 1000000, .at = AT(budget.usd_per_day) - AT(budget),
          .help = "Maximum cost of turns per day (UTC), in US dollars; 0: no limit." },
        SETTING_END,
};

const struct setting adapter_common_settings[] = {
        { "enabled", SETTING_BOOL, "true", .at = AT(enabled),
          .help = "If false, the adapter is listed but not connected." },
        { "agent", SETTING_STRING, "null", 1, 100, .at = AT(agent),
          .help = "The agent that answers where no rule names another; by default `defaultAgent`, "
                  "or the only agent." },
        { "admins", SETTING_STRINGS, "[]", .at = AT(admins),
          .help = "Ids of people who are answered everywhere, unless `block` names them." },
        { "dm", SETTING_STRINGS, "\"none\"", .at = AT(dm),
          .help = "Whose direct messages are answered: `everyone`, `none`, or a list of ids, "
                  "`person:ID` and `role:ID`; `pairing` gives others a code with which the "
                  "operator can admit them." },
        { "channels", SETTING_STRINGS, "[]", .at = AT(channels),
          .help = "Ids of channels and groups, or `guild:ID`, where everyone is answered; `*` is "
                  "all." },
        { "allow", SETTING_STRINGS, "[]", .at = AT(allow),
          .help = "Who else is answered: `user:ID`, `person:ID`, `role:ID`, `channel:ID`, "
                  "`guild:ID`, a plain id (user or channel), or `*`." },
        { "block", SETTING_STRINGS, "[]", .at = AT(block),
          .help = "Who is never answered, even if other lists name them; entries as in `allow`." },
        { "rateLimit", SETTING_GROUP, "{}", .group = rate_settings, .at = AT(rate),
          .help = "How many turns one person may start." },
        { "ambientRateLimit", SETTING_GROUP, "{}", .group = ambient_rate_settings,
          .at = AT(ambient_rate),
          .help = "A separate limit for unrequested turns: those of `silent` rules, and those of "
                  "`ambient` rules for messages that are not addressed to the bot." },
        { "maxHops", SETTING_INT, "3", 0, 100, .at = AT(max_hops),
          .help = "Messages that passed through more bots than this are not answered." },
        { "budget", SETTING_GROUP, "{}", .group = budget_settings, .at = AT(budget),
          .help = "Spending limits of this adapter." },
        { "chatCommands", SETTING_BOOL, "true", .at = AT(commands),
          .help = "`/new`, `/stop`, `/status`, `/why`, `/pause`, `/resume`, `/resend`, `/remind`, "
                  "`/reminders`, `/quiet`, `/event`, `/sessions`, `/steer`, `/reply`, `/followup`, "
                  "`/abort`, `/notify` and `/help` are handled here and not passed to the agent; "
                  "on `api` only if set." },
        { "debounceMs", SETTING_INT, "-1", -1, 600000, .at = AT(debounce_ms),
          .help = "How long to wait for further messages of the same person before answering; -1: "
                  "the platform's default." },
        { "debounceMaxMs", SETTING_INT, "15000", 0, 3600000, .at = AT(debounce_max_ms),
          .help = "The longest that further messages may delay an answer." },
        { "conversationSeconds", SETTING_INT, "-1", -1, 86400, .at = AT(conversation_seconds),
          .help = "In groups: how long after an exchange the same person needs no mention; 0: "
                  "always needed, -1: the platform's default." },
        { "dmConversationSeconds", SETTING_INT, "-1", -1, 604800, .at = AT(dm_conversation_seconds),
          .help = "In direct messages: how long after an exchange the session continues; 0: for "
                  "ever, -1: the platform's default." },
        { "autoThreadChars", SETTING_INT, "-1", -1, 1000000, .at = AT(thread_chars),
          .help = "Longer answers in a group start a thread, where the platform has threads; 0: "
                  "never, -1: the platform's default." },
        { "partDelayMs", SETTING_INT, "0", 0, 60000, .at = AT(part_delay_ms),
          .help = "Pause between the messages of one answer, so that people can read along; 0: "
                  "none." },
        { "slowReactionMs", SETTING_INT, "-1", -1, 600000, .at = AT(slow_ms),
          .help = "In groups: a message whose answer takes longer is marked with 👀, then with ✅ or "
                  "❌; 0: never, -1: the platform's default." },
        { "maxAgeSeconds", SETTING_INT, "0", 0, 31536000, .at = AT(max_age_seconds),
          .help = "Messages older than this on arrival are stored and marked expired, not "
                  "answered; 0: no limit." },
        { "caFile", SETTING_FILE, "null", 1, 4096, .at = AT(ca_file),
          .help = "A PEM file with the certificates to trust instead of the system's, relative to "
                  "the data directory: for a self-hosted server or a simulator with its own "
                  "certificate." },
        { "pace", SETTING_GROUP, "{}", .group = pace_settings, .help = "Outbound rate limits.",
          .at = AT(pace) },
        SETTING_END,
};
/* clang-format on */

static struct adapter_conf *conf_read(struct settings_source *src, const char *path,
                                      const char *name, const struct platform_ops *ops,
                                      const json_t *object, struct error *err)
{
        struct adapter_conf *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(name);
        c->ops = ops;
        c->conf = mem_zalloc(ops->conf_size);
        c->raw = json_deep_copy(object);
        if (settings_read_typed(src, path, object, adapter_common_settings, &c->common,
                                ops->settings, c->conf, err) == 0 &&
            (!ops->check || ops->check(src, path, c->conf, err) == 0))
                return c;
        adapter_conf_free(c);
        return NULL;
}

struct adapter_conf *adapter_conf_read(struct settings_source *src, const char *name,
                                       const json_t *object, struct error *err)
{
        const char *names[KINDS_MAX + 1] = { NULL };
        char *path = mem_printf("adapters.%s", name);
        struct adapter_conf *c = NULL;
        int kind;

        for (size_t i = 0; i < KINDS_MAX && platform_kinds[i]; i++)
                names[i] = platform_kinds[i]->name;
        kind = settings_read_type(src, path, object, names, err);
        if (kind >= 0)
                c = conf_read(src, path, name, platform_kinds[kind], object, err);
        free(path);
        return c;
}

struct adapter_conf *adapter_conf_make(const char *name, const char *type, const char *json,
                                       struct error *err)
{
        const struct platform_ops *ops = platform_find(type);
        const char *text = json ? json : "{}";
        struct settings_source *src;
        struct adapter_conf *c = NULL;

        if (!ops) {
                error_set(err, ERR_INVALID, "unknown platform '%s'", type);
                return NULL;
        }
        src = settings_source_new(name, NULL, text, strlen(text), err);
        if (src)
                c = conf_read(src, "", name, ops, settings_source_root(src), err);
        settings_source_free(src);
        return c;
}

void adapter_conf_free(struct adapter_conf *c)
{
        if (!c)
                return;
        settings_release_typed(adapter_common_settings, &c->common, c->ops->settings, c->conf);
        free(c->conf);
        json_decref(c->raw);
        free(c->name);
        free(c);
}
