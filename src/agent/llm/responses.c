/*
 * responses: OpenAI's Responses API, without state at the service.
 *
 * A conversation is a list of items; what the model wrote goes back as the items it came in, with
 * their ids. An item whose reasoning is missing is refused, and so is reasoning without the item
 * that followed it, so ids go back only together with the reasoning of their answer. A stream has
 * events per item (output_item.added, pieces, output_item.done with the authoritative item) and
 * ends with response.completed, .incomplete or .failed.
 * https://platform.openai.com/docs/api-reference/responses
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/chat_server.h"
#include "agent/llm/llm_transcript.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define MAX_TOKENS_MIN 16

/* ---- request ---- */

static void write_text(struct buf *out, const char *type, const char *text)
{
        jsonw_open(out, '{');
        jsonw_str(out, "type", type);
        jsonw_str(out, "text", text);
        jsonw_close(out, '}');
}

static void write_file(const struct llm_request *q, const json_t *block, struct buf *out)
{
        bool image = llm_type_is(block, "image");
        char *url;

        if (!(image ? q->limits.images : q->limits.documents)) {
                write_text(out, "input_text", image ? LLM_UNSEEN_IMAGE : LLM_UNSEEN_DOCUMENT);
                return;
        }
        url = mem_printf("data:%s;base64,%s", json_str(block, "mimeType", ""),
                         json_str(block, "data", ""));
        jsonw_open(out, '{');
        jsonw_str(out, "type", image ? "input_image" : "input_file");
        if (image)
                jsonw_str(out, "detail", "auto");
        else
                jsonw_str(out, "filename", json_str(block, "name", "document.pdf"));
        jsonw_str(out, image ? "image_url" : "file_data", url);
        jsonw_close(out, '}');
        free(url);
}

static void write_parts(const struct llm_request *q, const json_t *content, struct buf *out)
{
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                if (llm_type_is(block, "text"))
                        write_text(out, "input_text", json_str(block, "text", ""));
                else
                        write_file(q, block, out);
        }
}

static void write_user(const struct llm_request *q, const json_t *message, struct buf *out)
{
        jsonw_open(out, '{');
        jsonw_str(out, "role", "user");
        jsonw_open_member(out, "content", '[');
        write_parts(q, json_object_get(message, "content"), out);
        jsonw_close(out, ']');
        jsonw_close(out, '}');
}

/* A string, or parts if there are files. An error has no other sign than its text. */
static void write_result(const struct llm_request *q, const json_t *message, struct buf *out)
{
        const json_t *content = json_object_get(message, "content");
        bool has_files = false;
        struct buf text;

        buf_init(&text, 0);
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                has_files = has_files || !llm_type_is(block, "text");
                buf_addf(&text, "%s%s", text.len ? "\n\n" : "", json_str(block, "text", ""));
        }
        jsonw_open(out, '{');
        jsonw_str(out, "type", "function_call_output");
        jsonw_str(out, "call_id", json_str(message, "toolCallId", ""));
        if (has_files) {
                jsonw_open_member(out, "output", '[');
                write_parts(q, content, out);
                jsonw_close(out, ']');
        } else {
                llm_write_output(out, "output", message, text.data);
        }
        jsonw_close(out, '}');
        buf_release(&text);
}

/* The item as it came. False: no reasoning of this service. */
static bool write_reasoning_item(const json_t *block, struct buf *out)
{
        const char *text = json_str(block, "thinkingSignature", "");
        json_t *item = *text == '{' ? json_read(text, strlen(text), NULL) : NULL;
        bool found = llm_type_is(block, "thinking") && llm_type_is(item, "reasoning");

        if (found)
                llm_write_json(out, NULL, item);
        json_decref(item);
        return found;
}

static void write_own_text(const json_t *block, bool with_ids, size_t number, struct buf *out)
{
        const char *signature = json_str(block, "textSignature", "");
        json_t *known = with_ids ? json_read(signature, strlen(signature), NULL) : NULL;
        char made[40];

        snprintf(made, sizeof(made), "msg_%zu", number);
        jsonw_open(out, '{');
        jsonw_str(out, "type", "message");
        jsonw_str(out, "role", "assistant");
        jsonw_str(out, "id", json_str(known, "id", made));
        jsonw_str(out, "status", "completed");
        jsonw_opt(out, "phase", json_str(known, "phase", NULL));
        jsonw_open_member(out, "content", '[');
        jsonw_open(out, '{');
        jsonw_str(out, "type", "output_text");
        jsonw_str(out, "text", json_str(block, "text", ""));
        jsonw_open_member(out, "annotations", '[');
        jsonw_close(out, ']');
        jsonw_close(out, '}');
        jsonw_close(out, ']');
        jsonw_close(out, '}');
        json_decref(known);
}

