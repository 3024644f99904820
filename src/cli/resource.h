/*
 * rest: the two shapes of commands that only carry a question to the daemon: show a list, make a
 * change.
 */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

#include "cli/client.h"

#define REST_MAX_ACTIONS 16

/* Adds the items of all pages to an array. path may have a query. */
int rest_fetch(struct client *c, const char *path, json_t *items, struct error *err);
/* Fetches every page of a list and prints its items; `none` when there are none. */
typedef void rest_print_fn(const json_t *item);
int rest_list(const struct args *a, struct client *c, const char *path, const char *none,
              rest_print_fn *print, struct error *err);
/* Asks for a change and prints what came back, by the function or as JSON. */
int rest_change(const struct args *a, struct client *c, const struct client_request *request,
                rest_print_fn *print, struct error *err);

/*
 * A command with several actions: the first is meant when none is named. Its function finds its
 * operands behind the action's name.
 */
struct rest_action {
        const char *name;        /* NULL ends a list */
        const char *operands[2]; /* what they are called; NULL: none */
        int (*run)(struct args *a, struct client *c, struct error *err);
};
int rest_run(struct args *a, const struct rest_action *actions);

/* A file, or with "-" standard input, as text: yours to free; NULL with an error. At most 1 MiB. */
char *rest_read_file(const char *path, struct error *err);
/* prefix, then the name as one segment of a path, then suffix; yours to free. */
char *rest_path(const char *prefix, const char *name, const char *suffix);
/*
 * "tg/12345": where the channel begins, behind the first slash (a channel may have more); NULL
 * after telling.
 */
const char *rest_channel(const struct args *a, const char *place);
/* "/api/v2/chats/<adapter>/<channel>/<verb>" of such a place; yours to free. */
char *rest_chat_path(const char *place, const char *verb);

#endif
