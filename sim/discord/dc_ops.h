/*
 * ops: the simulated operations of the HTTP API, a table for each dc_op_*.c.
 */
#ifndef SIM_DISCORD_DC_OPS_H
#define SIM_DISCORD_DC_OPS_H

#include "sim/discord/dc_call.h"

/* 0, or -1 after dc_call_fail. */
typedef int op_fn(struct call *c);

struct dc_op_row {
        const char *name; /* NULL ends the table */
        op_fn *run;
};

extern const struct dc_op_row dc_op_messages[], dc_op_reactions[], dc_op_channels[],
        dc_op_threads[], dc_op_guilds[], dc_op_commands[], dc_op_interactions[],
        dc_op_scheduled_events[];

/* NULL: known but not simulated. */
op_fn *dc_ops_find(const struct dc_spec_op *op);

#endif
