/*
 * resource: commands that list or change resources of the API.
 */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

#include "cli/client.h"

#define RESOURCE_MAX_ACTIONS 16

typedef void resource_print_fn(const json_t *data);

/*
 * An action such as "revoke ID"; the first is the default. Most are data: a list or a request, by
 * the members after `run`.
 */
struct resource_action {
        const char *name;        /* NULL ends a list */
        const char *operands[2]; /* for usage errors; in args->operands */
        int (*run)(struct args *a, struct client *c, struct error *err);
        const char *method;     /* NULL: GET */
        const char *path;       /* the operand is appended, unless there are members */
        const char *members[2]; /* of a JSON body, for the operands */
        const char *none;       /* printed for an empty list */
        resource_print_fn *print;
};
int resource_run(struct args *a, const struct resource_action *actions);

/* Appends the items of all pages. The path may have a query. */
int resource_fetch(struct client *c, const char *path, json_t *items, struct error *err);
/* Releases the body (may be NULL), and prints the result by the function or as JSON. */
int resource_request(const struct args *a, struct client *c, const char *method, const char *path,
                     struct buf *body, resource_print_fn *print, struct error *err);
/*
 * The same for `what`, a name. If the daemon answers with candidates, asks at a terminal which one
 * is meant: 1 with *meant, yours to free, to be named in another request.
 */
int resource_request_named(const struct args *a, struct client *c, const char *path,
                           struct buf *body, resource_print_fn *print, const char *what,
                           char **meant, struct error *err);
/* The name is escaped as one segment; yours to free. */
char *resource_path(const char *prefix, const char *name, const char *suffix);

#endif
