/*
 * Understanding what an agent answers: JSON with reply, parts or text, plain text, or nothing at
 * all.
 *
 * Whoever answers is a stranger's program: a web page instead of JSON, ten megabytes, a
 * half-written object are told apart from an answer, never shown as one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/http/http_agent.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TOKENS_MAX   1000000000
#define COST_MAX_USD 1000000.0
#define QUOTE_MAX    200 /* bytes of a strange answer that go into the record */

void http_agent_reply_release(struct http_agent_reply *a)
{
        for (unsigned i = 0; i < a->part_count; i++)
                free(a->parts[i]);
        free(a->parts);
        free(a->text);
        *a = (struct http_agent_reply){ 0 };
}

struct turn_reply http_agent_reply_for_turn(const struct http_agent_reply *a)
{
        return (struct turn_reply){
                .text = a->text,
                .parts = (const char *const *)a->parts,
                .part_count = a->part_count,
                .tokens_in = a->tokens_in,
                .tokens_out = a->tokens_out,
                .cost_microusd = a->cost_microusd,
        };
}

/* Nothing, or the word for it, with blanks around. */
static bool is_silence(const char *text)
{
        const char *from = text + strspn(text, " \t\r\n");
        size_t n = strlen(from);

        while (n > 0 && isspace((unsigned char)from[n - 1]))
                n--;
        return n == 0 || (n == strlen("[SILENT]") && strncmp(from, "[SILENT]", n) == 0);
}

/* ---- what is said ---- */

static int too_long(size_t n, struct error *err)
{
        return error_set(err, ERR_LIMIT, "the answer's text has %zu bytes (at most %zu)", n,
                         HTTP_AGENT_TEXT_MAX);
}

int http_agent_reply_set_text(struct http_agent_reply *a, const char *text, struct error *err)
{
        size_t n = strlen(text);

        if (n > HTTP_AGENT_TEXT_MAX)
                return too_long(n, err);
        a->given = true;
        free(a->text);
        a->text = mem_strdup(is_silence(text) ? "" : text);
        return 0;
}

static const char *part_text(const json_t *part)
{
        return json_is_object(part) ? json_str(part, "text", NULL) : json_string_value(part);
}

/* rest: what is too much, for the last part; joined once, because there may be very many. */
static void add_part(struct http_agent_reply *a, const char *text, struct buf *rest)
{
        if (a->part_count < HTTP_AGENT_PARTS_MAX)
                a->parts[a->part_count++] = mem_strdup(text);
        else
                buf_addf(rest, "\n\n%s", text);
}

static void join_rest(struct http_agent_reply *a, const struct buf *rest)
{
        char **last = &a->parts[HTTP_AGENT_PARTS_MAX - 1], *joined;

        if (rest->len == 0)
                return;
        joined = mem_printf("%s%s", *last, rest->data);
        free(*last);
        *last = joined;
}

static int say_parts(struct http_agent_reply *a, const json_t *parts, struct error *err)
{
        struct buf whole, rest;
        size_t i;
        json_t *part;
        int rc = 0;

        buf_init(&whole, HTTP_AGENT_TEXT_MAX);
        buf_init(&rest, 0);
        a->parts = mem_array(HTTP_AGENT_PARTS_MAX, sizeof(char *));
        json_array_foreach(parts, i, part) {
                const char *text = part_text(part);

                if (!text) {
                        rc = error_set(
                                err, ERR_PROTOCOL,
                                "part %zu of the answer is neither a text nor {\"text\": ...}",
                                i + 1);
                        break;
                }
                if (is_silence(text))
                        continue;
                buf_addf(&whole, "%s%s", whole.len ? "\n\n" : "", text);
                if (whole.overflow) {
                        rc = too_long(whole.len + strlen(text), err);
                        break;
                }
                add_part(a, text, &rest);
        }
        join_rest(a, &rest);
        if (rc == 0)
                rc = http_agent_reply_set_text(a, whole.data, err);
        if (a->part_count == 0) {
                free(a->parts);
                a->parts = NULL;
        }
        buf_release(&whole);
        buf_release(&rest);
        return rc;
}

/* ---- what it cost ---- */

static int64_t count_of(const json_t *object, const char *camel, const char *snake,
                        int64_t fallback)
{
        int64_t n = json_int(object, camel, json_int(object, snake, fallback));

        return n < 0 ? 0 : n > TOKENS_MAX ? TOKENS_MAX : n;
}

/*
 * {"inputTokens", "outputTokens"} in metadata itself, in its "cost" (as the first of such platforms
 * had it) or its "usage".
 */
static void read_metadata(struct http_agent_reply *a, const json_t *metadata)
{
        static const char *const places[] = { NULL, "cost", "usage" };
        const json_t *usd = json_object_get(metadata, "costUsd");

        for (size_t i = 0; i < COUNT(places); i++) {
                const json_t *at = places[i] ? json_object_get(metadata, places[i]) : metadata;

                a->tokens_in = count_of(at, "inputTokens", "input_tokens", a->tokens_in);
                a->tokens_out = count_of(at, "outputTokens", "output_tokens", a->tokens_out);
                if (!usd)
                        usd = json_object_get(at, "usd");
        }
        if (json_is_number(usd) && json_number_value(usd) > 0 &&
            json_number_value(usd) < COST_MAX_USD)
                a->cost_microusd = (int64_t)(json_number_value(usd) * 1e6 + 0.5);
}

