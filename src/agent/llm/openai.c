/*
 * openai: chat completions, as spoken by OpenAI and many other servers.
 *
 * A stream is chunks {"choices": [{"delta": {"content": ...}, "finish_reason": ...}]}, then (with
 * stream_options.include_usage) one with "usage" and no choices, then [DONE]. Servers differ in
 * what they send and take; chat_server.c knows them.
 * https://platform.openai.com/docs/api-reference/chat
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/chat_server.h"
#include "agent/llm/llm_transcript.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

/* ---- request ---- */

struct chat_writer {
        const struct llm *m;
        const struct llm_request *q;
        const struct chat_server *server;
        struct buf *out;
        struct buf parts;          /* of a person's message that is being put together */
        struct buf text;           /* the same as long as it is only text */
        bool has_files, is_marked; /* of that message */
        bool marks;                /* a router in front of Anthropic: its cache wants marks */
        size_t last_users[2];      /* messages that get one; SIZE_MAX: none */
};

static void add_text(struct chat_writer *w, const char *text)
{
        buf_addf(&w->text, "%s%s", w->text.len ? "\n\n" : "", text);
        jsonw_open(&w->parts, '{');
        jsonw_str(&w->parts, "type", "text");
        jsonw_str(&w->parts, "text", text);
        jsonw_close(&w->parts, '}');
}

static void add_file(struct chat_writer *w, const json_t *block)
{
        bool image = llm_type_is(block, "image");
        char *url;

        if (!(image ? w->q->limits.images : w->q->limits.documents)) {
                add_text(w, image ? LLM_UNSEEN_IMAGE : LLM_UNSEEN_DOCUMENT);
                return;
        }
        url = mem_printf("data:%s;base64,%s", json_str(block, "mimeType", ""),
                         json_str(block, "data", ""));
        w->has_files = true;
        jsonw_open(&w->parts, '{');
        jsonw_str(&w->parts, "type", image ? "image_url" : "file");
        jsonw_open_member(&w->parts, image ? "image_url" : "file", '{');
        if (!image)
                jsonw_str(&w->parts, "filename", json_str(block, "name", "document.pdf"));
        jsonw_str(&w->parts, image ? "url" : "file_data", url);
        jsonw_close(&w->parts, '}');
        jsonw_close(&w->parts, '}');
        free(url);
}

static void add_content(struct chat_writer *w, const json_t *content, bool files_only)
{
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                if (!llm_type_is(block, "text"))
                        add_file(w, block);
                else if (!files_only)
                        add_text(w, json_str(block, "text", ""));
        }
}

/* Neighbours are one message: templates of local models want the roles to alternate. */
static void flush_user(struct chat_writer *w)
{
        if (w->parts.len == 0)
                return;
        jsonw_open(w->out, '{');
        jsonw_str(w->out, "role", "user");
        if (w->is_marked) { /* inside the last part */
                buf_truncate(&w->parts, w->parts.len - 1);
                llm_write_mark(&w->parts);
                jsonw_close(&w->parts, '}');
        }
        if (w->has_files || w->is_marked) {
                buf_addstr(w->out, ",\"content\":[");
                buf_add(w->out, w->parts.data, w->parts.len);
                jsonw_close(w->out, ']');
        } else {
                jsonw_strn(w->out, "content", w->text.data, w->text.len);
        }
        jsonw_close(w->out, '}');
        buf_clear(&w->parts);
        buf_clear(&w->text);
        w->has_files = w->is_marked = false;
}

static void join_text(const json_t *content, struct buf *out)
{
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                if (llm_type_is(block, "text"))
                        buf_addf(out, "%s%s", out->len ? "\n\n" : "", json_str(block, "text", ""));
        }
}

/* Text only; images follow the last result. An error has no other sign. */
static void write_result(struct chat_writer *w, const json_t *message)
{
        struct buf text;

        buf_init(&text, 0);
        join_text(json_object_get(message, "content"), &text);
        if (text.len == 0)
                buf_addstr(&text, "(see the attached file)");
        jsonw_open(w->out, '{');
        jsonw_str(w->out, "role", "tool");
        jsonw_str(w->out, "tool_call_id", json_str(message, "toolCallId", ""));
        llm_write_output(w->out, "content", message, text.data);
        jsonw_close(w->out, '}');
        buf_release(&text);
}

static void write_results(struct chat_writer *w, size_t *at)
{
        size_t first = *at;
        const json_t *message;

        for (; llm_role_is(message = json_array_get(w->q->messages, *at), "toolResult"); (*at)++)
                write_result(w, message);
        for (size_t i = first; i < *at; i++)
                add_content(w, json_object_get(json_array_get(w->q->messages, i), "content"), true);
        (*at)--;
}

