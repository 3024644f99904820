#include "dispatch/rules.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/zone.h"
#include "dispatch/hours.h"
#include "dispatch/pattern.h"

#define LIST_MAX 100 /* patterns or hours of one condition */

static const char *const rule_modes[] = { "reply", "off", NULL };
static const char *const modes_to_come[] = { "thread", "ambient", "silent", NULL };
static const char *const bot_policies[] = { "none", "mentions", "all", NULL };

/* What the lists of text become when the rule is read. */
struct rule_compiled {
        struct pattern **text, **mention; /* as many as the lists have */
        struct hours *hours;
        struct zone *zone; /* NULL: the system's */
};

#define AT(field) offsetof(struct rule, field)

/* clang-format off */
const struct setting rule_when_settings[] = {
        { "adapter", SETTING_STRINGS, "[]", .at = AT(adapter), .help = "Names of adapters; `*` globs." },
        { "platform", SETTING_STRINGS, "[]", .at = AT(platform), .help = "Kinds of platform, such as `telegram`." },
        { "guild", SETTING_STRINGS, "[]", .at = AT(guild), .help = "Ids of guilds or workspaces; `*` globs." },
        { "channel", SETTING_STRINGS, "[]", .at = AT(channel), .help = "Ids of channels or chats; `*` globs." },
        { "thread", SETTING_STRINGS, "[]", .at = AT(thread), .help = "Ids of threads; `*` means any thread." },
        { "event", SETTING_STRINGS, "[]", .at = AT(event),
          .help = "Event types; without it only `message.received`, or `reaction.received` with `reaction`." },
        { "reaction", SETTING_STRINGS, "[]", .at = AT(reaction),
          .help = "Emoji, or names of emoji, that a reaction may have; skin tones do not count; `*` is any." },
        { "sender", SETTING_STRINGS, "[]", .at = AT(sender),
          .help = "Ids of people; `*` globs. A bot whose id is written here in full is heard whatever `bots` says." },
        { "bots", SETTING_CHOICE, "\"none\"", .choices = bot_policies, .at = AT(bots),
          .help = "Which other bots are heard: `none`, those whose message addresses this one (`mentions`), or `all`." },
        { "dm", SETTING_BOOL, "false", .at = AT(dm),
          .help = "A direct message. `dm`, `mention`, `reply` and `mentionPattern` are alternatives: any of them is enough." },
        { "mention", SETTING_BOOL, "false", .at = AT(mention), .help = "The message addresses the bot." },
        { "reply", SETTING_BOOL, "false", .at = AT(reply),
          .help = "The message answers one of the bot's messages." },
        { "mentionPattern", SETTING_STRINGS, "[]", .at = AT(mention_pattern),
          .help = "Regular expressions (PCRE2, case does not count); a text with one of them counts as a mention." },
        { "text", SETTING_STRINGS, "[]", .at = AT(text),
          .help = "Regular expressions (PCRE2, case does not count), one of which the text must have." },
        { "hours", SETTING_STRINGS, "[]", .at = AT(hours),
          .help = "When it holds: `09:00-17:00`, `mon-fri 09:00-17:00`, `sat,sun 22:00-06:00`." },
        { "timezone", SETTING_STRING, "null", 1, 100, .at = AT(timezone),
          .help = "Whose clock `hours` means, such as `Europe/Berlin`; without it the system's." },
        SETTING_END,
};

static const struct setting rate_settings[] = {
        { "turns", SETTING_INT, "-1", -1, 1000, .at = offsetof(struct turn_rate, turns),
          .help = "Turns one person may cause in one channel within the time; 0: no limit, -1: as the adapter says." },
        { "seconds", SETTING_INT, "-1", -1, 86400, .at = offsetof(struct turn_rate, seconds),
          .help = "The time in which they are counted; -1: as the adapter says." },
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
        { "rateLimit", SETTING_GROUP, "{}", .group = rate_settings, .at = AT(rate),
          .help = "How many turns one person may cause." },
        { "maxAgeSeconds", SETTING_INT, "-1", -1, 31536000, .at = AT(max_age_seconds),
          .help = "Older messages are marked expired, not answered; 0: no limit, -1: as the adapter says." },
        SETTING_END,
};
/* clang-format on */

