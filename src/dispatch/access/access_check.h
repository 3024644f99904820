/*
 * judge: whether the sender of an event is let in. What keeps out comes first, whoever would let
 * in; nobody is let in whom nothing names.
 *
 *     block             of the adapter names him, or the place
 *     a deny rule       names him, his person, or another of his identities
 *     the adapter       admins, dm, channels, allow (access.h)
 *     an allow rule     names him or his person (access_rules.h)
 *     a stranger        everybody else
 */
#ifndef DISPATCH_ACCESS_ACCESS_CHECK_H
#define DISPATCH_ACCESS_ACCESS_CHECK_H

#include <stdbool.h>

#include "base/buf.h"
#include "dispatch/dispatch.h"

enum access_outcome { ACCESS_ALLOWED, ACCESS_STRANGER, ACCESS_DENIED };

struct access_verdict {
        enum access_outcome outcome;
        const struct access_rule *rule; /* that decided; borrowed; NULL: none did */
        /* of a deny rule: what he may be told; borrowed; may be NULL */
        const char *message;
};

/* policy may be NULL. Unless he is let in, `why` gets a sentence. Changes nothing. */
struct access_verdict access_check_sender(const struct runtime_policy *policy,
                                          const struct dispatch_adapter *a,
                                          const struct incoming *in, int64_t now_ms,
                                          struct buf *why);

/*
 * The same for an event, by what dispatch knows of its adapter. False when it knows no such
 * adapter.
 */
bool access_check_event(const struct dispatch *d, const struct incoming *in,
                        struct access_verdict *out, struct buf *why);

/* May he change how the bot behaves? Where keys are shown everybody may. */
bool access_check_is_admin(const struct runtime_policy *policy, const struct dispatch_adapter *a,
                           const struct incoming *in);

#endif