static void write_call(struct buf *out, const json_t *block)
{
        char *arguments = json_text(json_object_get(block, "arguments"));
        char name[LLM_NAME_MAX + 1];

        jsonw_open(out, '{');
        jsonw_str(out, "id", json_str(block, "id", ""));
        jsonw_str(out, "type", "function");
        jsonw_open_member(out, "function", '{');
        jsonw_str(out, "name", llm_wire_name(json_str(block, "name", ""), name));
        jsonw_str(out, "arguments", arguments);
        jsonw_close(out, '}');
        jsonw_close(out, '}');
        free(arguments);
}

static void write_calls(struct buf *out, const json_t *content)
{
        bool open = false;

        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                if (!llm_type_is(block, "toolCall"))
                        continue;
                if (!open)
                        jsonw_open_member(out, "tool_calls", '[');
                open = true;
                write_call(out, block);
        }
        if (open)
                jsonw_close(out, ']');
}

/* Where thinking comes and goes. */
static const char *const thinking_fields[] = { "reasoning_content", "reasoning", "reasoning_text" };

static const char *thinking_field(const char *signature)
{
        for (size_t i = 0; i < COUNT(thinking_fields); i++) {
                if (strcmp(signature, thinking_fields[i]) == 0)
                        return thinking_fields[i];
        }
        return NULL;
}

/* In the field it came in, or unchanged details; DeepSeek refuses messages without the field. */
static void write_thinking(struct chat_writer *w, const json_t *content)
{
        const char *field = NULL;
        json_t *details = NULL;
        struct buf text;

        buf_init(&text, 0);
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);
                const char *signature = json_str(block, "thinkingSignature", "");

                if (!llm_type_is(block, "thinking"))
                        continue;
                if (*signature == '[' && !details)
                        details = json_read(signature, strlen(signature), NULL);
                else if (thinking_field(signature))
                        field = thinking_field(signature);
                buf_addstr(&text, json_str(block, "thinking", ""));
        }
        if (details)
                llm_write_json(w->out, "reasoning_details", details);
        else if (field && text.len)
                jsonw_strn(w->out, field, text.data, text.len);
        else if (w->server->wants_thinking && w->q->q->thinking != THINKING_OFF)
                jsonw_str(w->out, "reasoning_content", "");
        json_decref(details);
        buf_release(&text);
}

static void write_assistant(struct chat_writer *w, const json_t *message)
{
        const json_t *content = json_object_get(message, "content");
        struct buf text;

        buf_init(&text, 0);
        join_text(content, &text);
        jsonw_open(w->out, '{');
        jsonw_str(w->out, "role", "assistant");
        jsonw_str(w->out, "content", text.len ? text.data : NULL);
        write_thinking(w, content);
        write_calls(w->out, content);
        jsonw_close(w->out, '}');
        buf_release(&text);
}

static void write_system(struct chat_writer *w)
{
        const char *system = w->q->q->system;

        if (!system || llm_is_blank(system))
                return;
        jsonw_open(w->out, '{');
        jsonw_str(w->out, "role",
                  w->server->developer && w->q->limits.thinking ? "developer" : "system");
        if (w->marks) {
                jsonw_open_member(w->out, "content", '[');
                jsonw_open(w->out, '{');
                jsonw_str(w->out, "type", "text");
                jsonw_str(w->out, "text", system);
                llm_write_mark(w->out);
                jsonw_close(w->out, '}');
                jsonw_close(w->out, ']');
        } else {
                jsonw_str(w->out, "content", system);
        }
        jsonw_close(w->out, '}');
}

/* The newest two messages of people: one to read the cache, one to write it. */
static void find_marks(struct chat_writer *w)
{
        w->marks = w->server->routes && !w->q->q->no_cache &&
                   strncmp(w->m->model, "anthropic/", strlen("anthropic/")) == 0;
        w->last_users[0] = w->last_users[1] = SIZE_MAX;
        for (size_t i = 0; w->marks && i < json_array_size(w->q->messages); i++) {
                if (!llm_role_is(json_array_get(w->q->messages, i), "user"))
                        continue;
                w->last_users[0] = w->last_users[1];
                w->last_users[1] = i;
        }
}

