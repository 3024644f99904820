#include "cli/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)1024 * 1024)

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
                        cursor = http_escape(json_str(meta, "cursor", ""));
                        next = mem_printf("%s%ccursor=%s", path, strchr(path, '?') ? '&' : '?',
                                          cursor);
                        free(cursor);
                }
                json_decref(page);
        }
        free(next);
        return rc;
}

int resource_list(const struct args *a, struct client *c, const char *path, const char *none,
                  resource_print_fn *print, struct error *err)
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
                        print(item);
                if (json_array_size(items) == 0)
                        puts(none);
        }
        json_decref(items);
        return rc;
}

int resource_change(const struct args *a, struct client *c, const struct client_request *request,
                    resource_print_fn *print, struct error *err)
{
        json_t *json = NULL;
        const json_t *data;
        int rc = client_ask(c, request, &json, err);

        data = json_object_get(json, "data");
        if (rc == 0 && a->json)
                print_json(data);
        else if (rc == 0)
                print(data);
        json_decref(json);
        return rc;
}

const char *args_channel(const struct args *a, const char *place)
{
        const char *slash = strchr(place, '/');

        if (slash && slash > place && slash[1] != '\0')
                return slash + 1;
        command_usage_error(a->command, "'%s' must be ADAPTER/CHANNEL, such as tg/12345", place);
        return NULL;
}

char *resource_chat_path(const char *place, const char *verb)
{
        size_t n = strcspn(place, "/");
        char *name = mem_strndup(place, n), *adapter = http_escape(name),
             *channel = http_escape(place + n + 1);
        char *path = mem_printf("/api/v2/chats/%s/%s/%s", adapter, channel, verb);

        free(name);
        free(adapter);
        free(channel);
        return path;
}

char *resource_path(const char *prefix, const char *name, const char *suffix)
{
        char *escaped = http_escape(name), *path = mem_printf("%s%s%s", prefix, escaped, suffix);

        free(escaped);
        return path;
}

char *args_file(const char *path, struct error *err)
{
        FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
        struct buf text;
        char *at;
        bool whole;

        if (!f) {
                error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
                return NULL;
        }
        buf_init(&text, FILE_MAX);
        while (!feof(f) && !ferror(f) && (at = buf_reserve(&text, 4096)))
                buf_grew(&text, fread(at, 1, 4096, f));
        whole = feof(f) && !ferror(f);
        if (ferror(f))
                error_set(err, ERR_IO, "cannot read '%s'", path);
        else if (!whole)
                error_set(err, ERR_INVALID, "'%s' is longer than %zu bytes", path, FILE_MAX);
        if (f != stdin)
                fclose(f);
        if (whole)
                return buf_take(&text);
        buf_release(&text);
        return NULL;
}

static const struct resource_action *find(const struct resource_action *actions, const char *name)
{
        for (; name && actions->name; actions++) {
                if (strcmp(actions->name, name) == 0)
                        return actions;
        }
        return NULL;
}

int resource_run(struct args *a, const struct resource_action *actions)
{
        const char *names[RESOURCE_MAX_ACTIONS + 1] = { NULL };
        const struct resource_action *action;

        for (size_t i = 0; i < RESOURCE_MAX_ACTIONS && actions[i].name; i++)
                names[i] = actions[i].name;
        action = find(actions, args_action(a, names, actions[0].name));
        if (!action)
                return CLI_USAGE;
        for (size_t i = 0; i < COUNT(action->operands) && action->operands[i]; i++) {
                if (!args_operand(a, action->operands[i]))
                        return CLI_USAGE;
        }
        return args_end(a) < 0 ? CLI_USAGE : client_command(a, action->run);
}
