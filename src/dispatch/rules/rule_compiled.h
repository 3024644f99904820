/*
 * rule_compiled: what a rule's texts are compiled to when it is read.
 */
#ifndef DISPATCH_RULES_RULE_COMPILED_H
#define DISPATCH_RULES_RULE_COMPILED_H

#include "base/timezone.h"
#include "dispatch/rules/hours.h"
#include "dispatch/rules/pattern.h"

struct rule_compiled {
        struct pattern **text, **mention; /* as many as the lists have */
        struct hours *hours;
        struct time_zone *zone; /* NULL: the system's */
};

#endif
