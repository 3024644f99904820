#include "sim/slack/sl_methods.h"

#include <string.h>

#include "base/mem.h"

#define TIER_2 20
#define TIER_3 50
#define TIER_4 100
#define MANY   600 /* special limits: several hundred a minute */

static const struct slack_method methods[] = {
        { "api.test", sl_method_api_test, TIER_4, NULL },
        { "apps.connections.open", sl_method_open_connection, TIER_3, NULL },
        { "assistant.threads.setStatus", sl_method_set_status, MANY, "chat:write" },
        { "assistant.threads.setSuggestedPrompts", sl_method_set_prompts, TIER_4,
          "assistant:write" },
        { "assistant.threads.setTitle", sl_method_set_title, TIER_4, "assistant:write" },
        { "auth.test", sl_method_auth_test, MANY, NULL },
        { "bots.info", sl_method_bot_info, TIER_3, "users:read" },
        { "chat.appendStream", sl_method_append_stream, TIER_4, "chat:write" },
        { "chat.delete", sl_method_delete, TIER_3, "chat:write" },
        { "chat.getPermalink", sl_method_permalink, MANY, NULL },
        { "chat.postEphemeral", sl_method_post_ephemeral, TIER_4, "chat:write" },
        { "chat.postMessage", sl_method_post, 0, "chat:write" },
        { "chat.startStream", sl_method_start_stream, TIER_2, "chat:write" },
        { "chat.stopStream", sl_method_stop_stream, TIER_2, "chat:write" },
        { "chat.update", sl_method_update, TIER_3, "chat:write" },
        { "conversations.history", sl_method_history, TIER_3, "*:history" },
        { "conversations.info", sl_method_channel_info, TIER_3, "*:read" },
        { "conversations.join", sl_method_channel_join, TIER_3, "channels:join" },
        { "conversations.list", sl_method_channel_list, TIER_2, "*:read" },
        { "conversations.mark", sl_method_channel_mark, TIER_3, "*:write" },
        { "conversations.members", sl_method_channel_members, TIER_4, "*:read" },
        { "conversations.open", sl_method_channel_open, TIER_3, "*:write" },
        { "conversations.replies", sl_method_replies, TIER_3, "*:history" },
        { "files.completeUploadExternal", sl_method_complete_upload, TIER_4, "files:write" },
        { "files.delete", sl_method_file_delete, TIER_3, "files:write" },
        { "files.getUploadURLExternal", sl_method_upload_url, TIER_4, "files:write" },
        { "files.info", sl_method_file_info, TIER_4, "files:read" },
        { "pins.add", sl_method_pin, TIER_2, "pins:write" },
        { "pins.remove", sl_method_unpin, TIER_2, "pins:write" },
        { "reactions.add", sl_method_react, TIER_3, "reactions:write" },
        { "reactions.get", sl_method_reactions, TIER_3, "reactions:read" },
        { "reactions.remove", sl_method_unreact, TIER_2, "reactions:write" },
        { "team.info", sl_method_team_info, TIER_3, "team:read" },
        { "users.conversations", sl_method_user_channels, TIER_3, "*:read" },
        { "users.info", sl_method_user_info, TIER_4, "users:read" },
        { "users.list", sl_method_user_list, TIER_2, "users:read" },
        { "views.open", sl_method_view_open, TIER_4, NULL },
        { "views.publish", sl_method_view_publish, TIER_4, NULL },
        { "views.push", sl_method_view_push, TIER_4, NULL },
        { "views.update", sl_method_view_update, TIER_4, NULL },
};

const struct slack_method *sl_method_find_simulated(const char *name)
{
        for (size_t i = 0; i < COUNT(methods); i++) {
                if (strcmp(methods[i].name, name) == 0)
                        return &methods[i];
        }
        return NULL;
}
