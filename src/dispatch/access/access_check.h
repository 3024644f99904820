/*
 * access_check: whether the sender of an event is allowed. Deny beats allow; a sender that nothing
 * matches is a stranger. In this order:
 *
 *     block          of the adapter names them, or the chat
 *     a deny rule    names them, their person, or another identity of it (access_rules.h)
 *     the adapter    allows them: admins, dm, channels, allow (access.h)
 *     an allow rule  names them or their person
 *     stranger
 */
#ifndef DISPATCH_ACCESS_ACCESS_CHECK_H
#define DISPATCH_ACCESS_ACCESS_CHECK_H

#include <stdbool.h>

#include "base/buf.h"
#include "dispatch/dispatch.h"

struct access_verdict {
        enum { ACCESS_ALLOWED, ACCESS_STRANGER, ACCESS_DENIED } outcome;
        const struct access_rule *rule; /* that decided; borrowed; NULL: none */
};

/* policy may be NULL. Unless the sender is allowed, `why` gets a sentence. */
struct access_verdict access_check_sender(const struct runtime_policy *policy,
                                          const struct dispatch_adapter *a,
                                          const struct incoming *in, int64_t now_ms,
                                          struct buf *why);
/* The same on the event's adapter. False: dispatch knows no such adapter. */
bool access_check_event(const struct dispatch *d, const struct incoming *in,
                        struct access_verdict *out, struct buf *why);
/* May the sender change how the bot behaves? Everyone may on a trusted adapter. */
bool access_check_is_admin(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                           const struct incoming *in);

#endif
