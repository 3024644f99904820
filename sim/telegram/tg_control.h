/*
 * control: the control API under /sim.
 */
#ifndef SIM_TELEGRAM_TG_CONTROL_H
#define SIM_TELEGRAM_TG_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

/* All routes, including the Bot API. */
extern const struct http_route tg_control_routes[];
extern const size_t tg_control_route_count;
/* Help text of the control API. */
extern const char tg_control_help[];

#endif
