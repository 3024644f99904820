/*
 * The door through which Telegram posts updates; behind it is tg_intake.c.
 */
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "platform/telegram/telegram.h"

#define SECRET_NAME "X-Telegram-Bot-Api-Secret-Token"

static bool secret_is_right(const struct telegram *tg, const char *said)
{
        return said && crypto_equal(said, strlen(said), tg->secret, strlen(tg->secret));
}

bool tg_webhook_admits(struct adapter *a, struct http_exchange *x)
{
        const struct telegram *tg = a->self;

        if (tg_polls(tg) || !tg->secret) {
                http_refuse(x, 404, "NOT_FOUND",
                            "adapter '%s' takes no webhooks: its mode is polling", a->name);
                return false;
        }
        if (!secret_is_right(tg, http_header(x, SECRET_NAME))) {
                http_refuse(x, 401, "UNAUTHORIZED", "the secret token is missing or wrong");
                return false;
        }
        return true;
}

void tg_webhook(struct adapter *a, struct http_exchange *x)
{
        struct telegram *tg = a->self;
        struct error err = { 0 };
        const char *body;
        json_t *update;
        size_t n;

        if (tg->state != TG_LISTENING || !a->road) {
                http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' is not connected yet", a->name);
                return;
        }
        body = http_body(x, &n);
        update = json_read(body, n, &err);
        if (!update && tg_update_number(body, n) >= 0) { /* it would be sent again for a day */
                log_warn("an update is left out: it cannot be read", LOG_S("adapter", a->name),
                         LOG_I("update", tg_update_number(body, n)), LOG_S("why", err.text));
                http_answer(x, 200, NULL, "", 0);
        } else if (!json_is_object(update) ||
                   !json_is_integer(json_object_get(update, "update_id")))
                http_refuse(x, 400, "VALIDATION_ERROR", "this is no update: %s",
                            err.text[0] ? err.text : "it has no update_id");
        else
                tg_intake_add(tg, update, x);
        json_decref(update);
}
