/*
 * OpenAI's Chat Completions: how an answer is written. Requests are checked in lm_chat_check.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_openai.h"

static void too_long(struct call *c, int64_t window)
{
        int64_t tokens = c->prompt.blocks.tokens;

        lm_call_refuse_at(c, "context_length_exceeded", "messages", "too_long",
                          "This model's maximum context length is %lld tokens. However, your "
                          "messages resulted in %lld tokens. Please reduce the length of the "
                          "messages.",
                          (long long)window, (long long)(tokens > window ? tokens : window + 1));
}

static const char *finish_reason(const struct call *c)
{
        const char *stop = c->answer.stop;

        return strcmp(stop, "tool_use") == 0     ? "tool_calls"
               : strcmp(stop, "max_tokens") == 0 ? "length"
               : strcmp(stop, "refusal") == 0    ? "content_filter"
                                                 : "stop";
}

static json_t *vendor_usage(const struct call *c)
{
        const struct lm_answer *a = &c->answer;
        bool writes = strncmp(c->prompt.model->name, "gpt-5.6", 7) == 0;

        return json_pack("{s:I,s:I,s:I,s:{s:I,s:I,s:I},s:{s:I,s:I}}", "prompt_tokens",
                         (json_int_t)a->input, "completion_tokens", (json_int_t)a->output,
                         "total_tokens", (json_int_t)a->input + (json_int_t)a->output,
                         "prompt_tokens_details", "cached_tokens", (json_int_t)a->cached.read,
                         "cache_write_tokens", (json_int_t)(writes ? a->cached.written_5m : 0),
                         "audio_tokens", (json_int_t)0, "completion_tokens_details",
                         "reasoning_tokens", (json_int_t)a->reasoning, "audio_tokens",
                         (json_int_t)0);
}

static json_t *usage(const struct call *c)
{
        const struct lm_answer *a = &c->answer;
        json_int_t read = (json_int_t)a->cached.read;

        if (c->prompt.model->can & LM_SHOWS_THINKING)
                return json_pack("{s:I,s:I,s:I,s:I,s:I,s:{s:I}}", "prompt_tokens",
                                 (json_int_t)a->input, "completion_tokens", (json_int_t)a->output,
                                 "total_tokens", (json_int_t)a->input + (json_int_t)a->output,
                                 "prompt_cache_hit_tokens", read, "prompt_cache_miss_tokens",
                                 (json_int_t)a->input - read, "completion_tokens_details",
                                 "reasoning_tokens", (json_int_t)a->reasoning);
        return vendor_usage(c);
}
static json_t *frame(const struct call *c, const char *object)
{
        char id[48];

        snprintf(id, sizeof(id), "chatcmpl-%s", c->id);
        return json_pack("{s:s,s:s,s:I,s:s,s:s,s:s}", "id", id, "object", object, "created",
                         (json_int_t)c->created, "model", c->prompt.model->name, "service_tier",
                         "default", "system_fingerprint", "fp_dragoman");
}

static json_t *call_value(const struct call *c, const json_t *part, size_t at,
                          const char *arguments)
{
        char id[40];

        snprintf(id, sizeof(id), "call_%.20s%02zu", c->id, at % 100);
        return json_pack("{s:s,s:s,s:{s:s,s:s}}", "id", id, "type", "function", "function", "name",
                         json_str(part, "name", ""), "arguments", arguments);
}

static void write_whole(struct call *c, struct buf *b)
{
        json_t *all = frame(c, "chat.completion"), *calls = json_array(), *message;
        const json_t *part;
        struct buf text, thought;
        char *out;
        size_t i;

        buf_init(&text, 0);
        buf_init(&thought, 0);
        json_array_foreach(c->answer.content, i, part) {
                if (lm_prompt_is(part, "type", "text"))
                        buf_addstr(&text, json_str(part, "text", ""));
                else if (lm_prompt_is(part, "type", "thinking"))
                        buf_addstr(&thought, json_str(part, "text", ""));
                else if (lm_prompt_is(part, "type", "call"))
                        json_array_append_new(
                                calls, call_value(c, part, i, json_str(part, "arguments", "")));
        }
        message = json_pack("{s:s,s:s?,s:n,s:[]}", "role", "assistant", "content",
                            text.len || json_array_size(calls) == 0 ? text.data : NULL, "refusal",
                            "annotations");
        if (json_array_size(calls) > 0)
                json_object_set(message, "tool_calls", calls);
        if (thought.len > 0)
                json_object_set_new(message, "reasoning_content", json_string(thought.data));
        json_object_set_new(all, "choices",
                            json_pack("[{s:i,s:o,s:n,s:s}]", "index", 0, "message", message,
                                      "logprobs", "finish_reason", finish_reason(c)));
        json_object_set_new(all, "usage", usage(c));
        out = json_text(all);
        buf_addstr(b, out);
        free(out);
        buf_release(&text);
        buf_release(&thought);
        json_decref(calls);
        json_decref(all);
}

/* `delta` is taken over; finish NULL: null. */
static void chunk(const struct call *c, struct lm_pieces *p, json_t *delta, const char *finish)
{
        bool wanted = json_flag(json_object_get(c->body, "stream_options"), "include_usage", false);
        json_t *all = frame(c, "chat.completion.chunk");

        json_object_set_new(all, "choices",
                            json_pack("[{s:i,s:o,s:n,s:s?}]", "index", 0, "delta", delta,
                                      "logprobs", "finish_reason", finish));
        if (wanted)
                json_object_set_new(all, "usage", json_null());
        lm_pieces_event(p, NULL, all);
}

