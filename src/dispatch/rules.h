/*
 * rules: the conditions of a rule, each a row of one table.
 *
 * A further condition (role, conversation) is a field of struct rule, a row of rule_when_settings, and a row of the
 * table in rules.c; the evaluator and the explanations follow by themselves.
 */
#ifndef DISPATCH_RULES_H
#define DISPATCH_RULES_H

#include <stdbool.h>

#include "base/buf.h"
#include "dispatch/dispatch.h"

/* Does the text match the pattern? `*` stands for any run of bytes, everything else for itself. */
bool glob_match(const char *pattern, const char *text);
/* The same emoji, whatever the skin tone? */
bool same_emoji(const char *a, const char *b);

/* As rule_read, for an object anywhere; a rule without a name has none. */
int rule_read_at(struct settings_source *src, const char *path, const json_t *object, struct rule *out,
                 struct error *err);

/* Do all conditions hold? When not and `why` is given, the first that does not is explained there. */
bool rule_matches(const struct rule *r, const struct incoming *in, struct buf *why);
/* Do the conditions about the connection (adapter, platform) hold, whatever the event is? */
bool rule_concerns(const struct rule *r, const char *adapter, const char *platform);

#endif
