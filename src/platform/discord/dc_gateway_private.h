/*
 * What the files of the gateway share; see dc_gateway.h.
 */
#ifndef PLATFORM_DISCORD_DC_GATEWAY_PRIVATE_H
#define PLATFORM_DISCORD_DC_GATEWAY_PRIVATE_H

#include <sys/queue.h>

#include "base/buf.h"
#include "net/inflate.h"
#include "net/websocket.h"
#include "platform/discord/dc_gateway.h"

#define DC_FRAME_MAX    4096 /* what Discord takes from us in one frame */
#define DC_TICKET_SHARD 40   /* bits of a ticket below the number of its shard */

/* ---- dc_close.c ---- */

/* What to do after a connection. */
enum dc_plan {
        DC_RESUME,
        DC_IDENTIFY, /* the session is lost */
        DC_STOP,     /* the operator has to act */
};

struct dc_close_rule {
        int code;
        enum dc_plan plan;
        bool ours;        /* we broke the protocol */
        const char *what; /* for people */
};
/* Never NULL: codes that are not in the table mean that the connection was lost. */
const struct dc_close_rule *dc_close_rule(int code);
/* The sentence for a code that stops. */
void dc_close_sentence(const struct dc_gateway_options *o, int code, char *out, size_t size);

/* ---- dc_session.c ---- */

/*
 * What RESUME needs, and what has to be read back when that does not help. Empty: id NULL.
 *
 * Times are Discord's, taken from the ids of messages, as far as there were any: our own clock may
 * jump.
 */
struct dc_session {
        char *id, *resume_url;
        int64_t seq;       /* everything up to here is committed */
        int64_t seen_ms;   /* nothing is missing up to then; 0: never was there a session */
        bool seen_message; /* seen_ms is the time of a message */
        /* an earlier session was lost then, and reading back has not ended; 0: it has */
        int64_t missing_ms;
        char *user_id, *username, *application_id;
};
void dc_session_release(struct dc_session *s);
/* It cannot be resumed; what is missing since is still known. */
void dc_session_forget(struct dc_session *s);

struct dc_session_file;
/*
 * Reads what is there, if it belongs to this bot, these intents and this number of shards. dir
 * NULL: nothing is kept.
 */
struct dc_session_file *dc_session_open(const struct dc_gateway_options *o, unsigned shard,
                                        unsigned shards, struct dc_session *out);
/*
 * Soon, at most once in save_ms, on a worker thread, as it is then; another session at once. It
 * must live until dc_session_close.
 */
void dc_session_save(struct dc_session_file *f, const struct dc_session *s);
/* Writes what is still to be written; blocks. NULL is fine. */
void dc_session_close(struct dc_session_file *f);

/* ---- dc_frame.c ---- */

/*
 * The frames of one connection on their way to JSON. Large ones are parsed on a pool thread; the
 * order stays, and nothing more is read meanwhile.
 */
struct dc_frames;
struct dc_frames_handlers {
        void (*payload)(void *arg, json_t *payload); /* an object; borrowed */
        void (*busy)(void *arg, bool busy);          /* stop reading, go on reading */
        /* not to be read; the connection is of no use any more */
        void (*failed)(void *arg, const char *why);
};
struct dc_frames *dc_frames_new(struct loop *l, const char *compress,
                                const struct dc_frames_handlers *handlers, void *arg);
/* No callback follows. NULL is fine. Allowed inside callbacks. */
void dc_frames_free(struct dc_frames *f);
void dc_frames_feed(struct dc_frames *f, bool binary, const char *bytes, size_t n);

/* ---- dc_pending.c ---- */

/* What counts of a dispatch once it is committed. */
struct dc_passed {
        int64_t seq;
        int64_t message_ms; /* the time of a message by its id; 0: it is none */
        bool begins;        /* the first of a new session */
};

/*
 * Dispatches in their order, from being handed over until they and all before them are committed.
 * Zeroed is empty.
 */