static void write_messages(struct chat_writer *w)
{
        find_marks(w);
        write_system(w);
        for (size_t i = 0; i < json_array_size(w->q->messages); i++) {
                const json_t *message = json_array_get(w->q->messages, i);

                if (llm_role_is(message, "user")) {
                        w->is_marked =
                                w->is_marked || i == w->last_users[0] || i == w->last_users[1];
                        add_content(w, json_object_get(message, "content"), false);
                        continue;
                }
                flush_user(w);
                if (llm_role_is(message, "assistant"))
                        write_assistant(w, message);
                else
                        write_results(w, &i);
        }
        flush_user(w);
}

/* Proxies in front of other services want a list if there were calls. */
static void write_tools(const struct llm_request *q, struct buf *out)
{
        char name[LLM_NAME_MAX + 1];

        if (q->tool_count == 0 && !llm_has_calls(q->messages))
                return;
        jsonw_open_member(out, "tools", '[');
        for (size_t i = 0; i < q->tool_count; i++) {
                const json_t *tool = q->tools[i];

                jsonw_open(out, '{');
                jsonw_str(out, "type", "function");
                jsonw_open_member(out, "function", '{');
                jsonw_str(out, "name", llm_wire_name(json_str(tool, "name", ""), name));
                jsonw_opt(out, "description", json_str(tool, "description", NULL));
                llm_write_schema(out, "parameters", json_object_get(tool, "parameters"));
                jsonw_close(out, '}');
                jsonw_close(out, '}');
        }
        jsonw_close(out, ']');
}

static void write_request(const struct llm *m, const struct llm_request *q, struct buf *out)
{
        const struct chat_server *server = chat_server_of(m);
        struct chat_writer w = { .m = m, .q = q, .server = server, .out = out };

        buf_init(&w.parts, 0);
        buf_init(&w.text, 0);
        jsonw_open(out, '{');
        jsonw_str(out, "model", m->model);
        jsonw_open_member(out, "messages", '[');
        write_messages(&w);
        jsonw_close(out, ']');
        write_tools(q, out);
        llm_write_cache_key(out, server->cache_key ? "prompt_cache_key" : "user", q->q->cache_key);
        if (q->q->max_tokens)
                jsonw_int(out, chat_server_max_tokens(m), q->q->max_tokens);
        if (m->conf->temperature >= 0)
                jsonw_real(out, "temperature", m->conf->temperature);
        chat_server_write_thinking(m, q, out);
        if (server->store)
                jsonw_bool(out, "store", false);
        jsonw_bool(out, "stream", q->stream);
        if (q->stream) {
                jsonw_open_member(out, "stream_options", '{');
                jsonw_bool(out, "include_usage", true);
                jsonw_close(out, '}');
        }
        jsonw_close(out, '}');
        buf_release(&w.parts);
        buf_release(&w.text);
}

/* ---- answer ---- */

/* Moonshot's streams have it in the choice. */
static void read_usage(struct llm_reader *r, const json_t *answer)
{
        const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);

        usage_read(&r->usage, json_object_get(choice, "usage"));
        usage_read(&r->usage, json_object_get(answer, "usage"));
}

/* Whatever the word: calls that are there are calls. */
static void read_reason(struct llm_reader *r, const json_t *choice)
{
        const char *reason = json_str(choice, "finish_reason", NULL);

        if (!reason || !*reason)
                return;
        snprintf(r->stop_word, sizeof(r->stop_word), "%s", reason);
        if (strcmp(reason, "length") == 0)
                r->stop = LLM_LENGTH;
        else if (strcmp(reason, "content_filter") == 0)
                r->stop = LLM_FILTERED;
        else if (strcmp(reason, "network_error") == 0)
                llm_reader_fail(r, ERR_NET, "the service lost the model: network_error");
        else
                r->stop = llm_reader_has_call(r) ? LLM_CALLS : LLM_STOPPED;
}

/*
 * The call that a piece belongs to. An index alone is not enough: some servers send several calls
 * with index 0, others begin at 1 or send none.
 */
static struct llm_block *find_call(struct llm_reader *r, const json_t *piece)
{
        const char *id = json_str(piece, "id", "");
        bool has_index = json_is_integer(json_object_get(piece, "index"));
        int64_t index = json_int(piece, "index", 0);

        for (size_t i = r->block_count; i > 0; i--) {
                struct llm_block *b = &r->blocks[i - 1];

                if (b->type != LLM_TOOL_CALL || (has_index && b->index != index))
                        continue;
                if (!*id || (has_index && !b->id) || (b->id && strcmp(b->id, id) == 0))
                        return b;
                if (has_index)
                        break; /* another id at this index: a new call */
        }
        return llm_block_open(r, LLM_TOOL_CALL, has_index ? index : -1);
}

