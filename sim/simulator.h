/*
 * host: the life of a simulator, from its options to Ctrl-C.
 *
 * Each simulator is a row of functions; what they share (the loop, the client, the server under one
 * address, the console) is made here.
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
        const char *user_agent; /* of the calls it makes; NULL: our own */
        /*
         * The world, with the bots of the options, and whatever else it listens with. The client is
         * borrowed. NULL with an error.
         */
        struct world *(*open)(struct loop *l, struct http_client *client, const struct options *o,
                              struct error *err);
        /* While the server can still answer: whoever waits gets something. */
        void (*close)(struct world *w);
        /* What the server answers, the control API included; yours to free. */
        struct http_route *(*routes)(size_t *count);
        /* The platform's words for what the server itself refuses. */
        void (*refuse)(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);
        /* The server is reached at this address. Optional. */
        void (*reached)(struct world *w, const char *url);
        /* Tells a person how to go on. */
        void (*greet)(const struct world *w, const char *url);
        control_fn *send; /* for what is typed */
};

/* Returns the exit code. */
int simulator_main(const struct simulator_ops *ops, int argc, char **argv);

#endif
