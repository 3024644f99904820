/*
 * Webhooks of the platforms. The platform's code checks their own proof instead of a key.
 */
#include <string.h>

#include "api/core/request.h"
#include "platform/platform.h"

/* Platforms post less: files are downloaded, not posted. */
#define MAX_BODY (512 * 1024)
/* An interaction is read before its signature can be checked: no more than one ever has. */
#define MAX_INTERACTION (64 * 1024)

static struct adapter *adapter_of(const struct http_exchange *x)
{
        return adapters_find(api_of(x)->env.adapters, http_param(x, "adapter"));
}

static bool admits(struct http_exchange *x)
{
        const char *name = http_param(x, "adapter");
        struct adapter *a = adapter_of(x);

        if (!a || strcmp(a->ops->name, http_param(x, "platform")) != 0 || !a->ops->webhook) {
                reply_missing(x, "channel", name);
                return false;
        }
        if (!a->self) {
                reply_error(x, 503, "UNAVAILABLE", NULL, "adapter '%s' is not running", name);
                return false;
        }
        return !a->ops->webhook_admits || a->ops->webhook_admits(a, x);
}

static void receive(struct http_exchange *x)
{
        struct adapter *a;

        /* a reload may have changed the adapter since the body was read */
        if (!admits(x))
                return;
        a = adapter_of(x);
        a->ops->webhook(a, x);
}

const struct route channels_routes[] = {
        { "POST", "/api/v2/channels/:platform/:adapter/webhook", SCOPE_NONE, receive, REACH_SHARED,
          .admits = admits, .max_body = MAX_BODY,
          .summary = "Where a platform posts its events. The platform's own secret is the key: for "
                     "Telegram the header X-Telegram-Bot-Api-Secret-Token.",
          .status = 200,
          .answer = "The event is stored; 503 when it could not be stored and should be sent "
                    "again." },
        { "POST", "/api/v2/channels/:platform/:adapter/interactions", SCOPE_NONE, receive,
          REACH_SHARED, .admits = admits, .max_body = MAX_INTERACTION, .proof_in_body = true,
          .summary = "Where Discord posts slash commands and buttons, when this address is the "
                     "application's interactions endpoint. Its signature is the key: "
                     "X-Signature-Ed25519 over X-Signature-Timestamp, at most 5 minutes old, and "
                     "the body.",
          .status = 200,
          .answer = "The acknowledgement of Discord's interaction, once it is stored; 401 for a "
                    "wrong signature." },
        { "POST", "/api/v2/channels/:platform/:adapter/events", SCOPE_NONE, receive, REACH_SHARED,
          .admits = admits, .max_body = MAX_BODY, .proof_in_body = true,
          .summary = "Where Slack posts events, interactions and slash commands, when this address "
                     "is the app's request URL. Its signature is the key: X-Slack-Signature over "
                     "X-Slack-Request-Timestamp, at most 5 minutes old, and the body.",
          .status = 200,
          .answer = "The event is stored; with a body for a command or a modal that gets one. 401 "
                    "for a wrong signature, 503 when it could not be stored and should be sent "
                    "again." },
        ROUTE_END,
};