/* A member that is there must be a text; null counts as absent. */
static int say_member(struct http_agent_reply *a, const json_t *object, const char *key,
                      struct error *err)
{
        const json_t *value = json_object_get(object, key);

        if (!value || json_is_null(value))
                return 0;
        if (!json_is_string(value))
                return error_set(err, ERR_PROTOCOL, "'%s' of the answer is not a text", key);
        return http_agent_reply_set_text(a, json_string_value(value), err);
}

int http_agent_reply_members(struct http_agent_reply *a, const json_t *object, struct error *err)
{
        const json_t *parts = json_object_get(object, "parts");

        read_metadata(a, json_object_get(object, "metadata"));
        if (parts && !json_is_null(parts)) {
                if (!json_is_array(parts))
                        return error_set(err, ERR_PROTOCOL, "'parts' of the answer is not a list");
                return say_parts(a, parts, err);
        }
        if (say_member(a, object, "reply", err) < 0)
                return -1;
        return a->given ? 0 : say_member(a, object, "text", err);
}

/* ---- the body ---- */

static bool is_type(const char *content_type, const char *type)
{
        size_t n = strlen(type);

        return strncasecmp(content_type, type, n) == 0 &&
               (content_type[n] == '\0' || strchr("; \t", content_type[n]));
}

static bool is_json_type(const char *content_type)
{
        const char *end = content_type + strcspn(content_type, "; \t");

        return is_type(content_type, "application/json") || is_type(content_type, "text/json") ||
               (end - content_type > 5 && strncasecmp(end - 5, "+json", 5) == 0);
}

static bool begins(const char *text, size_t n, const char *word)
{
        return n >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

/* A page, whatever it says it is. */
static bool is_page(const char *content_type, const char *text, size_t n)
{
        return is_type(content_type, "text/html") || begins(text, n, "<!doctype") ||
               begins(text, n, "<html");
}

static int not_understood(struct error *err, const char *why, const char *body, size_t n)
{
        char *quote = utf8_clean(body, utf8_prefix(body, n, UTF8_BYTES, QUOTE_MAX));
        int rc = error_set(err, ERR_PROTOCOL, "%s: %s%s", why, quote, n > QUOTE_MAX ? "..." : "");

        free(quote);
        return rc;
}

static int read_tree(struct http_agent_reply *a, http_agent_members_fn *members,
                     const struct json_parsed *p, struct error *err)
{
        if (json_is_object(p->root))
                return members(a, p->root, err);
        if (json_is_string(p->root))
                return http_agent_reply_set_text(a, json_string_value(p->root), err);
        if (json_is_null(p->root))
                return 0;
        return not_understood(err, p->root ? "neither an object nor a text" : p->error.text,
                              p->text, p->n);
}

static int read_plain(struct http_agent_reply *a, const char *body, size_t n, struct error *err)
{
        char *text = utf8_clean(body, n);
        int rc = http_agent_reply_set_text(a, text, err);

        free(text);
        return rc;
}

static int read_body(struct http_agent_reply *a, http_agent_members_fn *members, const char *type,
                     struct json_parsed *p, bool parsed, struct error *err)
{
        const char *body = p->text;
        size_t blanks = 0, n = p->n;

        while (blanks < n && isspace((unsigned char)body[blanks]))
                blanks++;
        if (blanks == n)
                return 0;
        if (is_page(type, body + blanks, n - blanks))
                return not_understood(err, "the answer is a web page", body, n);
        if (is_json_type(type) || (*type == '\0' && body[blanks] == '{')) {
                if (!parsed)
                        p->root = json_read(body, n, &p->error);
                return read_tree(a, members, p, err);
        }
        if (*type == '\0' || strncasecmp(type, "text/", 5) == 0)
                return read_plain(a, body, n, err);
        return error_set(err, ERR_PROTOCOL, "the answer is neither JSON nor text but '%.80s'",
                         type);
}

static int read_answer(struct http_agent_reply *a, http_agent_members_fn *members,
                       const char *content_type, struct json_parsed *p, bool parsed,
                       struct error *err)
{
        *a = (struct http_agent_reply){ 0 };
        if (read_body(a, members, content_type ? content_type : "", p, parsed, err) < 0) {
                http_agent_reply_release(a);
                return -1;
        }
        if (!a->text)
                a->text = mem_strdup("");
        return 0;
}

int http_agent_reply_read(struct http_agent_reply *a, http_agent_members_fn *members,
                          const char *content_type, const char *body, size_t n, struct error *err)
{
        struct json_parsed p = { .text = body ? body : "", .n = body ? n : 0 };
        int rc = read_answer(a, members, content_type, &p, false, err);

        json_decref(p.root);
        return rc;
}

int http_agent_reply_read_parsed(struct http_agent_reply *a, http_agent_members_fn *members,
                                 const char *content_type, const struct json_parsed *parsed,
                                 struct error *err)
{
        struct json_parsed p = *parsed;

        return read_answer(a, members, content_type, &p, true, err);
}
