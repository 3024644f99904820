#include "dispatch/runtime_policy.h"

#include <stdlib.h>

#include "base/mem.h"

static int64_t current(void *persons, int64_t person)
{
        return persons_current(persons, person);
}

static void on_rules(void *arg)
{
        struct runtime_policy *policy = arg;

        if (policy->changed)
                policy->changed(policy->changed_arg);
}

/* Rules about a person are about whoever he is now. */
static void on_persons(void *arg)
{
        access_rules_resolve(((struct runtime_policy *)arg)->access);
        on_rules(arg);
}

void runtime_policy_watch(struct runtime_policy *policy, void (*changed)(void *arg), void *arg)
{
        policy->changed = changed;
        policy->changed_arg = arg;
}

struct runtime_policy *runtime_policy_open(struct store *s, struct bus *b, struct error *err)
{
        struct runtime_policy *policy = mem_zalloc(sizeof(*policy));

        policy->store = s;
        policy->links = account_links_new();
        if (!(policy->handover = handover_open(s, err)) ||
            !(policy->rules = stored_rules_open(s, err)) ||
            !(policy->access = access_rules_open(s, err)) ||
            !(policy->pairing = pairing_open(s, policy->access, err)) ||
            !(policy->persons = persons_open(s, b, err))) {
                runtime_policy_free(policy);
                return NULL;
        }
        access_rules_set_persons(policy->access, current, policy->persons);
        persons_watch(policy->persons, on_persons, policy);
        stored_rules_watch(policy->rules, on_rules, policy);
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
        handover_free(policy->handover);
        stored_rules_free(policy->rules);
        pairing_free(policy->pairing);
        access_rules_free(policy->access);
        persons_free(policy->persons);
        account_links_free(policy->links);
        free(policy);
}
