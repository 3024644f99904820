#include "sim/slack/sl_methods.h"

#include <string.h>

#include "base/mem.h"

#define TIER_2 20
#define TIER_3 50
#define TIER_4 100
#define MANY   600 /* special limits: several hundred a minute */

/* clang-format off */
static const struct slack_method methods[] = {
        { "api.test",              sl_method_api_test,         TIER_4, NULL },
        { "apps.connections.open", sl_method_open_connection,  TIER_3, NULL },
        { "auth.test",             sl_method_auth_test,        MANY,   NULL },
        { "bots.info",             sl_method_bot_info,         TIER_3, "users:read" },
        { "chat.postMessage",      sl_method_post,             0,      "chat:write" },
        { "conversations.info",    sl_method_channel_info,     TIER_3, "*:read" },
        { "team.info",             sl_method_team_info,        TIER_3, "team:read" },
        { "users.info",            sl_method_user_info,        TIER_4, "users:read" },
};
/* clang-format on */

const struct slack_method *sl_method_find_simulated(const char *name)
{
        for (size_t i = 0; i < COUNT(methods); i++) {
                if (strcmp(methods[i].name, name) == 0)
                        return &methods[i];
        }
        return NULL;
}
