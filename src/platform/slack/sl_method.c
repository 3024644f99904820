/*
 * Slack's methods that we call. Tiers: https://docs.slack.dev/apis/web-api/rate-limits; one that
 * says "special" has a limit of its own, known only by its 429s. A form is sent where Slack's
 * documentation does not promise that JSON is read.
 */
#include <string.h>

#include "base/mem.h"
#include "platform/slack/sl_api.h"

#define TIER_2 20
#define TIER_3 50
#define TIER_4 100
#define FORM   true

/* clang-format off */
static const struct sl_method methods[] = {
        /* name                              tier    form   app    repeatable scope */
        { "apps.connections.open",           TIER_3, FORM,  true,  true,  "connections:write" },
        { "assistant.threads.setStatus",     0,      false, false, true,  "chat:write" },
        { "assistant.threads.setSuggestedPrompts", 0, false, false, true, "assistant:write" },
        { "assistant.threads.setTitle",      0,      false, false, true,  "assistant:write" },
        { "auth.test",                       0,      FORM,  false, true,  NULL },
        { "bots.info",                       TIER_3, FORM,  false, true,  "users:read" },
        { "chat.appendStream",               TIER_4, false, false, false, "chat:write" },
        { "chat.delete",                     TIER_3, false, false, true,  "chat:write" },
        { "chat.getPermalink",               0,      FORM,  false, true,  NULL },
        { "chat.postEphemeral",              TIER_4, false, false, false, "chat:write" },
        { "chat.postMessage",                0,      false, false, false, "chat:write" },
        { "chat.startStream",                TIER_2, false, false, false, "chat:write" },
        { "chat.stopStream",                 TIER_2, false, false, false, "chat:write" },
        { "chat.update",                     TIER_3, false, false, true,  "chat:write" },
        { "conversations.history",           TIER_3, FORM,  false, true,  "channels:history" },
        { "conversations.info",              TIER_3, FORM,  false, true,  "channels:read" },
        { "conversations.join",              TIER_3, FORM,  false, true,  "channels:join" },
        { "conversations.list",              TIER_2, FORM,  false, true,  "channels:read" },
        { "conversations.members",           TIER_4, FORM,  false, true,  "channels:read" },
        { "conversations.open",              TIER_3, false, false, true,  "im:write" },
        { "conversations.replies",           TIER_3, FORM,  false, true,  "channels:history" },
        { "files.completeUploadExternal",    TIER_4, false, false, false, "files:write" },
        { "files.getUploadURLExternal",      TIER_4, FORM,  false, true,  "files:write" },
        { "files.info",                      TIER_4, FORM,  false, true,  "files:read" },
        { "pins.add",                        TIER_2, false, false, true,  "pins:write" },
        { "pins.remove",                     TIER_2, false, false, true,  "pins:write" },
        { "reactions.add",                   TIER_3, false, false, true,  "reactions:write" },
        { "reactions.get",                   TIER_3, FORM,  false, true,  "reactions:read" },
        { "reactions.remove",                TIER_2, false, false, true,  "reactions:write" },
        { "team.info",                       TIER_3, FORM,  false, true,  "team:read" },
        { "users.conversations",             TIER_3, FORM,  false, true,  "channels:read" },
        { "users.info",                      TIER_4, FORM,  false, true,  "users:read" },
        { "users.list",                      TIER_2, FORM,  false, true,  "users:read" },
        { "views.open",                      TIER_4, false, false, false, NULL },
        { "views.publish",                   TIER_4, false, false, true,  NULL },
        { "views.update",                    TIER_4, false, false, true,  NULL },
};
/* clang-format on */

const struct sl_method *sl_method_find(const char *name)
{
        for (size_t i = 0; i < COUNT(methods); i++) {
                if (strcmp(methods[i].name, name) == 0)
                        return &methods[i];
        }
        return NULL;
}
