/*
 * pieces: a streamed answer, event by event, and its way to the client: with pauses between the
 * events, and cut off where a fault wants it.
 */
#ifndef SIM_LLM_LM_PIECES_H
#define SIM_LLM_LM_PIECES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "sim/llm/lm_world.h"

struct lm_piece {
        size_t end; /* in bytes of all pieces */
        int64_t wait_ms;
};

struct lm_pieces {
        struct buf bytes;
        struct lm_piece *list;
        size_t count, room;
        int64_t next_wait_ms; /* of the next piece, once */
        int64_t wait_ms;      /* of every piece */
        int64_t cut_at;       /* bytes; -1: not */
};

void lm_pieces_init(struct lm_pieces *p);
void lm_pieces_release(struct lm_pieces *p);
/* Adds an event; name NULL: data only. Takes over the value. */
void lm_pieces_event(struct lm_pieces *p, const char *name, json_t *data);
/* Adds bytes as they are. */
void lm_pieces_raw(struct lm_pieces *p, const char *text);
/* Keeps the first n. */
void lm_pieces_keep(struct lm_pieces *p, size_t n);
/* How many of the n bytes belong to the next piece of at most `max`; splits no character. */
size_t lm_pieces_step(const char *text, size_t n, size_t max);

/* Answers x with the pieces, which are moved. */
void lm_stream_start(struct world *w, struct http_exchange *x, struct lm_pieces *p);
/* The world goes; streams end with their connections. */
void lm_stream_forget_all(struct world *w);

#endif
