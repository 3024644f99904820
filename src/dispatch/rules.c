#include "dispatch/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const rule_modes[] = { "reply", "off", NULL };

#define AT(field) offsetof(struct rule, field)

/* clang-format off */
const struct setting rule_when_settings[] = {
        { "adapter", SETTING_STRINGS, "[]", .at = AT(adapter), .help = "Names of adapters; `*` globs." },
        { "platform", SETTING_STRINGS, "[]", .at = AT(platform), .help = "Kinds of platform, such as `telegram`." },
        { "channel", SETTING_STRINGS, "[]", .at = AT(channel), .help = "Ids of channels or chats; `*` globs." },
        { "thread", SETTING_STRINGS, "[]", .at = AT(thread), .help = "Ids of threads; `*` means any thread." },
        { "event", SETTING_STRINGS, "[]", .at = AT(event),
          .help = "Event types; without it only `message.received`." },
        { "sender", SETTING_STRINGS, "[]", .at = AT(sender),
          .help = "Ids of people; `*` globs. A bot is heard only when its id is written here in full." },
        { "dm", SETTING_BOOL, "false", .at = AT(dm),
          .help = "A direct message. `dm`, `mention` and `reply` are alternatives: any of them is enough." },
        { "mention", SETTING_BOOL, "false", .at = AT(mention), .help = "The message addresses the bot." },
        { "reply", SETTING_BOOL, "false", .at = AT(reply),
          .help = "The message answers one of the bot's messages." },
        SETTING_END,
};

/* The conditions are fields of struct rule itself, hence the group at offset 0. */
const struct setting rule_settings[] = {
        { "name", SETTING_STRING, "null", 1, 200, .at = AT(name),
          .help = "Shown in logs and explanations; without it the rule's number." },
        { "when", SETTING_GROUP, "{}", .group = rule_when_settings, .at = 0,
          .help = "Conditions that must hold together; a list means any of its members." },
        { "agent", SETTING_STRING, "null", 1, 100, .at = AT(agent),
          .help = "Who answers; without it the adapter's agent." },
        { "mode", SETTING_CHOICE, "\"reply\"", .choices = rule_modes, .at = AT(mode),
          .help = "`reply` answers; `off` stays silent and ends the search." },
        { "debounceMs", SETTING_INT, "-1", -1, 600000, .at = AT(debounce_ms),
          .help = "Wait this long for further messages before answering; -1: as the adapter says." },
        SETTING_END,
};
/* clang-format on */

static const struct setting *const rule_tables[] = { rule_settings, NULL };

int rule_read(struct settings_source *src, size_t index, const json_t *object, struct rule *out,
              struct error *err)
{
        char *path = mem_printf("rules[%zu]", index);
        int rc;

        memset(out, 0, sizeof(*out));
        rc = settings_read(src, path, object, rule_tables, NULL, out, err);
        if (rc == 0 && !out->name)
                out->name = mem_printf("rule %zu", index + 1);
        free(path);
        return rc;
}

void rule_release(struct rule *r)
{
        settings_release(rule_tables, r);
}

bool glob_match(const char *pattern, const char *text)
{
        const char *star = NULL, *resume = NULL; /* the last star, and where its run may grow */

        while (*text) {
                if (*pattern == '*') {
                        star = pattern++;
                        resume = text;
                } else if (*pattern == *text) {
                        pattern++;
                        text++;
                } else if (star) {
                        pattern = star + 1;
                        text = ++resume;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}

static bool any_glob(const struct setting_list *list, const char *text)
{
        for (size_t i = 0; text && i < list->count; i++) {
                if (glob_match(list->items[i], text))
                        return true;
        }
        return false;
}

static bool any_equal(const struct setting_list *list, const char *text)
{
        for (size_t i = 0; text && i < list->count; i++) {
                if (strcmp(list->items[i], text) == 0)
                        return true;
        }
        return false;
}

/* One condition: a list against a value of the event, or a question of its own. */
struct condition {
        const char *key;
        bool (*holds)(const struct condition *c, const struct rule *r, const struct incoming *in);
        void (*explain)(const struct condition *c, const struct rule *r, const struct incoming *in,
                        struct buf *why);
        size_t list;                                   /* offset of the setting_list in struct rule */
        const char *(*value)(const struct incoming *); /* what the list is compared with */
};

static const struct setting_list *list_of(const struct condition *c, const struct rule *r)
{
        return (const struct setting_list *)((const char *)r + c->list);
}

static bool list_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        const struct setting_list *list = list_of(c, r);

        return !list->set || any_glob(list, c->value(in));
}

static void list_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                         struct buf *why)
{
        const struct setting_list *list = list_of(c, r);
        const char *value = c->value(in);

        if (value)
                buf_addf(why, "%s '%s' is not ", c->key, value);
        else
                buf_addf(why, "there is no %s, wanted is ", c->key);
        if (list->count == 0)
                buf_addstr(why, "in an empty list");
        for (size_t i = 0; i < list->count; i++)
                buf_addf(why, "%s'%s'", i > 0 ? " or " : "", list->items[i]);
}

