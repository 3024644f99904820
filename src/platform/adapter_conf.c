/*
 * One member of "adapters": the keys every adapter has, and those of its platform. They go into two
 * structs, so the object is read twice; each reading permits the other's keys.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/platform.h"

#define AT(field) offsetof(struct adapter_common, field)

/* clang-format off */
static const struct setting pace_settings[] = {
        { "perSecond", SETTING_NUMBER, "-1", -1, 10000, .at = AT(pace.per_second) - AT(pace),
          .help = "Calls per second of the whole adapter; 0: no limit, -1: the platform's default." },
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
          .help = "Turns one person may cause in one channel within `seconds`; 0: no limit, -1: 5, "
                  "and no limit on `cli` and `api`." },
        { "seconds", SETTING_INT, "60", 1, 86400, .at = AT(rate.seconds) - AT(rate),
          .help = "The period in which turns are counted." },
        SETTING_END,
};

static const struct setting budget_settings[] = {
        { "usdPerDay", SETTING_NUMBER, "0", 0, 1000000, .at = AT(budget.usd_per_day) - AT(budget),
          .help = "What turns may cost per day (UTC), in US dollars; 0: no limit." },
        SETTING_END,
};

const struct setting adapter_common_settings[] = {
        { "enabled", SETTING_BOOL, "true", .at = AT(enabled),
          .help = "If false, the adapter is listed but not connected." },
        { "agent", SETTING_STRING, "null", 1, 100, .at = AT(agent),
          .help = "The agent that answers where no rule names another; by default `defaultAgent`, or "
                  "the only agent." },
        { "admins", SETTING_STRINGS, "[]", .at = AT(admins),
          .help = "Ids of people who are answered everywhere, unless `block` names them." },
        { "dm", SETTING_STRINGS, "\"none\"", .at = AT(dm),
          .help = "Whose direct messages are answered: `everyone`, `none`, or a list of ids, "
                  "`person:ID` and `role:ID`; `pairing` gives others a code with which the operator "
                  "can admit them." },
        { "channels", SETTING_STRINGS, "[]", .at = AT(channels),
          .help = "Ids of channels and groups, or `guild:ID`, where everyone is answered; `*` is all." },
        { "allow", SETTING_STRINGS, "[]", .at = AT(allow),
          .help = "Who else is answered: `user:ID`, `person:ID`, `role:ID`, `channel:ID`, `guild:ID`, "
                  "a plain id (user or channel), or `*`." },
        { "block", SETTING_STRINGS, "[]", .at = AT(block),
          .help = "Who is never answered, whatever the other lists say; entries as in `allow`." },
        { "rateLimit", SETTING_GROUP, "{}", .group = rate_settings, .at = AT(rate),
          .help = "How many turns one person may cause." },
        { "maxHops", SETTING_INT, "3", 0, 100, .at = AT(max_hops),
          .help = "Messages that passed through more bots than this are not answered." },
        { "budget", SETTING_GROUP, "{}", .group = budget_settings, .at = AT(budget),
          .help = "What the turns of this adapter may cost." },
        { "chatCommands", SETTING_BOOL, "true", .at = AT(commands),
          .help = "`/new`, `/stop`, `/status`, `/why`, `/pause`, `/resume` and `/help` are handled "
                  "here and not passed to the agent; on `api` only if set." },
        { "debounceMs", SETTING_INT, "-1", -1, 600000, .at = AT(debounce_ms),
          .help = "How long to wait for further messages of the same person before answering; -1: the "
                  "platform's default." },
        { "debounceMaxMs", SETTING_INT, "15000", 0, 3600000, .at = AT(debounce_max_ms),
          .help = "The longest an answer is delayed by further messages." },
        { "conversationSeconds", SETTING_INT, "-1", -1, 86400, .at = AT(conversation_seconds),
          .help = "In groups: how long after an exchange the same person needs no mention; 0: always "
                  "needed, -1: the platform's default." },
        { "dmConversationSeconds", SETTING_INT, "-1", -1, 604800, .at = AT(dm_conversation_seconds),
          .help = "In direct messages: how long after an exchange the session continues; 0: for ever, "
                  "-1: the platform's default." },
        { "autoThreadChars", SETTING_INT, "-1", -1, 1000000, .at = AT(thread_chars),
          .help = "Longer answers in a group begin a thread, where the platform has threads; 0: "
                  "never, -1: the platform's default." },
        { "partDelayMs", SETTING_INT, "0", 0, 60000, .at = AT(part_delay_ms),
          .help = "Pause between the messages of one answer, so that people can read along; 0: none." },
        { "slowReactionMs", SETTING_INT, "-1", -1, 600000, .at = AT(slow_ms),
          .help = "In groups: a message whose answer takes longer is marked with 👀, then with ✅ or "
                  "❌; 0: never, -1: the platform's default." },
        { "maxAgeSeconds", SETTING_INT, "0", 0, 31536000, .at = AT(max_age_seconds),
          .help = "Messages older than this on arrival are stored and marked expired, not answered; "
                  "0: no limit." },
        { "caFile", SETTING_STRING, "null", 1, 4096, .at = AT(ca_file),
          .help = "A PEM file with the certificates to trust instead of the system's: for a "
                  "self-hosted server or a simulator with its own certificate." },
        { "pace", SETTING_GROUP, "{}", .group = pace_settings, .help = "How fast we may send.",
          .at = AT(pace) },
        SETTING_END,
};
/* clang-format on */

