/*
 * rpc_frame: the lines of an agent in RPC mode, before they are parsed.
 *
 * omp repeats the message so far, twice, with every piece of text, and both programs repeat all
 * messages of a run at its end. What nobody reads is left out by a scan that stops as soon as it
 * has the rest, so a long answer does not cost its square. Messages that omp splits into chunks are
 * put together again.
 */
#ifndef AGENT_RPC_RPC_FRAME_H
#define AGENT_RPC_RPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct rpc_frames {
        size_t max; /* bytes of a message that is put together */
        struct {
                char id[64]; /* "": no message is being put together */
                int64_t count, next;
                size_t bytes; /* as announced */
                struct buf text;
                bool skips; /* the rest of it is not needed */
        } chunks;
        unsigned lost; /* messages whose chunks were wrong or too many */
};

void rpc_frames_init(struct rpc_frames *f, size_t max);
void rpc_frames_release(struct rpc_frames *f);

enum rpc_line {
        RPC_LINE_WHOLE,   /* parse the line */
        RPC_LINE_SHORT,   /* parse what is in out instead */
        RPC_LINE_NOTHING, /* nothing in it matters */
};
/* out: empty before. */
enum rpc_line rpc_frames_read(struct rpc_frames *f, const char *line, size_t n, struct buf *out);

#endif
