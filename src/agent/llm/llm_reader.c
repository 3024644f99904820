#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_text.h"

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
        llm_blocks_release(r);
        json_decref(r->details);
}

bool llm_reader_is_complete(const struct llm_reader *r)
{
        return r->ended || (r->stop != LLM_GOES_ON && !r->wire->says_end);
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
        json_t *value = json_read_lenient(data, n, &err);

        if (json_is_object(value))
                return value;
        if (value)
                error_set(&err, ERR_PROTOCOL, "not a JSON object");
        json_decref(value);
        llm_reader_fail(r, ERR_PROTOCOL, err.text);
        return NULL;
}

/*
 * How services say that a request exceeds the model's context, in lower case. Texts are not stable,
 * so several per service. "*" stands for anything.
 */
static const char *const overflow_words[] = {
        "prompt is too long", /* Anthropic */
        "request_too_large",
        "exceed context limit",    /* with max_tokens */
        "context_length_exceeded", /* OpenAI and those who copy it */
        "exceeds the context window",
        "maximum context length",
        "input is too long for requested model",     /* Bedrock */
        "input token count*exceeds the maximum",     /* Gemini */
        "maximum prompt length is",                  /* xAI */
        "reduce the length of the messages",         /* Groq */
        "is longer than the model's context length", /* Together */
        "context window exceeds limit",              /* MiniMax */
        "exceeded model token limit",                /* Kimi */
        "exceeds the available context size",        /* llama.cpp */
        "exceed_context_size_error",
        "greater than the context length", /* LM Studio */
        "prompt too long",                 /* Ollama, z.ai */
        "range of input length should be", /* DashScope */
        "model_context_window_exceeded",
        "string_above_max_length",
};

/* The same words speak of other limits here. */
static const char *const rate_words[] = { "rate limit",     "rate_limit",  "too many requests",
                                          "tokens per min", "please wait", "throttl" };

static bool has_words(const char *text, const char *words)
{
        const char *star = strchr(words, '*');
        char first[64];

        if (!star)
                return strstr(text, words) != NULL;
        snprintf(first, sizeof(first), "%.*s", (int)(star - words), words);
        text = strstr(text, first);
        return text && strstr(text, star + 1);
}

bool llm_failure_is_overflow(const char *text)
{
        char *lower = mem_strdup(text);
        bool found = false;

        for (char *p = lower; *p; p++)
                *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        for (size_t i = 0; i < COUNT(overflow_words) && !found; i++)
                found = has_words(lower, overflow_words[i]);
        for (size_t i = 0; i < COUNT(rate_words) && found; i++)
                found = !strstr(lower, rate_words[i]);
        free(lower);
        return found;
}

static bool says(const json_t *error, const char *word)
{
        return strstr(json_str(error, "type", ""), word) ||
               strstr(json_str(error, "code", ""), word) ||
               strstr(json_str(json_object_get(error, "details"), "error_code", ""), word);
}

/* The service's words, without those that might quote a refused key. */
static void describe(const json_t *error, enum error_kind kind, struct buf *out)
{
        static const char *const keys[] = { "type", "code", "message" };

        for (size_t i = 0; i < (kind == ERR_REFUSED ? 1 : COUNT(keys)); i++) {
                const char *value = json_str(error, keys[i], "");

                if (*value)
                        buf_addf(out, "%s%s", out->len ? ": " : "", value);
        }
}

void llm_reader_read_failure(struct llm_failure *f, enum error_kind kind, const char *body,
                             size_t n)
{
        json_t *answer = json_read(body, n, NULL);
        const json_t *error = json_object_get(answer, "error");
        struct buf text;

        buf_init(&text, 0);
        f->kind = kind;
        if (json_is_object(error)) {
                f->account = says(error, "insufficient_quota") || says(error, "billing") ||
                             says(error, "spend_limit");
                f->too_large = says(error, "request_too_large");
                describe(error, kind, &text);
        } else if (json_is_string(error)) {
                buf_addstr(&text, json_string_value(error));
        } else if (json_is_string(json_object_get(answer, "detail"))) {
                buf_addstr(&text, json_str(answer, "detail", ""));
        } else if (json_is_string(json_object_get(answer, "message"))) {
                buf_addstr(&text, json_str(answer, "message", ""));
        } else if (kind != ERR_REFUSED) {
                buf_add(&text, body, strnlen(body, n));
        }
        /* routers quote the service they asked */
        f->too_long =
                kind != ERR_REFUSED &&
                (llm_failure_is_overflow(text.data) ||
                 llm_failure_is_overflow(json_str(json_object_get(error, "metadata"), "raw", "")));
        if (f->account)
                f->kind = ERR_REFUSED;
        set_message(f, text.data);
        buf_release(&text);
        json_decref(answer);
}

void llm_reader_error(struct llm_reader *r, const json_t *answer)
{
        const json_t *error = json_object_get(answer, "error");
        /* routers give the status that they got as a number */
        bool busy = says(error, "overloaded") || says(error, "rate_limit") ||
                    says(error, "slow_down") ||
                    http_text_status_kind((int)json_int(error, "code", 0)) == ERR_LIMIT;
        char *text = json_text(answer);

        llm_reader_read_failure(&r->failure, busy ? ERR_LIMIT : ERR_NET, text, strlen(text));
        free(text);
}
