/*
 * anthropic: the Messages API.
 *
 * A stream is message_start (prompt usage), per block content_block_start, content_block_delta and
 * content_block_stop, then message_delta (stop reason, usage so far) and message_stop, the only
 * proof that the message is complete. ping and unknown events may come anywhere; error replaces the
 * rest. https://docs.anthropic.com/en/api/messages-streaming
 *
 * The service caches prefixes of tools, system and messages up to the marks ("cache_control") of
 * earlier requests. A request has at most four:
 *
 *     the system prompt (tools come before it), or the last tool if there is none
 *     what the last turn ended with
 *     the newest message of the previous request: always found, however much came since then
 *     the newest message, for the next request
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm_transcript.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define MAX_TOKENS     8192 /* required by the service */
#define THINKING_LEAST 1024
#define MESSAGE_MARKS  3
#define NO_MARK        SIZE_MAX

/* ---- request ---- */

/* Which messages get a mark, see above. */
static void find_marks(const json_t *messages, size_t marks[MESSAGE_MARKS])
{
        size_t n = json_array_size(messages);
        size_t asked = NO_MARK, turn = NO_MARK;

        for (size_t i = n; i > 0 && (asked == NO_MARK || turn == NO_MARK); i--) {
                const json_t *m = json_array_get(messages, i - 1);

                if (asked == NO_MARK && llm_role_is(m, "assistant") && i > 1)
                        asked = i - 2;
                /* a person's message after the model's begins a turn */
                if (turn == NO_MARK && llm_role_is(m, "user") && i > 1 &&
                    !llm_role_is(json_array_get(messages, i - 2), "user"))
                        turn = i - 2;
        }
        marks[0] = n ? n - 1 : NO_MARK;
        marks[1] = asked;
        marks[2] = turn;
}

static bool is_marked(const size_t marks[MESSAGE_MARKS], size_t at)
{
        return marks[0] == at || marks[1] == at || marks[2] == at;
}

/* An image or a PDF, or a note for a model that cannot see it. */
static void write_file(const struct llm_request *q, const json_t *block, bool mark, struct buf *out)
{
        bool image = llm_type_is(block, "image");
        bool seen = image ? q->limits.images : q->limits.documents;

        jsonw_open(out, '{');
        jsonw_str(out, "type", seen ? json_str(block, "type", "") : "text");
        if (seen) {
                jsonw_open_member(out, "source", '{');
                jsonw_str(out, "type", "base64");
                jsonw_str(out, "media_type", json_str(block, "mimeType", ""));
                jsonw_str(out, "data", json_str(block, "data", ""));
                jsonw_close(out, '}');
                if (!image)
                        jsonw_opt(out, "title", json_str(block, "name", NULL));
        } else {
                jsonw_str(out, "text", image ? LLM_UNSEEN_IMAGE : LLM_UNSEEN_DOCUMENT);
        }
        if (mark)
                llm_write_mark(out);
        jsonw_close(out, '}');
}

static void write_text(const char *text, bool mark, struct buf *out)
{
        jsonw_open(out, '{');
        jsonw_str(out, "type", "text");
        jsonw_str(out, "text", text);
        if (mark)
                llm_write_mark(out);
        jsonw_close(out, '}');
}

/* Text, images and documents; the last one may be marked. */
static void write_parts(const struct llm_request *q, const json_t *content, bool mark,
                        struct buf *out)
{
        size_t n = json_array_size(content);

        for (size_t i = 0; i < n; i++) {
                const json_t *block = json_array_get(content, i);
                bool last = mark && i + 1 == n;

                if (llm_type_is(block, "text"))
                        write_text(json_str(block, "text", ""), last, out);
                else
                        write_file(q, block, last, out);
        }
}

static void write_result(const struct llm_request *q, const json_t *message, bool mark,
                         struct buf *out)
{
        jsonw_open(out, '{');
        jsonw_str(out, "type", "tool_result");
        jsonw_str(out, "tool_use_id", json_str(message, "toolCallId", ""));
        jsonw_open_member(out, "content", '[');
        write_parts(q, json_object_get(message, "content"), false, out);
        jsonw_close(out, ']');
        if (json_flag(message, "isError", false))
                jsonw_bool(out, "is_error", true);
        if (mark)
                llm_write_mark(out);
        jsonw_close(out, '}');
}

