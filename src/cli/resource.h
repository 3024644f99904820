/*
 * resource: commands that list or change resources of the daemon's API.
 */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

#include "cli/client.h"

#define RESOURCE_MAX_ACTIONS 16

/* Appends the items of all pages to an array. The path may have a query. */
int resource_fetch(struct client *c, const char *path, json_t *items, struct error *err);
/* Fetches all pages and prints the items, or `none` when there are none. */
typedef void resource_print_fn(const json_t *item);
int resource_list(const struct args *a, struct client *c, const char *path, const char *none,
                  resource_print_fn *print, struct error *err);
/* Sends a request and prints its result by the function, or as JSON. */
int resource_change(const struct args *a, struct client *c, const struct client_request *request,
                    resource_print_fn *print, struct error *err);

/* The same with a method, a path and a body (NULL: none), which is released. */
int resource_request(const struct args *a, struct client *c, const char *method, const char *path,
                     struct buf *body, resource_print_fn *print, struct error *err);

/* A command with several actions; the first one is the default. */
struct resource_action {
        const char *name;        /* NULL ends a list */
        const char *operands[2]; /* their names; they follow the action in args->operands */
        int (*run)(struct args *a, struct client *c, struct error *err);
};
int resource_run(struct args *a, const struct resource_action *actions);

/* prefix, then the name escaped as one path segment, then suffix; yours to free. */
char *resource_path(const char *prefix, const char *name, const char *suffix);

#endif
