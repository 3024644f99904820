/*
 * Anthropic's Messages: how an answer is written. Requests are checked in lm_messages_check.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_call.h"
#include "sim/llm/lm_messages.h"

/* ---- errors ---- */

static const char *type_of(int status)
{
        static const struct {
                int status;
                const char *type;
        } types[] = {
                { 400, "invalid_request_error" }, { 401, "authentication_error" },
                { 402, "billing_error" },         { 403, "permission_error" },
                { 404, "not_found_error" },       { 409, "conflict_error" },
                { 413, "request_too_large" },     { 429, "rate_limit_error" },
                { 504, "timeout_error" },         { 529, "overloaded_error" },
        };

        for (size_t i = 0; i < COUNT(types); i++) {
                if (types[i].status == status)
                        return types[i].type;
        }
        return "api_error";
}

static json_t *error_value(const char *type, const char *message, const char *request)
{
        return json_pack("{s:s,s:{s:s,s:s},s:s}", "type", "error", "error", "type", type, "message",
                         message, "request_id", request);
}

static void write_error(const struct call *c, struct buf *b)
{
        json_t *value = error_value(type_of(c->status), c->problem, c->request);
        char *text = json_text(value);

        buf_addstr(b, text);
        free(text);
        json_decref(value);
}

static void break_off(struct call *c, struct lm_pieces *p)
{
        lm_pieces_event(p, "error", error_value("overloaded_error", "Overloaded", c->request));
}

static void too_long(struct call *c, int64_t window)
{
        int64_t tokens = c->prompt.blocks.tokens;

        lm_call_refuse(c, "too_long", "prompt is too long: %lld tokens > %lld maximum",
                       (long long)(tokens > window ? tokens : window + 1), (long long)window);
}

static void limit_headers(struct call *c, int64_t limit, int64_t left)
{
        static const char *const kinds[] = { "requests", "tokens", "input-tokens",
                                             "output-tokens" };
        static const char *const parts[] = { "limit", "remaining", "reset" };
        char reset[CLOCK_ISO_SIZE], name[64], number[24];

        clock_iso((clock_wall_ms() / 60000 + 1) * 60000, reset);
        for (size_t i = 0; i < COUNT(kinds) * COUNT(parts); i++) {
                size_t part = i % COUNT(parts);

                snprintf(name, sizeof(name), "anthropic-ratelimit-%s-%s", kinds[i / COUNT(parts)],
                         parts[part]);
                snprintf(number, sizeof(number), "%lld", (long long)(part ? left : limit));
                http_add_header(c->x, name, part == 2 ? reset : number);
        }
}

/* ---- blocks ---- */

static size_t thoughts(const json_t *content)
{
        const json_t *part;
        size_t i, n = 0;

        json_array_foreach(content, i, part) {
                const char *type = json_str(part, "type", "");

                n += strcmp(type, "thinking") == 0 || strcmp(type, "redacted") == 0;
        }
        return n;
}

static void signature(const struct call *c, size_t at, const char *text,
                      char out[LM_SIGNATURE_SIZE])
{
        lm_sign(out, c->prompt.model->name, c->id, at, thoughts(c->answer.content), text);
}

static char model_digit(const char *model)
{
        unsigned char sum[SHA256_SIZE];

        crypto_sha256(model, strlen(model), sum);
        return (char)('a' + sum[0] % 26);
}

void lm_messages_call_id(const struct call *c, size_t at, bool thought, char out[LM_CALL_ID_SIZE])
{
        snprintf(out, LM_CALL_ID_SIZE, "toolu_0%c%c%.20s%02zu", thought ? '2' : '1',
                 model_digit(c->prompt.model->name), c->id, at % 100);
}

bool lm_messages_call_thought(const char *id, const char *model)
{
        return strncmp(id, "toolu_02", 8) == 0 && id[8] == model_digit(model);
}

