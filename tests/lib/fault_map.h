/*
 * fault_map: lets a test switch faults of the store on and off (test builds only, see
 * base/fault.h).
 */
#ifndef TESTS_FAULT_MAP_H
#define TESTS_FAULT_MAP_H

#include "base/fault.h"

/* Call before the first store is opened. Never freed. */
struct fault_control *fault_map(void);

#endif