static void write_call(const json_t *block, bool with_ids, struct buf *out)
{
        char *arguments = json_text(json_object_get(block, "arguments"));
        char name[LLM_NAME_MAX + 1];

        jsonw_open(out, '{');
        jsonw_str(out, "type", "function_call");
        if (with_ids)
                jsonw_opt(out, "id", json_str(block, "item", NULL));
        jsonw_str(out, "call_id", json_str(block, "id", ""));
        jsonw_str(out, "name", llm_wire_name(json_str(block, "name", ""), name));
        jsonw_str(out, "arguments", arguments);
        jsonw_close(out, '}');
        free(arguments);
}

static void write_assistant(const json_t *message, size_t number, struct buf *out)
{
        const json_t *content = json_object_get(message, "content");
        size_t n = json_array_size(content), last = 0;
        bool with_ids = false;

        for (size_t i = 0; i < n; i++) {
                const json_t *block = json_array_get(content, i);

                if (llm_type_is(block, "text") || llm_type_is(block, "toolCall"))
                        last = i;
        }
        for (size_t i = 0; i <= last; i++) {
                const json_t *block = json_array_get(content, i);

                if (llm_type_is(block, "text"))
                        write_own_text(block, with_ids, number * 1000 + i, out);
                else if (llm_type_is(block, "toolCall"))
                        write_call(block, with_ids, out);
                else if (write_reasoning_item(block, out))
                        with_ids = true; /* of what follows it */
        }
}

static void write_tools(const struct llm_request *q, struct buf *out)
{
        char name[LLM_NAME_MAX + 1];

        if (q->tool_count == 0)
                return;
        jsonw_open_member(out, "tools", '[');
        for (size_t i = 0; i < q->tool_count; i++) {
                const json_t *tool = q->tools[i];

                jsonw_open(out, '{');
                jsonw_str(out, "type", "function");
                jsonw_str(out, "name", llm_wire_name(json_str(tool, "name", ""), name));
                jsonw_opt(out, "description", json_str(tool, "description", NULL));
                llm_write_schema(out, "parameters", json_object_get(tool, "parameters"));
                jsonw_bool(out, "strict", false);
                jsonw_close(out, '}');
        }
        jsonw_close(out, ']');
}

static void write_reasoning(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        if (!q->limits.thinking)
                return;
        jsonw_open_member(out, "include", '[');
        jsonw_str(out, NULL, "reasoning.encrypted_content");
        jsonw_close(out, ']');
        if (q->q->thinking == THINKING_DEFAULT)
                return;
        jsonw_open_member(out, "reasoning", '{');
        jsonw_str(out, "effort", chat_server_effort(m->model, q->q->thinking));
        if (q->q->thinking != THINKING_OFF)
                jsonw_str(out, "summary", "auto");
        jsonw_close(out, '}');
}

static void write_request(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        const char *system = q->q->system;
        int64_t most = q->q->max_tokens;

        jsonw_open(out, '{');
        jsonw_str(out, "model", m->model);
        if (system && !llm_is_blank(system))
                jsonw_str(out, "instructions", system);
        jsonw_open_member(out, "input", '[');
        for (size_t i = 0; i < json_array_size(q->messages); i++) {
                const json_t *message = json_array_get(q->messages, i);
                const char *role = json_str(message, "role", "");

                if (strcmp(role, "assistant") == 0)
                        write_assistant(message, i, out);
                else if (strcmp(role, "toolResult") == 0)
                        write_result(q, message, out);
                else
                        write_user(q, message, out);
        }
        jsonw_close(out, ']');
        write_tools(q, out);
        write_reasoning(m, q, out);
        if (most > 0)
                jsonw_int(out, "max_output_tokens", most < MAX_TOKENS_MIN ? MAX_TOKENS_MIN : most);
        llm_write_cache_key(out, "prompt_cache_key", q->q->cache_key);
        if (m->conf->temperature >= 0)
                jsonw_real(out, "temperature", m->conf->temperature);
        jsonw_bool(out, "store", false);
        jsonw_bool(out, "stream", q->stream);
        jsonw_close(out, '}');
}

