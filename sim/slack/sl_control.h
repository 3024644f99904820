/*
 * control: the HTTP routes of the simulator: the Web API, and /sim, by which tests play people.
 */
#ifndef SIM_SLACK_SL_CONTROL_H
#define SIM_SLACK_SL_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

extern const char sl_control_help[];

/* Yours to free. */
struct http_route *sl_control_routes(size_t *count);
void sl_control_refuse(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);

#endif
