/*
 * control: the routes, of the services and of the control API under /sim.
 */
#ifndef SIM_LLM_LM_CONTROL_H
#define SIM_LLM_LM_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

extern const struct http_route lm_control_routes[];
extern const size_t lm_control_route_count;
/* Help text of the control API. */
extern const char lm_control_help[];

#endif
