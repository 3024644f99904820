#include "platform/discord/dc_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_route.h"

#define CALL_MS 15000
#define WAIT_MS 10000

/* ---- the copy ---- */

static bool is_bare(const char *route)
{
        return strncmp(route, "/interactions/", 14) == 0 || strncmp(route, "/webhooks/", 10) == 0;
}

int dc_call_make(struct dc_call *c, const struct dc_request *q, int64_t now_ms, struct error *err)
{
        struct buf path, major;
        int rc;

        c->method = mem_strdup(q->method);
        c->route = mem_strdup(q->route);
        c->body = q->body ? json_text(q->body) : NULL;
        c->priority = q->priority;
        c->repeatable = q->repeatable;
        c->bare = is_bare(q->route);
        c->total_ms = q->total_ms > 0 ? q->total_ms : CALL_MS;
        c->deadline_ms = now_ms + (q->wait_ms > 0 ? q->wait_ms : WAIT_MS);
        for (; c->file_count < q->file_count && c->file_count < DC_FILES_MAX; c->file_count++)
                c->files[c->file_count] =
                        (struct dc_upload){ mem_strdup(q->files[c->file_count].path),
                                            mem_strdup(q->files[c->file_count].name),
                                            mem_strdup(q->files[c->file_count].mime) };
        buf_init(&path, 0);
        buf_init(&major, 0);
        rc = dc_route_fill(q, &path, &major, err);
        if (rc == 0) {
                c->path = mem_strdup(path.data);
                c->major = mem_strdup(major.data);
        }
        buf_release(&path);
        buf_release(&major);
        return rc;
}

void dc_call_free(struct dc_call *c)
{
        for (size_t i = 0; i < c->file_count; i++) {
                free((char *)c->files[i].path);
                free((char *)c->files[i].name);
                free((char *)c->files[i].mime);
        }
        free(c->method);
        free(c->major);
        free(c->path);
        free(c->route);
        free(c->body);
        free(c);
}

/* ---- the request ---- */

static size_t make_parts(const struct dc_call *c, struct http_part *parts, char names[][32])
{
        size_t n = 0;

        if (c->body)
                parts[n++] = (struct http_part){ .name = "payload_json",
                                                 .data = c->body,
                                                 .data_n = strlen(c->body),
                                                 .content_type = "application/json" };
        for (size_t i = 0; i < c->file_count; i++) {
                snprintf(names[i], sizeof(names[i]), "files[%zu]", i);
                parts[n++] = (struct http_part){ .name = names[i],
                                                 .file_path = c->files[i].path,
                                                 .file_name = c->files[i].name,
                                                 .content_type = c->files[i].mime };
        }
        return n;
}

struct http_call *dc_call_start(struct dc_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers)
{
        struct http_part parts[DC_FILES_MAX + 1] = { 0 };
        char names[DC_FILES_MAX][32];
        char *url = mem_printf("%s%s", base, c->path);
        const char *headers[4] = { DC_AGENT };
        size_t n = 1;
        struct http_request q = { .method = c->method,
                                  .url = url,
                                  .headers = headers,
                                  .total_ms = c->total_ms,
                                  .repeatable = c->repeatable };
        struct http_call *started;

        if (!c->bare)
                headers[n++] = authorization;
        if (c->file_count > 0) {
                q.part_count = make_parts(c, parts, names);
                q.parts = parts;
        } else if (c->body) {
                headers[n++] = "Content-Type: application/json";
                q.body = c->body;
                q.body_n = strlen(c->body);
        }
        started = http_start(http, &q, handlers, c);
        if (c->bare)
                explicit_bzero(url, strlen(url));
        free(url);
        return started;
}