static const struct setting *const rule_tables[] = { rule_settings, NULL };

/* ---- reading ---- */

/* What other versions will know deserves a better answer than "unknown". */
static int check_modes(const struct settings_source *src, const char *path, const json_t *object,
                       struct error *err)
{
        const char *mode = json_string_value(json_object_get(object, "mode"));
        char *at;
        int rc = 0;

        if (json_object_get(object, "reply")) {
                at = mem_printf("%s.reply", path);
                rc = settings_error(src, at, err,
                                    "answering in a thread comes with a later version; remove 'reply'");
                free(at);
                return rc;
        }
        for (const char *const *later = modes_to_come; mode && *later; later++) {
                if (strcmp(*later, mode) != 0)
                        continue;
                at = mem_printf("%s.mode", path);
                rc = settings_error(src, at, err,
                                    "mode '%s' comes with a later version; accepted: 'reply' or 'off'", mode);
                free(at);
        }
        return rc;
}

/* A list of texts whose elements have to be understood one by one. */
struct list_place {
        const struct settings_source *src;
        const char *path; /* of the rule */
        const char *key;
        const struct setting_list *list;
};

static int bad_element(const struct list_place *p, size_t i, struct error *err, const char *why)
{
        char *one = mem_printf("%s.when.%s", p->path, p->key), *element = mem_printf("%s[%zu]", one, i);
        /* a single value may stand without brackets */
        bool listed = settings_source_line(p->src, element) > 0;

        settings_error(p->src, listed ? element : one, err, "'%.100s': %s", p->list->items[i], why);
        free(one);
        free(element);
        return -1;
}

static int check_length(const struct list_place *p, struct error *err)
{
        return p->list->count <= LIST_MAX ? 0 : bad_element(p, LIST_MAX, err, "the list is longer than 100");
}

static int compile_patterns(const struct list_place *p, struct pattern ***out, struct error *err)
{
        struct error why;

        if (check_length(p, err) < 0)
                return -1;
        *out = mem_array(p->list->count, sizeof(struct pattern *));
        for (size_t i = 0; i < p->list->count; i++) {
                (*out)[i] = pattern_new(p->list->items[i], &why);
                if (!(*out)[i])
                        return bad_element(p, i, err, why.text);
        }
        return 0;
}

static int compile_hours(const struct list_place *p, struct hours **out, struct error *err)
{
        if (check_length(p, err) < 0)
                return -1;
        *out = mem_array(p->list->count, sizeof(**out));
        for (size_t i = 0; i < p->list->count; i++) {
                if (hours_parse(p->list->items[i], &(*out)[i]) < 0)
                        return bad_element(p, i, err,
                                           "expected hours such as '09:00-17:00' or 'mon-fri 09:00-17:00'");
        }
        return 0;
}

static int find_zone(const struct settings_source *src, const char *path, struct rule *r, struct error *err)
{
        struct error why;
        char *at;

        if (!r->timezone)
                return 0;
        r->compiled->zone = zone_new(r->timezone, &why);
        if (r->compiled->zone)
                return 0;
        at = mem_printf("%s.when.timezone", path);
        settings_error(src, at, err, "%s", why.text);
        free(at);
        return -1;
}

static int compile(const struct settings_source *src, const char *path, struct rule *r, struct error *err)
{
        r->compiled = mem_zalloc(sizeof(*r->compiled));
        if (compile_patterns(&(struct list_place){ src, path, "text", &r->text }, &r->compiled->text, err) <
                    0 ||
            compile_patterns(&(struct list_place){ src, path, "mentionPattern", &r->mention_pattern },
                             &r->compiled->mention, err) < 0 ||
            compile_hours(&(struct list_place){ src, path, "hours", &r->hours }, &r->compiled->hours, err) <
                    0)
                return -1;
        return find_zone(src, path, r, err);
}

int rule_read_at(struct settings_source *src, const char *path, const json_t *object, struct rule *out,
                 struct error *err)
{
        int rc;

