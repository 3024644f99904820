/*
 * Slack's errors for people: what happened, and what they can do about it.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/slack/sl_api.h"

/* clang-format off */
static const struct {
        const char *error, *advice;
} known[] = {
        { "access_denied",            "the app may not do this in the workspace" },
        { "accesslimited",            "the workspace restricts this method" },
        { "account_inactive",         "the app was removed from the workspace; install it again" },
        { "already_reacted",          "the reaction is there already" },
        { "blocked_from_dm",          "the person does not accept messages of the app" },
        { "cannot_dm_bot",            "the app cannot write to another bot" },
        { "cant_delete_message",      "the message is not the app's own" },
        { "cant_update_message",      "the message is not the app's own" },
        { "channel_not_found",        "the channel does not exist, or the app is not in it: "
                                      "/invite the app there" },
        { "edit_window_closed",       "the workspace does not permit to edit messages this old" },
        { "ekm_access_denied",        "the workspace's administrators have suspended access" },
        { "expired_trigger_id",       "the dialog was opened too late, Slack permits 3 seconds" },
        { "fatal_error",              "Slack has a problem; later it may work" },
        { "file_not_found",           "the file was deleted, or the app cannot see it" },
        { "internal_error",           "Slack has a problem; later it may work" },
        { "invalid_auth",             "Slack does not know this token" },
        { "invalid_blocks",           "Slack does not accept the layout of the message" },
        { "invalid_name",             "there is no such emoji in the workspace" },
        { "is_archived",              "the channel is archived" },
        { "message_not_found",        "the message no longer exists" },
        { "messages_tab_disabled",    "direct messages to the app are switched off: switch on App "
                                      "Home, Messages Tab" },
        { "method_not_supported_for_channel_type", "Slack does not offer this in such a channel" },
        { "msg_too_long",             "the message is too long" },
        { "no_reaction",              "the reaction is not there" },
        { "not_allowed_token_type",   "Slack does not offer this to bots" },
        { "not_authed",               "the request had no token" },
        { "not_in_channel",           "the app is not in the channel: /invite the app there" },
        { "org_login_required",       "the workspace moves to an organisation; later it may work" },
        { "posting_to_channel_denied", "the workspace does not let the app post there" },
        { "ratelimited",              "too many calls of this method" },
        { "request_timeout",          "the request broke off; later it may work" },
        { "restricted_action",        "the workspace does not permit this to the app" },
        { "restricted_action_read_only_channel", "only some people may post in this channel" },
        { "restricted_action_thread_locked", "the thread is locked" },
        { "service_unavailable",      "Slack has a problem; later it may work" },
        { "storage_limit_reached",    "the workspace has no space left for files" },
        { "team_access_not_granted",  "the app is not installed in this workspace of the "
                                      "organisation" },
        { "team_disabled",            "the workspace was switched off" },
        { "thread_not_found",         "the thread no longer exists" },
        { "token_expired",            "the token has expired: use an app without token rotation" },
        { "token_revoked",            "the token was revoked, or the app removed; install it "
                                      "again" },
        { "too_many_emoji",           "the message has as many different reactions as it can" },
        { "too_many_reactions",       "the app has reacted to the message as often as it can" },
        { "unknown_method",           "Slack does not offer this method" },
        { "user_not_found",           "there is no such person in the workspace" },
        { "user_removed_from_team",   "the app's bot was removed from the workspace" },
        { "users_not_found",          "there is no such person in the workspace" },
};

/* The scopes of the manifest in docs/platforms/slack.md without which something is missing. */
static const char *const wanted_scopes[] = {
        "app_mentions:read", "channels:history", "channels:read", "chat:write", "files:read",
        "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
        "mpim:history", "mpim:read", "reactions:read", "reactions:write", "users:read",
};
/* clang-format on */

#define MANIFEST_PLACE "oauth_config.scopes.bot of its manifest and reinstall it"

const char *sl_error_advice(const char *error)
{
        for (size_t i = 0; error && i < COUNT(known); i++) {
                if (strcmp(known[i].error, error) == 0)
                        return known[i].advice;
        }
        return NULL;
}

bool sl_api_is_revoked(const char *error)
{
        static const char *const revoked[] = {
                "account_inactive",       "invalid_auth",  "not_authed",
                "team_disabled",          "token_expired", "token_revoked",
                "user_removed_from_team",
        };

        for (size_t i = 0; error && i < COUNT(revoked); i++) {
                if (strcmp(revoked[i], error) == 0)
                        return true;
        }
        return false;
}

