#include "dispatch/judge.h"

#include <string.h>

#include "base/clock.h"
#include "dispatch/dispatch_private.h"

/* In the words of the rule: "a rule keeps 'telegram:7' out (acr-3): spam". */
static void say_denied(const struct access_rule *r, struct buf *why)
{
        if (r->user)
                buf_addf(why, "access rule 'acr-%lld' keeps '%s' out", (long long)r->id, r->user);
        else
                buf_addf(why, "access rule 'acr-%lld' keeps person 'per-%lld' out", (long long)r->id,
                         (long long)r->person);
        if (r->reason)
                buf_addf(why, ": %s", r->reason);
}

static struct judgement judge_known(const struct desk *desk, const struct dispatch_adapter *a,
                                    const struct incoming *in, const struct access_who *who, struct buf *why)
{
        const struct access_rule *r = NULL;
        size_t before = why->len;

        if (a->access && access_blocks(a->access, in, why))
                return (struct judgement){ .outcome = JUDGED_OUT };
        if (desk)
                r = access_rules_judge(desk->access, who, clock_wall_ms());
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

struct judgement judge_sender(const struct desk *desk, const struct dispatch_adapter *a,
                              const struct incoming *in, struct buf *why)
{
        struct access_identity self = { a->platform, in->sender_id };
        struct access_who who = {
                .adapter = a->name, .dm = in->chat == CHAT_DM, .identities = &self, .identity_count = 1
        };

        if (a->trusted)
                return (struct judgement){ .outcome = JUDGED_IN };
        return judge_known(desk, a, in, &who, why);
}

bool judge_event(const struct dispatch *d, const struct incoming *in, struct judgement *out, struct buf *why)
{
        const struct dispatch_adapter *a = dispatch_adapter_of(d, in);

        if (a)
                *out = judge_sender(d->desk, a, in, why);
        return a != NULL;
}
