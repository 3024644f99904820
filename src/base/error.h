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
        ERR_INVALID,  /* the caller's input is wrong; trying again will not help */
        ERR_MISSING,  /* there is no such thing */
        ERR_REFUSED,  /* not allowed */
        ERR_CONFLICT, /* somebody else has it, or the state does not permit it */
        /* one of our limits, or the peer's rate limit, is reached; later it may work */
        ERR_LIMIT,
        ERR_TIMEOUT,   /* a deadline passed */
        ERR_NET,       /* the peer could not be reached or the connection broke */
        ERR_PROTOCOL,  /* the peer said something that makes no sense */
        ERR_FULL,      /* no space left on the disk */
        ERR_IO,        /* reading or writing failed */
        ERR_BUSY,      /* somebody holds the lock */
        ERR_CORRUPT,   /* stored data is damaged */
        ERR_CANCELLED, /* somebody asked us to stop */
        ERR_INTERNAL,  /* our own fault */
};

struct error {
        enum error_kind kind;
        char text[500];
};

/* Fills *err (NULL is fine) and returns -1, so that reporting is one statement. */
int error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " before the sentence; returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(struct error *err);
/* "invalid", "missing", ... as written in logs and the database. */
const char *error_kind_name(enum error_kind kind);

#endif