/* ---- answer ---- */

static bool type_of(const json_t *item, enum llm_block_type *out)
{
        if (llm_type_is(item, "message"))
                *out = LLM_TEXT;
        else if (llm_type_is(item, "reasoning"))
                *out = LLM_THINKING;
        else if (llm_type_is(item, "function_call"))
                *out = LLM_TOOL_CALL;
        else
                return false;
        return true;
}

/* The block of an output item, made if it is not there. */
static struct llm_block *block_at(struct llm_reader *r, int64_t index, enum llm_block_type type)
{
        struct llm_block *b = llm_block_find(r, index);

        if (!b)
                b = llm_block_open(r, type, index);
        return b && b->type == type ? b : NULL;
}

static void read_call(struct llm_reader *r, struct llm_block *b, const json_t *item)
{
        const char *call_id = json_str(item, "call_id", ""), *id = json_str(item, "id", "");
        char *both = mem_printf("%s%s%s", call_id, *id ? "|" : "", id);

        llm_block_call(r, b, *call_id ? both : NULL, json_str(item, "name", NULL));
        free(both);
}

/* What the pieces did not bring: gateways may send only whole items. */
static void complete(struct llm_reader *r, struct llm_block *b, const char *text)
{
        if (strncmp(text, b->text.data, b->text.len) == 0)
                llm_block_add(r, b, text + b->text.len);
}

static void join(const json_t *parts, struct buf *out, const char *between)
{
        for (size_t i = 0; i < json_array_size(parts); i++) {
                const json_t *part = json_array_get(parts, i);

                buf_addf(out, "%s%s", out->len ? between : "",
                         json_str(part, "text", json_str(part, "refusal", "")));
        }
}

static void sign(struct llm_reader *r, struct llm_block *b, const json_t *value)
{
        char *text = json_text(value);

        llm_block_sign(r, b, text);
        free(text);
}

static void read_message(struct llm_reader *r, struct llm_block *b, const json_t *item)
{
        json_t *signature = json_pack("{si, ss}", "v", 1, "id", json_str(item, "id", ""));
        const char *phase = json_str(item, "phase", NULL);
        struct buf text;

        buf_init(&text, 0);
        join(json_object_get(item, "content"), &text, "");
        complete(r, b, text.data);
        if (phase)
                json_object_set_new(signature, "phase", json_string(phase));
        sign(r, b, signature);
        json_decref(signature);
        buf_release(&text);
}

/* A whole item; the authority on what it holds. */
static void read_item(struct llm_reader *r, const json_t *item, int64_t index)
{
        const char *arguments = json_str(item, "arguments", NULL);
        enum llm_block_type type;
        struct llm_block *b;
        struct buf text;

        if (!type_of(item, &type))
                return;
        b = block_at(r, index, type);
        if (!b)
                return;
        if (type == LLM_TEXT) {
                read_message(r, b, item);
        } else if (type == LLM_TOOL_CALL) {
                read_call(r, b, item);
                if (arguments) {
                        buf_clear(&b->text);
                        llm_block_add(r, b, arguments);
                }
        } else {
                buf_init(&text, 0);
                join(json_object_get(item, "summary"), &text, "\n\n");
                if (text.len == 0)
                        join(json_object_get(item, "content"), &text, "");
                complete(r, b, text.data);
                sign(r, b, item);
                buf_release(&text);
        }
}

static void read_failure(struct llm_reader *r, const json_t *error)
{
        json_t *answer = json_pack("{sO}", "error", error ? error : json_null());

        llm_reader_error(r, answer);
        json_decref(answer);
}

/* The end of an answer. */
static void read_response(struct llm_reader *r, const json_t *response)
{
        const json_t *output = json_object_get(response, "output");
        const char *status = json_str(response, "status", "completed");
        const char *reason =
                json_str(json_object_get(response, "incomplete_details"), "reason", "");

        snprintf(r->run_id, sizeof(r->run_id), "%s", json_str(response, "id", ""));
        usage_read(&r->usage, json_object_get(response, "usage"));
        if (strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0) {
                read_failure(r, json_object_get(response, "error"));
                return;
        }
        for (size_t i = 0; i < json_array_size(output); i++)
                read_item(r, json_array_get(output, i), (int64_t)i);
        r->stop = LLM_STOPPED;
        if (strcmp(status, "incomplete") == 0)
                r->stop = strcmp(reason, "content_filter") == 0 ? LLM_FILTERED : LLM_LENGTH;
        else if (llm_reader_has_call(r))
                r->stop = LLM_CALLS;
        snprintf(r->stop_word, sizeof(r->stop_word), "%s", *reason ? reason : status);
        r->ended = true;
}

