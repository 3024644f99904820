/*
 * dc_answer: what Discord said, read once for everybody.
 */
#ifndef PLATFORM_DISCORD_DC_ANSWER_H
#define PLATFORM_DISCORD_DC_ANSWER_H

#include <jansson.h>
#include <stddef.h>

#include "net/http_client.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/dc_rest.h"

#define DC_LIMITED_MS 1000 /* a 429 that does not say how long */

/* The rate limit headers; the hash is borrowed from the call. */
struct dc_told dc_answer_limits(const struct http_call *h);
/* Is it a good answer that is too large to be parsed on the loop? */
bool dc_answer_is_large(const struct http_result *result);
/* Its JSON, yours; NULL: there is none, or it is large. */
json_t *dc_answer_body(const struct http_result *result);
/* What is borrowed from body and from `text`, which holds its sentence. */
void dc_answer_read(const struct http_call *h, const struct http_result *result, const json_t *body,
                    struct dc_answer *out, char *text, size_t size);

#endif
