#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct llm_reader *r = arg;

        (void)id;
        if (r->failure.kind == ERR_NONE && !r->ended && !r->too_large)
                r->wire->event(r, event, data, n);
}

void llm_reader_init(struct llm_reader *r, const struct llm_wire *wire,
                     void (*on_text)(void *arg, const char *text, size_t n), void *arg)
{
        *r = (struct llm_reader){ .wire = wire, .on_text = on_text, .arg = arg };
        sse_reader_init(&r->sse, LLM_EVENT_MAX, on_event, r);
        buf_init(&r->body, LLM_EVENT_MAX);
        buf_init(&r->text, LLM_ANSWER_MAX);
}

void llm_reader_release(struct llm_reader *r)
{
        sse_reader_release(&r->sse);
        buf_release(&r->body);
        buf_release(&r->text);
}

static int result(const struct llm_reader *r)
{
        return r->failure.kind != ERR_NONE || r->too_large ? -1 : 0;
}

int llm_reader_stream(struct llm_reader *r, const char *bytes, size_t n)
{
        if (sse_reader_feed(&r->sse, bytes, n) < 0)
                llm_reader_fail(r, ERR_PROTOCOL, "an event of the stream is too large");
        return result(r);
}

int llm_reader_body(struct llm_reader *r, const char *bytes, size_t n)
{
        if (buf_add(&r->body, bytes, n) < 0)
                r->too_large = true;
        return result(r);
}

int llm_reader_body_end(struct llm_reader *r)
{
        json_t *answer;

        if (result(r) < 0)
                return -1;
        answer = llm_reader_json(r, r->body.data, r->body.len);
        if (answer)
                r->wire->answer(r, answer);
        json_decref(answer);
        return result(r);
}

void llm_reader_text(struct llm_reader *r, const char *text)
{
        size_t n = text ? strlen(text) : 0;

        if (n == 0 || r->too_large)
                return;
        if (buf_add(&r->text, text, n) < 0) {
                r->too_large = true;
                n = utf8_prefix(text, n, UTF8_BYTES, LLM_ANSWER_MAX - r->text.len);
                buf_add(&r->text, text, n);
        }
        if (r->on_text && n)
                r->on_text(r->arg, text, n);
}

/* Makes foreign text printable, short and free of secrets. */
static void set_message(struct llm_failure *f, const char *text)
{
        /* redact before cutting, which could leave half a secret */
        char *clean = utf8_clean(text, strlen(text));

        log_redact(clean);
        snprintf(f->text, sizeof(f->text), "%.*s",
                 (int)utf8_prefix(clean, strlen(clean), UTF8_BYTES, LLM_MESSAGE_MAX), clean);
        for (char *p = f->text; *p; p++) {
                if ((unsigned char)*p < ' ')
                        *p = ' ';
        }
        free(clean);
}

void llm_reader_fail(struct llm_reader *r, enum error_kind kind, const char *text)
{
        if (r->failure.kind != ERR_NONE)
                return;
        r->failure.kind = kind;
        set_message(&r->failure, text);
}

json_t *llm_reader_json(struct llm_reader *r, const char *data, size_t n)
{
        struct error err = { 0 };
        json_t *value = json_read(data, n, &err);

        if (json_is_object(value))
                return value;
        if (value)
                error_set(&err, ERR_PROTOCOL, "not a JSON object");
        json_decref(value);
        llm_reader_fail(r, ERR_PROTOCOL, err.text);
        return NULL;
}

static bool says(const json_t *error, const char *word)
{
        return strstr(json_str(error, "type", ""), word) ||
               strstr(json_str(error, "code", ""), word);
}

void llm_reader_read_failure(struct llm_failure *f, enum error_kind kind, const char *body,
                             size_t n)
{
        static const char *const keys[] = { "type", "code", "message" };
        json_t *answer = json_read(body, n, NULL);
        const json_t *error = json_object_get(answer, "error");
        struct buf text;

        buf_init(&text, 0);
        f->kind = kind;
        if (json_is_object(error)) {
                f->account = says(error, "insufficient_quota") || says(error, "billing");
                f->too_long = says(error, "context_length_exceeded") ||
                              strstr(json_str(error, "message", ""), "prompt is too long");
                /* messages about a refused key often quote it */
                for (size_t i = 0; i < (kind == ERR_REFUSED ? 1 : COUNT(keys)); i++) {
                        const char *value = json_str(error, keys[i], "");

                        if (*value)
                                buf_addf(&text, "%s%s", text.len ? ": " : "", value);
                }
        } else if (json_is_string(error)) {
                buf_addstr(&text, json_string_value(error));
        } else if (json_is_string(json_object_get(answer, "detail"))) {
                buf_addstr(&text, json_str(answer, "detail", ""));
        } else if (kind != ERR_REFUSED) {
                buf_add(&text, body, strnlen(body, n));
        }
        if (f->account)
                f->kind = ERR_REFUSED;
        set_message(f, text.data);
        buf_release(&text);
        json_decref(answer);
}
