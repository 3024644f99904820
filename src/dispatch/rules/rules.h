/*
 * rules: the conditions of a rule, each a row of one table.
 *
 * A further condition is a field of struct rule, a row of rule_when_settings (rule_conf.c), and a
 * row of the table in rules.c; the evaluator and the explanations follow by themselves.
 */
#ifndef DISPATCH_RULES_RULES_H
#define DISPATCH_RULES_RULES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/timezone.h"
#include "dispatch/dispatch.h"
#include "dispatch/rules/hours.h"
#include "dispatch/rules/pattern.h"

/* What the lists of text become when the rule is read. */
struct rule_compiled {
        struct pattern **text, **mention; /* as many as the lists have */
        struct hours *hours;
        struct time_zone *zone; /* NULL: the system's */
};

/* An event as rules see it. */
struct persons;
struct situation {
        const struct incoming *in;
        bool conversation;             /* it goes on with a conversation (windows.h) */
        const struct persons *persons; /* who is who; NULL: nobody knows */
        const char *platform;          /* of the adapter */
        json_t *metadata;              /* parsed when the first rule needs it */
        bool looked;
};
void situation_init(struct situation *s, const struct incoming *in);
void situation_release(struct situation *s);

/* Does the text match the pattern? `*` stands for any run of bytes, everything else for itself. */
bool glob_match(const char *pattern, const char *text);
/* The same emoji, whatever the skin tone? */
bool same_emoji(const char *a, const char *b);

/* As rule_read, for an object anywhere; a rule without a name has none. */
int rule_read_at(struct settings_source *src, const char *path, const json_t *object,
                 struct rule *out, struct error *err);

/*
 * What other gateways call some conditions (triggerEvents, triggerReactions,
 * triggerMentionPatterns) gets our names; for rules that come over the API.
 */
void rule_rename_aliases(json_t *rule);

/*
 * Do all conditions hold? When not and `why` is given, the first that does not is explained there.
 */
bool rule_matches(const struct rule *r, struct situation *s, struct buf *why);
/* Do the conditions about the connection (adapter, platform) hold, whatever the event is? */
bool rule_concerns(const struct rule *r, const char *adapter, const char *platform);

#endif
