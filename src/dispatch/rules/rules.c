#include "dispatch/rules/rules.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/people/persons.h"

#define AT(field) offsetof(struct rule, field)

/* ---- what rules look at ---- */

void situation_init(struct situation *s, const struct incoming *in)
{
        *s = (struct situation){ .in = in };
}

void situation_release(struct situation *s)
{
        json_decref(s->metadata);
        s->metadata = NULL;
}

/* Read when the first rule asks for them, once for all rules. */
static const json_t *roles_of(struct situation *s)
{
        struct error err;

        if (!s->looked && s->in->metadata)
                s->metadata = json_read(s->in->metadata, strlen(s->in->metadata), &err);
        s->looked = true;
        return json_object_get(s->metadata, "roles");
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
        bool (*holds)(const struct condition *c, const struct rule *r, struct situation *s);
        void (*explain)(const struct condition *c, const struct rule *r, struct situation *s,
                        struct buf *why);
        /* offset of the setting_list in struct rule */
        size_t list;
        const char *(*value)(const struct incoming *); /* what the list is compared with */
};

static const struct setting_list *list_of(const struct condition *c, const struct rule *r)
{
        return (const struct setting_list *)((const char *)r + c->list);
}

static bool list_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        const struct setting_list *list = list_of(c, r);

        return !list->set || any_glob(list, c->value(s->in));
}

static void list_explain(const struct condition *c, const struct rule *r, struct situation *s,
                         struct buf *why)
{
        const struct setting_list *list = list_of(c, r);
        const char *value = c->value(s->in);

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

static bool event_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        if (r->event.set)
                return list_holds(c, r, s);
        return strcmp(event_of(s->in),
                      r->reaction.set ? EVENT_REACTION_RECEIVED : EVENT_MESSAGE_RECEIVED) == 0;
}

static void event_explain(const struct condition *c, const struct rule *r, struct situation *s,
                          struct buf *why)
{
        if (r->event.set)
                list_explain(c, r, s, why);
        else
                buf_addf(why, "event '%s' must be named by the rule", event_of(s->in));
}

static bool addressed(const struct incoming *in)
{
        return in->is_mention || in->is_reply;
}

/*
 * "person:per-3" is the person by any of his accounts, also when he was merged into another since.
 */
static bool names_person(const struct setting_list *list, const struct situation *s)
{
        int64_t sender = 0;

        for (size_t i = 0; s->persons && i < list->count; i++) {
                const char *entry = list->items[i];

                if (strncmp(entry, "person:", 7) != 0)
                        continue;
                if (sender == 0)
                        sender = persons_lookup(s->persons, s->platform, s->in->sender_id);
                if (sender > 0 && persons_current(s->persons, person_parse_id(entry + 7)) == sender)
                        return true;
        }
        return false;
}

static bool is_named(const struct condition *c, const struct rule *r, struct situation *s)
{
        return list_holds(c, r, s) || names_person(&r->sender, s);
}

/*
 * Two bots that answer each other never stop: one is heard when it is named, a glob is not enough,
 * or where the policy says so.
 */
static bool sender_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        const struct incoming *in = s->in;

        if (!in->sender_is_bot)
                return is_named(c, r, s);
        if (any_equal(&r->sender, in->sender_id))
                return true;
        if (strcmp(r->bots, "none") == 0 || (strcmp(r->bots, "mentions") == 0 && !addressed(in)))
                return false;
        return list_holds(c, r, s);
}

static void sender_explain(const struct condition *c, const struct rule *r, struct situation *s,
                           struct buf *why)
{
        const struct incoming *in = s->in;
        const char *sender = in->sender_id ? in->sender_id : "";

        if (!in->sender_is_bot)
                list_explain(c, r, s, why);
        else if (strcmp(r->bots, "mentions") == 0 && !addressed(in))
                buf_addf(why, "the sender '%s' is a bot and does not address this one", sender);
        else if (strcmp(r->bots, "none") == 0)
                buf_addf(why, "the sender '%s' is a bot that the rule does not name", sender);
        else
                list_explain(c, r, s, why);
}

static bool has_role(const struct rule *r, struct situation *s)
{
        const json_t *roles = roles_of(s), *role;
        size_t i;

        json_array_foreach(roles, i, role) {
                if (any_glob(&r->role, json_string_value(role)))
                        return true;
        }
        return false;
}

static bool role_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        (void)c;
        return !r->role.set || has_role(r, s);
}

static void role_explain(const struct condition *c, const struct rule *r, struct situation *s,
                         struct buf *why)
{
        (void)c;
        (void)r;
        buf_addf(why, "the sender '%s' has none of the roles of 'role'",
                 s->in->sender_id ? s->in->sender_id : "");
        if (json_array_size(roles_of(s)) == 0)
                buf_addstr(why, ": none is told");
}