/* The block as it begins; *text: what follows in deltas. NULL for pauses. `thought` counts. */
static json_t *open_block(const struct call *c, const json_t *part, size_t at, size_t *thought,
                          const char **text)
{
        const char *type = json_str(part, "type", "");
        char id[LM_CALL_ID_SIZE], data[LM_SIGNATURE_SIZE];

        *text = json_str(part, "text", "");
        if (strcmp(type, "text") == 0)
                return json_pack("{s:s,s:s}", "type", "text", "text", "");
        if (strcmp(type, "thinking") == 0) {
                if (c->prompt.thinking_hidden)
                        *text = "";
                (*thought)++;
                return json_pack("{s:s,s:s,s:s}", "type", "thinking", "thinking", "", "signature",
                                 "");
        }
        if (strcmp(type, "redacted") == 0) {
                *text = "";
                signature(c, (*thought)++, "", data);
                return json_pack("{s:s,s:s}", "type", "redacted_thinking", "data", data);
        }
        if (strcmp(type, "call") != 0)
                return NULL;
        *text = json_str(part, "arguments", "{}");
        lm_messages_call_id(c, at, thoughts(c->answer.content) > 0, id);
        return json_pack("{s:s,s:s,s:s,s:{},s:{s:s}}", "type", "tool_use", "id", id, "name",
                         json_str(part, "name", ""), "input", "caller", "type", "direct");
}

static json_t *usage(const struct call *c, int64_t output)
{
        const struct lm_answer *a = &c->answer;
        int64_t written = a->cached.written_5m + a->cached.written_1h;
        int64_t input = a->input - a->cached.read - written;

        return json_pack("{s:I,s:I,s:I,s:{s:I,s:I},s:I,s:s,s:n,s:n,s:{s:I}}", "input_tokens",
                         (json_int_t)(input > 0 ? input : 0), "cache_creation_input_tokens",
                         (json_int_t)written, "cache_read_input_tokens", (json_int_t)a->cached.read,
                         "cache_creation", "ephemeral_5m_input_tokens",
                         (json_int_t)a->cached.written_5m, "ephemeral_1h_input_tokens",
                         (json_int_t)a->cached.written_1h, "output_tokens", (json_int_t)output,
                         "service_tier", "standard", "server_tool_use", "inference_geo",
                         "output_tokens_details", "thinking_tokens", (json_int_t)a->reasoning);
}

static json_t *message(const struct call *c, json_t *content, int64_t output)
{
        char id[48];

        snprintf(id, sizeof(id), "msg_01%s", c->id);
        return json_pack("{s:s,s:s,s:s,s:s,s:o,s:n,s:n,s:n,s:n,s:n,s:o}", "id", id, "type",
                         "message", "role", "assistant", "model", c->prompt.model->name, "content",
                         content, "stop_reason", "stop_sequence", "stop_details", "container",
                         "diagnostics", "usage", usage(c, output));
}

static json_t *stop_details(const struct call *c)
{
        if (strcmp(c->answer.stop, "refusal") != 0)
                return json_null();
        return json_pack("{s:s,s:s,s:s}", "type", "refusal", "category", "general_harms",
                         "explanation", "The simulated model was told to refuse.");
}

static void write_whole(struct call *c, struct buf *b)
{
        json_t *content = json_array(), *all;
        const json_t *part;
        size_t i, thought = 0;
        char *text, sign[LM_SIGNATURE_SIZE];

        json_array_foreach(c->answer.content, i, part) {
                const char *rest, *type = json_str(part, "type", "");
                json_t *block = open_block(c, part, i, &thought, &rest), *input;

                if (!block)
                        continue;
                if (strcmp(type, "text") == 0) {
                        json_object_set_new(block, "text", json_string(rest));
                } else if (strcmp(type, "thinking") == 0) {
                        signature(c, thought - 1, rest, sign);
                        json_object_set_new(block, "thinking", json_string(rest));
                        json_object_set_new(block, "signature", json_string(sign));
                } else if (strcmp(type, "call") == 0) {
                        input = json_read(rest, strlen(rest), NULL);
                        if (input)
                                json_object_set_new(block, "input", input);
                }
                json_array_append_new(content, block);
        }
        all = message(c, content, c->answer.output);
        json_object_set_new(all, "stop_reason", json_string(c->answer.stop));
        json_object_set_new(all, "stop_details", stop_details(c));
        text = json_text(all);
        buf_addstr(b, text);
        free(text);
        json_decref(all);
}

