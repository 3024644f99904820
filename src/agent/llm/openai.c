/*
 * openai: chat completions, as spoken by OpenAI and many local servers.
 *
 * A stream is chunks {"choices": [{"delta": {"content": ...}, "finish_reason": ...}]}, then (with
 * stream_options.include_usage) one with "usage" and no choices, then [DONE].
 * https://platform.openai.com/docs/api-reference/chat
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/jsonw.h"

static void write_system(struct buf *out, const char *text)
{
        if (!text || !*text)
                return;
        jsonw_open(out, '{');
        jsonw_str(out, "role", "system");
        jsonw_str(out, "content", text);
        jsonw_close(out, '}');
}

static void write_body(const struct llm *m, const struct turn_run *run, struct buf *out)
{
        char *session = agent_session(m->agent, run);
        /* newer OpenAI models refuse max_tokens; many servers know only that */
        const char *max_tokens =
                strcmp(m->base, openai_wire.base) == 0 ? "max_completion_tokens" : "max_tokens";

        jsonw_open(out, '{');
        jsonw_str(out, "model", m->model);
        jsonw_open_member(out, "messages", '[');
        write_system(out, m->conf->system);
        write_system(out, run->prompt);
        llm_prompt_write(out, run);
        jsonw_close(out, ']');
        jsonw_str(out, "user", session);
        if (m->conf->max_tokens)
                jsonw_int(out, max_tokens, m->conf->max_tokens);
        if (m->conf->temperature >= 0)
                jsonw_real(out, "temperature", m->conf->temperature);
        jsonw_bool(out, "stream", m->conf->stream);
        if (m->conf->stream) {
                jsonw_open_member(out, "stream_options", '{');
                jsonw_bool(out, "include_usage", true);
                jsonw_close(out, '}');
        }
        jsonw_close(out, '}');
        free(session);
}

/* Moonshot's streams have it in the choice. */
static void read_usage(struct llm_reader *r, const json_t *answer)
{
        const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);

        usage_read(&r->usage, json_object_get(choice, "usage"));
        usage_read(&r->usage, json_object_get(answer, "usage"));
}

static void read_reason(struct llm_reader *r, const json_t *choice)
{
        const char *reason = json_str(choice, "finish_reason", NULL);

        if (!reason)
                return;
        if (strcmp(reason, "length") == 0)
                r->stop = LLM_LENGTH;
        else if (strcmp(reason, "content_filter") == 0)
                r->stop = LLM_FILTERED;
        else
                r->stop = LLM_STOPPED;
}

/* A refusal replaces the content. */
static void read_message(struct llm_reader *r, const json_t *message)
{
        llm_reader_text(r, json_str(message, "content", NULL));
        llm_reader_text(r, json_str(message, "refusal", NULL));
}

static bool read_error(struct llm_reader *r, const json_t *answer)
{
        json_t *error = json_object_get(answer, "error");
        char *text;

        if (!error || json_is_null(error))
                return false;
        text = json_text(answer);
        llm_reader_read_failure(&r->failure, ERR_NET, text, strlen(text));
        free(text);
        return true;
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
                read_usage(r, chunk);
                read_message(r, json_object_get(choice, "delta"));
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
        read_usage(r, answer);
        read_message(r, json_object_get(choice, "message"));
        r->stop = LLM_STOPPED;
        read_reason(r, choice);
        r->ended = true;
}

const struct llm_wire openai_wire = {
        .name = "openai",
        .base = "https://api.openai.com/v1",
        .path = "/chat/completions",
        .health = "/models",
        .key_header = "Authorization: Bearer ",
        .body = write_body,
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
