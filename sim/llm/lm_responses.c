/*
 * OpenAI's Responses: how an answer is written. Requests are checked in lm_responses_check.c.
 */
#include "sim/llm/lm_responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_openai.h"

void lm_responses_item_id(const struct call *c, const char *prefix, size_t at, bool reasoned,
                          char out[LM_ITEM_ID_SIZE])
{
        bool reasoning = strcmp(prefix, "rs") == 0;

        if (reasoning)
                snprintf(out, LM_ITEM_ID_SIZE, "rs_%s", c->id);
        else
                snprintf(out, LM_ITEM_ID_SIZE, "%s_%s%c%02zu", prefix, c->id, reasoned ? 'r' : 'n',
                         at % 100);
}

bool lm_responses_needs(const char *id, char out[LM_ITEM_ID_SIZE])
{
        const char *token = strchr(id, '_');
        size_t n = token ? strlen(++token) : 0;

        if (n < 4 || n > 40 || token[n - 3] != 'r')
                return false;
        snprintf(out, LM_ITEM_ID_SIZE, "rs_%.*s", (int)(n - 3), token);
        return true;
}

/* ---- items ---- */

static bool reasoned(const struct call *c)
{
        const json_t *part;
        size_t i;

        json_array_foreach(c->answer.content, i, part) {
                if (lm_prompt_is(part, "type", "thinking") ||
                    lm_prompt_is(part, "type", "redacted"))
                        return true;
        }
        return false;
}

static bool includes_reasoning(const struct call *c)
{
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(c->body, "include"), i, name) {
                if (strcmp(json_string_value(name) ? json_string_value(name) : "",
                           "reasoning.encrypted_content") == 0)
                        return true;
        }
        return false;
}

/* Is it the first thought? All of them are one item. */
static bool is_first_thought(const struct call *c, size_t at)
{
        for (size_t i = 0; i < at; i++) {
                const json_t *part = json_array_get(c->answer.content, i);

                if (lm_prompt_is(part, "type", "thinking") ||
                    lm_prompt_is(part, "type", "redacted"))
                        return false;
        }
        return true;
}

static json_t *output_text(const char *text)
{
        return json_pack("{s:s,s:s,s:[],s:[]}", "type", "output_text", "text", text, "annotations",
                         "logprobs");
}

static bool wants_summary(const struct call *c)
{
        return json_is_string(json_object_get(json_object_get(c->body, "reasoning"), "summary"));
}

/* The item of a part, finished or as it begins. NULL: it has none. */
static json_t *item_of(const struct call *c, size_t at, bool done)
{
        const json_t *part = json_array_get(c->answer.content, at);
        bool last = at + 1 == json_array_size(c->answer.content);
        const char *status = !done                                               ? "in_progress"
                             : last && strcmp(c->answer.stop, "max_tokens") == 0 ? "incomplete"
                                                                                 : "completed";
        char id[LM_ITEM_ID_SIZE], other[LM_ITEM_ID_SIZE], sealed[LM_SIGNATURE_SIZE];
        json_t *item;

        if (lm_prompt_is(part, "type", "text")) {
                lm_responses_item_id(c, "msg", at, reasoned(c), id);
                item = json_pack("{s:s,s:s,s:s,s:s,s:[]}", "id", id, "type", "message", "role",
                                 "assistant", "status", status, "content");
                if (done)
                        json_array_append_new(json_object_get(item, "content"),
                                              output_text(json_str(part, "text", "")));
                return item;
        }
        if (lm_prompt_is(part, "type", "call")) {
                lm_responses_item_id(c, "fc", at, reasoned(c), id);
                snprintf(other, sizeof(other), "call_%.20s%02zu", c->id, at % 100);
                return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "id", id, "type", "function_call",
                                 "call_id", other, "name", json_str(part, "name", ""), "status",
                                 status, "arguments", done ? json_str(part, "arguments", "") : "");
        }
        if (lm_prompt_is(part, "type", "wait") || !is_first_thought(c, at))
                return NULL;
        lm_responses_item_id(c, "rs", at, true, id);
        item = json_pack("{s:s,s:s,s:[]}", "id", id, "type", "reasoning", "summary");
        if (done && wants_summary(c) && lm_prompt_is(part, "type", "thinking"))
                json_array_append_new(json_object_get(item, "summary"),
                                      json_pack("{s:s,s:s}", "type", "summary_text", "text",
                                                json_str(part, "text", "")));
        lm_sign(sealed, c->prompt.model->name, c->id, 0, 1, id);
        if (done && includes_reasoning(c))
                json_object_set_new(item, "encrypted_content", json_string(sealed));
        return item;
}

