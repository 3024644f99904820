#include <string.h>

#include "dispatch/dispatch_private.h"

#define DENY_NOTICE_SECONDS 3600 /* between the rule's messages to a denied sender */

/*
 * "block" names ids of the adapter's platform, so other accounts of the person there are blocked
 * too.
 */
static bool is_blocked(const struct dispatch_adapter *a, const struct incoming *in,
                       const struct access_request *q, struct buf *why)
{
        struct incoming as = *in;

        for (size_t i = 0; a->access && i < q->identity_count; i++) {
                as.sender_id = q->identities[i].user;
                if (strcmp(q->identities[i].platform, a->platform) == 0 &&
                    access_blocks(a->access, &as, why))
                        return true;
        }
        return false;
}

struct access_verdict access_check_sender(const struct runtime_policy *policy,
                                          const struct dispatch_adapter *a,
                                          const struct incoming *in, int64_t now_ms,
                                          struct buf *why)
{
        struct identity all[PERSON_MAX_IDENTITIES + 1] = { { a->platform, in->sender_id } };
        struct access_request q = { .adapter = a->name,
                                    .dm = in->chat == CHAT_DM,
                                    .identities = all,
                                    .identity_count = 1,
                                    .now_ms = now_ms };
        const struct access_rule *r;
        struct incoming known = *in;
        size_t before = why->len;

        /* who wrote a schedule for this chat had the right to */
        if (a->trusted || incoming_is_scheduled(in))
                return (struct access_verdict){ ACCESS_ALLOWED, NULL };
        if (policy && in->sender_id) {
                q.person = known.person =
                        persons_lookup(policy->persons, a->platform, in->sender_id);
                q.identity_count +=
                        persons_other_identities(policy->persons, a->platform, in->sender_id,
                                                 all + 1, PERSON_MAX_IDENTITIES);
        }
        if (is_blocked(a, &known, &q, why))
                return (struct access_verdict){ ACCESS_DENIED, NULL };
        r = policy ? access_rules_match(policy->access, &q) : NULL;
        if (r && r->deny) {
                buf_addf(why, "access rule 'acr-%lld' denies ", (long long)r->id);
                if (r->user)
                        buf_addf(why, "'%s'", r->user);
                else
                        buf_addf(why, "person 'per-%lld'", (long long)r->person);
                if (r->reason)
                        buf_addf(why, ": %s", r->reason);
                return (struct access_verdict){ ACCESS_DENIED, r };
        }
        if (a->access && access_allows(a->access, &known, why))
                return (struct access_verdict){ ACCESS_ALLOWED, NULL };
        if (r) {
                buf_truncate(why, before);
                return (struct access_verdict){ ACCESS_ALLOWED, r };
        }
        if (!a->access)
                buf_addf(why, "adapter '%s' allows no one", a->name);
        return (struct access_verdict){ ACCESS_STRANGER, NULL };
}

bool access_check_event(const struct dispatch *d, const struct incoming *in,
                        struct access_verdict *out, struct buf *why)
{
        const struct dispatch_adapter *a = in->adapter ? map_get(&d->by_name, in->adapter) : NULL;

        if (a)
                *out = access_check_sender(d->policy, a, in, dispatch_now(d), why);
        return a != NULL;
}

bool access_check_is_admin(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                           const struct incoming *in)
{
        struct incoming known = *in;

        known.person = policy ? persons_lookup(policy->persons, a->platform, in->sender_id) : 0;
        return a->trusted || (a->access && access_is_admin(a->access, &known));
}

bool access_check_guard(struct evaluation *e)
{
        const struct incoming *in = e->in;
        struct access_verdict v =
                access_check_sender(e->d->policy, e->adapter, in, e->now_ms, &e->d->reason);
        const char *message = v.outcome == ACCESS_DENIED && v.rule ? v.rule->message : NULL;
        struct turn_rate often = { 1, DENY_NOTICE_SECONDS };
        struct rate_key key = rate_limit_key(in, NULL);

        e->is_allowed = v.outcome == ACCESS_ALLOWED;
        e->is_stranger = v.outcome == ACCESS_STRANGER;
        if (message && !e->dry && in->chat == CHAT_DM && !in->sender_is_bot &&
            rate_limit_claim_notice(e->d->rates, &key, often, e->now_ms))
                evaluation_notify(e, "%s", message);
        return e->is_allowed;
}
