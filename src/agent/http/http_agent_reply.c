/*
 * Reads a reply: JSON with reply, parts or text, plain text, or nothing. A web page, an oversized
 * body or a truncated object is a failure, never text for the chat.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/http/http_agent.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/turn/no_reply.h"

#define QUOTE_MAX 200 /* of an unreadable body, for the record */

void http_agent_reply_release(struct http_agent_reply *r)
{
        for (unsigned i = 0; i < r->part_count; i++)
                free(r->parts[i]);
        free(r->parts);
        free(r->text);
        *r = (struct http_agent_reply){ 0 };
}

struct turn_reply http_agent_reply_for_turn(const struct http_agent_reply *r)
{
        return (struct turn_reply){
                .text = r->text,
                .parts = (const char *const *)r->parts,
                .part_count = r->part_count,
                .tokens_in = usage_tokens_in(&r->usage),
                .tokens_cached = r->usage.cached,
                .tokens_out = r->usage.out,
                .cost_microusd = r->usage.cost_microusd,
        };
}

/* ---- text and parts ---- */

/* Blank, or marked as no reply. */
static bool is_no_reply(const char *text)
{
        return text[strspn(text, " \t\r\n")] == '\0' || no_reply_is_marked(text);
}

static int set_too_long(size_t n, struct error *err)
{
        return error_set(err, ERR_LIMIT, "the answer's text has %zu bytes (at most %zu)", n,
                         HTTP_AGENT_TEXT_MAX);
}

int http_agent_reply_set_text(struct http_agent_reply *r, const char *text, struct error *err)
{
        size_t n = strlen(text);

        if (n > HTTP_AGENT_TEXT_MAX)
                return set_too_long(n, err);
        r->given = true;
        free(r->text);
        r->text = mem_strdup(is_no_reply(text) ? "" : text);
        return 0;
}

static int read_parts(struct http_agent_reply *r, const json_t *parts, struct error *err)
{
        struct buf whole, last; /* last: the parts beyond the limit */
        size_t i;
        json_t *part;
        int rc = 0;

        buf_init(&whole, HTTP_AGENT_TEXT_MAX);
        buf_init(&last, 0);
        r->parts = mem_array(HTTP_AGENT_PARTS_MAX, sizeof(char *));
        json_array_foreach(parts, i, part) {
                const char *text = json_is_object(part) ? json_str(part, "text", NULL)
                                                        : json_string_value(part);

                if (!text) {
                        rc = error_set(
                                err, ERR_PROTOCOL,
                                "part %zu of the answer is neither a string nor {\"text\": ...}",
                                i + 1);
                        break;
                }
                if (is_no_reply(text))
                        continue;
                buf_addf(&whole, "%s%s", whole.len ? "\n\n" : "", text);
                if (whole.overflow) {
                        rc = set_too_long(whole.len + strlen(text), err);
                        break;
                }
                if (r->part_count + 1 < HTTP_AGENT_PARTS_MAX)
                        r->parts[r->part_count++] = mem_strdup(text);
                else
                        buf_addf(&last, "%s%s", last.len ? "\n\n" : "", text);
        }
        if (last.len)
                r->parts[r->part_count++] = mem_strdup(last.data);
        if (rc == 0)
                rc = http_agent_reply_set_text(r, whole.data, err);
        if (r->part_count == 0) {
                free(r->parts);
                r->parts = NULL;
        }
        buf_release(&whole);
        buf_release(&last);
        return rc;
}

/* ---- members ---- */

int http_agent_reply_members(struct http_agent_reply *r, const json_t *object, struct error *err)
{
        static const char *const keys[] = { "reply", "text" };
        const json_t *parts = json_object_get(object, "parts");
        const json_t *metadata = json_object_get(object, "metadata");

        usage_read(&r->usage, json_object_get(object, "usage"));
        usage_read(&r->usage, metadata);
        usage_read(&r->usage, json_object_get(metadata, "cost")); /* Omni's */
        usage_read(&r->usage, json_object_get(metadata, "usage"));
        if (parts && !json_is_null(parts)) {
                if (!json_is_array(parts))
                        return error_set(err, ERR_PROTOCOL, "'parts' of the answer is not a list");
                return read_parts(r, parts, err);
        }
        for (size_t i = 0; i < COUNT(keys) && !r->given; i++) {
                const json_t *value = json_object_get(object, keys[i]);

                if (!value || json_is_null(value))
                        continue;
                if (!json_is_string(value))
                        return error_set(err, ERR_PROTOCOL, "'%s' of the answer is not a string",
                                         keys[i]);
                if (http_agent_reply_set_text(r, json_string_value(value), err) < 0)
                        return -1;
        }
        return 0;
}

