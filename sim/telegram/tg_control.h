/*
 * control: the side of the simulator that tests and curious people use, under /sim.
 */
#ifndef SIM_TELEGRAM_TG_CONTROL_H
#define SIM_TELEGRAM_TG_CONTROL_H

#include <stddef.h>

#include "net/http_server.h"

/* All routes, those of the Bot API too. */
extern const struct http_route tg_control_routes[];
extern const size_t tg_control_route_count;
/* One line for each control route. */
extern const char tg_control_help[];

#endif