/* A piece of an item. */
static void read_piece(struct llm_reader *r, const char *type, const json_t *event)
{
        int64_t index = json_int(event, "output_index", 0);
        const char *delta = json_str(event, "delta", NULL);
        struct llm_block *b;

        if (strcmp(type, "output_text.delta") == 0 || strcmp(type, "refusal.delta") == 0) {
                llm_block_add(r, block_at(r, index, LLM_TEXT), delta);
        } else if (strcmp(type, "reasoning_summary_text.delta") == 0 ||
                   strcmp(type, "reasoning_text.delta") == 0) {
                llm_block_add(r, block_at(r, index, LLM_THINKING), delta);
        } else if (strcmp(type, "reasoning_summary_part.added") == 0) {
                b = block_at(r, index, LLM_THINKING);
                if (b && b->text.len)
                        llm_block_add(r, b, "\n\n");
        } else if (strcmp(type, "function_call_arguments.delta") == 0) {
                llm_block_add(r, block_at(r, index, LLM_TOOL_CALL), delta);
        } else if (strcmp(type, "function_call_arguments.done") == 0) {
                b = block_at(r, index, LLM_TOOL_CALL);
                if (b && json_str(event, "arguments", NULL)) {
                        buf_clear(&b->text);
                        llm_block_add(r, b, json_str(event, "arguments", NULL));
                }
        }
}

static void read_added(struct llm_reader *r, const json_t *item, int64_t index)
{
        enum llm_block_type type;
        struct llm_block *b;

        if (!type_of(item, &type))
                return;
        b = block_at(r, index, type);
        if (b && type == LLM_TOOL_CALL)
                read_call(r, b, item);
}

static void on_event(struct llm_reader *r, const char *event, const char *data, size_t n)
{
        static const char prefix[] = "response.";
        json_t *object;
        const json_t *item, *response, *error;
        const char *type;
        int64_t index;

        if (n == strlen("[DONE]") && memcmp(data, "[DONE]", n) == 0)
                return;
        object = llm_reader_json(r, data, n);
        if (!object)
                return;
        type = json_str(object, "type", event);
        item = json_object_get(object, "item");
        response = json_object_get(object, "response");
        error = json_object_get(object, "error");
        index = json_int(object, "output_index", 0);
        if (strcmp(type, "error") == 0 || (json_is_object(error) && !response)) {
                read_failure(r, json_is_object(error) ? error : object);
        } else if (strncmp(type, prefix, strlen(prefix)) == 0) {
                type += strlen(prefix);
                if (strcmp(type, "created") == 0)
                        snprintf(r->run_id, sizeof(r->run_id), "%s", json_str(response, "id", ""));
                else if (strcmp(type, "output_item.added") == 0)
                        read_added(r, item, index);
                else if (strcmp(type, "output_item.done") == 0)
                        read_item(r, item, index);
                else if (strcmp(type, "completed") == 0 || strcmp(type, "incomplete") == 0 ||
                         strcmp(type, "failed") == 0)
                        read_response(r, response);
                else
                        read_piece(r, type, object);
        }
        json_decref(object);
}

static void on_answer(struct llm_reader *r, const json_t *answer)
{
        const json_t *error = json_object_get(answer, "error");

        if (json_is_object(error))
                read_failure(r, error);
        else if (!json_is_array(json_object_get(answer, "output")))
                llm_reader_fail(r, ERR_PROTOCOL, "the answer has no output");
        else
                read_response(r, answer);
}

const struct llm_wire responses_wire = {
        .name = "responses",
        .service = "openai",
        .api = "openai-responses",
        .says_end = true,
        .base = "https://api.openai.com/v1",
        .path = "/responses",
        .health = "/models",
        .key_header = "Authorization: Bearer ",
        .write = write_request,
        .event = on_event,
        .answer = on_answer,
        .cache_shares = { 0.5, 1, 1 },
};
