#include "sim/discord/dc_ops.h"

#include <stdlib.h>

#include "base/mem.h"

static const struct {
        const char *name;
        op_fn *fn;
} rows[] = {
        { "get_gateway", dc_op_get_gateway },
        { "get_bot_gateway", dc_op_get_bot_gateway },
        { "create_message", dc_op_create_message },
        { "list_messages", dc_op_list_messages },
        { "get_message", dc_op_get_message },
        { "update_message", dc_op_update_message },
        { "delete_message", dc_op_delete_message },
        { "bulk_delete_messages", dc_op_bulk_delete },
        { "create_pin", dc_op_pin },
        { "delete_pin", dc_op_unpin },
        { "deprecated_create_pin", dc_op_pin },
        { "deprecated_delete_pin", dc_op_unpin },
        { "deprecated_list_pins", dc_op_list_pins },
        { "add_my_message_reaction", dc_op_react },
        { "delete_my_message_reaction", dc_op_unreact },
        { "delete_user_message_reaction", dc_op_unreact_user },
        { "delete_all_message_reactions", dc_op_clear_reactions },
        { "delete_all_message_reactions_by_emoji", dc_op_clear_reactions },
        { "list_message_reactions_by_emoji", dc_op_list_reactions },
        { "trigger_typing_indicator", dc_op_typing },
        { "get_channel", dc_op_get_channel },
        { "update_channel", dc_op_update_channel },
        { "delete_channel", dc_op_delete_channel },
        { "create_dm", dc_op_create_dm },
        { "create_thread_from_message", dc_op_thread_on_message },
        { "create_thread", dc_op_create_thread },
        { "join_thread", dc_op_join_thread },
        { "leave_thread", dc_op_leave_thread },
        { "add_thread_member", dc_op_add_thread_member },
        { "list_thread_members", dc_op_list_thread_members },
        { "get_active_guild_threads", dc_op_active_threads },
        { "list_public_archived_threads", dc_op_archived_threads },
        { "list_private_archived_threads", dc_op_archived_threads },
        { "get_my_user", dc_op_get_me },
        { "get_user", dc_op_get_user },
        { "list_my_guilds", dc_op_my_guilds },
        { "get_my_application", dc_op_get_application },
        { "get_my_oauth2_application", dc_op_get_application },
        { "get_guild", dc_op_get_guild },
        { "list_guild_channels", dc_op_list_channels },
        { "create_guild_channel", dc_op_create_channel },
        { "list_guild_roles", dc_op_list_roles },
        { "list_guild_members", dc_op_list_members },
        { "get_guild_member", dc_op_get_member },
        { "list_application_commands", dc_op_list_commands },
        { "bulk_set_application_commands", dc_op_set_commands },
        { "create_application_command", dc_op_create_command },
        { "get_application_command", dc_op_get_command },
        { "update_application_command", dc_op_update_command },
        { "delete_application_command", dc_op_delete_command },
        { "list_guild_application_commands", dc_op_list_commands },
        { "bulk_set_guild_application_commands", dc_op_set_commands },
        { "create_guild_application_command", dc_op_create_command },
        { "get_guild_application_command", dc_op_get_command },
        { "update_guild_application_command", dc_op_update_command },
        { "delete_guild_application_command", dc_op_delete_command },
        { "create_interaction_response", dc_op_interaction_callback },
        { "execute_webhook", dc_op_follow_up },
        { "get_original_webhook_message", dc_op_get_follow_up },
        { "update_original_webhook_message", dc_op_update_follow_up },
        { "delete_original_webhook_message", dc_op_delete_follow_up },
        { "get_webhook_message", dc_op_get_follow_up },
        { "update_webhook_message", dc_op_update_follow_up },
        { "delete_webhook_message", dc_op_delete_follow_up },
};

/* By the operation's place in the description, so that finding it costs nothing. */
static op_fn **by_number;

static void forget(void)
{
        free(by_number);
}

static void arrange(void)
{
        by_number = mem_array(dc_spec_op_count(), sizeof(*by_number));
        for (size_t i = 0; i < COUNT(rows); i++)
                by_number[dc_spec_op_number(dc_spec_op(rows[i].name))] = rows[i].fn;
        atexit(forget);
}

op_fn *dc_ops_find(const struct dc_spec_op *op)
{
        if (!by_number)
                arrange();
        return by_number[dc_spec_op_number(op)];
}
