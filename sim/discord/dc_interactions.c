#include "sim/discord/dc_interactions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_signer.h"

#define ENDPOINT_MS  3000
#define FORGET_EVERY 1000

struct interaction *dc_interaction_find(const struct world *w, const char *token)
{
        return token ? map_get(&w->interactions, token) : NULL;
}

static void interaction_free(struct interaction *i)
{
        http_call_abort(i->posting);
        json_decref(i->data);
        free(i->body);
        free(i);
}

void dc_interactions_forget(struct world *w, const struct channel *c)
{
        int64_t now = clock_mono_ms();
        const char *key;
        void *value;

        for (size_t at = 0; map_each(&w->interactions, &at, &key, &value);) {
                struct interaction *i = value;

                if (c ? i->channel != c : now - i->made_ms <= INTERACTION_TOKEN_MS || i->posting)
                        continue;
                map_remove(&w->interactions, key);
                interaction_free(i);
        }
}

void dc_interactions_release(struct world *w)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->interactions, &i, &key, &value);)
                interaction_free(value);
        map_release(&w->interactions);
}

/* ---- the payload ---- */

static void write_sender(struct buf *b, const struct interaction *i)
{
        const struct guild *g = i->channel->guild;
        const struct member *m = g ? dc_guild_member(g, i->user->id) : NULL;

        if (!m) {
                dc_render_user(b, "user", i->user);
                return;
        }
        dc_render_member(b, "member", m, true);
        buf_truncate(b, b->len - 1); /* the closing brace */
        jsonw_str(b, "permissions", "1125899906842623");
        jsonw_close(b, '}');
        dc_render_id(b, "guild_id", g->id);
        jsonw_open_member(b, "guild", '{');
        dc_render_id(b, "id", g->id);
        jsonw_str(b, "locale", "en-US");
        jsonw_raw(b, "features", "[]");
        jsonw_close(b, '}');
        jsonw_str(b, "guild_locale", "en-US");
}

static char *write_body(const struct interaction *i, const struct message *on)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        dc_render_id(&b, "id", i->id);
        dc_render_id(&b, "application_id", i->bot->application_id);
        jsonw_int(&b, "type", i->type);
        jsonw_str(&b, "token", i->token);
        jsonw_int(&b, "version", 1);
        dc_render_json(&b, "data", i->data);
        dc_render_id(&b, "channel_id", i->channel->id);
        dc_render_channel(&b, "channel", i->channel);
        write_sender(&b, i);
        if (on)
                dc_render_message(&b, "message", i->world, on, i->bot, RENDER_PLAIN);
        jsonw_str(&b, "app_permissions", "1125899906842623");
        jsonw_str(&b, "locale", "en-US");
        jsonw_raw(&b, "entitlements", "[]");
        jsonw_raw(&b, "authorizing_integration_owners", "{}");
        jsonw_int(&b, "context", i->channel->guild ? 0 : 1);
        jsonw_int(&b, "attachment_size_limit", 10485760);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

/* ---- the endpoint ---- */

static void record_endpoint(const struct bot *b, const struct http_result *r, const char *what,
                            const char *problem)
{
        struct buf *n = journal_open(b->world->base.sent, "endpoint", 0);

        jsonw_str(n, "what", what);
        jsonw_int(n, "status", r->status);
        if (r->kind)
                jsonw_str(n, "why", r->why);
        if (problem)
                jsonw_str(n, "problem", problem);
        journal_close(b->world->base.sent);
}

/* forged: with a wrong signature. */
static struct http_call *post(struct bot *b, const char *body, bool forged,
                              void (*done)(void *, const struct http_result *), void *arg)
{
        struct http_handlers handlers = { .on_done = done };
        char signature[SIGNER_SIGNATURE_SIZE], timestamp[24];
        char *signature_header, *timestamp_header;
        struct http_request request = { .url = b->interactions_url,
                                        .body = body,
                                        .body_n = strlen(body),
                                        .total_ms = ENDPOINT_MS };
        struct http_call *call;

        snprintf(timestamp, sizeof(timestamp), "%lld", (long long)(clock_wall_ms() / 1000));
        dc_signer_sign(b->world->signer, timestamp, body, strlen(body), signature);
        if (forged)
                signature[0] = signature[0] == '0' ? '1' : '0';
        signature_header = mem_printf("X-Signature-Ed25519: %s", signature);
        timestamp_header = mem_printf("X-Signature-Timestamp: %s", timestamp);
        request.headers = (const char *const[]){ "Content-Type: application/json", signature_header,
                                                 timestamp_header, NULL };
        call = http_call_start(b->world->base.client, &request, &handlers, arg);
        free(signature_header);
        free(timestamp_header);
        return call;
}

/* The endpoint may answer in its HTTP response, as in a callback; 202 announces a callback. */
static void on_posted(void *arg, const struct http_result *r)
{
        struct interaction *i = arg;
        struct call c = { .world = i->world,
                          .bot = i->bot,
                          .op = dc_spec_op("create_interaction_response"),
                          .status = 200 };
        json_t *answer = r->body_n ? json_read(r->body, r->body_n, NULL) : NULL;
        json_t *errors = answer ? dc_spec_check_body(c.op, answer, false, c.problem) : NULL;

        i->posting = NULL;
        if (answer && !errors && r->status == 200 && !i->answered &&
            dc_op_interaction_answer(&c, i, answer) != 0)
                snprintf(c.problem, sizeof(c.problem), "%s", c.message);
        record_endpoint(i->bot, r, "interaction", c.problem[0] ? c.problem : NULL);
        json_decref(errors);
        json_decref(c.errors);
        json_decref(answer);
        buf_release(&c.out);
}

static void on_pinged(void *arg, const struct http_result *r)
{
        record_endpoint(arg, r, "ping", NULL);
}

static void on_probed(void *arg, const struct http_result *r)
{
        record_endpoint(arg, r, "probe",
                        r->status == 401 ? NULL : "endpoint accepted a wrong signature");
}

void dc_interaction_ping(struct bot *b)
{
        static const char ping[] = "{\"type\":1,\"version\":1}";

        post(b, ping, false, on_pinged, b);
        post(b, ping, true, on_probed, b);
}

struct interaction *dc_interaction_make(struct bot *b, enum interaction_type type,
                                        struct channel *c, struct user *u, json_t *data,
                                        const struct message *on, unsigned *sessions)
{
        struct gateway_event e = { .event = "INTERACTION_CREATE", .guild = c->guild, .bot = b };
        struct interaction *i = mem_zalloc(sizeof(*i));

        if (b->world->interactions.count % FORGET_EVERY == FORGET_EVERY - 1)
                dc_interactions_forget(b->world, NULL);
        i->world = b->world;
        i->bot = b;
        i->id = dc_id_new(b->world);
        id_random_text(i->token, sizeof(i->token) - 1);
        i->type = type;
        i->channel = c;
        i->user = u;
        i->data = data;
        i->message_id = on ? on->id : 0;
        i->made_ms = clock_mono_ms();
        i->body = write_body(i, on);
        map_put(&b->world->interactions, i->token, i);
        if (b->interactions_url) {
                i->posting = post(b, i->body, false, on_posted, i);
                *sessions = 1;
        } else {
                *sessions = dc_session_publish(b->world, &e, i->body);
        }
        return i;
}