/* ---- the stream ---- */

static void delta(struct lm_pieces *p, size_t index, const char *type, const char *key,
                  const char *text, size_t n)
{
        lm_pieces_event(p, "content_block_delta",
                        json_pack("{s:s,s:I,s:{s:s,s:s%}}", "type", "content_block_delta", "index",
                                  (json_int_t)index, "delta", "type", type, key, text, n));
}

static void deltas(const struct call *c, struct lm_pieces *p, size_t index, const char *type,
                   const char *key, const char *text)
{
        size_t n = strlen(text), step;

        for (; n > 0; text += step, n -= step) {
                step = lm_pieces_step(text, n, (size_t)c->answer.piece_bytes);
                delta(p, index, type, key, text, step);
        }
}

static void stream_block(const struct call *c, struct lm_pieces *p, size_t index,
                         const json_t *part, size_t at, size_t *thought)
{
        const char *type = json_str(part, "type", ""), *text;
        json_t *block = open_block(c, part, at, thought, &text);
        char sign[LM_SIGNATURE_SIZE];

        lm_pieces_event(p, "content_block_start",
                        json_pack("{s:s,s:I,s:o}", "type", "content_block_start", "index",
                                  (json_int_t)index, "content_block", block));
        if (strcmp(type, "text") == 0) {
                deltas(c, p, index, "text_delta", "text", text);
        } else if (strcmp(type, "thinking") == 0) {
                deltas(c, p, index, "thinking_delta", "thinking", text);
                signature(c, *thought - 1, text, sign);
                delta(p, index, "signature_delta", "signature", sign, strlen(sign));
        } else if (strcmp(type, "call") == 0 && strcmp(text, "{}") != 0) {
                deltas(c, p, index, "input_json_delta", "partial_json", text);
        }
        lm_pieces_event(
                p, "content_block_stop",
                json_pack("{s:s,s:I}", "type", "content_block_stop", "index", (json_int_t)index));
}

static void stream_end(const struct call *c, struct lm_pieces *p)
{
        json_t *totals = usage(c, c->answer.output);

        json_object_del(totals, "cache_creation");
        json_object_del(totals, "service_tier");
        json_object_del(totals, "inference_geo");
        lm_pieces_event(p, "message_delta",
                        json_pack("{s:s,s:{s:s,s:n,s:o},s:o}", "type", "message_delta", "delta",
                                  "stop_reason", c->answer.stop, "stop_sequence", "stop_details",
                                  stop_details(c), "usage", totals));
        if (!c->answer.no_end)
                lm_pieces_event(p, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static void stream(struct call *c, struct lm_pieces *p)
{
        size_t index = 0, thought = 0, i;
        const json_t *part;

        lm_pieces_event(p, "message_start",
                        json_pack("{s:s,s:o}", "type", "message_start", "message",
                                  message(c, json_array(), 1)));
        lm_pieces_event(p, "ping", json_pack("{s:s}", "type", "ping"));
        json_array_foreach(c->answer.content, i, part) {
                if (strcmp(json_str(part, "type", ""), "wait") == 0) {
                        p->next_wait_ms += json_int(part, "ms", 0);
                        continue;
                }
                stream_block(c, p, c->answer.same_index ? 0 : index, part, i, &thought);
                index++;
        }
        stream_end(c, p);
}

const struct lm_wire lm_messages = {
        .name = "messages",
        .anthropic = true,
        .check = lm_messages_check,
        .write = write_whole,
        .stream = stream,
        .fail = break_off,
        .error = write_error,
        .too_long = too_long,
        .limits = limit_headers,
};
