/* sl_call: one call of Slack's Web API. sl_api.c schedules it. */
#ifndef PLATFORM_SLACK_SL_CALL_H
#define PLATFORM_SLACK_SL_CALL_H

#include <sys/queue.h>

#include "net/json_offload.h"
#include "platform/call_queue.h"
#include "platform/slack/sl_api.h"

struct sl_call {
        struct queued_call queued; /* first */
        struct sl_api *api;
        const struct sl_method *method; /* that of posts has an empty name */
        char *url;                      /* of a post: a secret; else NULL */
        char *body;
        struct http_file file; /* of a post; fd -1: none */
        int64_t total_ms;
        struct http_call *http;
        struct json_offload *parsing; /* the answer is large */
        struct http_result result;    /* the same, without its texts */
        char *scopes;                 /* X-OAuth-Scopes of the answer */
        sl_answer_fn *done;
        void *arg;
        bool is_ask, drop_on_cancel;
        LIST_ENTRY(sl_call) next; /* all of them */
};

/* -1 with an error: the method is not known, or the file cannot be read. */
int sl_call_init(struct sl_call *c, const struct sl_request *q, struct error *err);
int sl_call_init_post(struct sl_call *c, const struct sl_post *p, struct error *err);
void sl_call_free(struct sl_call *c);
/* authorization: "Authorization: Bearer ..."; posts get none. */
struct http_call *sl_call_start(struct sl_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers);
/* Is it Slack's error of a rate limit? Both spellings are documented. */
bool sl_call_is_limit(const char *error);
/* The answer borrows the call, body (NULL: not JSON) and text. */
void sl_call_answer(const struct sl_call *c, const struct http_result *result, const json_t *body,
                    struct sl_answer *out, char *text, size_t size);

#endif
