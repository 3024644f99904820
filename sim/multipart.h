/*
 * multipart: a strict parser of multipart/form-data bodies (RFC 7578).
 *
 * Strict because the real server may guess differently than a lenient parser.
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
        char *content_type; /* NULL: absent */
        const char *data;   /* inside the body */
        size_t n;
};

struct multipart {
        struct multipart_part *parts;
        size_t count;
};

/* Takes NULL, too. */
bool multipart_is(const char *content_type);
/* The parts point into body. On -1 with an error there is nothing to release. */
int multipart_init(struct multipart *m, const char *content_type, const char *body, size_t n,
                   struct error *err);
void multipart_release(struct multipart *m);
const struct multipart_part *multipart_find(const struct multipart *m, const char *name);

#endif
