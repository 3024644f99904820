/*
 * json_offload: parses large JSON texts on a pool thread.
 *
 * A megabyte of brackets keeps the parser busy for a tenth of a second. Callers parse texts below
 * JSON_OFFLOAD_MIN where they are.
 */
#ifndef NET_JSON_OFFLOAD_H
#define NET_JSON_OFFLOAD_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

#define JSON_OFFLOAD_MIN ((size_t)256 * 1024)

/* The result of a parse, here or on the loop. */
struct json_parsed {
        json_t *root;       /* NULL: malformed */
        struct error error; /* why, without root */
        const char *text;
        size_t n;
};

struct json_offload;
/* Runs on a pool thread. NULL with an error when malformed. */
typedef json_t *json_offload_parse_fn(const char *text, size_t n, struct error *err);
/* Borrowed for the call; json_incref keeps the tree. */
typedef void json_offload_done_fn(void *arg, const struct json_parsed *parsed);

/*
 * Takes over `text` (malloc'd). parse NULL: json_read. Calls `done` once, from the loop, unless
 * cancelled. A tree that was not kept is freed on the pool, which takes as long as building it.
 */
struct json_offload *json_offload_start(struct loop *l, char *text, size_t n,
                                        json_offload_parse_fn *parse, json_offload_done_fn *done,
                                        void *arg);
/* `done` is not called. Invalid once it has been. NULL is fine. */
void json_offload_cancel(struct json_offload *o);

#endif
