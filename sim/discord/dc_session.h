/*
 * session: what the files of the gateway share.
 */
#ifndef SIM_DISCORD_DC_SESSION_H
#define SIM_DISCORD_DC_SESSION_H

#include <sys/queue.h>

#include "sim/discord/dc_gateway.h"

enum op {
        OP_DISPATCH = 0,
        OP_HEARTBEAT = 1,
        OP_IDENTIFY = 2,
        OP_PRESENCE = 3,
        OP_VOICE = 4,
        OP_RESUME = 6,
        OP_RECONNECT = 7,
        OP_MEMBERS = 8,
        OP_INVALID = 9,
        OP_HELLO = 10,
        OP_ACK = 11,
        OP_SOUNDS = 31,
        OP_CHANNEL_INFO = 43,
};

struct sent {
        int64_t seq;
        char *text;
        size_t n;
};

struct session {
        struct gateway *gateway;
        char id[33];
        struct bot *bot;
        uint64_t intents;
        int shard, shards;
        int64_t seq;
        struct sent *ring; /* event n is at n % ring_n */
        size_t ring_n;
        struct link *link; /* NULL: lost, waiting to be resumed */
        struct timer *expiry;
        LIST_ENTRY(session) next;
};

struct link {
        struct gateway *gateway;
        struct ws *ws;
        struct session *session;       /* NULL: not identified yet */
        struct compressor *compressor; /* NULL: plain text */
        bool compress;                 /* each message on its own */
        bool closing;                  /* we closed: the peer's code is an echo */
        char path[64];
        int version;
        struct timer *silence; /* closes without heartbeats */
        int frames;            /* since minute_ms */
        int64_t minute_ms;
        LIST_ENTRY(link) next;
};

LIST_HEAD(links, link);
LIST_HEAD(sessions, session);

#define MAX_BUCKETS 16

struct gateway {
        struct world *world;
        struct ws_server *server;
        char *url;
        struct links links;
        struct sessions sessions;
        int64_t started_ms[MAX_BUCKETS]; /* the last identify of each bucket of shards */
};

/* ---- dc_session.c ---- */
struct session *dc_session_new(struct gateway *g, struct bot *b, uint64_t intents, int shard,
                               int shards);
/* The application flags in READY and /applications/@me. */
int64_t dc_session_application_flags(const struct bot *b);
void dc_session_free(struct session *s);
struct session *dc_session_find(struct gateway *g, const char *id);
/* Starts the time to resume. */
void dc_session_lost(struct session *s);
/* Numbers, stores and sends an event. */
void dc_session_dispatch(struct session *s, const char *event, const char *d);
/* Sends READY and the guilds. */
void dc_session_ready(struct session *s);
/* Resends the events after seq, then RESUMED. -1: some are no longer stored. */
int dc_session_replay(struct session *s, int64_t seq);

/* ---- dc_gateway.c ---- */
void dc_gateway_send(struct link *l, const char *text, size_t n);
/* A frame without a number; d is JSON text. */
void dc_gateway_send_op(struct link *l, enum op op, const char *d);
void dc_gateway_close(struct link *l, int code);

/* ---- dc_compress.c: one stream, flushed after each message ---- */
/* "zlib-stream" or "zstd-stream"; NULL: unknown name. */
struct compressor *dc_compress_new(const char *name);
void dc_compress_free(struct compressor *s);
/* Appends the next message to out. */
void dc_compress_add(struct compressor *s, const char *bytes, size_t n, struct buf *out);
/* One message on its own in zlib's format, for "compress" in IDENTIFY. */
void dc_compress_alone(const char *bytes, size_t n, struct buf *out);

#endif
