/*
 * control: the control API under /sim.
 */
#ifndef SIM_DISCORD_DC_CONTROL_H
#define SIM_DISCORD_DC_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

/* Help text of the control API. */
extern const char dc_control_help[];
/* Routes of the API and the control API. Yours to free. */
struct http_route *dc_control_routes(size_t *count);
/* Writes refusals of the HTTP server in the form of the API. */
void dc_control_refuse(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);

#endif
