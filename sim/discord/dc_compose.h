/*
 * compose: the text, embeds, components and files of a message out of a request, with the rules
 * that no schema states.
 */
#ifndef SIM_DISCORD_DC_COMPOSE_H
#define SIM_DISCORD_DC_COMPOSE_H

#include "sim/discord/dc_call.h"

/*
 * Fills m from args (a message of the API) and the call's uploads. With `edit`, what args does not
 * name stays. 0, or -1 after call_fail; then an edited message is as before, and a new one may be
 * half filled.
 */
int dc_compose(struct call *c, struct message *m, const json_t *args, bool edit);
/* The reference of args; -1 after call_fail. */
int dc_compose_reference(struct call *c, struct message *m, const json_t *args);

#endif
