/*
 * dc_gateway: receives events over Discord's gateway, with one session per shard.
 *
 * The owner gets every dispatch with a ticket, in Discord's order, and calls dc_gateway_committed
 * once it is stored. The sequence kept across restarts passes an event only when it and everything
 * before it is committed. Reading pauses while too many events are uncommitted. The gateway makes
 * no REST calls: its owner fetches /gateway/bot for it.
 */
#ifndef PLATFORM_DISCORD_DC_GATEWAY_H
#define PLATFORM_DISCORD_DC_GATEWAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"
#include "net/http_client.h"
#include "net/loop.h"

struct dc_gateway;

/* Milliseconds; 0: the default in the comment. Tests shorten them. */
struct dc_gateway_times {
        int64_t hello_ms;       /* 20000: from the open socket to HELLO */
        int64_t ready_ms;       /* 60000: IDENTIFY or RESUME without any event */
        int64_t backoff_ms;     /* 1000: doubles with each failure, with full jitter */
        int64_t backoff_max_ms; /* 60000 */
        int64_t identify_ms;    /* 5000: between two IDENTIFY of one slot */
        int64_t invalid_ms;     /* 5000: the longest wait after op 9; at least a fifth of it */
        int64_t save_ms;        /* 1000: how late the session's file may be */
        int64_t suspend_ms;     /* 60000: a jump of the clock that means the machine slept */
        int64_t grace_ms;       /* 5000: shorter losses are not reported */
        int64_t stable_ms;      /* 60000: a session that lasted so long clears the failures */
};

/* Strings are copied. */
struct dc_gateway_options {
        struct loop *loop;
        struct http_client *http;
        const char *name;           /* of the adapter */
        const struct secret *token; /* must outlive the gateway */
        const char *dir;            /* NULL: keep no sessions */
        const char *url;            /* NULL: as GET /gateway/bot answers */
        unsigned intents;
        int64_t shards;       /* 0: as Discord recommends */
        const char *compress; /* "zlib-stream", "zstd-stream"; NULL or "none": none */
        int64_t flags;        /* of the application; 0: unknown */
        struct dc_gateway_times times;
        int64_t (*wall_ms)(void); /* NULL: the wall clock */
};

/* Borrowed for the call. */
struct dc_gateway_ready {
        unsigned shard;
        bool resumed;
        int64_t first_ms; /* the first session of this data directory; 0: not known */
        const char *user_id, *username, *application_id;
};

/* Borrowed for the call. */
struct dc_dispatch {
        uint64_t ticket; /* for dc_gateway_committed */
        unsigned shard;
        const char *type; /* "MESSAGE_CREATE" */
        json_t *d;
        const char *session; /* with seq the same in a replay */
        int64_t seq;
};

enum dc_gateway_state {
        DC_GATEWAY_NONE,    /* nothing yet */
        DC_GATEWAY_UP,      /* all shards */
        DC_GATEWAY_LOST,    /* retries by itself */
        DC_GATEWAY_STOPPED, /* the operator has to act */
        DC_GATEWAY_BAD_TOKEN,
};

struct dc_gateway_handlers {
        /* Fetch GET /gateway/bot and call dc_gateway_bot, later. */
        void (*ask)(void *arg);
        /* Acknowledge each with dc_gateway_committed, in this call or later. */
        void (*event)(void *arg, const struct dc_dispatch *e);
        void (*ready)(void *arg, const struct dc_gateway_ready *ready);
        /*
         * Follows `ready` when events since then (Discord's clock) may be missing; 0: there was no
         * session before. Repeated after a restart until dc_gateway_caught_up.
         */
        void (*gap)(void *arg, const struct dc_gateway_ready *ready, int64_t since_ms);
        /* A session with a gap is about to be resumed; its replay is newer than the gap. */
        void (*behind)(void *arg);
        void (*state)(void *arg, enum dc_gateway_state state, const char *why);
};

/* Starts; `ask` follows from the loop. */
struct dc_gateway *dc_gateway_new(const struct dc_gateway_options *options,
                                  const struct dc_gateway_handlers *handlers, void *arg);
/* Allowed inside handlers. */
void dc_gateway_free(struct dc_gateway *g);

/* The answer to `ask`. */
void dc_gateway_bot(struct dc_gateway *g, int status, const json_t *body, const char *why);
/* In any order, once each. */
void dc_gateway_committed(struct dc_gateway *g, uint64_t ticket);
void dc_gateway_caught_up(struct dc_gateway *g, unsigned shard);

struct dc_gateway_stats {
        unsigned shards, ready;
        uint64_t events;
        size_t uncommitted;
        uint64_t identifies, resumes, lost, zombies;
        uint64_t our_mistakes;
        int64_t ping_ms; /* of the slowest shard; -1: unknown */
};
void dc_gateway_stats(const struct dc_gateway *g, struct dc_gateway_stats *out);

/* ---- intents: the kinds of events a bot asks for ---- */

#define DC_INTENT_GUILDS                   (1u << 0)
#define DC_INTENT_GUILD_MESSAGES           (1u << 9)
#define DC_INTENT_GUILD_MESSAGE_REACTIONS  (1u << 10)
#define DC_INTENT_DIRECT_MESSAGES          (1u << 12)
#define DC_INTENT_DIRECT_MESSAGE_REACTIONS (1u << 13)
#define DC_INTENT_MESSAGE_CONTENT          (1u << 15)
#define DC_INTENT_GUILD_SCHEDULED_EVENTS   (1u << 16)
/* The intents an agent needs: 112129. */
#define DC_INTENTS                                                                         \
        (DC_INTENT_GUILDS | DC_INTENT_GUILD_MESSAGES | DC_INTENT_GUILD_MESSAGE_REACTIONS | \
         DC_INTENT_DIRECT_MESSAGES | DC_INTENT_DIRECT_MESSAGE_REACTIONS |                  \
         DC_INTENT_MESSAGE_CONTENT | DC_INTENT_GUILD_SCHEDULED_EVENTS)

/* 0: unknown. */
unsigned dc_gateway_intent(const char *name);
const char *dc_gateway_nearest_intent(const char *name);
/* Lists privileged intents that the flags do not grant, by the portal's names. */
void dc_gateway_missing_intents(unsigned intents, int64_t flags, char *out, size_t size);

#endif