static void stream_text(const struct call *c, struct lm_pieces *p, const char *key,
                        const char *text)
{
        size_t n = strlen(text), step;

        for (; n > 0; text += step, n -= step) {
                step = lm_pieces_step(text, n, (size_t)c->answer.piece_bytes);
                chunk(c, p, json_pack("{s:s%}", key, text, step), NULL);
        }
}

static void stream_call(const struct call *c, struct lm_pieces *p, const json_t *part, size_t at,
                        size_t index)
{
        const char *text = json_str(part, "arguments", "");
        json_t *first = call_value(c, part, at, "");
        size_t n = strlen(text), step;

        json_object_set_new(first, "index", json_integer((json_int_t)index));
        chunk(c, p, json_pack("{s:[o]}", "tool_calls", first), NULL);
        for (; n > 0; text += step, n -= step) {
                step = lm_pieces_step(text, n, (size_t)c->answer.piece_bytes);
                chunk(c, p,
                      json_pack("{s:[{s:I,s:{s:s%}}]}", "tool_calls", "index", (json_int_t)index,
                                "function", "arguments", text, step),
                      NULL);
        }
}

static void stream(struct call *c, struct lm_pieces *p)
{
        size_t index = 0, i;
        const json_t *part;

        chunk(c, p, json_pack("{s:s,s:s,s:n}", "role", "assistant", "content", "", "refusal"),
              NULL);
        json_array_foreach(c->answer.content, i, part) {
                if (lm_prompt_is(part, "type", "wait"))
                        p->next_wait_ms += json_int(part, "ms", 0);
                else if (lm_prompt_is(part, "type", "text"))
                        stream_text(c, p, "content", json_str(part, "text", ""));
                else if (lm_prompt_is(part, "type", "thinking"))
                        stream_text(c, p, "reasoning_content", json_str(part, "text", ""));
                else if (lm_prompt_is(part, "type", "call"))
                        stream_call(c, p, part, i, c->answer.same_index ? 0 : index++);
        }
        chunk(c, p, json_object(), finish_reason(c));
        if (json_flag(json_object_get(c->body, "stream_options"), "include_usage", false)) {
                json_t *last = frame(c, "chat.completion.chunk");

                json_object_set_new(last, "choices", json_array());
                json_object_set_new(last, "usage", usage(c));
                lm_pieces_event(p, NULL, last);
        }
        if (!c->answer.no_end)
                lm_pieces_raw(p, "data: [DONE]\n\n");
}

static void break_off(struct call *c, struct lm_pieces *p)
{
        (void)c;
        lm_pieces_event(p, NULL,
                        lm_openai_error_value("The server had an error while processing your "
                                              "request. Sorry about that!",
                                              "server_error", NULL, NULL));
}

const struct lm_wire lm_chat = {
        .name = "chat",
        .check = lm_openai_check_chat,
        .write = write_whole,
        .stream = stream,
        .fail = break_off,
        .error = lm_openai_error,
        .too_long = too_long,
        .limits = lm_openai_limits,
};
