/*
 * error: a kind for the program and a sentence for a person.
 *
 * The sentence is lower case, has its subject in quotes and the cause last:
 *     cannot open store 'main.db': disk I/O error
 * A function either reports an error or logs it, never both.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum error_kind {
        ERR_NONE,
        ERR_INVALID, /* wrong input; a retry will not help */
        ERR_MISSING,
        ERR_REFUSED,  /* not allowed */
        ERR_CONFLICT, /* already taken, or the state does not permit it */
        ERR_LIMIT,    /* our limit or the peer's; a later retry may work */
        ERR_TIMEOUT,
        ERR_NET,      /* unreachable, or the connection broke */
        ERR_PROTOCOL, /* the peer broke its protocol */
        ERR_FULL,     /* no space left on the disk */
        ERR_IO,
        ERR_BUSY, /* the lock is held elsewhere */
        ERR_CORRUPT,
        ERR_CANCELLED,
        ERR_INTERNAL, /* a bug of ours */
};

struct error {
        enum error_kind kind;
        char text[500];
};

/* Fills *err (may be NULL). Returns -1. */
int error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the sentence; returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(struct error *err);
/* "invalid", "missing", ... as written to logs and the store. */
const char *error_kind_name(enum error_kind kind);

#endif
