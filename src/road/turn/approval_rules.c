/*
 * approval_rules: rules that an answer "always" left behind, mirrored in memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/turn/approval_private.h"

void approval_rule_add(struct road *r, const struct approval_rule_row *rule)
{
        r->approvals.rules = mem_realloc(r->approvals.rules, (r->approvals.rule_count + 1) *
                                                                     sizeof(*r->approvals.rules));
        r->approvals.rules[r->approvals.rule_count++] = approval_rule_row_dup(rule);
}

const char *const *turn_approval_rules(const struct turn_run *run, size_t *count)
{
        const struct turn *t = (const struct turn *)run;
        struct road *r = t->road;

        *count = 0;
        free(r->approvals.matching);
        r->approvals.matching =
                mem_array(r->approvals.rule_count + 1, sizeof(*r->approvals.matching));
        for (size_t i = 0; i < r->approvals.rule_count; i++) {
                const struct approval_rule_row *rule = r->approvals.rules[i];

                if (strcmp(rule->agent, turn_agent(t)) == 0 &&
                    strcmp(rule->adapter, run->adapter) == 0 &&
                    strcmp(rule->channel, run->channel) == 0)
                        r->approvals.matching[(*count)++] = rule->rule;
        }
        return r->approvals.matching;
}

size_t approval_rules_count(const struct road *r)
{
        return r->approvals.rule_count;
}

const struct approval_rule_row *approval_rules_at(const struct road *r, size_t index)
{
        return r->approvals.rules[index];
}

struct rule_deletion {
        struct road *road;
        int64_t id;
        store_done_fn *done;
        void *arg;
};

static int write_deletion(struct store_tx *tx, void *arg, struct error *err)
{
        struct rule_deletion *d = arg;
        int rc = approval_rule_row_delete(tx, d->id, err);

        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no rule 'apl-%lld'", (long long)d->id);
        return rc < 0 ? -1 : 0;
}

static void on_deleted(void *arg, const struct error *err)
{
        struct rule_deletion *d = arg;
        struct road *r = d->road;
        size_t kept = 0;

        r->writes--;
        for (size_t i = 0; !err && i < r->approvals.rule_count; i++) {
                if (r->approvals.rules[i]->id == d->id)
                        free(r->approvals.rules[i]);
                else
                        r->approvals.rules[kept++] = r->approvals.rules[i];
        }
        if (!err)
                r->approvals.rule_count = kept;
        d->done(d->arg, err);
        free(d);
}

void approval_rule_delete(struct road *r, int64_t id, store_done_fn *done, void *arg)
{
        struct rule_deletion *d = mem_zalloc(sizeof(*d));

        d->road = r;
        d->id = id;
        d->done = done;
        d->arg = arg;
        r->writes++;
        store_write(r->store, write_deletion, on_deleted, d);
}
