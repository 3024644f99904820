/*
 * stored_rules: rules written over the API, beside those of the configuration file.
 *
 * They have the same JSON and the same evaluator. Rules with a position below 0 precede the rules
 * of the file, the others follow them; equal positions are ordered by name. A rule of the file
 * hides a stored one of the same name. A change counts once it is committed (write_through.h).
 */
#ifndef DISPATCH_RULES_STORED_RULES_H
#define DISPATCH_RULES_STORED_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rows/rule_row.h"
#include "store/store.h"

struct rule;
struct stored_rules;

#define STORED_RULES_MAX      1000
#define STORED_RULE_MAX_BYTES 65536

struct stored_rule {
        struct rule_row row;
        const struct rule *rule; /* compiled; NULL when this version rejects it: see `why` */
        const char *why;
};

/* Reads the table; blocks. Rules this version rejects do not apply. Free it after the store. */
struct stored_rules *stored_rules_open(struct store *s, struct error *err);
void stored_rules_free(struct stored_rules *rs);
/* Called after every change. */
void stored_rules_watch(struct stored_rules *rs, void (*changed)(void *arg), void *arg);

/* In the order of their positions. Borrowed until the next change. */
size_t stored_rules_count(const struct stored_rules *rs);
const struct stored_rule *stored_rules_at(const struct stored_rules *rs, size_t index);
const struct stored_rule *stored_rules_find(const struct stored_rules *rs, const char *name);
/* The position after the last one. */
int64_t stored_rules_end(const struct stored_rules *rs);

/*
 * Validates a rule of this name. ERR_INVALID with the field and what would be accepted:
 * "rule.when: unknown key 'chanel' ...".
 */
int stored_rules_check(const char *name, const json_t *object, struct error *err);

enum stored_rule_put { RULE_CREATE, RULE_REPLACE, RULE_CREATE_OR_REPLACE };
/* Times are set here. ERR_INVALID, ERR_LIMIT, ERR_CONFLICT (it exists), ERR_MISSING. */
void stored_rules_put(struct stored_rules *rs, const struct rule_row *row, enum stored_rule_put how,
                      store_done_fn *done, void *arg);
/* ERR_MISSING. */
void stored_rules_delete(struct stored_rules *rs, const char *name, store_done_fn *done, void *arg);

/*
 * The rules in force, in order: those of the file, and the stored ones that are enabled and not
 * hidden. An array of *count, yours to free; the rules' contents stay with their owners. rs may be
 * NULL.
 */
struct rule *stored_rules_merge(const struct stored_rules *rs, const struct rule *file,
                                size_t file_count, size_t *count);

#endif