static void read_calls(struct llm_reader *r, const json_t *calls)
{
        for (size_t i = 0; i < json_array_size(calls); i++) {
                const json_t *piece = json_array_get(calls, i);
                const json_t *function = json_object_get(piece, "function");
                json_t *arguments = json_object_get(function, "arguments");
                struct llm_block *b = find_call(r, piece);
                char *text;

                llm_block_call(r, b, json_str(piece, "id", NULL), json_str(function, "name", NULL));
                if (json_is_object(arguments)) {
                        text = json_text(arguments);
                        llm_block_add(r, b, text);
                        free(text);
                } else {
                        llm_block_add(r, b, json_string_value(arguments));
                }
        }
}

/* The first of the names that has something; some servers send two. */
static void read_thinking(struct llm_reader *r, const json_t *message)
{
        struct llm_block *b = r->block_count ? &r->blocks[r->block_count - 1] : NULL;

        for (size_t i = 0; i < COUNT(thinking_fields); i++) {
                const char *text = json_str(message, thinking_fields[i], "");

                if (!*text)
                        continue;
                if (!b || b->type != LLM_THINKING)
                        b = llm_block_open(r, LLM_THINKING, -1);
                if (b && b->signature.len == 0)
                        llm_block_sign(r, b, thinking_fields[i]);
                llm_block_add(r, b, text);
                return;
        }
}

static void read_delta(struct llm_reader *r, const json_t *delta)
{
        read_thinking(r, delta);
        chat_details_read(r, json_object_get(delta, "reasoning_details"));
        llm_reader_text(r, json_str(delta, "content", NULL));
        llm_reader_text(r, json_str(delta, "refusal", NULL)); /* replaces the content */
        read_calls(r, json_object_get(delta, "tool_calls"));
}

static bool read_error(struct llm_reader *r, const json_t *answer)
{
        const json_t *error = json_object_get(answer, "error");

        if (!error || json_is_null(error))
                return false;
        llm_reader_error(r, answer);
        return true;
}

static void read_id(struct llm_reader *r, const json_t *answer)
{
        if (!*r->run_id)
                snprintf(r->run_id, sizeof(r->run_id), "%s", json_str(answer, "id", ""));
}

static void on_event(struct llm_reader *r, const char *event, const char *data, size_t n)
{
        json_t *chunk;
        const json_t *choice;

        (void)event;
        if (n == strlen("[DONE]") && memcmp(data, "[DONE]", n) == 0) {
                r->ended = true;
                return;
        }
        chunk = llm_reader_json(r, data, n);
        if (chunk && !read_error(r, chunk)) {
                choice = json_array_get(json_object_get(chunk, "choices"), 0);
                read_id(r, chunk);
                read_usage(r, chunk);
                read_delta(r, json_object_get(choice, "delta"));
                read_reason(r, choice);
        }
        json_decref(chunk);
}

static void on_answer(struct llm_reader *r, const json_t *answer)
{
        const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);

        if (read_error(r, answer))
                return;
        if (!json_is_object(choice)) {
                llm_reader_fail(r, ERR_PROTOCOL, "the answer has no choices");
                return;
        }
        read_id(r, answer);
        read_usage(r, answer);
        read_delta(r, json_object_get(choice, "message"));
        r->stop = llm_reader_has_call(r) ? LLM_CALLS : LLM_STOPPED;
        read_reason(r, choice);
        r->ended = true;
}

const struct llm_wire openai_wire = {
        .name = "openai",
        .service = "openai",
        .api = "openai-completions",
        .base = "https://api.openai.com/v1",
        .path = "/chat/completions",
        .health = "/models",
        .key_header = "Authorization: Bearer ",
        .write = write_request,
        .event = on_event,
        .answer = on_answer,
        .cache_shares = { 0.5, 1, 1 },
};

static int openai_open(struct agent *a, struct error *err)
{
        const struct llm_conf *conf = a->conf;

        (void)err;
        return llm_open(a, &openai_wire, conf->model);
}

const struct agent_ops openai_agent = {
        .type = "openai",
        .help = "A model behind OpenAI's chat completions: OpenAI itself, or a server that speaks "
                "the same protocol.",
        .can = LLM_ABILITIES,
        .settings = llm_settings,
        .conf_size = sizeof(struct llm_conf),
        .check = llm_check_conf,
        .open = openai_open,
        .close = llm_close,
        .start = llm_start,
        .cancel = llm_cancel,
        .check_health = llm_check_health,
};