static const struct setting no_settings[] = { SETTING_END };
static const struct setting *const common_tables[] = { adapter_common_settings, NULL };

static const struct setting *own_settings(const struct platform_ops *ops)
{
        return ops->settings ? ops->settings : no_settings;
}

/* "type" and the keys of a table, NULL-terminated; free the array, not the keys. */
static const char **type_and_keys(const struct setting *table)
{
        size_t n = 0;
        const char **keys;

        while (table[n].key)
                n++;
        keys = mem_array(n + 2, sizeof(*keys));
        keys[0] = "type";
        for (size_t i = 0; i < n; i++)
                keys[i + 1] = table[i].key;
        return keys;
}

static int unknown_type(const struct settings_source *src, const char *path, const char *type,
                        struct error *err)
{
        const char *names[32] = { NULL };
        struct buf text;
        const char *near;

        buf_init(&text, 0);
        buf_addf(&text, "there is no platform '%.60s'", type);
        for (size_t i = 0; platform_kinds[i] && i + 1 < COUNT(names); i++)
                names[i] = platform_kinds[i]->name;
        near = settings_nearest(type, names);
        if (near)
                buf_addf(&text, " (did you mean '%s'?)", near);
        buf_addstr(&text, "; this version has ");
        for (size_t i = 0; names[i]; i++)
                buf_addf(&text, "%s'%s'", i == 0 ? "" : names[i + 1] ? ", " : " and ", names[i]);
        settings_error(src, path, err, "%s", text.data);
        buf_release(&text);
        return -1;
}

static const struct platform_ops *read_type(const struct settings_source *src, const char *path,
                                            const json_t *object, struct error *err)
{
        const json_t *type = json_object_get(object, "type");
        const struct platform_ops *ops =
                json_is_string(type) ? platform_find(json_string_value(type)) : NULL;
        char *at;

        if (ops)
                return ops;
        if (!type) {
                settings_error(src, path, err, "missing key 'type'");
                return NULL;
        }
        at = *path ? mem_printf("%s.type", path) : mem_strdup("type");
        if (json_is_string(type))
                unknown_type(src, at, json_string_value(type), err);
        else
                settings_error(src, at, err, "expected a string");
        free(at);
        return NULL;
}

/* Reads one of the two tables; the keys of the other are permitted. */
static int read_table(struct settings_source *src, const char *path, const json_t *object,
                      const struct setting *table, const struct setting *other, void *out,
                      struct error *err)
{
        const struct setting *const tables[] = { table, NULL };
        const char **permitted = type_and_keys(other);
        int rc = settings_read(src, path, object, tables, permitted, out, err);

        free(permitted);
        return rc;
}

static struct adapter_conf *read_at(struct settings_source *src, const char *path, const char *name,
                                    const struct platform_ops *ops, const json_t *object,
                                    struct error *err)
{
        struct adapter_conf *c = mem_zalloc(sizeof(*c));

        c->name = mem_strdup(name);
        c->ops = ops;
        c->conf = mem_zalloc(ops->conf_size);
        c->raw = json_deep_copy(object);
        if (read_table(src, path, object, adapter_common_settings, own_settings(ops), &c->common,
                       err) < 0 ||
            read_table(src, path, object, own_settings(ops), adapter_common_settings, c->conf,
                       err) < 0 ||
            (ops->check && ops->check(src, path, c->conf, err) < 0)) {
                adapter_conf_free(c);
                return NULL;
        }
        return c;
}

struct adapter_conf *adapter_conf_read(struct settings_source *src, const char *name,
                                       const json_t *object, struct error *err)
{
        char *path = mem_printf("adapters.%s", name);
        struct adapter_conf *c = NULL;
        const struct platform_ops *ops;

        if (!json_is_object(object)) {
                settings_error(src, path, err, "expected an object such as { \"type\": \"cli\" }");
        } else {
                ops = read_type(src, path, object, err);
                if (ops)
                        c = read_at(src, path, name, ops, object, err);
        }
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
                error_set(err, ERR_INVALID, "there is no platform '%s'", type);
                return NULL;
        }
        src = settings_source_new(name, NULL, text, strlen(text), err);
        if (src)
                c = read_at(src, "", name, ops, settings_source_root(src), err);
        settings_source_free(src);
        return c;
}

void adapter_conf_free(struct adapter_conf *c)
{
        if (!c)
                return;
        settings_release(common_tables, &c->common);
        settings_release((const struct setting *const[]){ own_settings(c->ops), NULL }, c->conf);
        free(c->conf);
        json_decref(c->raw);
        free(c->name);
        free(c);
}
