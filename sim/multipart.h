/*
 * multipart: taking a multipart/form-data body apart, strictly.
 *
 * A body that is not exactly what RFC 7578 asks for is refused: what a lenient parser guesses, the
 * real server may guess differently.
 */
#ifndef SIM_MULTIPART_H
#define SIM_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define MULTIPART_MAX_PARTS 128

struct multipart_part {
        char *name;
        char *file_name;    /* NULL: a plain field */
        char *content_type; /* NULL: not told */
        const char *data;   /* inside the body */
        size_t n;
};

struct multipart {
        struct multipart_part *parts;
        size_t count;
};

/* Is this the Content-Type of such a body? NULL is not. */
bool multipart_is(const char *content_type);
/*
 * The parts point into body, which must live as long. Returns 0, or -1 with an error and nothing to
 * release.
 */
int multipart_init(struct multipart *m, const char *content_type, const char *body, size_t n,
                   struct error *err);
void multipart_release(struct multipart *m);
/* NULL when there is no part of that name. */
const struct multipart_part *multipart_find(const struct multipart *m, const char *name);

#endif