static void write_thinking(const struct llm *m, const json_t *block, struct buf *out)
{
        const char *signature = json_str(block, "thinkingSignature", NULL);

        /* cut off before its signature; relatives of the service have none */
        if (!signature && strcmp(m->base, anthropic_wire.base) == 0)
                return;
        jsonw_open(out, '{');
        if (json_flag(block, "redacted", false)) {
                jsonw_str(out, "type", "redacted_thinking");
                jsonw_str(out, "data", signature ? signature : "");
        } else {
                jsonw_str(out, "type", "thinking");
                jsonw_str(out, "thinking", json_str(block, "thinking", ""));
                jsonw_str(out, "signature", signature ? signature : "");
        }
        jsonw_close(out, '}');
}

static void write_call(const json_t *block, bool mark, struct buf *out)
{
        char name[LLM_NAME_MAX + 1];

        jsonw_open(out, '{');
        jsonw_str(out, "type", "tool_use");
        jsonw_str(out, "id", json_str(block, "id", ""));
        jsonw_str(out, "name", llm_wire_name(json_str(block, "name", ""), name));
        llm_write_json(out, "input", json_object_get(block, "arguments"));
        if (mark)
                llm_write_mark(out);
        jsonw_close(out, '}');
}

static void write_assistant(const struct llm *m, const json_t *content, bool mark, struct buf *out)
{
        size_t n = json_array_size(content);

        for (size_t i = 0; i < n; i++) {
                const json_t *block = json_array_get(content, i);
                const char *type = json_str(block, "type", "");
                bool last = mark && i + 1 == n; /* thinking cannot be marked */

                if (strcmp(type, "text") == 0)
                        write_text(json_str(block, "text", ""), last, out);
                else if (strcmp(type, "toolCall") == 0)
                        write_call(block, last, out);
                else if (strcmp(type, "thinking") == 0)
                        write_thinking(m, block, out);
                else
                        llm_write_json(out, NULL, json_object_get(block, "raw"));
        }
}

/* A lone text is written as a string, unless marks come and go. */
static bool is_plain(const json_t *messages, size_t at)
{
        const json_t *m = json_array_get(messages, at), *next = json_array_get(messages, at + 1);
        const json_t *content = json_object_get(m, "content");
        bool user = llm_role_is(m, "user");

        return (user || llm_role_is(m, "assistant")) && json_array_size(content) == 1 &&
               llm_type_is(json_array_get(content, 0), "text") &&
               (!next || llm_role_is(next, "assistant") == user);
}

/* Results and messages of people make up one message, the results first. */
static void write_messages(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        size_t marks[MESSAGE_MARKS] = { NO_MARK, NO_MARK, NO_MARK };
        size_t n = json_array_size(q->messages);
        bool open = false, was_assistant = false;

        if (!q->q->no_cache)
                find_marks(q->messages, marks);
        for (size_t i = 0; i < n; i++) {
                const json_t *message = json_array_get(q->messages, i);
                const json_t *content = json_object_get(message, "content");
                bool assistant = llm_role_is(message, "assistant"), mark = is_marked(marks, i);

                if (open && assistant != was_assistant) {
                        buf_addstr(out, "]}");
                        open = false;
                }
                if (!open) {
                        jsonw_open(out, '{');
                        jsonw_str(out, "role", assistant ? "assistant" : "user");
                        if (q->q->no_cache && is_plain(q->messages, i)) {
                                jsonw_str(out, "content",
                                          json_str(json_array_get(content, 0), "text", ""));
                                jsonw_close(out, '}');
                                continue;
                        }
                        jsonw_open_member(out, "content", '[');
                        open = true;
                        was_assistant = assistant;
                }
                if (assistant)
                        write_assistant(m, content, mark, out);
                else if (llm_role_is(message, "toolResult"))
                        write_result(q, message, mark, out);
                else
                        write_parts(q, content, mark, out);
        }
        if (open)
                buf_addstr(out, "]}");
}

