/*
 * rest: the two shapes of commands that only carry a question to the daemon: show a list, make a
 * change.
 */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

#include "cli/client.h"

#define RESOURCE_MAX_ACTIONS 16

/* Adds the items of all pages to an array. path may have a query. */
int resource_fetch(struct client *c, const char *path, json_t *items, struct error *err);
/* Fetches every page of a list and prints its items; `none` when there are none. */
typedef void resource_print_fn(const json_t *item);
int resource_list(const struct args *a, struct client *c, const char *path, const char *none,
                  resource_print_fn *print, struct error *err);
/* Asks for a change and prints what came back, by the function or as JSON. */
int resource_change(const struct args *a, struct client *c, const struct client_request *request,
                    resource_print_fn *print, struct error *err);

/*
 * A command with several actions: the first is meant when none is named. Its function finds its
 * operands behind the action's name.
 */
struct resource_action {
        const char *name;        /* NULL ends a list */
        const char *operands[2]; /* what they are called; NULL: none */
        int (*run)(struct args *a, struct client *c, struct error *err);
};
int resource_run(struct args *a, const struct resource_action *actions);

/* A file, or with "-" standard input, as text: yours to free; NULL with an error. At most 1 MiB. */
char *args_file(const char *path, struct error *err);
/* prefix, then the name as one segment of a path, then suffix; yours to free. */
char *resource_path(const char *prefix, const char *name, const char *suffix);
/*
 * "tg/12345": where the channel begins, behind the first slash (a channel may have more); NULL
 * after telling.
 */
const char *args_channel(const struct args *a, const char *place);
/* "/api/v2/chats/<adapter>/<channel>/<verb>" of such a place; yours to free. */
char *resource_chat_path(const char *place, const char *verb);

#endif
