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
                       const struct access_who *who, struct buf *why)
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

static struct judgement judge_known(const struct desk *desk, const struct dispatch_adapter *a,
                                    const struct incoming *in, const struct access_who *who,
                                    struct buf *why)
{
        const struct access_rule *r = NULL;
        size_t before = why->len;

        if (a->access && is_blocked(a, in, who, why))
                return (struct judgement){ .outcome = JUDGED_OUT };
        if (desk)
                r = access_rules_judge(desk->access, who);
        if (r && r->deny) {
                say_denied(r, why);
                return (struct judgement){ JUDGED_OUT, r, r->message };
        }
        if (a->access && access_allows(a->access, in, why))
                return (struct judgement){ .outcome = JUDGED_IN };
        if (r) {
                buf_truncate(why, before);
                return (struct judgement){ .outcome = JUDGED_IN, .rule = r };
        }
        if (!a->access)
                buf_addf(why, "adapter '%s' lets nobody in", a->name);
        return (struct judgement){ .outcome = JUDGED_STRANGER };
}

static int64_t person_of(const struct desk *desk, const struct dispatch_adapter *a,
                         const struct incoming *in)
{
        return desk && in->sender_id ? persons_of(desk->persons, a->platform, in->sender_id) : 0;
}

struct judgement judge_sender(const struct desk *desk, const struct dispatch_adapter *a,
                              const struct incoming *in, int64_t now_ms, struct buf *why)
{
        struct access_identity all[PERSON_MAX_IDENTITIES + 1] = { { a->platform, in->sender_id } };
        struct access_who who = { .adapter = a->name,
                                  .dm = in->chat == CHAT_DM,
                                  .identities = all,
                                  .identity_count = 1,
                                  .now_ms = now_ms };
        struct incoming known = *in;

        if (a->trusted)
                return (struct judgement){ .outcome = JUDGED_IN };
        if (desk && in->sender_id) {
                who.person = known.person = person_of(desk, a, in);
                who.identity_count += persons_others(desk->persons, a->platform, in->sender_id,
                                                     all + 1, PERSON_MAX_IDENTITIES);
        }
        return judge_known(desk, a, &known, &who, why);
}

bool judge_event(const struct dispatch *d, const struct incoming *in, struct judgement *out,
                 struct buf *why)
{
        const struct dispatch_adapter *a = dispatch_adapter_of(d, in);

        if (a)
                *out = judge_sender(d->desk, a, in, dispatch_now(d), why);
        return a != NULL;
}

bool judge_is_admin(const struct desk *desk, const struct dispatch_adapter *a,
                    const struct incoming *in)
{
        struct incoming known = *in;

        known.person = person_of(desk, a, in);
        return a->trusted || (a->access && access_is_admin(a->access, &known));
}