static void write_tool(const char *name, const char *description, const json_t *schema, bool mark,
                       struct buf *out)
{
        char plain[LLM_NAME_MAX + 1];

        jsonw_open(out, '{');
        jsonw_str(out, "name", llm_wire_name(name, plain));
        jsonw_opt(out, "description", description);
        llm_write_schema(out, "input_schema", schema);
        if (mark)
                llm_write_mark(out);
        jsonw_close(out, '}');
}

/* The service wants tools declared that were called before, even if there are none now. */
static void write_former_tools(const struct llm_request *q, struct buf *out)
{
        json_t *names = json_object();
        const char *name;
        json_t *value;

        for (size_t i = 0; i < json_array_size(q->messages); i++) {
                const json_t *m = json_array_get(q->messages, i);

                if (llm_role_is(m, "toolResult"))
                        json_object_set_new(names, json_str(m, "toolName", ""), json_true());
        }
        jsonw_open_member(out, "tools", '[');
        json_object_foreach(names, name, value) {
                write_tool(name, "No longer available.", NULL, false, out);
        }
        jsonw_close(out, ']');
        jsonw_open_member(out, "tool_choice", '{');
        jsonw_str(out, "type", "none");
        jsonw_close(out, '}');
        json_decref(names);
}

static void write_tools(const struct llm_request *q, bool mark, struct buf *out)
{
        if (q->tool_count == 0 && llm_has_calls(q->messages))
                write_former_tools(q, out);
        if (q->tool_count == 0)
                return;
        jsonw_open_member(out, "tools", '[');
        for (size_t i = 0; i < q->tool_count; i++) {
                const json_t *tool = q->tools[i];

                write_tool(json_str(tool, "name", ""), json_str(tool, "description", NULL),
                           json_object_get(tool, "parameters"), mark && i + 1 == q->tool_count,
                           out);
        }
        jsonw_close(out, ']');
}

static void write_system(const char *system, bool mark, struct buf *out)
{
        if (!mark) {
                jsonw_str(out, "system", system);
                return;
        }
        jsonw_open_member(out, "system", '[');
        write_text(system, true, out);
        jsonw_close(out, ']');
}

/*
 * May the request ask for thinking? Not in the middle of a tool loop that another model, or this
 * one without thinking, began: the service wants to see the thoughts before the calls.
 */
static bool can_think(const struct llm_request *q)
{
        size_t n = json_array_size(q->messages);
        const json_t *m = json_array_get(q->messages, n ? n - 1 : 0);

        if (q->limits.adaptive || !llm_role_is(m, "toolResult"))
                return true;
        while (n > 0 && !llm_role_is(m = json_array_get(q->messages, n - 1), "assistant"))
                n--;
        return llm_type_is(json_array_get(json_object_get(m, "content"), 0), "thinking");
}

static void write_effort(enum model_thinking thinking, const struct llm_request *q,
                         int64_t max_tokens, struct buf *out)
{
        static const char *const efforts[] = { NULL, NULL, "low", "medium", "high" };
        static const int64_t budgets[] = { 0, 0, 2048, 8192, 16384 };
        int64_t budget = budgets[thinking];

        if (thinking == THINKING_DEFAULT || !q->limits.thinking ||
            (thinking != THINKING_OFF && !can_think(q)))
                return;
        /* half of the answer is kept for what is said */
        if (budget > max_tokens / 2)
                budget = max_tokens / 2;
        jsonw_open_member(out, "thinking", '{');
        if (thinking == THINKING_OFF || (!q->limits.adaptive && budget < THINKING_LEAST)) {
                jsonw_str(out, "type", "disabled");
        } else if (q->limits.adaptive) {
                jsonw_str(out, "type", "adaptive");
        } else {
                jsonw_str(out, "type", "enabled");
                jsonw_int(out, "budget_tokens", budget);
        }
        jsonw_close(out, '}');
        if (thinking != THINKING_OFF && q->limits.adaptive) {
                jsonw_open_member(out, "output_config", '{');
                jsonw_str(out, "effort", efforts[thinking]);
                jsonw_close(out, '}');
        }
}