/* ---- body ---- */

enum body_kind { BODY_BLANK, BODY_PAGE, BODY_JSON, BODY_TEXT, BODY_OTHER };

static bool is_type(const char *content_type, const char *type)
{
        size_t n = strlen(type);

        return strncasecmp(content_type, type, n) == 0 &&
               (content_type[n] == '\0' || strchr("; \t", content_type[n]));
}

static bool begins(const char *text, size_t n, const char *word)
{
        return n >= strlen(word) && strncasecmp(text, word, strlen(word)) == 0;
}

/* Web pages are recognised regardless of their type. */
static enum body_kind classify(const char *type, const char *body, size_t n)
{
        const char *end = type + strcspn(type, "; \t");
        size_t blanks = 0;

        while (blanks < n && isspace((unsigned char)body[blanks]))
                blanks++;
        if (blanks == n)
                return BODY_BLANK;
        if (is_type(type, "text/html") || begins(body + blanks, n - blanks, "<!doctype") ||
            begins(body + blanks, n - blanks, "<html"))
                return BODY_PAGE;
        if (is_type(type, "application/json") || is_type(type, "text/json") ||
            (end - type > 5 && strncasecmp(end - 5, "+json", 5) == 0) ||
            (*type == '\0' && body[blanks] == '{'))
                return BODY_JSON;
        return *type == '\0' || strncasecmp(type, "text/", 5) == 0 ? BODY_TEXT : BODY_OTHER;
}

static int set_unreadable(struct error *err, const char *why, const char *body, size_t n)
{
        char *quote = utf8_clean(body, utf8_prefix(body, n, UTF8_BYTES, QUOTE_MAX));
        int rc = error_set(err, ERR_PROTOCOL, "%s: %s%s", why, quote, n > QUOTE_MAX ? "..." : "");

        free(quote);
        return rc;
}

static int read_body(struct http_agent_reply *r, http_agent_members_fn *members, const char *type,
                     const struct json_parsed *p, struct error *err)
{
        char *text;
        int rc;

        switch (classify(type, p->text, p->n)) {
        case BODY_BLANK:
                return 0;
        case BODY_PAGE:
                return set_unreadable(err, "the answer is a web page", p->text, p->n);
        case BODY_JSON:
                if (json_is_object(p->root))
                        return members(r, p->root, err);
                if (json_is_string(p->root))
                        return http_agent_reply_set_text(r, json_string_value(p->root), err);
                if (json_is_null(p->root))
                        return 0;
                return set_unreadable(err,
                                      p->root ? "neither an object nor a string" : p->error.text,
                                      p->text, p->n);
        case BODY_TEXT:
                text = utf8_clean(p->text, p->n);
                rc = http_agent_reply_set_text(r, text, err);
                free(text);
                return rc;
        default:
                return error_set(err, ERR_PROTOCOL,
                                 "the answer is neither JSON nor text but '%.80s'", type);
        }
}

int http_agent_reply_read_parsed(struct http_agent_reply *r, http_agent_members_fn *members,
                                 const char *content_type, const struct json_parsed *parsed,
                                 struct error *err)
{
        *r = (struct http_agent_reply){ 0 };
        if (read_body(r, members, content_type ? content_type : "", parsed, err) < 0) {
                http_agent_reply_release(r);
                return -1;
        }
        if (!r->text)
                r->text = mem_strdup("");
        return 0;
}

int http_agent_reply_read(struct http_agent_reply *r, http_agent_members_fn *members,
                          const char *content_type, const char *body, size_t n, struct error *err)
{
        struct json_parsed p = { .text = body ? body : "", .n = body ? n : 0 };
        int rc;

        if (classify(content_type ? content_type : "", p.text, p.n) == BODY_JSON)
                p.root = json_read(p.text, p.n, &p.error);
        rc = http_agent_reply_read_parsed(r, members, content_type, &p, err);
        json_decref(p.root);
        return rc;
}
