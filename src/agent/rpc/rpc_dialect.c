/*
 * rpc_dialect: how pi and omp differ.
 */
#include <string.h>

#include "agent/rpc/rpc.h"

static const char *const pi_words[] = { NULL };
/* The title of a session would be a further call of the model. */
static const char *const omp_words[] = { "--no-title", NULL };

static const struct rpc_dialect pi = {
        .name = "pi",
        .words = pi_words,
        .resume = "--session",
        .settles = true,
        .clear_queue = "clear_queue",
};

static const struct rpc_dialect omp = {
        .name = "omp",
        .words = omp_words,
        .resume = "--resume",
        .greets = true,
        .tells_handled = true,
        .chunks = true,
};

const struct rpc_dialect *rpc_dialect_of(const struct agent *a)
{
        return strcmp(a->ops->type, pi.name) == 0 ? &pi : &omp;
}
