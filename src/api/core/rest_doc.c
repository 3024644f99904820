/* Writes docs/REST.md from the route tables. */
#include <stdlib.h>
#include <string.h>

#include "api/core/routes.h"
#include "base/json.h"
#include "base/mem.h"

static const char introduction[] =
        "# REST API\n\n"
        "<!-- Generated from the route tables by `dragoman api doc`; edit those. -->\n\n"
        "The same as an OpenAPI 3.1 document: `GET /api/openapi.json`, or `dragoman api\n"
        "openapi`.\n\n"
        "## Keys\n\n"
        "A request carries its key as `Authorization: Bearer KEY` or `x-api-key: KEY`. The\n"
        "operator key is in `state/operator.key` of the data directory and may do\n"
        "everything. Give other software its own keys (`dragoman keys create`, or `POST\n"
        "/api/v2/keys`):\n\n"
        "- **scopes** say what it may do: `read`, `write` (includes read), `admin`\n"
        "  (includes both), each for everything or for one resource, such as\n"
        "  `messages:write`. The resource of a route is the first word of its path after\n"
        "  `/api/v2/`, `/api/` or `/v1/`.\n"
        "- **adapters** say where: a key that is restricted to adapters sees and changes\n"
        "  only what belongs to them. The rest is answered as missing (404), or refused\n"
        "  (403) where the request itself names it.\n"
        "- **rateLimit** says how often: requests a minute. `X-RateLimit-Limit`,\n"
        "  `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds since 1970, when all\n"
        "  are available again) show the current state; beyond the limit the answer is 429\n"
        "  with `Retry-After`.\n"
        "- **expiresAt** says until when. A key is stored as a digest and shown once;\n"
        "  revoking it takes effect at once, also for open streams.\n\n"
        "## Answers\n\n"
        "Success is `{\"data\": ...}` or a page `{\"items\": [...], \"meta\": {\"hasMore\",\n"
        "\"cursor\"}}`. The cursor goes into the query parameter that the route names; no row\n"
        "is skipped or shown twice. A page may have few items or none although there are\n"
        "more: a request reads a bounded number of rows. Every error but one is `{\"error\":\n"
        "{\"code\", \"message\", \"details\"}}`:\n\n"
        "| status | code | when |\n"
        "|---|---|---|\n"
        "| 400 | `VALIDATION_ERROR` | the request is wrong; `details.fields` says what, by "
        "path. Unknown fields and parameters are errors, and `1` is not a boolean |\n"
        "| 401 | `UNAUTHORIZED` | no key, or a wrong, expired or revoked one |\n"
        "| 403 | `FORBIDDEN` | the key lacks the scope, or does not reach the adapter |\n"
        "| 404 | `NOT_FOUND` | there is no such thing; `details.resourceType` and "
        "`resourceId` say which |\n"
        "| 409 | `CONFLICT` | not possible in the current state; `details.conflictReason` "
        "where there are several |\n"
        "| 409 | `CAPABILITY_NOT_SUPPORTED` | the adapter's platform cannot do it |\n"
        "| 413 | `PAYLOAD_TOO_LARGE` | the body is longer than `http.maxBodyBytes`, or than "
        "its route allows |\n"
        "| 414, 431 | | request line and headers together are longer than about 5 KB. The "
        "HTTP library refuses these by itself, with a short page instead of JSON, and closes "
        "the connection |\n"
        "| 429 | `RATE_LIMITED` | too many requests, or a limit of the road is reached; "
        "`Retry-After` says when to try again |\n"
        "| 502, 504 | `AGENT_ERROR`, `AGENT_TIMEOUT` | the agent failed, or took too long |\n"
        "| 503 | `DB_CONNECTION_FAILED`, `UNAVAILABLE` | the store does not work, the "
        "daemon is shutting down, or too many bodies are in work (`http.maxBodiesBytes`); nothing "
        "was accepted |\n\n"
        "Each answer has an `x-request-id`; a well-formed one of the request is echoed.\n"
        "A valid W3C header `traceparent` is continued: messages, sends and requests to\n"
        "agents take over its trace id, which agents and callbacks get. A malformed one is\n"
        "ignored.\n"
        "Sends take the header `Idempotency-Key`: a repetition of the request is answered\n"
        "with the first delivery and `duplicate`, another request with the same key with\n"
        "409. Each API key, the operator's included, has its own idempotency keys. Ids are\n"
        "`evt-1`, `trn-1`, `dlv-1`, `key-1`; times are RFC 3339, in requests also\n"
        "milliseconds since 1970.\n";