static json_t *all_items(const struct call *c)
{
        json_t *items = json_array(), *item;

        for (size_t i = 0; i < json_array_size(c->answer.content); i++) {
                item = item_of(c, i, true);
                if (item)
                        json_array_append_new(items, item);
        }
        if (strcmp(c->answer.stop, "refusal") == 0)
                json_array_append_new(items, json_pack("{s:s,s:s,s:s,s:s,s:[{s:s,s:s}]}", "id",
                                                       "msg_refusal", "type", "message", "role",
                                                       "assistant", "status", "completed",
                                                       "content", "type", "refusal", "refusal",
                                                       "I cannot help with that."));
        return items;
}

/* ---- the response ---- */

static json_t *usage(const struct call *c)
{
        const struct lm_answer *a = &c->answer;
        bool writes = strncmp(c->prompt.model->name, "gpt-5.6", 7) == 0;

        return json_pack("{s:I,s:{s:I,s:I},s:I,s:{s:I},s:I}", "input_tokens", (json_int_t)a->input,
                         "input_tokens_details", "cached_tokens", (json_int_t)a->cached.read,
                         "cache_write_tokens", (json_int_t)(writes ? a->cached.written_5m : 0),
                         "output_tokens", (json_int_t)a->output, "output_tokens_details",
                         "reasoning_tokens", (json_int_t)a->reasoning, "total_tokens",
                         (json_int_t)a->input + (json_int_t)a->output);
}

static void copy_member(json_t *to, const json_t *from, const char *key, json_t *fallback)
{
        json_t *value = json_object_get(from, key);

        if (value)
                json_object_set(to, key, value);
        else
                json_object_set(to, key, fallback);
        json_decref(fallback);
}

static json_t *response(const struct call *c, const char *status)
{
        bool done = strcmp(status, "in_progress") != 0;
        char id[48];
        json_t *all;

        snprintf(id, sizeof(id), "resp_%s", c->id);
        all = json_pack("{s:s,s:s,s:I,s:s,s:n,s:n,s:s,s:o,s:n,s:b}", "id", id, "object", "response",
                        "created_at", (json_int_t)c->created, "status", status, "error",
                        "incomplete_details", "model", c->prompt.model->name, "output",
                        done ? all_items(c) : json_array(), "usage", "background", 0);
        copy_member(all, c->body, "instructions", json_null());
        copy_member(all, c->body, "metadata", json_object());
        copy_member(all, c->body, "tools", json_array());
        copy_member(all, c->body, "tool_choice", json_string("auto"));
        copy_member(all, c->body, "parallel_tool_calls", json_true());
        copy_member(all, c->body, "max_output_tokens", json_null());
        copy_member(all, c->body, "prompt_cache_key", json_null());
        copy_member(all, c->body, "reasoning", json_pack("{s:n,s:n}", "effort", "summary"));
        copy_member(all, c->body, "store", json_true());
        copy_member(all, c->body, "temperature", json_real(1));
        copy_member(all, c->body, "top_p", json_real(1));
        json_object_set_new(all, "previous_response_id", json_null());
        json_object_set_new(all, "text", json_pack("{s:{s:s}}", "format", "type", "text"));
        json_object_set_new(all, "truncation", json_string("disabled"));
        if (done)
                json_object_set_new(all, "usage", usage(c));
        if (strcmp(status, "incomplete") == 0)
                json_object_set_new(all, "incomplete_details",
                                    json_pack("{s:s}", "reason", "max_output_tokens"));
        return all;
}

static const char *status_of(const struct call *c)
{
        return strcmp(c->answer.stop, "max_tokens") == 0 ? "incomplete" : "completed";
}

static void write_whole(struct call *c, struct buf *b)
{
        json_t *all = response(c, status_of(c));
        char *text = json_text(all);

        buf_addstr(b, text);
        free(text);
        json_decref(all);
}

/* ---- the stream ---- */

/* Takes over the members. */
static void event(struct lm_pieces *p, const char *type, json_t *members)
{
        json_t *all = json_pack("{s:s,s:I}", "type", type, "sequence_number", (json_int_t)p->count);

        json_object_update(all, members);
        json_decref(members);
        lm_pieces_event(p, type, all);
}

static void deltas(const struct call *c, struct lm_pieces *p, const char *type, const char *text,
                   const json_t *place)
{
        size_t n = strlen(text), step;

        for (; n > 0; text += step, n -= step) {
                json_t *members = json_copy((json_t *)place);

                step = lm_pieces_step(text, n, (size_t)c->answer.piece_bytes);
                json_object_set_new(members, "delta", json_stringn(text, step));
                event(p, type, members);
        }
}

