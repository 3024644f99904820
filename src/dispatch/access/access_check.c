#include "dispatch/access/access_check.h"

#include <string.h>

#include "dispatch/dispatch_private.h"

/* In the words of the rule: "a rule keeps 'telegram:7' out (acr-3): spam". */
static void say_denied(const struct access_rule *r, struct buf *why)
{
        if (r->user)
                buf_addf(why, "access rule 'acr-%lld' keeps '%s' out", (long long)r->id, r->user);
        else
                buf_addf(why, "access rule 'acr-%lld' keeps person 'per-%lld' out",
                         (long long)r->id, (long long)r->person);
        if (r->reason)
                buf_addf(why, ": %s", r->reason);
}

/*
 * "block" names ids of the adapter's own platform: another account there that is the same person is
 * kept out, too.
 */
static bool is_blocked(const struct dispatch_adapter *a, const struct incoming *in,
                       const struct access_request *who, struct buf *why)
{
        struct incoming as = *in;

        for (size_t i = 0; i < who->identity_count; i++) {
                as.sender_id = who->identities[i].user;
                if (strcmp(who->identities[i].platform, a->platform) == 0 &&
                    access_blocks(a->access, &as, why))
                        return true;
        }
        return false;
}

static struct access_verdict judge_known(const struct runtime_policy *policy,
                                         const struct dispatch_adapter *a,
                                         const struct incoming *in,
                                         const struct access_request *who, struct buf *why)
{
        const struct access_rule *r = NULL;
        size_t before = why->len;

        if (a->access && is_blocked(a, in, who, why))
                return (struct access_verdict){ .outcome = ACCESS_DENIED };
        if (policy)
                r = access_rules_match(policy->access, who);
        if (r && r->deny) {
                say_denied(r, why);
                return (struct access_verdict){ ACCESS_DENIED, r, r->message };
        }
        if (a->access && access_allows(a->access, in, why))
                return (struct access_verdict){ .outcome = ACCESS_ALLOWED };
        if (r) {
                buf_truncate(why, before);
                return (struct access_verdict){ .outcome = ACCESS_ALLOWED, .rule = r };
        }
        if (!a->access)
                buf_addf(why, "adapter '%s' lets nobody in", a->name);
        return (struct access_verdict){ .outcome = ACCESS_STRANGER };
}

static int64_t person_of(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                         const struct incoming *in)
{
        return policy && in->sender_id ? persons_lookup(policy->persons, a->platform, in->sender_id)
                                       : 0;
}

struct access_verdict access_check_sender(const struct runtime_policy *policy,
                                          const struct dispatch_adapter *a,
                                          const struct incoming *in, int64_t now_ms,
                                          struct buf *why)
{
        struct identity all[PERSON_MAX_IDENTITIES + 1] = { { a->platform, in->sender_id } };
        struct access_request who = { .adapter = a->name,
                                      .dm = in->chat == CHAT_DM,
                                      .identities = all,
                                      .identity_count = 1,
                                      .now_ms = now_ms };
        struct incoming known = *in;

        if (a->trusted)
                return (struct access_verdict){ .outcome = ACCESS_ALLOWED };
        if (policy && in->sender_id) {
                who.person = known.person = person_of(policy, a, in);
                who.identity_count +=
                        persons_other_identities(policy->persons, a->platform, in->sender_id,
                                                 all + 1, PERSON_MAX_IDENTITIES);
        }
        return judge_known(policy, a, &known, &who, why);
}

bool access_check_event(const struct dispatch *d, const struct incoming *in,
                        struct access_verdict *out, struct buf *why)
{
        const struct dispatch_adapter *a = dispatch_adapter_of(d, in);

        if (a)
                *out = access_check_sender(d->policy, a, in, dispatch_now(d), why);
        return a != NULL;
}

bool access_check_is_admin(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                           const struct incoming *in)
{
        struct incoming known = *in;

        known.person = person_of(policy, a, in);
        return a->trusted || (a->access && access_is_admin(a->access, &known));
}
