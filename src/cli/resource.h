/*
 * resource: commands that list or change resources of the daemon's API.
 */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

#include "cli/client.h"

#define RESOURCE_MAX_ACTIONS 16

typedef void resource_print_fn(const json_t *data);

/*
 * An action of a command, such as "revoke ID"; the first one is the default. Most are data: a list
 * or a request, by the members after `run`. Operands follow the action's name in args->operands.
 */
struct resource_action {
        const char *name;        /* NULL ends a list */
        const char *operands[2]; /* their names, for usage errors */
        int (*run)(struct args *a, struct client *c, struct error *err);
        const char *method;     /* NULL: GET */
        const char *path;       /* followed by the operand, unless there are members */
        const char *members[2]; /* names of the operands in a JSON body */
        const char *none;       /* of a list: printed when it is empty */
        resource_print_fn *print;
};
int resource_run(struct args *a, const struct resource_action *actions);

/* Appends the items of all pages to an array. The path may have a query. */
int resource_fetch(struct client *c, const char *path, json_t *items, struct error *err);
/*
 * Sends a request with a body (NULL: none), which is released, and prints its result by the
 * function, or as JSON.
 */
int resource_request(const struct args *a, struct client *c, const char *method, const char *path,
                     struct buf *body, resource_print_fn *print, struct error *err);
/* prefix, then the name escaped as one path segment, then suffix; yours to free. */
char *resource_path(const char *prefix, const char *name, const char *suffix);

#endif
