/* dc_call: one call of Discord's REST API. dc_rest.c schedules it. */
#ifndef PLATFORM_DISCORD_DC_CALL_H
#define PLATFORM_DISCORD_DC_CALL_H

#include <sys/queue.h>

#include "base/buf.h"
#include "net/json_offload.h"
#include "platform/call_queue.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/dc_rest.h"

struct dc_call {
        struct queued_call queued; /* first */
        struct dc_rest *rest;
        char *method, *route;
        char *path;  /* with its query; NULL: the route could not be filled */
        char *major; /* the top-level id in the bucket's name */
        char *body;
        struct dc_upload files[DC_FILES_MAX];
        size_t file_count;
        bool repeatable;
        bool bare; /* an interaction route: its token is in the path */
        int64_t total_ms;
        struct http_call *http;
        struct json_offload *parsing; /* the body is large */
        struct dc_answer answer;      /* the same, without its result */
        dc_answer_fn *done;
        void *arg;
        int refusal_code; /* Discord's, of an earlier call */
        bool is_ask, drop_on_cancel;
        LIST_ENTRY(dc_call) next; /* all of them */
};

int dc_call_init(struct dc_call *c, const struct dc_request *q, int64_t now_ms, struct error *err);
void dc_call_free(struct dc_call *c);
struct http_call *dc_call_start(struct dc_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers);

/* The hash is borrowed from the call. */
struct dc_rate_limit_headers dc_call_limits(const struct http_call *h);
/* The answer borrows body (NULL: none) and text. */
void dc_call_answer(const struct http_call *h, const struct http_result *result, const json_t *body,
                    struct dc_answer *out, char *text, size_t size);

/*
 * Fills the braces of the route: the path, and the top-level id (with a webhook's token) for the
 * bucket's name. -1 with an error: an argument is not an id.
 */
int dc_call_path(const struct dc_request *q, struct buf *path, struct buf *major,
                 struct error *err);

#endif