        memset(out, 0, sizeof(*out));
        rc = check_modes(src, path, object, err);
        if (rc == 0)
                rc = settings_read(src, path, object, rule_tables, NULL, out, err);
        if (rc == 0)
                rc = compile(src, path, out, err);
        if (rc < 0)
                rule_release(out);
        return rc;
}

int rule_read(struct settings_source *src, size_t index, const json_t *object, struct rule *out,
              struct error *err)
{
        char *path = mem_printf("rules[%zu]", index);
        int rc = rule_read_at(src, path, object, out, err);

        if (rc == 0 && !out->name)
                out->name = mem_printf("rule %zu", index + 1);
        free(path);
        return rc;
}

static void free_patterns(struct pattern **patterns, size_t count)
{
        for (size_t i = 0; patterns && i < count; i++)
                pattern_free(patterns[i]);
        free(patterns);
}

void rule_release(struct rule *r)
{
        if (r->compiled) {
                free_patterns(r->compiled->text, r->text.count);
                free_patterns(r->compiled->mention, r->mention_pattern.count);
                free(r->compiled->hours);
                zone_free(r->compiled->zone);
                free(r->compiled);
                r->compiled = NULL;
        }
        settings_release(rule_tables, r);
}

/* ---- matching ---- */

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

static const char *guild_of(const struct incoming *in)
{
        return in->guild;
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
        return strcmp(event_of(in), r->reaction.set ? EVENT_REACTION_RECEIVED : EVENT_MESSAGE_RECEIVED) == 0;
}

static void event_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                          struct buf *why)
{
        if (r->event.set)
                list_explain(c, r, in, why);
        else
                buf_addf(why, "event '%s' must be named by the rule", event_of(in));
}

static bool addressed(const struct incoming *in)
{
        return in->is_mention || in->is_reply;
}

/* Two bots that answer each other never stop: one is heard when it is named, a glob is not enough, or where the policy says so. */
static bool sender_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        if (!in->sender_is_bot)
                return list_holds(c, r, in);
        if (any_equal(&r->sender, in->sender_id))
                return true;
        if (strcmp(r->bots, "none") == 0 || (strcmp(r->bots, "mentions") == 0 && !addressed(in)))
                return false;
        return list_holds(c, r, in);
}

static void sender_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                           struct buf *why)
{
        const char *sender = in->sender_id ? in->sender_id : "";

        if (!in->sender_is_bot)
                list_explain(c, r, in, why);
        else if (strcmp(r->bots, "mentions") == 0 && !addressed(in))
                buf_addf(why, "the sender '%s' is a bot and does not address this one", sender);
        else if (strcmp(r->bots, "none") == 0)
                buf_addf(why, "the sender '%s' is a bot that the rule does not name", sender);
        else
                list_explain(c, r, in, why);
}

/* As it was written: patterns are about what people see. */
static const char *text_of(const struct incoming *in)
{
        if (in->raw_text)
                return in->raw_text;
        return in->text ? in->text : "";
}

/* Is one of them in the text? *heavy: one was given up. */
static bool any_pattern(struct pattern *const *patterns, size_t count, const struct incoming *in, bool *heavy)
{
        const char *text = text_of(in);

        *heavy = false;
        for (size_t i = 0; i < count; i++) {
                int found = pattern_find(patterns[i], text);

                if (found > 0)
                        return true;
                *heavy = *heavy || found < 0;
        }
        return false;
}

static bool called(const struct rule *r, const struct incoming *in)
{
        bool heavy;

        return any_pattern(r->compiled->mention, r->mention_pattern.count, in, &heavy);
}

static bool address_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        (void)c;
        if (!r->dm && !r->mention && !r->reply && !r->mention_pattern.set)
                return true;
        return (r->dm && in->chat == CHAT_DM) || (r->mention && in->is_mention) ||
               (r->reply && in->is_reply) || called(r, in);
}

static void address_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                            struct buf *why)
{
        const char *wanted[4];
        size_t n = 0;

        (void)c;
        (void)in;
        if (r->dm)
                wanted[n++] = "a DM";
        if (r->mention)
                wanted[n++] = "a mention";
        if (r->reply)
                wanted[n++] = "a reply";
        if (r->mention_pattern.set)
                wanted[n++] = "a text with a 'mentionPattern'";
        buf_addstr(why, "the message is not ");
        for (size_t i = 0; i < n; i++)
                buf_addf(why, "%s%s", i > 0 ? " or " : "", wanted[i]);
}

