/*
 * Answers that agents post to the reply URL of a turn.
 *
 * The turn's own token is the key here, in the URL as agents get it or in the header Authorization.
 * The body is what a webhook may answer: JSON with reply, parts or text, or plain text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/agent.h"
#include "agent/http/http_agent.h"
#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct reply_ask {
        const char *token;
};

/* clang-format off */
const struct field turn_reply_query[] = {
        { "token", FIELD_STRING, .min = 1, .max = 200, .at = offsetof(struct reply_ask, token),
          .help = "The token of the turn's reply URL; or the header Authorization: Bearer TOKEN." },
        FIELD_END,
};
/* clang-format on */

static const char *bearer(const struct http_exchange *x)
{
        const char *given = http_header(x, "Authorization");

        return given && strncasecmp(given, "Bearer ", 7) == 0 ? given + 7 : NULL;
}

struct reply_job {
        struct api_job job;
        char id[40];
};

static void answer_taken(struct http_exchange *x, const struct reply_job *j,
                         const struct agents_replied *r)
{
        struct buf data;
        char delivery[40];

        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "turnId", j->id);
        jsonw_str(&data, "status", agents_replied_name(r->outcome));
        if (r->delivery) {
                snprintf(delivery, sizeof(delivery), "dlv-%lld", (long long)r->delivery);
                jsonw_str(&data, "deliveryId", delivery);
        }
        jsonw_opt(&data, "reason", r->why[0] ? r->why : NULL);
        jsonw_close(&data, '}');
        reply_data(x, 202, &data);
}

static void on_replied(void *arg, const struct agents_replied *r)
{
        struct reply_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && r->error.kind != ERR_NONE)
                reply_failed(x, &r->error);
        else if (x)
                answer_taken(x, j, r);
        free(j);
}

static void refuse(struct http_exchange *x, const struct error *err)
{
        if (err->kind == ERR_TIMEOUT)
                reply_error(x, 410, "GONE", NULL, "%s", err->text);
        else
                reply_error(x, 401, "UNAUTHORIZED", NULL, "%s", err->text);
}

/*
 * The token of the request, from its query or its header; reads the query into b. NULL: answered
 * already.
 */
static const char *token_of(struct http_exchange *x, struct body *b)
{
        struct reply_ask ask = { 0 };

        if (request_query(x, b, &ask) < 0)
                return NULL;
        if (!ask.token)
                ask.token = bearer(x);
        if (!ask.token) {
                reply_error(x, 401, "UNAUTHORIZED", NULL,
                            "this needs the token of the turn's reply URL");
                body_release(b);
        }
        return ask.token;
}

/* Nobody without a token may send a body. */
bool turns_reply_admit(struct http_exchange *x)
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

static void take(struct http_exchange *x, int64_t turn, const char *token,
                 const struct http_agent_reply *answer)
{
        struct reply_job *j = mem_zalloc(sizeof(*j));
        struct turn_reply reply = http_agent_reply_for_turn(answer);
        struct error err = { 0 };

        snprintf(j->id, sizeof(j->id), "trn-%lld", (long long)turn);
        api_job_begin(&j->job, x);
        if (agents_reply(api_of(x)->env.agents, turn, token, http_header(x, "Idempotency-Key"),
                         &reply, on_replied, j, &err) == 0)
                return;
        refuse(api_job_end(&j->job), &err);
        free(j);
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

void turns_reply(struct http_exchange *x)
{
        int64_t id = request_id(x, "trn-", "turn");
        struct http_agent_reply answer;
        struct error err = { 0 };
        const char *token;
        struct body b;

        if (id < 0 || !(token = token_of(x, &b)))
                return;
        if (read_answer(x, &answer, &err) < 0) {
                err.kind = ERR_INVALID;
                reply_failed(x, &err);
        } else {
                if (answer.given)
                        take(x, id, token, &answer);
                else
                        reply_error(x, 400, "VALIDATION_ERROR", NULL,
                                    "the body needs \"reply\", \"parts\" or \"text\"; an empty "
                                    "one says nothing");
                http_agent_reply_release(&answer);
        }
        body_release(&b);
}
