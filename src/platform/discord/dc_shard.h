/*
 * dc_shard: internals of the gateway. A shard has a session and one connection at a time; the
 * gateway lets its shards identify in turn.
 */
#ifndef PLATFORM_DISCORD_DC_SHARD_H
#define PLATFORM_DISCORD_DC_SHARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/sleep_watch.h"
#include "net/websocket.h"
#include "platform/discord/dc_gateway.h"

/* ---- dc_session.c: how far a shard has come ---- */

struct dc_session_record {
        char *id, *resume_url; /* NULL: it cannot be resumed */
        int64_t seq;           /* committed, with everything before */
        /*
         * Nothing is missing up to then; 0: there was no session before. From the id of a message
         * if there was one (seen_message), because our clock may jump.
         */
        int64_t seen_ms;
        bool seen_message;
        /* the first session of this bot and data directory; 0: not known */
        int64_t first_ms;
        /* catch-up after an earlier session has not finished since then; 0: it has */
        int64_t missing_ms;
        char *user_id, *username, *application_id;
};

struct dc_session_event {
        int64_t seq;
        int64_t message_ms; /* 0: not a message */
        bool begins;        /* READY of a new session */
};

/*
 * `seq` is the last sequence received: a resume within this run continues there, because
 * everything up to it is in memory. `committed.seq` is the last one stored with everything before
 * it; only that one goes to disk and into heartbeats, so Discord keeps what a crash could lose.
 *
 * A new session may begin before the previous one is committed. Until then it is `next`, and the
 * file holds the previous one for a restart.
 */
struct dc_session {
        char *id, *resume_url; /* of the current session; NULL: none */
        int64_t seq;
        struct dc_session_record committed, next;
        /* uncommitted events, and committed ones after them */
        struct {
                struct dc_session_slot *ring;
                size_t cap, count;
                size_t open;    /* of them, not committed */
                uint64_t first; /* number of the oldest */
        } window;
        bool full; /* the window is: read nothing more */
        struct state_file *file;
        unsigned intents, shards;
        char token[17];          /* the beginning of its digest */
        const char *gateway_url; /* the setting; NULL: none */
        char *written;           /* session last handed to the file */
};

/* Zeroed before. Reads the file of an earlier run. */
void dc_session_open(struct dc_session *s, const struct dc_gateway_options *o, unsigned shard,
                     unsigned shards);
/* The file is up to date when this returns. */
void dc_session_release(struct dc_session *s);
/* It cannot be resumed. */
void dc_session_drop(struct dc_session *s);
/* READY: returns since when something may be missing; 0: the first session. */
int64_t dc_session_begin(struct dc_session *s, const char *resume_url, const json_t *ready,
                         int64_t seq, int64_t now_ms);
/* Returns its number in the window. */
uint64_t dc_session_received(struct dc_session *s, const struct dc_session_event *e);
/* In any order. complete_ms: nothing is missing up to then, or 0. */
void dc_session_committed(struct dc_session *s, uint64_t number, int64_t complete_ms);
void dc_session_alive(struct dc_session *s, int64_t complete_ms);
void dc_session_caught_up(struct dc_session *s);
/* -1: none yet. */
int64_t dc_session_heartbeat(const struct dc_session *s);

/* ---- dc_connection.c: one connection, used once ---- */

enum dc_op {
        DC_OP_DISPATCH = 0,
        DC_OP_HEARTBEAT = 1,
        DC_OP_IDENTIFY = 2,
        DC_OP_RESUME = 6,
        DC_OP_RECONNECT = 7,
        DC_OP_INVALID = 9,
        DC_OP_HELLO = 10,
        DC_OP_ACK = 11,
};

struct dc_connection;

enum dc_connection_event {
        DC_CONNECTION_OPENED,
        DC_CONNECTION_SILENT,     /* the last heartbeat was not acknowledged */
        DC_CONNECTION_UNREADABLE, /* why: of a message */
        DC_CONNECTION_WAS_LARGE,  /* a payload, now handled */
};

/* Each may free the connection. Payloads come in order, inflated and parsed. */
struct dc_connection_handlers {
        void (*event)(void *arg, enum dc_connection_event event, const char *why);
        void (*payload)(void *arg, json_t *payload);
        void (*closed)(void *arg, const struct websocket_end *end);
};

/* Options, session and handlers must outlive it. url NULL: there is no socket (a fuzzer). */
struct dc_connection *dc_connection_open(const struct dc_gateway_options *o, const char *url,
                                         const struct dc_session *session,
                                         const struct dc_connection_handlers *handlers, void *arg);
