/*
 * ops: the operations that are simulated; see ops.c for the table.
 */
#ifndef SIM_DISCORD_DC_OPS_H
#define SIM_DISCORD_DC_OPS_H

#include "sim/discord/dc_call.h"

/* op_messages.c */
op_fn dc_op_create_message, dc_op_list_messages, dc_op_get_message, dc_op_update_message,
        dc_op_delete_message, dc_op_bulk_delete, dc_op_pin, dc_op_unpin, dc_op_list_pins;
/* op_reactions.c */
op_fn dc_op_react, dc_op_unreact, dc_op_unreact_user, dc_op_clear_reactions, dc_op_list_reactions;
/* op_channels.c */
op_fn dc_op_get_channel, dc_op_update_channel, dc_op_delete_channel, dc_op_typing, dc_op_create_dm;
/* op_threads.c */
op_fn dc_op_thread_on_message, dc_op_create_thread, dc_op_join_thread, dc_op_leave_thread,
        dc_op_add_thread_member, dc_op_list_thread_members, dc_op_active_threads,
        dc_op_archived_threads;
/* op_guilds.c */
op_fn dc_op_get_gateway, dc_op_get_bot_gateway, dc_op_get_me, dc_op_get_user, dc_op_my_guilds,
        dc_op_get_guild, dc_op_list_channels, dc_op_create_channel, dc_op_list_roles,
        dc_op_list_members, dc_op_get_member, dc_op_get_application;
/* op_commands.c */
op_fn dc_op_list_commands, dc_op_set_commands, dc_op_create_command, dc_op_get_command,
        dc_op_update_command, dc_op_delete_command;
/* op_interactions.c */
op_fn dc_op_interaction_callback, dc_op_follow_up, dc_op_get_follow_up, dc_op_update_follow_up,
        dc_op_delete_follow_up;

#endif
