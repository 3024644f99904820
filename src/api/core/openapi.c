/* Writes the OpenAPI document from the route tables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/reply.h"
#include "api/core/routes.h"
#include "base/jsonw.h"
#include "base/mem.h"

/* "GET /api/v2/turns/:id" → "get_turns_id" */
static char *operation_id(const struct route *r)
{
        const char *path = strncmp(r->path, "/api/v2", 7) == 0 ? r->path + 7 : r->path;
        char *id = mem_printf("%s%s", r->method, path), *to = id;
        size_t n = strlen(r->method);

        for (char *p = id; *p; p++) {
                if ((size_t)(p - id) < n)
                        *to++ = (char)tolower((unsigned char)*p);
                else if (isalnum((unsigned char)*p))
                        *to++ = *p;
                else if (to > id && to[-1] != '_')
                        *to++ = '_';
        }
        *to = '\0';
        return id;
}

static void write_parameters(struct buf *b, const struct route *r)
{
        jsonw_open_member(b, "parameters", '[');
        for (const char *p = strchr(r->path, ':'); p; p = strchr(p, ':')) {
                size_t n = strcspn(++p, "/");

                jsonw_open(b, '{');
                jsonw_strn(b, "name", p, n);
                jsonw_str(b, "in", "path");
                jsonw_bool(b, "required", true);
                jsonw_raw(b, "schema", "{\"type\":\"string\"}");
                jsonw_close(b, '}');
        }
        for (const struct field *f = r->query; f && f->name; f++) {
                jsonw_open(b, '{');
                jsonw_str(b, "name", f->name);
                jsonw_str(b, "in", "query");
                jsonw_bool(b, "required", f->required);
                jsonw_opt(b, "description", f->help);
                field_schema(b, "schema", f);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_request(struct buf *b, const struct route *r)
{
        bool required = false;

        if (!r->body)
                return;
        for (const struct field *f = r->body; f->name; f++)
                required = required || f->required;
        jsonw_open_member(b, "requestBody", '{');
        jsonw_bool(b, "required", required);
        jsonw_open_member(b, "content", '{');
        jsonw_open_member(b, "application/json", '{');
        field_table_schema(b, "schema", r->body);
        if (r->example)
                jsonw_raw(b, "example", r->example);
        jsonw_close(b, '}');
        jsonw_close(b, '}');
        jsonw_close(b, '}');
}

static void write_responses(struct buf *b, const struct route *r)
{
        char status[16];

        snprintf(status, sizeof(status), "%d", r->status);
        jsonw_open_member(b, "responses", '{');
        jsonw_open_member(b, status, '{');
        jsonw_str(b, "description", r->answer);
        jsonw_open_member(b, "content", '{');
        jsonw_open_member(b, r->content_type ? r->content_type : "application/json", '{');
        jsonw_raw(b, "schema", r->content_type ? "{\"type\":\"string\"}" : "{\"type\":\"object\"}");
        if (r->example_answer)
                jsonw_raw(b, "example", r->example_answer);
        jsonw_close(b, '}');
        jsonw_close(b, '}');
        jsonw_close(b, '}');
        jsonw_raw(b, "default", "{\"$ref\":\"#/components/responses/Error\"}");
        jsonw_close(b, '}');
}

static void write_operation(struct buf *b, const struct route *r)
{
        char *id = operation_id(r), method[8] = "";

        for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
                method[i] = (char)tolower((unsigned char)r->method[i]);
        jsonw_open_member(b, method, '{');
        jsonw_str(b, "operationId", id);
        jsonw_str(b, "summary", r->summary);
        jsonw_str(b, "x-scope", route_scope_name(r->scope));
        if (r->scope == SCOPE_NONE)
                jsonw_raw(b, "security", "[]");
        else if (r->keyless)
                jsonw_raw(b, "security", "[{},{\"bearer\":[]},{\"apiKey\":[]}]");
        write_parameters(b, r);
        write_request(b, r);
        write_responses(b, r);
        jsonw_close(b, '}');
        free(id);
}

static void write_paths(struct buf *b)
{
        struct buf path;

        buf_init(&path, 0);
        jsonw_open_member(b, "paths", '{');
        ROUTES_FOREACH(first) {
                const struct route *same = routes_next(NULL);

                while (strcmp(same->path, first->path) != 0)
                        same = routes_next(same);
                if (same != first) /* routes of a path need not be adjacent */
                        continue;
                buf_clear(&path);
                for (const char *p = first->path; *p;) { /* "/turns/:id" → "/turns/{id}" */
                        size_t n = strcspn(p, ":");

                        buf_add(&path, p, n);
                        p += n;
                        if (*p != ':')
                                break;
                        n = strcspn(++p, "/");
                        buf_addf(&path, "{%.*s}", (int)n, p);
                        p += n;
                }
                jsonw_open_member(b, path.data, '{');
                ROUTES_FOREACH(r)
                        if (strcmp(r->path, first->path) == 0)
                                write_operation(b, r);
                jsonw_close(b, '}');
        }
        jsonw_close(b, '}');
        buf_release(&path);
}

void openapi_write(struct buf *b)
{
        static const char components[] = ROUTE_JSON({
                "securitySchemes" : {
                        "bearer" : { "type" : "http", "scheme" : "bearer" },
                        "apiKey" : { "type" : "apiKey", "in" : "header", "name" : "x-api-key" }
                },
                "responses" : {
                        "Error" : {
                                "description" : "Every error has this shape.",
                                "content" : {
                                        "application/json" : {
                                                "schema" : { "$ref" : "#/components/schemas/Error" }
                                        }
                                }
                        }
                },
                "schemas" : {
                        "Error" : {
                                "type" : "object",
                                "required" : ["error"],
                                "properties" : {
                                        "error" : {
                                                "type" : "object",
                                                "required" : [ "code", "message" ],
                                                "properties" : {
                                                        "code" : { "type" : "string" },
                                                        "message" : { "type" : "string" },
                                                        "details" : { "type" : "object" }
                                                }
                                        }
                                }
                        }
                }
        });

        jsonw_open(b, '{');
        jsonw_str(b, "openapi", "3.1.0");
        jsonw_open_member(b, "info", '{');
        jsonw_str(b, "title", "Dragoman");
        jsonw_str(b, "version", DRAGOMAN_VERSION);
        jsonw_str(b, "description",
                  "Success is {\"data\": ...} or a page {\"items\": [...], \"meta\": {...}}; "
                  "every error is {\"error\": {\"code\", \"message\", \"details\"?}}. Unknown "
                  "fields and parameters are refused.");
        jsonw_close(b, '}');
        jsonw_raw(b, "security", "[{\"bearer\":[]},{\"apiKey\":[]}]");
        write_paths(b);
        jsonw_raw(b, "components", components);
        jsonw_close(b, '}');
}

static void show(struct http_exchange *x)
{
        struct buf json;

        buf_init(&json, 0);
        openapi_write(&json);
        reply_json(x, 200, &json);
}

const struct route openapi_routes[] = {
        { "GET", "/api/openapi.json", SCOPE_NONE, show, REACH_SHARED,
          .summary = "This description.", .status = 200, .answer = "An OpenAPI 3.1 document." },
        ROUTE_END,
};
