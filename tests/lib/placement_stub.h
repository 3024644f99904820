/* placement_stub: the road's answer to a placement query of dispatch. */
#ifndef TESTS_PLACEMENT_STUB_H
#define TESTS_PLACEMENT_STUB_H

#include "road/inbox/decision.h"

static inline enum placement placement_stub(void *arg, struct decision *d)
{
        (void)d;
        return *(const enum placement *)arg;
}

#define PLACEMENT_STUB(answer) \
        (&(struct placement_query){ .ask = placement_stub, .arg = (enum placement[]){ (answer) } })
#define BEGINS_TURN PLACEMENT_STUB(PLACEMENT_NEW_TURN)
#define JOINS_TURN  PLACEMENT_STUB(PLACEMENT_JOINS_TURN)

#endif