struct dc_pending {
        struct dc_pending_entry *ring;
        size_t cap, count;
        size_t open;    /* of them, not committed: others only wait for these */
        uint64_t first; /* number of the oldest */
};
void dc_pending_release(struct dc_pending *p);
/* Returns its number. */
uint64_t dc_pending_add(struct dc_pending *p, const struct dc_passed *what);
/* Harmless for a number that is not there. */
void dc_pending_done(struct dc_pending *p, uint64_t number);
/* Takes the oldest away if it is done. */
bool dc_pending_take(struct dc_pending *p, struct dc_passed *what);

/* ---- dc_progress.c ---- */

/*
 * How far a shard has come: what of its session was received, and what of that is committed. Zeroed
 * before dc_progress_open.
 */
struct dc_progress {
        char *session_id, *resume_url; /* of the session we are in; NULL: none */
        int64_t seq;                   /* received */
        struct dc_session committed;
        struct dc_session next;    /* begun, but something before it is not committed yet */
        struct dc_pending pending; /* received and not committed */
        bool full;                 /* so much that nothing more should be read */
        struct dc_session_file *file;
};
/* With what an earlier process has left. */
void dc_progress_open(struct dc_progress *p, const struct dc_gateway_options *o, unsigned shard,
                      unsigned shards);
/* What has to be on disk is when this returns. */
void dc_progress_release(struct dc_progress *p);
/* The session cannot be resumed; what is missing since is still known. */
void dc_progress_drop(struct dc_progress *p);
/*
 * READY has named a session. Returns since when something may be missing; 0: there was none before.
 */
int64_t dc_progress_begin(struct dc_progress *p, const char *id, const char *resume_url,
                          const json_t *ready, int64_t seq);
/* A dispatch has come; returns its number. */
uint64_t dc_progress_received(struct dc_progress *p, const struct dc_passed *what);
/*
 * The one of this number is committed, in any order. wall_ms: nothing is missing up to now if
 * nothing else waits; 0: nobody knows.
 */
void dc_progress_committed(struct dc_progress *p, uint64_t number, int64_t wall_ms);
/* Discord has answered a heartbeat: the same. */
void dc_progress_alive(struct dc_progress *p, int64_t wall_ms);
/* What an earlier session missed is stored. */
void dc_progress_caught_up(struct dc_progress *p);
/* What a heartbeat says; -1: nothing yet. */
int64_t dc_progress_heartbeat(const struct dc_progress *p);
/* The session we are in, with who we are in it. */
const struct dc_session *dc_progress_session(const struct dc_progress *p);

/* ---- dc_link.c ---- */

/* One connection. Each handler may free it. */
struct dc_link;
struct dc_link_handlers {
        void (*opened)(void *arg);
        void (*payload)(void *arg, json_t *payload); /* an object; borrowed */
        int64_t (*heartbeat)(void *arg);             /* the number it says; -1: none yet */
        void (*silent)(void *arg);                   /* the last heartbeat was not answered */
        void (*unreadable)(void *arg, const char *why);
        void (*closed)(void *arg, const struct websocket_end *end);
};
/* base: without its query. The handlers must live as long. */
struct dc_link *dc_link_open(struct dc_gateway *g, const char *base,
                             const struct dc_link_handlers *handlers, void *arg);
/* No handler follows. NULL is fine. */
void dc_link_free(struct dc_link *l);
/* With a code that leaves the session alive; `closed` follows. */
void dc_link_close(struct dc_link *l);
/* Releases b, and wipes it: the token may be in it. */
void dc_link_send(struct dc_link *l, struct buf *b);
/* The first heartbeat at some moment of the first interval, as everybody else's. */
void dc_link_beat_every(struct dc_link *l, int64_t ms);
/* Discord asks for one. */
void dc_link_beat_now(struct dc_link *l);
/* Discord has answered one. */
void dc_link_acked(struct dc_link *l);
/* Nothing more is read until it is released. NULL is fine. */
void dc_link_hold(struct dc_link *l, bool held);
/* -1: not known. NULL is fine. */
int64_t dc_link_ping_ms(const struct dc_link *l);

/* ---- dc_say.c ---- */

