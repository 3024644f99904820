/* The REST reference, written from the route table for people to read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/json.h"
#include "base/mem.h"

/* clang-format off */
static const char introduction[] =
        "# REST API\n\n"
        "<!-- Generated from the route table by `dragoman api doc`; edit that. -->\n\n"
        "The same as an OpenAPI 3.1 document: `GET /api/openapi.json`, or `dragoman api openapi`.\n\n"
        "## Keys\n\n"
        "A request shows its key as `Authorization: Bearer KEY` or `x-api-key: KEY`. The operator key is in `state/operator.key` of the data\n"
        "directory and may everything. Other software gets keys of its own (`dragoman keys create`, or `POST /api/v2/keys`):\n\n"
        "- **scopes** say what it may: `read`, `write` (and read), `admin` (and both), each for everything or for one resource, such as\n"
        "  `messages:write`. The resource of a route is the first word of its path behind `/api/v2/`, `/api/` or `/v1/`.\n"
        "- **adapters** say where: a key that is restricted to adapters sees and touches only theirs. What is not theirs is as good as missing (404), or\n"
        "  refused (403) where the request itself names it.\n"
        "- **rateLimit** says how often: requests a minute. `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds since 1970, when all\n"
        "  are back) tell how it stands; beyond it the answer is 429 with `Retry-After`.\n"
        "- **expiresAt** says until when. A key is kept as a digest and shown once; revoking it works at once, also for open streams.\n\n"
        "## Answers\n\n"
        "Success is `{\"data\": ...}` or a page `{\"items\": [...], \"meta\": {\"hasMore\", \"cursor\"}}`; the cursor goes into the query parameter the route\n"
        "names, and no row is skipped or shown twice. A page may have few items or none and still have more behind it: only so many rows are looked\n"
        "at for one. Every error but one is `{\"error\": {\"code\", \"message\", \"details\"}}`:\n\n"
        "| status | code | when |\n"
        "|---|---|---|\n"
        "| 400 | `VALIDATION_ERROR` | something in the request is wrong; `details.fields` says what, by path. Unknown fields and parameters are wrong, and `1` is no boolean |\n"
        "| 401 | `UNAUTHORIZED` | no key, a wrong, expired or revoked one |\n"
        "| 403 | `FORBIDDEN` | the key has not the scope, or does not reach the adapter |\n"
        "| 404 | `NOT_FOUND` | there is no such thing; `details.resourceType` and `resourceId` say which |\n"
        "| 409 | `CONFLICT` | it cannot be done as things are; `details.conflictReason` where there are several |\n"
        "| 409 | `CAPABILITY_NOT_SUPPORTED` | the adapter's platform cannot do it |\n"
        "| 413 | `PAYLOAD_TOO_LARGE` | the body is longer than `http.maxBodyBytes` |\n"
        "| 414, 431 | | request line and headers together are longer than about 5 KB. The HTTP library refuses these by itself, before anything has been looked at: with a short page "
        "instead of JSON, and the connection ends |\n"
        "| 429 | `RATE_LIMITED` | too often, or a limit of the road is reached; `Retry-After` says when to come back |\n"
        "| 502, 504 | `AGENT_ERROR`, `AGENT_TIMEOUT` | the agent failed, or took too long |\n"
        "| 503 | `DB_CONNECTION_FAILED`, `UNAVAILABLE` | the store does not work, or the daemon is ending; nothing was taken |\n\n"
        "Each answer has an `x-request-id`; a sane one of the request is echoed. Sends take the header `Idempotency-Key`: the same request again is\n"
        "answered with the first delivery and `duplicate`, another request with the same key with 409; each API key, the operator's among them, has idempotency keys of its own. Ids are `evt-1`, `trn-1`, `dlv-1`, `key-1`; times\n"
        "are RFC 3339, in requests also milliseconds since 1970.\n";
/* clang-format on */

static const char *const reaches[] = {
        [REACH_SHARED] = "nothing of an adapter is shown or changed",
        [REACH_ALL] = "only for keys that reach all adapters",
        [REACH_PATH] = "the key must reach the adapter of the path",
        [REACH_BODY] = "the key must reach the adapter `instanceId`",
        [REACH_ROW] = "the key must reach the adapter it belongs to",
        [REACH_LIST] = "shows only what belongs to adapters the key reaches",
        [REACH_HANDLER] = "the key must reach the adapter it is about",
};

static const char *type_name(const struct field *f)
{
        static const char *const names[] = { [FIELD_STRING] = "text",
                                             [FIELD_INT] = "whole number",
                                             [FIELD_BOOL] = "boolean",
                                             [FIELD_TIME] = "time",
                                             [FIELD_ID] = "id",
                                             [FIELD_CHOICE] = "one of",
                                             [FIELD_OBJECT] = "object",
                                             [FIELD_GROUP] = "object",
                                             [FIELD_LIST] = "list",
                                             [FIELD_ANY] = "anything",
                                             [FIELD_TEXTS] = "list of texts" };

        return names[f->type];
}

/* "text, 1 to 256 bytes" */
static void write_type(struct buf *b, const struct field *f)
{
        buf_addstr(b, type_name(f));
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

/* A JSON text of the table, indented. */
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
        buf_addf(b, "\n### `%s %s`\n\n%s\n\n", r->method, r->path, r->summary);
        if (r->scope == SCOPE_NONE)
                buf_addstr(b, "Needs no key.");
        else
                buf_addf(b, "Scope: %s%s; %s.", route_scope_name(r->scope),
                         r->scope == SCOPE_LOCAL ? ", or no key while only this machine can connect"
                                                 : "",
                         reaches[r->reach]);
        buf_addf(b, " Answers %d: ", r->status);
        buf_addstr(b, r->answer);
        buf_addch(b, '\n');
        write_table(b, "parameter", r->query);
        write_table(b, "field", r->body);
        write_json(b, "Example", r->example);
        write_json(b, "Its answer", r->example_answer);
}

static bool same_space(const struct route *a, const struct route *b)
{
        struct slice x = route_resource(a), y = route_resource(b);

        return x.n == y.n && memcmp(x.p, y.p, x.n) == 0;
}

static bool space_was_before(size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (same_space(&api_routes[k], &api_routes[i]))
                        return true;
        return false;
}

void rest_doc_write(struct buf *b)
{
        buf_addstr(b, introduction);
        for (size_t i = 0; i < api_route_count; i++) {
                struct slice space = route_resource(&api_routes[i]);

                if (space_was_before(i))
                        continue;
                buf_addf(b, "\n## %.*s\n", (int)space.n, space.p);
                for (size_t k = i; k < api_route_count; k++)
                        if (same_space(&api_routes[k], &api_routes[i]))
                                write_route(b, &api_routes[k]);
        }
}
