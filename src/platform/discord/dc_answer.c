#include "platform/discord/dc_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "platform/discord/dc_parse.h"

#define RETRY_MAX_MS ((int64_t)86400 * 1000)

static int64_t number_of(const char *text)
{
        int64_t ms = dc_seconds_ms(text);

        return ms < 0 ? -1 : ms / 1000;
}

static int64_t at_most(int64_t ms, int64_t max)
{
        return ms < max ? ms : max;
}

struct dc_told dc_answer_limits(const struct http_call *h)
{
        return (struct dc_told){
                .hash = http_answer_header(h, "X-RateLimit-Bucket"),
                .limit = number_of(http_answer_header(h, "X-RateLimit-Limit")),
                .remaining = number_of(http_answer_header(h, "X-RateLimit-Remaining")),
                .reset_after_ms =
                        at_most(dc_seconds_ms(http_answer_header(h, "X-RateLimit-Reset-After")),
                                RETRY_MAX_MS),
                .window = dc_seconds_ms(http_answer_header(h, "X-RateLimit-Reset")),
        };
}

/* The body's number is exact; the header's is in whole seconds. */
static int64_t retry_after_of(const json_t *body, const struct http_result *result)
{
        const json_t *told = json_object_get(body, "retry_after");
        double seconds = json_number_value(told);

        if (!json_is_number(told))
                return result->retry_after_ms >= 0 || result->status != 429 ? result->retry_after_ms
                                                                            : DC_LIMITED_MS;
        if (seconds < 0)
                return DC_LIMITED_MS;
        return seconds > (double)RETRY_MAX_MS / 1000 ? RETRY_MAX_MS : (int64_t)(seconds * 1000) + 1;
}

/*
 * The first complaint of {"errors": {"content": {"_errors": [{"message": ...}]}}}, with its place.
 */
static const char *first_complaint(const json_t *errors, struct buf *place)
{
        const json_t *list = json_object_get(errors, "_errors");
        const char *key, *said;
        json_t *member;

        if (list)
                return json_str(json_array_get(list, 0), "message", NULL);
        json_object_foreach((json_t *)errors, key, member) {
                size_t before = place->len;

                buf_addf(place, "%s%s", before ? "." : "", key);
                said = first_complaint(member, place);
                if (said)
                        return said;
                buf_truncate(place, before);
        }
        return NULL;
}

static void say_refusal(const json_t *body, const struct dc_answer *a, char *text, size_t size)
{
        const char *said = json_str(body, "message", NULL), *detail;
        struct buf place;

        buf_init(&place, 200);
        detail = first_complaint(json_object_get(body, "errors"), &place);
        if (said && detail)
                snprintf(text, size, "Discord says: %s (%d): %s: %s", said, a->code, place.data,
                         detail);
        else if (said && a->code)
                snprintf(text, size, "Discord says: %s (%d)", said, a->code);
        else if (said)
                snprintf(text, size, "Discord says: %s (status %d)", said, a->status);
        else
                snprintf(text, size, "Discord answered %d", a->status);
        buf_release(&place);
}

/* A 429 that is not JSON comes from the guard in front of Discord, and is about our address. */
static bool is_global(const struct http_call *h, const struct http_result *result,
                      const json_t *body)
{
        const char *told = http_answer_header(h, "X-RateLimit-Global");

        return (told && strcmp(told, "true") == 0) || json_flag(body, "global", false) ||
               (result->status == 429 && !body);
}

bool dc_answer_is_large(const struct http_result *result)
{
        return result->status >= 200 && result->status < 300 && result->kind == ERR_NONE &&
               result->body_n >= DC_LARGE;
}

json_t *dc_answer_body(const struct http_result *result)
{
        if (result->status == 0 || result->kind != ERR_NONE || result->body_n == 0 ||
            dc_answer_is_large(result))
                return NULL;
        return dc_parse(result->body, result->body_n);
}

void dc_answer_read(const struct http_call *h, const struct http_result *result, const json_t *body,
                    struct dc_answer *out, char *text, size_t size)
{
        *out = (struct dc_answer){ .ok = result->status >= 200 && result->status < 300,
                                   .status = result->status,
                                   .code = (int)json_int(body, "code", 0),
                                   .reach = result->reach,
                                   .kind = result->kind,
                                   .result = body,
                                   .why = text,
                                   .retry_after_ms = retry_after_of(body, result),
                                   .global = is_global(h, result, body) };
        text[0] = '\0';
        if (result->status == 0)
                snprintf(text, size, "Discord could not be reached: %s",
                         result->why ? result->why : "no reason given");
        else if (!out->ok)
                say_refusal(body, out, text, size);
        log_redact(text);
}
