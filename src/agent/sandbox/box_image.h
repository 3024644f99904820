/*
 * box_image: the program of src/box, which the daemon carries inside itself.
 *
 * It is run from memory: no path to it has to exist, neither here nor inside a sandbox, and it is
 * always of the same version as the daemon.
 */
#ifndef AGENT_SANDBOX_BOX_IMAGE_H
#define AGENT_SANDBOX_BOX_IMAGE_H

#include "base/error.h"

/* A descriptor to run it by, close-on-exec, shared and never to be closed; -1 with an error. */
int box_image_fd(struct error *err);

#endif
