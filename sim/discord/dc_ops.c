#include "sim/discord/dc_ops.h"

#include <stdlib.h>

#include "base/mem.h"

static const struct dc_op_row *const tables[] = {
        dc_op_messages, dc_op_reactions, dc_op_channels,     dc_op_threads,
        dc_op_guilds,   dc_op_commands,  dc_op_interactions, dc_op_scheduled_events,
};

/* Indexed by the operation's number in the description. */
static op_fn **by_number;

static void release(void)
{
        free(by_number);
}

op_fn *dc_ops_find(const struct dc_spec_op *op)
{
        if (!by_number) {
                by_number = mem_array(dc_spec_op_count(), sizeof(*by_number));
                for (size_t i = 0; i < COUNT(tables); i++) {
                        for (const struct dc_op_row *row = tables[i]; row->name; row++)
                                by_number[dc_spec_op_number(dc_spec_op(row->name))] = row->run;
                }
                atexit(release);
        }
        return by_number[dc_spec_op_number(op)];
}
