/*
 * Whether one rule takes everything that another would, so that the other is never reached. In
 * doubt: no.
 */
#include <string.h>

#include "base/mem.h"
#include "dispatch/rules/pattern.h"
#include "dispatch/rules/rules.h"

static bool has_item(const struct setting_list *list, const char *text)
{
        for (size_t i = 0; i < list->count; i++) {
                if (strcmp(list->items[i], text) == 0)
                        return true;
        }
        return false;
}

static bool holds_all(const struct setting_list *wide, const struct setting_list *narrow)
{
        for (size_t i = 0; i < narrow->count; i++) {
                if (!has_item(wide, narrow->items[i]))
                        return false;
        }
        return narrow->count > 0;
}

/* The same for lists of globs: "sh*" holds "shop". */
static bool globs_hold_all(const struct setting_list *wide, const struct setting_list *narrow)
{
        for (size_t i = 0; i < narrow->count; i++) {
                const char *text = narrow->items[i];
                bool held = has_item(wide, text) || has_item(wide, "*");

                for (size_t j = 0; j < wide->count && !held && !strchr(text, '*'); j++)
                        held = pattern_glob(wide->items[j], text);
                if (!held)
                        return false;
        }
        return narrow->count > 0;
}

/* Without `event`, the types follow from `reaction` and `schedule`. */
static struct setting_list events_of(const struct rule *r)
{
        static char fired[] = EVENT_SCHEDULE_FIRED, message[] = EVENT_MESSAGE_RECEIVED,
                    reaction[] = EVENT_REACTION_RECEIVED;
        static char *types[] = { fired, message }, *reactions[] = { reaction };

        if (r->event.set)
                return r->event;
        if (r->reaction.set)
                return (struct setting_list){ reactions, 1, true };
        return (struct setting_list){ types, r->schedule.set ? 1 : 2, true };
}

static bool events_cover(const struct rule *wide, const struct rule *narrow)
{
        const struct setting_list a = events_of(wide), b = events_of(narrow);

        return globs_hold_all(&a, &b);
}

static bool is_addressed(const struct rule *r)
{
        return r->dm || r->mention || r->reply || r->conversation || r->mention_pattern.set;
}

/* dm, mention, ... are alternatives; without any, all messages count. */
static bool address_covers(const struct rule *wide, const struct rule *narrow)
{
        if (!is_addressed(wide))
                return true;
        return is_addressed(narrow) && (wide->dm || !narrow->dm) &&
               (wide->mention || !narrow->mention) && (wide->reply || !narrow->reply) &&
               (wide->conversation || !narrow->conversation) &&
               (!narrow->mention_pattern.set ||
                (wide->mention_pattern.set &&
                 holds_all(&wide->mention_pattern, &narrow->mention_pattern)));
}

static int bots_rank(const char *bots)
{
        return !bots || strcmp(bots, "none") == 0 ? 0 : strcmp(bots, "mentions") == 0 ? 1 : 2;
}

/* A bot named in `sender` is accepted whatever `bots` says. */
static bool senders_cover(const struct rule *wide, const struct rule *narrow)
{
        if (bots_rank(wide->bots) < bots_rank(narrow->bots))
                return false;
        if (!wide->sender.set)
                return !narrow->sender.set || bots_rank(wide->bots) == 2;
        return narrow->sender.set && holds_all(&wide->sender, &narrow->sender);
}

bool rule_covers(const struct rule *wide, const struct rule *narrow)
{
        static const size_t lists[] = {
                offsetof(struct rule, adapter),  offsetof(struct rule, platform),
                offsetof(struct rule, guild),    offsetof(struct rule, channel),
                offsetof(struct rule, thread),   offsetof(struct rule, role),
                offsetof(struct rule, schedule),
        };

        for (size_t i = 0; i < COUNT(lists); i++) {
                const struct setting_list *w = (const void *)((const char *)wide + lists[i]);
                const struct setting_list *n = (const void *)((const char *)narrow + lists[i]);

                /* an absent list is any value */
                if (w->set && !(n->set && globs_hold_all(w, n)))
                        return false;
        }
        return !wide->hours.set && events_cover(wide, narrow) && address_covers(wide, narrow) &&
               senders_cover(wide, narrow) &&
               (!wide->reaction.set ||
                (narrow->reaction.set && (has_item(&wide->reaction, "*") ||
                                          holds_all(&wide->reaction, &narrow->reaction)))) &&
               (!wide->text.set || (narrow->text.set && holds_all(&wide->text, &narrow->text)));
}
