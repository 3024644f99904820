#include "dispatch/runtime_policy.h"

#include <stdlib.h>

#include "base/mem.h"

/* Access rules about persons follow merges. */
static void on_change(void *arg)
{
        struct runtime_policy *policy = arg;

        access_rules_reindex(policy->access);
        if (policy->changed)
                policy->changed(policy->changed_arg);
}

struct runtime_policy *runtime_policy_open(struct store *s, struct bus *b, struct error *err)
{
        struct runtime_policy *policy = mem_zalloc(sizeof(*policy));

        policy->links = account_links_new();
        if (!(policy->handovers = handovers_open(s, err)) ||
            !(policy->rules = stored_rules_open(s, err)) ||
            !(policy->persons = persons_open(s, b, err)) ||
            !(policy->access = access_rules_open(s, policy->persons, err)) ||
            !(policy->pairings = pairings_open(s, policy->access, err))) {
                runtime_policy_free(policy);
                return NULL;
        }
        persons_watch(policy->persons, on_change, policy);
        stored_rules_watch(policy->rules, on_change, policy);
        return policy;
}

void runtime_policy_detach_bus(struct runtime_policy *policy)
{
        if (policy)
                persons_detach_bus(policy->persons);
}

void runtime_policy_free(struct runtime_policy *policy)
{
        if (!policy)
                return;
        handovers_free(policy->handovers);
        stored_rules_free(policy->rules);
        pairings_free(policy->pairings);
        access_rules_free(policy->access);
        persons_free(policy->persons);
        account_links_free(policy->links);
        free(policy);
}
