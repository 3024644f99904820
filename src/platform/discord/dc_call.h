/*
 * dc_call: one call of Discord's REST API as dc_rest.c keeps it, from being asked for until it is
 * answered.
 */
#ifndef PLATFORM_DISCORD_DC_CALL_H
#define PLATFORM_DISCORD_DC_CALL_H

#include <sys/queue.h>

#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/dc_rest.h"

enum dc_call_state { CALL_WAITING, CALL_FLYING, CALL_PARSING, CALL_REFUSED };

struct dc_call {
        struct dc_rest *rest;
        enum dc_call_state state;
        char *method, *route;
        char *path;  /* behind the base, with its query; NULL: the route could not be filled */
        char *major; /* the top-level id that is part of the bucket's name */
        char *body;
        struct dc_upload files[DC_FILES_MAX];
        size_t file_count;
        enum dc_priority priority;
        bool repeatable;
        bool bare; /* an interaction route: its token is in the path, and the bot's is not shown */
        int64_t total_ms, deadline_ms;
        struct dc_bucket *bucket;
        struct http_call *http;
        struct dc_parsing *parsing; /* with CALL_PARSING: its answer is large */
        struct dc_answer answer;    /* the same, without its result */
        dc_answer_fn *done;
        void *arg;
        struct error refusal; /* with CALL_REFUSED */
        int refusal_code;
        int64_t refusal_ms;
        TAILQ_ENTRY(dc_call) next;
};

/*
 * A copy of what is asked for. -1 with an error when the route cannot be filled: then it has no
 * path, and can only be answered.
 */
int dc_call_make(struct dc_call *c, const struct dc_request *q, int64_t now_ms, struct error *err);
void dc_call_free(struct dc_call *c);
/* Goes out; authorization is the header that shows the bot's token. */
struct http_call *dc_call_start(struct dc_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers);

#endif
