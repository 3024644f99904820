/*
 * Answers posted by agents to a turn's reply URL.
 *
 * The turn's token is the key, in the URL or in the header Authorization. The body is what a
 * webhook may answer: JSON with reply, parts or text, or plain text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "agent/agents.h"
#include "agent/http/http_agent.h"
#include "api/core/request.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/turn/late_reply.h"

#define MAX_BODY (1024 * 1024) /* as much as a webhook may answer */

struct reply_ask {
        const char *token;
};

static const struct field reply_query[] = {
        { "token", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(reply_ask, token),
          .help = "The token of the turn's reply URL; or the header Authorization: Bearer TOKEN." },
        FIELD_END,
};

/* Reads the query into b; the token is there or in a header. NULL: answered. */
static const char *token_of(struct http_exchange *x, struct body *b)
{
        const char *given = http_header(x, "Authorization");
        struct reply_ask ask = { 0 };

        if (request_query(x, b, &ask) < 0)
                return NULL;
        if (!ask.token && given && strncasecmp(given, "Bearer ", 7) == 0)
                ask.token = given + 7;
        if (!ask.token) {
                reply_error(x, 401, "UNAUTHORIZED", NULL,
                            "this needs the token of the turn's reply URL");
                body_release(b);
        }
        return ask.token;
}

static void refuse(struct http_exchange *x, const struct error *err)
{
        if (err->kind == ERR_TIMEOUT)
                reply_error(x, 410, "GONE", NULL, "%s", err->text);
        else
                reply_error(x, 401, "UNAUTHORIZED", NULL, "%s", err->text);
}

/* Refuses a request without a valid token before its body is read. */
static bool admits(struct http_exchange *x)
{
        int64_t id = request_id(x, "trn-", "turn");
        struct error err = { 0 };
        const char *token;
        struct body b;
        int rc;

        if (id < 0 || !(token = token_of(x, &b)))
                return false;
        rc = agents_check_token(api_of(x)->env.agents, id, token, &err);
        if (rc < 0)
                refuse(x, &err);
        body_release(&b);
        return rc == 0;
}

struct turn_reply_job {
        struct api_job job;
        char id[40];
};

static void on_replied(void *arg, const struct late_reply_result *r)
{
        struct turn_reply_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);
        char delivery[40];
        struct buf data;

        if (x && r->error.kind != ERR_NONE) {
                reply_failed(x, &r->error);
        } else if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "turnId", j->id);
                jsonw_str(&data, "status", late_reply_outcome_name(r->outcome));
                if (r->delivery) {
                        snprintf(delivery, sizeof(delivery), "dlv-%lld", (long long)r->delivery);
                        jsonw_str(&data, "deliveryId", delivery);
                }
                jsonw_opt(&data, "reason", r->why[0] ? r->why : NULL);
                jsonw_close(&data, '}');
                reply_data(x, 202, &data);
        }
        free(j);
}

static void submit(struct http_exchange *x, int64_t turn, const struct http_agent_reply *answer)
{
        struct turn_reply_job *j = mem_zalloc(sizeof(*j));
        struct turn_reply reply = http_agent_reply_for_turn(answer);

        snprintf(j->id, sizeof(j->id), "trn-%lld", (long long)turn);
        api_job_begin(&j->job, x);
        late_reply_submit(api_of(x)->env.road, turn, http_header(x, "Idempotency-Key"), &reply,
                          on_replied, j);
}

static int read_answer(const struct http_exchange *x, struct http_agent_reply *answer,
                       struct error *err)
{
        const struct json_parsed *parsed = request_parsed(x);
        const char *type = http_header(x, "Content-Type"), *body;
        size_t n = 0;

        if (parsed)
                return http_agent_reply_read_parsed(answer, http_agent_reply_members, type, parsed,
                                                    err);
        body = http_body(x, &n);
        return http_agent_reply_read(answer, http_agent_reply_members, type, body, n, err);
}

static void receive(struct http_exchange *x)
{
        int64_t id = request_id(x, "trn-", "turn");
        struct http_agent_reply answer;
        struct error err = { 0 };
        const char *token;
        struct body b;

        if (id < 0 || !(token = token_of(x, &b)))
                return;
        /* may have expired while the body arrived */
        if (agents_check_token(api_of(x)->env.agents, id, token, &err) < 0) {
                refuse(x, &err);
        } else if (read_answer(x, &answer, &err) < 0) {
                err.kind = ERR_INVALID;
                reply_failed(x, &err);
        } else {
                if (answer.given)
                        submit(x, id, &answer);
                else
                        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                                    "the body needs \"reply\", \"parts\" or \"text\"; an empty "
                                    "one posts nothing");
                http_agent_reply_release(&answer);
        }
        body_release(&b);
}

const struct route turn_replies_routes[] = {
        { "POST", "/api/v2/turns/:id/reply", SCOPE_NONE, receive, REACH_SHARED, .admits = admits,
          .summary = "Answer a turn, as its agent: the replyUrl of a webhook's request. The turn's "
                     "token is the key. The body is what a webhook may answer: {\"reply\"}, "
                     "{\"parts\": [...]} or {\"text\"}, with \"metadata\", or plain text. The "
                     "first answer ends a running turn, later ones are separate messages. "
                     "Idempotency-Key makes repeating it harmless.",
          .query = reply_query, .reads_body = true, .max_body = MAX_BODY, .status = 202,
          .answer = "The outcome, once it is stored: {\"data\": {\"turnId\", \"status\": "
                    "\"answered\", \"delivered\", \"discarded\" or \"duplicate\", "
                    "\"deliveryId\", \"reason\"}}; 401 wrong token, 409 no further answer is "
                    "allowed, 410 the token has expired." },
        ROUTE_END,
};
