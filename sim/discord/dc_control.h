/*
 * control: the routes under /sim, by which tests and people play.
 */
#ifndef SIM_DISCORD_DC_CONTROL_H
#define SIM_DISCORD_DC_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

/* What there is, in words. */
extern const char dc_control_help[];
/* Everything the server answers: the API and the control routes. Yours to free. */
struct http_route *dc_control_routes(size_t *count);
/* The API's words for what the server itself refuses. */
void dc_control_refuse(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);

#endif