static const char *adapter_of(const struct incoming *in)
{
        return in->adapter;
}

static const char *platform_of(const struct incoming *in)
{
        return in->platform;
}

static const char *channel_of(const struct incoming *in)
{
        return in->channel;
}

static const char *thread_of(const struct incoming *in)
{
        return in->thread;
}

static const char *event_of(const struct incoming *in)
{
        return in->type ? in->type : EVENT_MESSAGE_RECEIVED;
}

static const char *sender_of(const struct incoming *in)
{
        return in->sender_id;
}

static bool event_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        if (r->event.set)
                return list_holds(c, r, in);
        return strcmp(event_of(in), EVENT_MESSAGE_RECEIVED) == 0;
}

static void event_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                          struct buf *why)
{
        if (r->event.set)
                list_explain(c, r, in, why);
        else
                buf_addf(why, "event '%s' must be named by the rule", event_of(in));
}

/* Two bots that answer each other never stop, so a glob is not enough to hear one. */
static bool sender_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        if (in->sender_is_bot)
                return any_equal(&r->sender, in->sender_id);
        return list_holds(c, r, in);
}

static void sender_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                           struct buf *why)
{
        if (in->sender_is_bot)
                buf_addf(why, "the sender '%s' is a bot that the rule does not name",
                         in->sender_id ? in->sender_id : "");
        else
                list_explain(c, r, in, why);
}

static bool address_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        (void)c;
        if (!r->dm && !r->mention && !r->reply)
                return true;
        return (r->dm && in->chat == CHAT_DM) || (r->mention && in->is_mention) || (r->reply && in->is_reply);
}

static void address_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                            struct buf *why)
{
        const char *wanted[3];
        size_t n = 0;

        (void)c;
        (void)in;
        if (r->dm)
                wanted[n++] = "a DM";
        if (r->mention)
                wanted[n++] = "a mention";
        if (r->reply)
                wanted[n++] = "a reply";
        buf_addstr(why, "the message is not ");
        for (size_t i = 0; i < n; i++)
                buf_addf(why, "%s%s", i > 0 ? " or " : "", wanted[i]);
}

/* In the order in which a person would ask. */
/* clang-format off */
static const struct condition conditions[] = {
        { "adapter", list_holds, list_explain, AT(adapter), adapter_of },
        { "platform", list_holds, list_explain, AT(platform), platform_of },
        { "event", event_holds, event_explain, AT(event), event_of },
        { "channel", list_holds, list_explain, AT(channel), channel_of },
        { "thread", list_holds, list_explain, AT(thread), thread_of },
        { "sender", sender_holds, sender_explain, AT(sender), sender_of },
        { "dm, mention, reply", address_holds, address_explain, 0, NULL },
};
/* clang-format on */

bool rule_matches(const struct rule *r, const struct incoming *in, struct buf *why)
{
        for (size_t i = 0; i < COUNT(conditions); i++) {
                const struct condition *c = &conditions[i];

                if (c->holds(c, r, in))
                        continue;
                if (why)
                        c->explain(c, r, in, why);
                return false;
        }
        return true;
}

bool rule_concerns(const struct rule *r, const char *adapter, const char *platform)
{
        return (!r->adapter.set || any_glob(&r->adapter, adapter)) &&
               (!r->platform.set || any_glob(&r->platform, platform));
}
