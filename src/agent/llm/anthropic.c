/*
 * anthropic: the Messages API.
 *
 * A stream is message_start (prompt usage), content_block_delta with text_delta pieces,
 * message_delta (stop reason, usage so far), message_stop. ping and unknown events may come
 * anywhere; error replaces the rest. https://docs.anthropic.com/en/api/messages-streaming
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/jsonw.h"

#define MAX_TOKENS 8192 /* required by the service */

/* Either may be NULL. */
static void write_system(struct buf *out, const char *system, const char *prompt)
{
        struct buf text;

        buf_init(&text, 0);
        buf_addstr(&text, system ? system : "");
        if (prompt && *prompt)
                buf_addf(&text, "%s%s", text.len ? "\n\n" : "", prompt);
        if (text.len)
                jsonw_strn(out, "system", text.data, text.len);
        buf_release(&text);
}

static void write_body(const struct llm *m, const struct turn_run *run, struct buf *out)
{
        char *session = agent_session(m->agent, run);

        jsonw_open(out, '{');
        jsonw_str(out, "model", m->model);
        jsonw_int(out, "max_tokens", m->conf->max_tokens ? m->conf->max_tokens : MAX_TOKENS);
        write_system(out, m->conf->system, run->prompt);
        jsonw_open_member(out, "messages", '[');
        llm_prompt_write(out, run);
        jsonw_close(out, ']');
        jsonw_open_member(out, "metadata", '{');
        jsonw_str(out, "user_id", session);
        jsonw_close(out, '}');
        if (m->conf->temperature >= 0)
                jsonw_real(out, "temperature", m->conf->temperature);
        jsonw_bool(out, "stream", m->conf->stream);
        jsonw_close(out, '}');
        free(session);
}

static void read_reason(struct llm_reader *r, const json_t *object)
{
        const char *reason = json_str(object, "stop_reason", NULL);

        if (!reason)
                return;
        if (strcmp(reason, "max_tokens") == 0 ||
            strcmp(reason, "model_context_window_exceeded") == 0)
                r->stop = LLM_LENGTH;
        else if (strcmp(reason, "refusal") == 0)
                r->stop = LLM_FILTERED;
        else
                r->stop = LLM_STOPPED;
}

static void read_error(struct llm_reader *r, const json_t *answer)
{
        const char *type = json_str(json_object_get(answer, "error"), "type", "");
        bool busy = strcmp(type, "overloaded_error") == 0 || strcmp(type, "rate_limit_error") == 0;
        char *text = json_text(answer);

        llm_reader_read_failure(&r->failure, busy ? ERR_LIMIT : ERR_NET, text, strlen(text));
        free(text);
}

static void on_event(struct llm_reader *r, const char *event, const char *data, size_t n)
{
        json_t *object = llm_reader_json(r, data, n);
        const char *type = json_str(object, "type", event);
        const json_t *delta = json_object_get(object, "delta");

        if (!object)
                return;
        if (strcmp(type, "content_block_delta") == 0) {
                if (strcmp(json_str(delta, "type", ""), "text_delta") == 0)
                        llm_reader_text(r, json_str(delta, "text", NULL));
        } else if (strcmp(type, "message_start") == 0) {
                usage_read(&r->usage, json_object_get(json_object_get(object, "message"), "usage"));
        } else if (strcmp(type, "message_delta") == 0) {
                usage_read(&r->usage, json_object_get(object, "usage"));
                read_reason(r, delta);
        } else if (strcmp(type, "message_stop") == 0) {
                r->ended = true;
        } else if (strcmp(type, "error") == 0) {
                read_error(r, object);
        }
        json_decref(object);
}

static void on_answer(struct llm_reader *r, const json_t *answer)
{
        const json_t *content = json_object_get(answer, "content");

        if (strcmp(json_str(answer, "type", ""), "error") == 0) {
                read_error(r, answer);
                return;
        }
        if (!json_is_array(content)) {
                llm_reader_fail(r, ERR_PROTOCOL, "the answer has no content");
                return;
        }
        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i);

                if (strcmp(json_str(block, "type", ""), "text") == 0)
                        llm_reader_text(r, json_str(block, "text", NULL));
        }
        usage_read(&r->usage, json_object_get(answer, "usage"));
        r->stop = LLM_STOPPED;
        read_reason(r, answer);
        r->ended = true;
}

const struct llm_wire anthropic_wire = {
        .name = "anthropic",
        .base = "https://api.anthropic.com",
        .path = "/v1/messages",
        .health = "/v1/models",
        .key_header = "x-api-key: ",
        .header = "anthropic-version: 2023-06-01",
        .body = write_body,
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
