/*
 * options: the command line of a simulator.
 *
 * Most options are shared; each simulator may have a few of its own. --help is made from the rows.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_TOKENS   32
#define OPTIONS_OWN      4
#define OPTIONS_KEEP_MIN 8

/* An option of one simulator alone. */
struct own_option {
        const char *name, *value, *help; /* "data", "DIR", ...; name NULL ends the table */
};

struct options {
        char host[80];    /* where to listen */
        const char *port; /* "0": a free one */
        const char *tls_cert, *tls_key, *ca_file;
        const char *tokens[OPTIONS_TOKENS]; /* one at least */
        size_t token_count;
        bool no_limits, lax, quiet;
        uint64_t keep, seed;          /* 0: absent */
        const char *own[OPTIONS_OWN]; /* of own_option rows, in their order; NULL: absent */
};

struct options_about {
        const char *name, *about; /* "telegram"; the first lines of --help */
        const char *port, *token; /* defaults */
        const struct own_option *own;
        const char *controls; /* the last lines of --help: the control API */
};

/*
 * 0: go on; -1: help was printed; else the exit code after an error message. Strings belong to argv
 * and about.
 */
int options_read(struct options *o, const struct options_about *about, int argc, char **argv);
/* "127.0.0.1:8081", yours to free. */
char *options_address(const struct options *o, const char *port);

#endif
