/*
 * frame: what the daemon and the box say to each other, over the box's stdin and stdout.
 *
 * The box is a small static program of ours. Inside a sandbox it runs commands for the daemon; as
 * the launcher it prepares the process that becomes the sandbox. It is not trusted: a command may
 * take it over, so the daemon checks every frame.
 *
 * A frame is a header and n bytes. Both sides are the same build on the same machine, so numbers
 * are in the machine's order.
 */
#ifndef BOX_FRAME_H
#define BOX_FRAME_H

#include <stdint.h>

#define BOX_REQUEST_MAX (512u << 10) /* bytes of a frame to the box */
#define BOX_ANSWER_MAX  (32u << 10)  /* bytes of a frame from it */
#define BOX_RUNS_MAX    64           /* commands at a time */

/* Where the launcher puts mounts for a sandbox; not used otherwise before bubblewrap's own. */
#define BOX_MOUNTS "/sys"

struct box_head {
        uint32_t n, id, type;
};

enum box_type {
        /* to the box; id is the daemon's number of the command */
        BOX_RUN = 1, /* uint32_t flags, then strings: cwd, argv[0], argv[1], ... */
        BOX_WRITE,   /* bytes for stdin */
        BOX_CLOSE,   /* no more of them */
        BOX_STOP,    /* uint32_t grace_ms: TERM, then KILL; 0: KILL */
        /* from it */
        BOX_READY = 16, /* once, first */
        BOX_OUT,        /* bytes of stdout */
        BOX_ERR,        /* bytes of stderr */
        BOX_TOOK,       /* uint32_t: bytes that stdin took */
        BOX_EXIT,       /* struct box_exit; the last of a command */
        BOX_FAILED,     /* a text: it could not be started; the last of a command */
};

enum box_flag {
        BOX_HAS_INPUT = 1, /* BOX_WRITE follows; else stdin is /dev/null */
        BOX_NO_WRITES = 2, /* no file may grow: the disk is full */
};

struct box_exit {
        int32_t code, signal; /* code -1: ended by the signal */
        int32_t killed;       /* processes it left behind, which were killed */
};

#endif
