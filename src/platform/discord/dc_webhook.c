/*
 * Interactions over HTTP: Discord posts them to /api/v2/channels/discord/<adapter>/interactions,
 * signed with the application's key. The response, sent after the commit, acknowledges them.
 *
 * Discord sometimes posts wrong signatures, and removes an endpoint that accepts them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/discord.h"

#define SIGNATURE "X-Signature-Ed25519"
#define TIMESTAMP "X-Signature-Timestamp"

static bool refuse_signature(struct http_exchange *x)
{
        http_refuse(x, 401, "UNAUTHORIZED", "the signature is missing or wrong");
        return false;
}

bool dc_webhook_admits(struct adapter *a, struct http_exchange *x)
{
        const struct discord *dc = a->self;
        const char *signature = http_header(x, SIGNATURE);
        unsigned char raw[ED25519_SIGNATURE_SIZE];

        if (!dc->self.public_key) {
                http_refuse(x, 503, "UNAVAILABLE",
                            "adapter '%s' does not know the application's public key yet", a->name);
                return false;
        }
        if (!signature || !crypto_unhex(signature, raw, sizeof(raw)))
                return refuse_signature(x);
        if (!adapter_post_is_recent(http_header(x, TIMESTAMP))) {
                http_refuse(x, 401, "UNAUTHORIZED",
                            TIMESTAMP " must be the time in seconds, within %d of this machine's",
                            ADAPTER_POST_SECONDS);
                return false;
        }
        return true;
}

static bool is_signed(const struct discord *dc, const struct http_exchange *x)
{
        unsigned char key[ED25519_KEY_SIZE], signature[ED25519_SIGNATURE_SIZE];
        const char *timestamp = http_header(x, TIMESTAMP);
        struct buf text;
        const char *body;
        size_t n;
        bool ok;

        if (!timestamp || !crypto_unhex(dc->self.public_key, key, sizeof(key)) ||
            !crypto_unhex(http_header(x, SIGNATURE), signature, sizeof(signature)))
                return false;
        body = http_body(x, &n);
        buf_init(&text, 0);
        buf_addstr(&text, timestamp);
        buf_add(&text, body, n);
        ok = crypto_ed25519_verify(key, signature, text.data, text.len);
        buf_release(&text);
        return ok;
}

struct dc_post {
        struct discord *dc;
        struct http_exchange *x;
        json_t *interaction;
        LIST_ENTRY(dc_post) next;
};

static void on_stored(void *arg, bool ok)
{
        struct dc_post *p = arg;

        LIST_REMOVE(p, next);
        if (ok)
                http_answer_json(p->x, 200, dc_deferred_posted(p->dc, p->interaction));
        else
                http_refuse(p->x, 503, "UNAVAILABLE",
                            "the command could not be stored; please try again");
        json_decref(p->interaction);
        free(p);
}

void dc_webhook_release(struct discord *dc)
{
        struct dc_post *p, *after;

        for (p = LIST_FIRST(&dc->posts); p; p = after) {
                after = LIST_NEXT(p, next);
                on_stored(p, false);
        }
}

void dc_webhook_handle(struct adapter *a, struct http_exchange *x)
{
        struct discord *dc = a->self;
        json_t *interaction;
        struct dc_post *p;
        const char *body;
        int64_t type;
        size_t n;

        if (!is_signed(dc, x)) {
                refuse_signature(x);
                return;
        }
        body = http_body(x, &n);
        interaction = json_read_lenient(body, n, NULL);
        type = json_int(interaction, "type", 0);
        if (type == DC_INTERACTION_PING) {
                http_answer_json(x, 200, json_pack("{s:i}", "type", 1));
        } else if (type == DC_INTERACTION_AUTOCOMPLETE) {
                http_answer_json(x, 200,
                                 json_pack("{s:i, s:{s:[]}}", "type", 8, "data", "choices"));
        } else if (type < 1 || !dc_id_valid(json_str(interaction, "id", NULL))) {
                http_refuse(x, 400, "VALIDATION_ERROR", "this is not a Discord interaction");
        } else if (!dc->intake || !a->road) {
                http_refuse(x, 503, "UNAVAILABLE", "adapter '%s' is not connected yet", a->name);
        } else {
                p = mem_zalloc(sizeof(*p));
                p->dc = dc;
                p->x = x;
                p->interaction = json_incref(interaction);
                LIST_INSERT_HEAD(&dc->posts, p, next);
                dc_intake_post(dc->intake, interaction, on_stored, p);
        }
        json_decref(interaction);
}