enum {
        DC_OP_DISPATCH = 0,
        DC_OP_HEARTBEAT = 1,
        DC_OP_IDENTIFY = 2,
        DC_OP_RESUME = 6,
        DC_OP_RECONNECT = 7,
        DC_OP_INVALID = 9,
        DC_OP_HELLO = 10,
        DC_OP_ACK = 11,
};

/* What we say to the gateway. seq -1: nothing was told yet. */
void dc_say_heartbeat(struct buf *out, int64_t seq);
void dc_say_identify(struct buf *out, const struct dc_gateway_options *o, unsigned shard,
                     unsigned shards);
void dc_say_resume(struct buf *out, const struct dc_gateway_options *o, const char *session,
                   int64_t seq);

/* ---- dc_shard.c ---- */

struct dc_shard;
struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards);
void dc_shard_free(struct dc_shard *s);
/* Connects and resumes, or asks for its turn to identify. */
void dc_shard_start(struct dc_shard *s);
/* Its turn: connect and identify. */
void dc_shard_identify(struct dc_shard *s);
/* Closes for good. */
void dc_shard_stop(struct dc_shard *s);
/* Drops the connection and resumes on another one. */
void dc_shard_renew(struct dc_shard *s, const char *why);
void dc_shard_committed(struct dc_shard *s, uint64_t number);
/* What an earlier session missed has been read back and stored. */
void dc_shard_caught_up(struct dc_shard *s);
void dc_shard_stats(const struct dc_shard *s, struct dc_gateway_stats *out);
bool dc_shard_is_up(const struct dc_shard *s);
unsigned dc_shard_id(const struct dc_shard *s);

/* ---- dc_gateway.c, for the shards ---- */

/* Who of a bucket identifies, and when the next one may. */
struct dc_turn {
        struct dc_shard *holder;
        int64_t next_ms;
};

enum dc_told { DC_TOLD_NOTHING, DC_TOLD_UP, DC_TOLD_LOST };

struct dc_gateway {
        struct dc_gateway_options o; /* times filled in, strings our own */
        struct dc_gateway_handlers on;
        void *arg;
        struct dc_shard **shards;
        unsigned count;
        struct dc_turn *turns;     /* one for each shard that may identify at once */
        struct dc_shard **waiting; /* for their turn, in order; room for all */
        unsigned waiting_count, concurrency;

        char *url;                             /* of the answer, or of the options */
        int64_t remaining, total, reset_at_ms; /* of session_start_limit; loop time */
        int64_t asked_ms;                      /* when that was told; -1: it has to be asked */
        int64_t retry_at_ms;                   /* not to be asked before */
        unsigned failures;                     /* of asking, in a row */
        bool asking, stopped;

        struct timer *timer; /* the next turn or question */
        struct timer *watch; /* did the machine sleep? */
        struct timer *grace; /* a loss that is not told yet */
        struct timer *tidy;  /* memory that large payloads needed is given back */
        int64_t watch_wall_ms, watch_mono_ms;
        enum dc_told told;
        char why[200]; /* of the last loss */
        struct dc_gateway_stats counted;
        unsigned refs; /* the owner, handlers on the stack */
        bool freed;
};

/* Asks for the turn of this shard to identify; dc_shard_identify follows. */
void dc_gateway_want_turn(struct dc_gateway *g, struct dc_shard *s);
/* The turn is over: IDENTIFY was sent, or it came to nothing. Harmless when it had none. */
void dc_gateway_turn_over(struct dc_gateway *g, struct dc_shard *s, bool identified);
/* since_ms: of the gap, unless it was resumed. */
void dc_gateway_shard_up(struct dc_gateway *g, const struct dc_gateway_ready *ready,
                         int64_t since_ms);
void dc_gateway_shard_lost(struct dc_gateway *g, const char *why);
void dc_gateway_stop(struct dc_gateway *g, bool bad_token, const char *why);
/* A large payload was read: what it needed is given back when no more of them come. */
void dc_gateway_was_large(struct dc_gateway *g);
int64_t dc_gateway_now(const struct dc_gateway *g);

#endif
