/*
 * simulator: runs one simulator, from its options to Ctrl-C.
 *
 * Provides what all of them share: the loop, the HTTP client and server, the console.
 */
#ifndef SIM_SIMULATOR_H
#define SIM_SIMULATOR_H

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "sim/control.h"
#include "sim/options.h"

struct simulator_ops {
        struct options_about about;
        const char *user_agent; /* of outgoing calls; NULL: our own */
        /*
         * Makes the world with the bots of the options, and opens further listeners. The client is
         * borrowed. NULL with an error.
         */
        struct world *(*open)(struct loop *l, struct http_client *client, const struct options *o,
                              struct error *err);
        /* Runs while the server can still answer waiting requests. */
        void (*close)(struct world *w);
        /* All routes, the control API included; yours to free. */
        struct http_route *(*routes)(size_t *count);
        /* Writes refusals of the server itself in the platform's form. */
        void (*refuse)(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);
        void (*reached)(struct world *w, const char *url);     /* the server's address; optional */
        void (*greet)(const struct world *w, const char *url); /* prints the first steps */
        control_fn *send;                                      /* for lines typed in the console */
};

/* Returns the exit code. */
int simulator_main(const struct simulator_ops *ops, int argc, char **argv);

/* The simulators; argv[0] is the name. */
int dc_main(int argc, char **argv);
int lm_main(int argc, char **argv);
int sl_main(int argc, char **argv);
int tg_main(int argc, char **argv);

#endif