static void write_request(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        bool has_system = q->q->system && !llm_is_blank(q->q->system);
        int64_t max_tokens = q->q->max_tokens ? q->q->max_tokens : q->limits.output;

        if (max_tokens <= 0)
                max_tokens = MAX_TOKENS;
        jsonw_open(out, '{');
        jsonw_str(out, "model", m->model);
        jsonw_int(out, "max_tokens", max_tokens);
        write_tools(q, !q->q->no_cache && !has_system, out);
        if (has_system)
                write_system(q->q->system, !q->q->no_cache, out);
        jsonw_open_member(out, "messages", '[');
        write_messages(m, q, out);
        jsonw_close(out, ']');
        if (q->q->cache_key) {
                jsonw_open_member(out, "metadata", '{');
                jsonw_str(out, "user_id", q->q->cache_key);
                jsonw_close(out, '}');
        }
        write_effort(q->q->thinking, q, max_tokens, out);
        if (m->conf->temperature >= 0)
                jsonw_real(out, "temperature", m->conf->temperature);
        jsonw_bool(out, "stream", q->stream);
        jsonw_close(out, '}');
}

/* ---- answer ---- */

static void read_reason(struct llm_reader *r, const json_t *object)
{
        static const struct {
                const char *word;
                enum llm_stop stop;
        } reasons[] = {
                { "tool_use", LLM_CALLS },
                { "max_tokens", LLM_LENGTH },
                { "pause_turn", LLM_PAUSED },
                { "refusal", LLM_FILTERED },
                { "model_context_window_exceeded", LLM_FULL },
        };
        const char *reason = json_str(object, "stop_reason", NULL);
        const json_t *details = json_object_get(object, "stop_details");

        if (!reason)
                return;
        r->stop = LLM_STOPPED;
        for (size_t i = 0; i < COUNT(reasons); i++) {
                if (strcmp(reason, reasons[i].word) == 0)
                        r->stop = reasons[i].stop;
        }
        snprintf(r->stop_word, sizeof(r->stop_word), "%s", reason);
        snprintf(r->detail, sizeof(r->detail), "%s%s%s", json_str(details, "category", ""),
                 json_str(details, "explanation", NULL) ? ": " : "",
                 json_str(details, "explanation", ""));
}

static enum llm_block_type type_of(const char *type)
{
        static const struct {
                const char *name;
                enum llm_block_type type;
        } types[] = {
                { "text", LLM_TEXT },
                { "text_delta", LLM_TEXT },
                { "thinking", LLM_THINKING },
                { "thinking_delta", LLM_THINKING },
                { "tool_use", LLM_TOOL_CALL },
                { "signature_delta", LLM_THINKING },
                { "redacted_thinking", LLM_REDACTED },
                { "input_json_delta", LLM_TOOL_CALL },
        };

        for (size_t i = 0; i < COUNT(types); i++) {
                if (strcmp(type, types[i].name) == 0)
                        return types[i].type;
        }
        return LLM_OTHER;
}

/* A block, whole or at its beginning. */
static void read_block(struct llm_reader *r, json_t *block, int64_t index, bool whole)
{
        enum llm_block_type type = type_of(json_str(block, "type", ""));
        json_t *input = json_object_get(block, "input");
        struct llm_block *b = llm_block_open(r, type, index);
        char *arguments;

        if (!b)
                return;
        if (type == LLM_TEXT) {
                llm_block_add(r, b, json_str(block, "text", NULL));
        } else if (type == LLM_THINKING) {
                llm_block_add(r, b, json_str(block, "thinking", NULL));
                if (*json_str(block, "signature", ""))
                        llm_block_sign(r, b, json_str(block, "signature", NULL));
        } else if (type == LLM_REDACTED) {
                llm_block_sign(r, b, json_str(block, "data", NULL));
        } else if (type == LLM_TOOL_CALL) {
                llm_block_call(r, b, json_str(block, "id", NULL), json_str(block, "name", NULL));
                if (whole || json_object_size(input)) {
                        arguments = json_text(input);
                        llm_block_add(r, b, arguments);
                        free(arguments);
                }
        } else {
                b->raw = json_incref(block);
        }
}