/* A text of Slack's that is shown: only what names of errors and scopes consist of. */
static int word_length(const char *text, const char *also)
{
        size_t n = strspn(text, also);

        return (int)(n < 100 ? n : 100);
}

#define ERROR_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define SCOPE_CHARACTERS ERROR_CHARACTERS ":.,"

static void missing_scope(const struct sl_method *method, const json_t *answer, char *out,
                          size_t size)
{
        const char *needed = json_str(answer, "needed", NULL);
        int n = needed ? word_length(needed, SCOPE_CHARACTERS) : 0;

        if (n == 0 && method && method->scope) {
                needed = method->scope;
                n = (int)strlen(needed);
        }
        if (method && method->app_level)
                snprintf(out, size,
                         "the app-level token lacks the scope %.*s: make a new one with it (Basic "
                         "Information, App-Level Tokens)",
                         n, n > 0 ? needed : "");
        else if (n == 0)
                snprintf(out, size, "the app lacks a scope: compare " MANIFEST_PLACE);
        else if (memchr(needed, ',', (size_t)n)) /* any of them permits it */
                snprintf(out, size,
                         "the app lacks one of the scopes %.*s: add it to " MANIFEST_PLACE, n,
                         needed);
        else
                snprintf(out, size, "the app lacks a scope: add \"%.*s\" to " MANIFEST_PLACE, n,
                         needed);
}

void sl_error_text(const struct sl_method *method, const json_t *answer, char *out, size_t size)
{
        const char *error = json_str(answer, "error", "no reason"),
                   *advice = sl_error_advice(error),
                   *detail = json_string_value(json_array_get(
                           json_object_get(json_object_get(answer, "response_metadata"),
                                           "messages"),
                           0));
        int n = word_length(error, ERROR_CHARACTERS " ");

        if (strcmp(error, "missing_scope") == 0)
                missing_scope(method, answer, out, size);
        else if (advice)
                snprintf(out, size, "Slack says: %.*s: %s", n, error, advice);
        else
                snprintf(out, size, "Slack says: %.*s%s%.150s", n, error, detail ? ": " : "",
                         detail ? detail : "");
        log_redact(out);
}

void sl_error_token_text(const char *adapter, const struct sl_method *method, const char *error,
                         char *out, size_t size)
{
        if (method->app_level)
                snprintf(out, size,
                         "Slack does not accept the app-level token (%.30s): make one with "
                         "connections:write and put it into adapters.%.40s.appToken or "
                         "SLACK_APP_TOKEN",
                         error, adapter);
        else if (strcmp(error, "invalid_auth") == 0 || strcmp(error, "not_authed") == 0)
                snprintf(out, size,
                         "Slack does not know this bot token (%.30s): put the one of OAuth & "
                         "Permissions (xoxb-...) into adapters.%.40s.botToken or SLACK_BOT_TOKEN",
                         error, adapter);
        else if (strcmp(error, "team_disabled") == 0)
                snprintf(out, size, "the workspace was switched off (team_disabled)");
        else
                snprintf(out, size,
                         "the app was removed or its token revoked (%.30s): install it again and "
                         "put its token (xoxb-...) into adapters.%.40s.botToken or SLACK_BOT_TOKEN",
                         error, adapter);
}

static bool has_scope(const char *scopes, const char *scope)
{
        size_t n = strlen(scope);

        for (const char *at = scopes; (at = strstr(at, scope)); at += n) {
                bool begins = at == scopes || strchr(", ", at[-1]);

                if (begins && (at[n] == '\0' || at[n] == ',' || at[n] == ' '))
                        return true;
        }
        return false;
}

bool sl_error_lacking(const char *scopes, char *out, size_t size)
{
        static const char ending[] = " to " MANIFEST_PLACE;
        size_t at = 0, room = size > sizeof(ending) + 20 ? size - sizeof(ending) - 20 : 0;
        unsigned more = 0;

        for (size_t i = 0; i < COUNT(wanted_scopes); i++) {
                const char *scope = wanted_scopes[i];

                if (has_scope(scopes, scope))
                        continue;
                if (at + strlen(scope) + 30 > room) {
                        more++;
                        continue;
                }
                at += (size_t)snprintf(out + at, size - at, "%s\"%s\"",
                                       at ? ", " : "the app lacks scopes: add ", scope);
        }
        if (at > 0 && more > 0)
                at += (size_t)snprintf(out + at, size - at, " and %u more", more);
        if (at > 0)
                snprintf(out + at, size - at, "%s", ending);
        return at > 0;
}
