#include "dispatch/rules/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/people/persons.h"
#include "dispatch/rules/pattern.h"

void rule_context_release(struct rule_context *c)
{
        json_decref(c->metadata);
        c->metadata = NULL;
}

/* ---- list conditions ---- */

struct condition {
        const char *key;
        /* If false, explains it in `why` unless NULL. */
        bool (*check)(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                      struct buf *why);
        size_t list;  /* offset in struct rule */
        size_t value; /* offset in struct incoming of the text to compare */
};

static bool any_glob(const struct setting_list *list, const char *text)
{
        for (size_t i = 0; text && i < list->count; i++) {
                if (pattern_glob(list->items[i], text))
                        return true;
        }
        return false;
}

/* Explains that the value is not listed. Returns false. */
static bool differs(const char *key, const struct setting_list *list, const char *value,
                    struct buf *why)
{
        if (!why)
                return false;
        if (value)
                buf_addf(why, "%s '%s' is not ", key, value);
        else
                buf_addf(why, "there is no %s; expected ", key);
        if (list->count == 0)
                buf_addstr(why, "in an empty list");
        for (size_t i = 0; i < list->count; i++)
                buf_addf(why, "%s'%s'", i > 0 ? " or " : "", list->items[i]);
        return false;
}

static bool check_list(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                       struct buf *why)
{
        const struct setting_list *list = (const struct setting_list *)((const char *)r + c->list);
        const char *value = *(const char *const *)((const char *)ctx->in + c->value);

        return !list->set || any_glob(list, value) || differs(c->key, list, value, why);
}

/* By id, or "#general" by the name. */
static bool check_channel(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                          struct buf *why)
{
        const struct incoming *in = ctx->in;

        for (size_t i = 0; in->chat_name && i < r->channel.count; i++) {
                const char *entry = r->channel.items[i];

                if (*entry == '#' && pattern_glob(entry + 1, in->chat_name))
                        return true;
        }
        return check_list(c, r, ctx, why);
}

/* ---- events and reactions ---- */

static bool check_event(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                        struct buf *why)
{
        const char *type = ctx->in->type ? ctx->in->type : EVENT_MESSAGE_RECEIVED;

        if (r->event.set)
                return any_glob(&r->event, type) || differs(c->key, &r->event, type, why);
        if (r->reaction.set
                    ? strcmp(type, EVENT_REACTION_RECEIVED) == 0
                    : incoming_is_scheduled(ctx->in) ||
                              (!r->schedule.set && strcmp(type, EVENT_MESSAGE_RECEIVED) == 0))
                return true;
        if (why)
                buf_addf(why, "the rule does not name event '%s'", type);
        return false;
}

/* By name, which the schedule has as a sender. */
static bool check_schedule(const struct condition *c, const struct rule *r,
                           struct rule_context *ctx, struct buf *why)
{
        const char *name = incoming_is_scheduled(ctx->in) ? ctx->in->sender_name : NULL;

        return !r->schedule.set || any_glob(&r->schedule, name) ||
               differs(c->key, &r->schedule, name, why);
}

/* Skips skin tones and the variation selector. */
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

bool rule_same_emoji(const char *a, const char *b)
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

static bool check_reaction(const struct condition *c, const struct rule *r,
                           struct rule_context *ctx, struct buf *why)
{
        const struct incoming *in = ctx->in;

        if (!r->reaction.set)
                return true;
        for (size_t i = 0; in->emoji && i < r->reaction.count; i++) {
                const char *wanted = r->reaction.items[i];

                if (strcmp(wanted, "*") == 0 || rule_same_emoji(wanted, in->emoji) ||
                    (in->emoji_name && strcmp(wanted, in->emoji_name) == 0))
                        return true;
        }
        return differs(c->key, &r->reaction, in->emoji, why);
}

/* ---- senders ---- */

/* "person:per-3" matches any account of the person, also after a merge. */
static bool names_person(const struct setting_list *list, const struct rule_context *ctx)
{
        int64_t sender = 0;

        for (size_t i = 0; ctx->persons && i < list->count; i++) {
                const char *entry = list->items[i];

                if (strncmp(entry, "person:", 7) != 0)
                        continue;
                if (sender == 0)
                        sender = persons_lookup(ctx->persons, ctx->platform, ctx->in->sender_id);
                if (sender > 0 &&
                    persons_current(ctx->persons, person_parse_id(entry + 7)) == sender)
                        return true;
        }
        return false;
}

/*
 * Bots that answer each other never stop, so a bot must be named in full (no glob) or admitted by
 * `bots`.
 */
static bool check_sender(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                         struct buf *why)
{
        const struct incoming *in = ctx->in;
        const char *problem = NULL;

        if (!in->sender_is_bot)
                return !r->sender.set || any_glob(&r->sender, in->sender_id) ||
                       names_person(&r->sender, ctx) ||
                       differs(c->key, &r->sender, in->sender_id, why);
        for (size_t i = 0; in->sender_id && i < r->sender.count; i++) {
                if (strcmp(r->sender.items[i], in->sender_id) == 0)
                        return true;
        }
        if (strcmp(r->bots, "none") == 0)
                problem = "that the rule does not name";
        else if (strcmp(r->bots, "mentions") == 0 && !in->is_mention && !in->is_reply)
                problem = "and does not address this one";
        if (!problem)
                return check_list(c, r, ctx, why);
        if (why)
                buf_addf(why, "the sender '%s' is a bot %s", in->sender_id ? in->sender_id : "",
                         problem);
        return false;
}