static void read_delta(struct llm_reader *r, const json_t *delta, int64_t index)
{
        const char *type = json_str(delta, "type", "");
        enum llm_block_type kind = type_of(type);
        struct llm_block *b = llm_block_find(r, index);

        if (kind == LLM_OTHER || (b && b->type != kind))
                return;
        if (!b)
                b = llm_block_open(r, kind, index);
        if (strcmp(type, "text_delta") == 0)
                llm_block_add(r, b, json_str(delta, "text", NULL));
        else if (strcmp(type, "thinking_delta") == 0)
                llm_block_add(r, b, json_str(delta, "thinking", NULL));
        else if (strcmp(type, "signature_delta") == 0)
                llm_block_sign(r, b, json_str(delta, "signature", NULL));
        else if (strcmp(type, "input_json_delta") == 0)
                llm_block_add(r, b, json_str(delta, "partial_json", NULL));
}

static void read_start(struct llm_reader *r, const json_t *message)
{
        snprintf(r->run_id, sizeof(r->run_id), "%s", json_str(message, "id", ""));
        usage_read(&r->usage, json_object_get(message, "usage"));
}

static void on_event(struct llm_reader *r, const char *event, const char *data, size_t n)
{
        json_t *object = llm_reader_json(r, data, n);
        const char *type = json_str(object, "type", event);
        const json_t *delta = json_object_get(object, "delta");
        int64_t index = json_int(object, "index", 0);

        if (!object)
                return;
        if (strcmp(type, "content_block_delta") == 0) {
                read_delta(r, delta, index);
        } else if (strcmp(type, "content_block_start") == 0) {
                read_block(r, json_object_get(object, "content_block"), index, false);
        } else if (strcmp(type, "message_start") == 0) {
                read_start(r, json_object_get(object, "message"));
        } else if (strcmp(type, "message_delta") == 0) {
                usage_read(&r->usage, json_object_get(object, "usage"));
                read_reason(r, delta);
        } else if (strcmp(type, "message_stop") == 0) {
                r->ended = true;
        } else if (strcmp(type, "error") == 0) {
                llm_reader_error(r, object);
        }
        json_decref(object);
}

static void on_answer(struct llm_reader *r, const json_t *answer)
{
        const json_t *content = json_object_get(answer, "content");

        if (llm_type_is(answer, "error")) {
                llm_reader_error(r, answer);
                return;
        }
        if (!json_is_array(content)) {
                llm_reader_fail(r, ERR_PROTOCOL, "the answer has no content");
                return;
        }
        for (size_t i = 0; i < json_array_size(content); i++)
                read_block(r, json_array_get(content, i), (int64_t)i, true);
        read_start(r, answer);
        r->stop = LLM_STOPPED;
        read_reason(r, answer);
        r->ended = true;
}

const struct llm_wire anthropic_wire = {
        .name = "anthropic",
        .service = "anthropic",
        .api = "anthropic-messages",
        .says_end = true,
        .base = "https://api.anthropic.com",
        .path = "/v1/messages",
        .health = "/v1/models",
        .key_header = "x-api-key: ",
        .version = "anthropic-version",
        .version_used = "2023-06-01",
        .write = write_request,
        .event = on_event,
        .answer = on_answer,
        .cache_shares = { 0.1, 1.25, 2 },
};

static int anthropic_open(struct agent *a, struct error *err)
{
        const struct llm_conf *conf = a->conf;

        (void)err;
        return llm_open(a, &anthropic_wire, conf->model);
}

const struct agent_ops anthropic_agent = {
        .type = "anthropic",
        .help = "A model behind Anthropic's Messages API.",
        .can = LLM_ABILITIES,
        .settings = llm_settings,
        .conf_size = sizeof(struct llm_conf),
        .check = llm_check_conf,
        .open = anthropic_open,
        .close = llm_close,
        .start = llm_start,
        .cancel = llm_cancel,
        .check_health = llm_check_health,
};
