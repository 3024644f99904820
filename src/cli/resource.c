#include "cli/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/ask.h"
#include "cli/print.h"
#include "net/http_text.h"

int resource_fetch(struct client *c, const char *path, json_t *items, struct error *err)
{
        char *next = mem_strdup(path);
        int rc = 0;

        while (next && rc == 0) {
                json_t *page = NULL;
                const json_t *meta;
                char *cursor;

                rc = client_get(c, next, &page, err);
                free(next);
                next = NULL;
                meta = json_object_get(page, "meta");
                json_array_extend(items, json_object_get(page, "items"));
                if (json_flag(meta, "hasMore", false) && json_str(meta, "cursor", NULL)) {
                        cursor = http_text_escape(json_str(meta, "cursor", ""));
                        next = mem_printf("%s%ccursor=%s", path, strchr(path, '?') ? '&' : '?',
                                          cursor);
                        free(cursor);
                }
                json_decref(page);
        }
        free(next);
        return rc;
}

static int request(const struct args *a, struct client *c, struct client_request *q,
                   struct buf *body, resource_print_fn *print, struct error *err)
{
        json_t *json = NULL;
        const json_t *data;
        int rc;

        q->body = body ? body->data : NULL;
        rc = client_ask(c, q, &json, err);
        data = json_object_get(json, "data");
        if (rc == 0 && a->json)
                print_json(data);
        else if (rc == 0)
                print(data);
        json_decref(json);
        if (body)
                buf_release(body);
        return rc;
}

int resource_request(const struct args *a, struct client *c, const char *method, const char *path,
                     struct buf *body, resource_print_fn *print, struct error *err)
{
        struct client_request q = { .method = method, .path = path };

        return request(a, c, &q, body, print, err);
}

int resource_request_named(const struct args *a, struct client *c, const char *path,
                           struct buf *body, resource_print_fn *print, const char *what,
                           char **meant, struct error *err)
{
        json_t *refusal = NULL;
        struct client_request q = { .method = "POST", .path = path, .refusal = &refusal };
        int rc = request(a, c, &q, body, print, err);
        const json_t *candidates = json_object_get(refusal, "candidates");
        const char *chosen;

        if (rc < 0 && json_array_size(candidates) > 0 && ask_possible(a)) {
                chosen = ask_which(what, candidates, err);
                *meant = mem_strdup(chosen);
                rc = chosen ? 1 : -1;
        }
        json_decref(refusal);
        return rc;
}

char *resource_path(const char *prefix, const char *name, const char *suffix)
{
        char *escaped = http_text_escape(name),
             *path = mem_printf("%s%s%s", prefix, escaped, suffix);

        free(escaped);
        return path;
}

static int list(const struct args *a, struct client *c, const char *path, struct error *err)
{
        json_t *items = json_array(), *all;
        const json_t *item;
        int rc = resource_fetch(c, path, items, err);
        size_t i;

        if (rc == 0 && a->json) {
                all = json_pack("{s:O}", "items", items);
                print_json(all);
                json_decref(all);
        } else if (rc == 0) {
                json_array_foreach(items, i, item)
                        a->action->print(item);
                if (json_array_size(items) == 0)
                        puts(a->action->none);
        }
        json_decref(items);
        return rc;
}

static int run_action(struct args *a, struct client *c, struct error *err)
{
        const struct resource_action *r = a->action;
        char *path;
        struct buf body;
        int rc;

        if (r->run)
                return r->run(a, c, err);
        if (r->members[0]) {
                buf_init(&body, 0);
                jsonw_open(&body, '{');
                for (size_t i = 0; i < COUNT(r->members) && r->members[i]; i++)
                        jsonw_str(&body, r->members[i], a->operands[i + 1]);
                jsonw_close(&body, '}');
                return resource_request(a, c, r->method, r->path, &body, r->print, err);
        }
        path = r->operands[0] ? resource_path(r->path, a->operands[1], "") : mem_strdup(r->path);
        rc = r->none ? list(a, c, path, err)
                     : resource_request(a, c, r->method, path, NULL, r->print, err);
        free(path);
        return rc;
}

int resource_run(struct args *a, const struct resource_action *actions)
{
        const char *names[RESOURCE_MAX_ACTIONS + 1] = { NULL };
        const char *name;

        for (size_t i = 0; i < RESOURCE_MAX_ACTIONS && actions[i].name; i++)
                names[i] = actions[i].name;
        name = args_action(a, names, actions[0].name);
        while (name && actions->name && strcmp(actions->name, name) != 0)
                actions++;
        if (!name || !actions->name)
                return CLI_USAGE;
        for (size_t i = 0; i < COUNT(actions->operands) && actions->operands[i]; i++) {
                if (!args_operand(a, actions->operands[i]))
                        return CLI_USAGE;
        }
        a->action = actions;
        return args_end(a) < 0 ? CLI_USAGE : client_command(a, run_action);
}