static bool check_role(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                       struct buf *why)
{
        const struct incoming *in = ctx->in;
        const json_t *roles, *role;
        struct error err;
        size_t i;

        (void)c;
        if (!r->role.set)
                return true;
        if (!ctx->parsed && in->metadata)
                ctx->metadata = json_read(in->metadata, strlen(in->metadata), &err);
        ctx->parsed = true;
        roles = json_object_get(ctx->metadata, "roles");
        json_array_foreach(roles, i, role) {
                if (any_glob(&r->role, json_string_value(role)))
                        return true;
        }
        if (why)
                buf_addf(why, "the sender '%s' has none of the roles of 'role'%s",
                         in->sender_id ? in->sender_id : "",
                         json_array_size(roles) == 0 ? ": none is known" : "");
        return false;
}

/* ---- time ---- */

static bool check_hours(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                        struct buf *why)
{
        static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                            "Thursday", "Friday", "Saturday" };
        int64_t time_ms = ctx->in->time_ms > 0 ? ctx->in->time_ms : clock_wall_ms();
        struct moment m;

        (void)c;
        if (!r->hours.set)
                return true;
        m = hours_moment(r->compiled.zone, time_ms);
        for (size_t i = 0; i < r->hours.count; i++) {
                if (hours_hold(&r->compiled.hours[i], m))
                        return true;
        }
        if (why)
                buf_addf(why, "it was %s, %02d:%02d, outside of 'hours'", days[m.day],
                         m.minute / 60, m.minute % 60);
        return false;
}

/* ---- addressing and text ---- */

/* 1: a pattern matches the text as written, 0: none, -1: gave up. */
static int any_pattern(struct pattern *const *patterns, size_t count, const struct incoming *in)
{
        const char *text = in->raw_text ? in->raw_text : in->text ? in->text : "";
        int result = 0;

        for (size_t i = 0; i < count; i++) {
                int found = pattern_find(patterns[i], text);

                if (found > 0)
                        return 1;
                if (found < 0)
                        result = -1;
        }
        return result;
}

/* Alternatives; a rule with none of them accepts everything. */
static bool check_address(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                          struct buf *why)
{
        const struct incoming *in = ctx->in;
        const char *wanted[] = { r->dm ? "a DM" : NULL, r->mention ? "a mention" : NULL,
                                 r->reply ? "a reply" : NULL,
                                 r->conversation ? "part of a live conversation" : NULL,
                                 r->mention_pattern.set ? "a text with a 'mentionPattern'" : NULL };
        const char *separator = "";

        (void)c;
        if (!r->dm && !r->mention && !r->reply && !r->conversation && !r->mention_pattern.set)
                return true;
        if ((r->dm && in->chat == CHAT_DM) || (r->mention && in->is_mention) ||
            (r->reply && in->is_reply) || (r->conversation && ctx->in_session) ||
            any_pattern(r->compiled.mention, r->mention_pattern.count, in) > 0)
                return true;
        if (!why)
                return false;
        buf_addstr(why, "the message is not ");
        for (size_t i = 0; i < COUNT(wanted); i++) {
                if (!wanted[i])
                        continue;
                buf_addf(why, "%s%s", separator, wanted[i]);
                separator = " or ";
        }
        return false;
}

static bool check_text(const struct condition *c, const struct rule *r, struct rule_context *ctx,
                       struct buf *why)
{
        int found;

        (void)c;
        if (!r->text.set)
                return true;
        found = any_pattern(r->compiled.text, r->text.count, ctx->in);
        if (found <= 0 && why)
                buf_addstr(why, found < 0 ? "matching the patterns of 'text' took too long"
                                          : "the text matches no pattern of 'text'");
        return found > 0;
}

/* ---- matching a rule ---- */

#define ROW(list, value) offsetof(struct rule, list), offsetof(struct incoming, value)

/* In the order a person would ask; patterns, the most expensive, last. */
static const struct condition conditions[] = {
        { "adapter", check_list, ROW(adapter, adapter) },
        { "platform", check_list, ROW(platform, platform) },
        { "event", check_event, 0, 0 },
        { "schedule", check_schedule, 0, 0 },
        { "guild", check_list, ROW(guild, guild) },
        { "channel", check_channel, ROW(channel, channel) },
        { "thread", check_list, ROW(thread, thread) },
        { "sender", check_sender, ROW(sender, sender_id) },
        { "role", check_role, 0, 0 },
        { "reaction", check_reaction, 0, 0 },
        { "hours", check_hours, 0, 0 },
        { "dm, mention, reply, conversation", check_address, 0, 0 },
        { "text", check_text, 0, 0 },
};

bool rule_matches(const struct rule *r, struct rule_context *ctx, struct buf *why)
{
        for (size_t i = 0; i < COUNT(conditions); i++) {
                if (!conditions[i].check(&conditions[i], r, ctx, why))
                        return false;
        }
        return true;
}

bool rule_concerns(const struct rule *r, const char *adapter, const char *platform)
{
        return (!r->adapter.set || any_glob(&r->adapter, adapter)) &&
               (!r->platform.set || any_glob(&r->platform, platform));
}