static void stream_text(const struct call *c, struct lm_pieces *p, const char *text,
                        const json_t *at)
{
        json_t *place = json_copy((json_t *)at), *members;

        json_object_set_new(place, "content_index", json_integer(0));
        members = json_copy(place);
        json_object_set_new(members, "part", output_text(""));
        event(p, "response.content_part.added", members);
        json_object_set_new(place, "logprobs", json_array());
        deltas(c, p, "response.output_text.delta", text, place);
        members = json_copy(place);
        json_object_set_new(members, "text", json_string(text));
        event(p, "response.output_text.done", members);
        json_object_del(place, "logprobs");
        json_object_set_new(place, "part", output_text(text));
        event(p, "response.content_part.done", place);
}

static void stream_summary(const struct call *c, struct lm_pieces *p, const char *text,
                           const json_t *at)
{
        json_t *place = json_copy((json_t *)at), *members;

        json_object_set_new(place, "summary_index", json_integer(0));
        members = json_copy(place);
        json_object_set_new(members, "part",
                            json_pack("{s:s,s:s}", "type", "summary_text", "text", ""));
        event(p, "response.reasoning_summary_part.added", members);
        deltas(c, p, "response.reasoning_summary_text.delta", text, place);
        members = json_copy(place);
        json_object_set_new(members, "text", json_string(text));
        event(p, "response.reasoning_summary_text.done", members);
        json_object_set_new(place, "part",
                            json_pack("{s:s,s:s}", "type", "summary_text", "text", text));
        event(p, "response.reasoning_summary_part.done", place);
}

static void stream_arguments(const struct call *c, struct lm_pieces *p, const json_t *part,
                             const json_t *at)
{
        const char *text = json_str(part, "arguments", "");
        json_t *members = json_copy((json_t *)at);

        deltas(c, p, "response.function_call_arguments.delta", text, at);
        json_object_set_new(members, "arguments", json_string(text));
        json_object_set_new(members, "name", json_string(json_str(part, "name", "")));
        event(p, "response.function_call_arguments.done", members);
}

static void stream_item(const struct call *c, struct lm_pieces *p, size_t at, size_t index)
{
        const json_t *part = json_array_get(c->answer.content, at);
        json_t *item = item_of(c, at, false);
        json_t *place = json_pack("{s:s,s:I}", "item_id", json_str(item, "id", ""), "output_index",
                                  (json_int_t)index);

        event(p, "response.output_item.added",
              json_pack("{s:I,s:o}", "output_index", (json_int_t)index, "item", item));
        if (lm_prompt_is(part, "type", "text"))
                stream_text(c, p, json_str(part, "text", ""), place);
        else if (lm_prompt_is(part, "type", "thinking") && wants_summary(c))
                stream_summary(c, p, json_str(part, "text", ""), place);
        else if (lm_prompt_is(part, "type", "call"))
                stream_arguments(c, p, part, place);
        event(p, "response.output_item.done",
              json_pack("{s:I,s:o}", "output_index", (json_int_t)index, "item",
                        item_of(c, at, true)));
        json_decref(place);
}

static void stream(struct call *c, struct lm_pieces *p)
{
        bool whole = strcmp(status_of(c), "completed") == 0;
        size_t index = 0;

        event(p, "response.created", json_pack("{s:o}", "response", response(c, "in_progress")));
        event(p, "response.in_progress",
              json_pack("{s:o}", "response", response(c, "in_progress")));
        for (size_t i = 0; i < json_array_size(c->answer.content); i++) {
                const json_t *part = json_array_get(c->answer.content, i);
                json_t *item = item_of(c, i, false);

                if (lm_prompt_is(part, "type", "wait"))
                        p->next_wait_ms += json_int(part, "ms", 0);
                if (item)
                        stream_item(c, p, i, c->answer.same_index ? 0 : index++);
                json_decref(item);
        }
        if (!c->answer.no_end)
                event(p, whole ? "response.completed" : "response.incomplete",
                      json_pack("{s:o}", "response", response(c, status_of(c))));
}

static void break_off(struct call *c, struct lm_pieces *p)
{
        (void)c;
        event(p, "error",
              json_pack("{s:s,s:s,s:n}", "code", "server_error", "message",
                        "The server had an error while processing your request. Sorry about that!",
                        "param"));
}

static void too_long(struct call *c, int64_t window)
{
        (void)window;
        lm_call_refuse_at(c, "context_length_exceeded", "input", "too_long",
                          "Your input exceeds the context window of this model. Please adjust your "
                          "input and try again.");
}

const struct lm_wire lm_responses = {
        .name = "responses",
        .check = lm_responses_check,
        .write = write_whole,
        .stream = stream,
        .fail = break_off,
        .error = lm_openai_error,
        .too_long = too_long,
        .limits = lm_openai_limits,
};
