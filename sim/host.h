/*
 * host: what the main function of every simulator does.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "net/loop.h"

/* Runs the loop until Ctrl-C or SIGTERM. */
void host_run(struct loop *l);

#endif
