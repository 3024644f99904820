/*
 * stored_rules: rules that are written over the API, beside those of the file.
 *
 * The same JSON, the same reading, the same evaluator. A stored rule has a position: those below 0
 * stand before the rules of the file, the others behind them; equal positions go by name. Where the
 * file has a rule of the same name, the file's holds and the stored one is overridden until the
 * file lets go of the name. A change counts when it is committed.
 */
#ifndef DISPATCH_RULES_STORED_RULES_H
#define DISPATCH_RULES_STORED_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

struct rule;
struct stored_rules;

#define STORED_RULES_MAX      1000
#define STORED_RULE_MAX_BYTES 65536

struct stored_rule {
        const char *name;
        int64_t position;
        bool enabled;
        const char *json; /* as it was written, an object */
        int64_t created_ms, updated_ms;
        const struct rule *rule; /* as it is understood; NULL when this version does not: `why` */
        const char *why;
};

/*
 * Reads them; blocks. A rule that is not understood any more does not hold, and says why. Free it
 * after the store is closed.
 */
struct stored_rules *stored_rules_open(struct store *s, struct error *err);
void stored_rules_free(struct stored_rules *rs);
/* Called after every change. */
void stored_rules_watch(struct stored_rules *rs, void (*changed)(void *arg), void *arg);

/* In the order of their positions. Borrowed until the next change. */
size_t stored_rules_count(const struct stored_rules *rs);
const struct stored_rule *stored_rules_at(const struct stored_rules *rs, size_t index);
const struct stored_rule *stored_rules_find(const struct stored_rules *rs, const char *name);
/* Behind the last one. */
int64_t stored_rules_end(const struct stored_rules *rs);

/*
 * Is it a rule of this name? When not, ERR_INVALID with the field and what would be accepted:
 * "rule.when: unknown key 'chanel' ...".
 */
int stored_rules_check(const char *name, const json_t *object, struct error *err);

enum stored_rule_put { RULE_CREATE, RULE_REPLACE, RULE_CREATE_OR_REPLACE };
/*
 * Of `rule` name, position, enabled and json are read, and copied. ERR_INVALID, ERR_LIMIT,
 * ERR_CONFLICT (create, and it is there), ERR_MISSING.
 */
void stored_rules_put(struct stored_rules *rs, const struct stored_rule *rule,
                      enum stored_rule_put how, store_done_fn *done, void *arg);
/* ERR_MISSING. */
void stored_rules_delete(struct stored_rules *rs, const char *name, store_done_fn *done, void *arg);

/*
 * The rules that hold, in order: those of the file and the stored ones that are neither overridden
 * nor switched off. An array of *count, yours to free; the rules' insides stay with their owners.
 * rs may be NULL.
 */
struct rule *stored_rules_merge(const struct stored_rules *rs, const struct rule *file,
                                size_t file_count, size_t *count);

#endif