/* As it was written: patterns are about what people see. */
static const char *text_of(const struct incoming *in)
{
        if (in->raw_text)
                return in->raw_text;
        return in->text ? in->text : "";
}

/* Is one of them in the text? *heavy: one was given up. */
static bool any_pattern(struct pattern *const *patterns, size_t count, const struct incoming *in,
                        bool *heavy)
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

/* Ways to be meant, of which any is enough; a rule that asks for none means everything. */
static bool address_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        const struct incoming *in = s->in;

        (void)c;
        if (!r->dm && !r->mention && !r->reply && !r->conversation && !r->mention_pattern.set)
                return true;
        return (r->dm && in->chat == CHAT_DM) || (r->mention && in->is_mention) ||
               (r->reply && in->is_reply) || (r->conversation && s->conversation) || called(r, in);
}

static void address_explain(const struct condition *c, const struct rule *r, struct situation *s,
                            struct buf *why)
{
        const char *wanted[5];
        size_t n = 0;

        (void)c;
        (void)s;
        if (r->dm)
                wanted[n++] = "a DM";
        if (r->mention)
                wanted[n++] = "a mention";
        if (r->reply)
                wanted[n++] = "a reply";
        if (r->conversation)
                wanted[n++] = "part of a conversation that is going on";
        if (r->mention_pattern.set)
                wanted[n++] = "a text with a 'mentionPattern'";
        buf_addstr(why, "the message is not ");
        for (size_t i = 0; i < n; i++)
                buf_addf(why, "%s%s", i > 0 ? " or " : "", wanted[i]);
}

/*
 * Skin tones and the mark "as a picture" do not make another emoji: what they are made of is
 * skipped.
 */
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

static bool reaction_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        const struct incoming *in = s->in;

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

static bool text_holds(const struct condition *c, const struct rule *r, struct situation *s)
{
        bool heavy;

        (void)c;
        return !r->text.set || any_pattern(r->compiled->text, r->text.count, s->in, &heavy);
}

static void text_explain(const struct condition *c, const struct rule *r, struct situation *s,
                         struct buf *why)
{
        bool heavy;

        (void)c;
        any_pattern(r->compiled->text, r->text.count, s->in, &heavy);
        buf_addstr(why, heavy ? "looking for one of the patterns of 'text' would take too long"
                              : "the text has none of the patterns of 'text'");
}

/* The clock on the rule's wall when the message was written. */
static struct moment moment_of(const struct rule *r, const struct incoming *in)
{
        time_t t = (time_t)((in->time_ms > 0 ? in->time_ms : clock_wall_ms()) / 1000);
        struct tm tm = { 0 };

        if (r->compiled->zone) {
                t += (time_t)timezone_offset(r->compiled->zone, t);
                gmtime_r(&t, &tm);
        } else {
                localtime_r(&t, &tm);
        }
        return (struct moment){ .day = tm.tm_wday, .minute = tm.tm_hour * 60 + tm.tm_min };
}

static bool hours_are(const struct condition *c, const struct rule *r, struct situation *s)
{
        struct moment now;

        (void)c;
        if (!r->hours.set)
                return true;
        now = moment_of(r, s->in);
        for (size_t i = 0; i < r->hours.count; i++) {
                if (hours_hold(&r->compiled->hours[i], now))
                        return true;
        }
        return false;
}

static void hours_explain(const struct condition *c, const struct rule *r, struct situation *s,
                          struct buf *why)
{
        struct moment m = moment_of(r, s->in);
        static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                            "Thursday", "Friday", "Saturday" };

        (void)c;
        buf_addf(why, "it was %s, %02d:%02d, outside of 'hours'", days[m.day], m.minute / 60,
                 m.minute % 60);
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
        { "role", role_holds, role_explain, 0, NULL },
        { "reaction", reaction_holds, list_explain, AT(reaction), reaction_of },
        { "hours", hours_are, hours_explain, 0, NULL },
        { "dm, mention, reply, conversation", address_holds, address_explain, 0, NULL },
        { "text", text_holds, text_explain, 0, NULL },
};
/* clang-format on */

bool rule_matches(const struct rule *r, struct situation *s, struct buf *why)
{
        for (size_t i = 0; i < COUNT(conditions); i++) {
                const struct condition *c = &conditions[i];

                if (c->holds(c, r, s))
                        continue;
                if (why)
                        c->explain(c, r, s, why);
                return false;
        }
        return true;
}

bool rule_concerns(const struct rule *r, const char *adapter, const char *platform)
{
        return (!r->adapter.set || any_glob(&r->adapter, adapter)) &&
               (!r->platform.set || any_glob(&r->platform, platform));
}