/* No handler follows. */
void dc_connection_free(struct dc_connection *c);
/* Keeps the session alive; `closed` follows. */
void dc_connection_close(struct dc_connection *c);
void dc_connection_feed(void *connection, bool binary, const char *bytes, size_t n);
/* Sends RESUME, or IDENTIFY as this shard. */
void dc_connection_begin(struct dc_connection *c, bool resumes, unsigned shard, unsigned shards);
void dc_connection_beat_every(struct dc_connection *c, int64_t ms);
/* Discord asks for a heartbeat now, or has acknowledged one. */
void dc_connection_beat(struct dc_connection *c);
void dc_connection_acked(struct dc_connection *c);
/* Stops reading while the session is full. */
void dc_connection_adjust(struct dc_connection *c);
/* -1: unknown. */
int64_t dc_connection_ping_ms(const struct dc_connection *c);

/* ---- dc_shard.c ---- */

#define DC_TICKET_SHARD 40 /* bits of a ticket below the shard */

enum dc_shard_state {
        SHARD_WAITING,
        SHARD_CONNECTING,
        SHARD_OPENED, /* before HELLO */
        SHARD_RESUMING,
        SHARD_IDENTIFYING,
        SHARD_UP,
        SHARD_CLOSING,
        SHARD_STOPPED,
};

enum dc_shard_plan {
        PLAN_RESUME,
        PLAN_IDENTIFY, /* the session is lost */
        PLAN_STOP,     /* the operator has to act */
};

struct dc_shard {
        struct dc_gateway *g;
        unsigned id, shards;
        enum dc_shard_state state;
        struct dc_connection *connection; /* NULL: none */
        struct timer *timer;              /* of the state */
        struct dc_session session;

        enum dc_shard_plan plan;
        int64_t wait_ms; /* of the plan; -1: backoff */
        char why[200];
        bool fresh;           /* identifies, rather than resumes */
        bool sent_resume;     /* on this connection */
        unsigned failures;    /* to get a session, in a row */
        unsigned short_lived; /* sessions in a row that ended soon */
        unsigned resumes;     /* failed, in a row */
        int64_t up_ms;        /* loop time; -1: not up */
};

struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards);
void dc_shard_free(struct dc_shard *s);
/* Connects and resumes, or asks for permission to identify. */
void dc_shard_start(struct dc_shard *s);
/* Connects; after permission to identify. */
void dc_shard_connect(struct dc_shard *s, const char *url);
void dc_shard_stop(struct dc_shard *s);
/* Replaces the connection and resumes. */
void dc_shard_renew(struct dc_shard *s, const char *why);
void dc_shard_committed(struct dc_shard *s, uint64_t number);

/* ---- dc_gateway.c ---- */

/* Shards with equal ids modulo max_concurrency identify in turn. */
struct dc_identify_slot {
        struct dc_shard *holder;
        int64_t next_ms;
};

struct dc_gateway {
        struct dc_gateway_options o; /* strings are owned */
        struct dc_gateway_handlers on;
        void *arg;
        struct dc_shard **shards;
        unsigned count;
        struct dc_identify_slot *slots;
        unsigned concurrency;
        unsigned *waiting; /* shards that want to identify, in order */
        unsigned waiting_count;

        char *url;
        int64_t remaining, total, reset_at_ms; /* session_start_limit; loop time */
        int64_t asked_ms;                      /* when that was answered; -1: ask */
        int64_t retry_at_ms;                   /* do not ask before */
        unsigned failures;
        bool asking, stopped;

        struct timer *timer;
        struct sleep_watch *watch;
        struct timer *grace;    /* a loss that is not reported yet */
        struct timer *trimming; /* frees the memory of large payloads */
        enum dc_gateway_state reported;
        char why[200];
        struct dc_gateway_stats counted;
        unsigned refs; /* the owner, handlers on the stack */
        bool freed;
};

/* Asks for permission to identify; dc_shard_connect follows. */
void dc_gateway_want_identify(struct dc_gateway *g, unsigned shard);
/* Gives the permission back. Harmless without one. */
void dc_gateway_end_identify(struct dc_gateway *g, unsigned shard, bool sent);
void dc_gateway_shard_up(struct dc_gateway *g, const struct dc_gateway_ready *ready,
                         int64_t since_ms);
void dc_gateway_shard_lost(struct dc_gateway *g, const char *why);
/* state: DC_GATEWAY_STOPPED or DC_GATEWAY_BAD_TOKEN. */
void dc_gateway_stop(struct dc_gateway *g, enum dc_gateway_state state, const char *why);

#endif