/* "string, at most 256 bytes" */
static void write_type(struct buf *b, const struct field *f)
{
        static const char *const names[] = { [FIELD_STRING] = "string",
                                             [FIELD_INT] = "whole number",
                                             [FIELD_BOOL] = "boolean",
                                             [FIELD_TIME] = "time",
                                             [FIELD_ID] = "id",
                                             [FIELD_CHOICE] = "one of",
                                             [FIELD_OBJECT] = "object",
                                             [FIELD_GROUP] = "object",
                                             [FIELD_LIST] = "list",
                                             [FIELD_ANY] = "anything",
                                             [FIELD_TEXTS] = "list of strings" };

        buf_addstr(b, names[f->type]);
        if (f->type == FIELD_CHOICE)
                for (const char *const *c = f->choices; *c; c++)
                        buf_addf(b, "%s `%s`", c == f->choices ? "" : ",", *c);
        if (f->type == FIELD_INT && (f->min != 0 || (f->max != 0 && f->max != INT64_MAX)))
                buf_addf(b, ", %lld to %lld", (long long)f->min, (long long)f->max);
        if (f->type == FIELD_STRING)
                buf_addf(b, ", at most %lld bytes",
                         (long long)(f->max > 0 ? f->max : FIELD_STRING_MAX));
        if (f->type == FIELD_LIST || f->type == FIELD_TEXTS)
                buf_addf(b, ", at most %lld", (long long)(f->max > 0 ? f->max : FIELD_LIST_MAX));
}

static void write_fields(struct buf *b, const struct field *fields, const char *prefix)
{
        for (const struct field *f = fields; f && f->name; f++) {
                buf_addf(b, "| `%s%s` | ", prefix, f->name);
                write_type(b, f);
                if (f->required)
                        buf_addstr(b, " | required | ");
                else
                        buf_addf(b, f->fallback ? " | `%s` | " : " | %s | ",
                                 f->fallback ? f->fallback : "");
                for (const char *p = f->help; *p; p++)
                        buf_addf(b, *p == '|' ? "\\%c" : "%c", *p);
                buf_addstr(b, " |\n");
                if (f->group) {
                        char *inner = mem_printf("%s%s%s", prefix, f->name,
                                                 f->type == FIELD_LIST ? "[]." : ".");

                        write_fields(b, f->group, inner);
                        free(inner);
                }
        }
}

static void write_table(struct buf *b, const char *title, const struct field *fields)
{
        if (!fields || !fields->name)
                return;
        buf_addf(b, "\n| %s | type | default | meaning |\n|---|---|---|---|\n", title);
        write_fields(b, fields, "");
}

/* An indented example. */
static void write_json(struct buf *b, const char *title, const char *json)
{
        json_t *value = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
        char *text =
                value ? json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER)
                      : NULL;

        if (text)
                buf_addf(b, "\n%s:\n\n```json\n%s\n```\n", title, text);
        free(text);
        json_decref(value);
}

static void write_route(struct buf *b, const struct route *r)
{
        static const char *const reaches[] = {
                [REACH_SHARED] = "concerns no adapter",
                [REACH_ALL] = "only for keys that reach all adapters",
                [REACH_PATH] = "the key must reach the adapter of the path",
                [REACH_BODY] = "the key must reach the adapter `instanceId`",
                [REACH_ROW] = "the key must reach the adapter it belongs to",
                [REACH_LIST] = "shows only what belongs to adapters the key reaches",
                [REACH_HANDLER] = "the key must reach the adapter it is about",
        };

        buf_addf(b, "\n### `%s %s`\n\n%s\n\n", r->method, r->path, r->summary);
        if (r->scope == SCOPE_NONE)
                buf_addstr(b, "Needs no key.");
        else
                buf_addf(b, "Scope: %s%s%s; %s.", route_scope_name(r->scope),
                         r->keyless ? ", or no key " : "", r->keyless ? r->keyless_when : "",
                         reaches[r->reach]);
        buf_addf(b, " Answers %d: ", r->status);
        buf_addstr(b, r->answer);
        buf_addch(b, '\n');
        write_table(b, "parameter", r->query);
        write_table(b, "field", r->body);
        write_json(b, "Example", r->example);
        write_json(b, "Its answer", r->example_answer);
}

static bool is_same_resource(const struct route *a, const struct route *b)
{
        struct slice x = route_resource(a), y = route_resource(b);

        return x.n == y.n && memcmp(x.p, y.p, x.n) == 0;
}

void rest_doc_write(struct buf *b)
{
        buf_addstr(b, introduction);
        ROUTES_FOREACH(first) {
                struct slice resource = route_resource(first);
                const struct route *same = routes_next(NULL);

                while (!is_same_resource(same, first))
                        same = routes_next(same);
                if (same != first)
                        continue;
                buf_addf(b, "\n## %.*s\n", (int)resource.n, resource.p);
                ROUTES_FOREACH(r)
                        if (is_same_resource(r, first))
                                write_route(b, r);
        }
}