/* Skin tones and the mark "as a picture" do not make another emoji: what they are made of is skipped. */
static const char *skip_variant(const char *p)
{
        for (;;) {
                if (strncmp(p, "\xef\xb8\x8f", 3) == 0)
                        p += 3;
                else if (strncmp(p, "\xf0\x9f\x8f", 3) == 0 && (unsigned char)p[3] >= 0xbb &&
                         (unsigned char)p[3] <= 0xbf)
                        p += 4;
                else
                        return p;
        }
}

bool same_emoji(const char *a, const char *b)
{
        for (;; a++, b++) {
                a = skip_variant(a);
                b = skip_variant(b);
                if (*a != *b)
                        return false;
                if (*a == '\0')
                        return true;
        }
}

static bool reaction_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        (void)c;
        if (!r->reaction.set)
                return true;
        for (size_t i = 0; in->emoji && i < r->reaction.count; i++) {
                const char *wanted = r->reaction.items[i];

                if (strcmp(wanted, "*") == 0 || same_emoji(wanted, in->emoji) ||
                    (in->emoji_name && strcmp(wanted, in->emoji_name) == 0))
                        return true;
        }
        return false;
}

static const char *reaction_of(const struct incoming *in)
{
        return in->emoji;
}

static bool text_holds(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        bool heavy;

        (void)c;
        return !r->text.set || any_pattern(r->compiled->text, r->text.count, in, &heavy);
}

static void text_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                         struct buf *why)
{
        bool heavy;

        (void)c;
        any_pattern(r->compiled->text, r->text.count, in, &heavy);
        buf_addstr(why, heavy ? "looking for one of the patterns of 'text' would take too long"
                              : "the text has none of the patterns of 'text'");
}

/* The clock on the rule's wall when the message was written. */
static struct moment moment_of(const struct rule *r, const struct incoming *in)
{
        time_t t = (time_t)((in->time_ms > 0 ? in->time_ms : clock_wall_ms()) / 1000);
        struct tm tm = { 0 };

        if (r->compiled->zone) {
                t += (time_t)zone_offset(r->compiled->zone, t);
                gmtime_r(&t, &tm);
        } else {
                localtime_r(&t, &tm);
        }
        return (struct moment){ .day = tm.tm_wday, .minute = tm.tm_hour * 60 + tm.tm_min };
}

static bool hours_are(const struct condition *c, const struct rule *r, const struct incoming *in)
{
        struct moment now;

        (void)c;
        if (!r->hours.set)
                return true;
        now = moment_of(r, in);
        for (size_t i = 0; i < r->hours.count; i++) {
                if (hours_hold(&r->compiled->hours[i], now))
                        return true;
        }
        return false;
}

static void hours_explain(const struct condition *c, const struct rule *r, const struct incoming *in,
                          struct buf *why)
{
        struct moment m = moment_of(r, in);
        static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                            "Thursday", "Friday", "Saturday" };

        (void)c;
        buf_addf(why, "it was %s, %02d:%02d, outside of 'hours'", days[m.day], m.minute / 60, m.minute % 60);
}

/* In the order in which a person would ask; patterns, which cost most, come last. */
/* clang-format off */
static const struct condition conditions[] = {
        { "adapter", list_holds, list_explain, AT(adapter), adapter_of },
        { "platform", list_holds, list_explain, AT(platform), platform_of },
        { "event", event_holds, event_explain, AT(event), event_of },
        { "guild", list_holds, list_explain, AT(guild), guild_of },
        { "channel", list_holds, list_explain, AT(channel), channel_of },
        { "thread", list_holds, list_explain, AT(thread), thread_of },
        { "sender", sender_holds, sender_explain, AT(sender), sender_of },
        { "reaction", reaction_holds, list_explain, AT(reaction), reaction_of },
        { "hours", hours_are, hours_explain, 0, NULL },
        { "dm, mention, reply", address_holds, address_explain, 0, NULL },
        { "text", text_holds, text_explain, 0, NULL },
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
