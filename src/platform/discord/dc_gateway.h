/*
 * dc_gateway: the connection over which Discord tells what happens, for one bot: one session for
 * each shard.
 *
 *     dc_gateway.c  asks for the budget, starts the shards, lets them identify one after the other
 *     dc_shard.c    one shard over as many connections as it takes: hello, identify or resume,
 *                   goodbye
 *     dc_link.c     one connection: frames, heartbeat, how much may be sent
 *     dc_progress.c its session: what was received, and what of that is committed
 *     dc_say.c      what we say to Discord
 *     dc_frame.c    the frames of one connection: inflated, parsed, in order
 *     dc_pending.c  what was handed over and is not committed
 *     dc_close.c    what each close code means, and the sentence for the operator
 *     dc_session.c  what a session needs to be resumed after a restart, in a file
 *     dc_inbound.c  introduces all this to the intake; see dc_inbound.h
 *
 * Every dispatch is handed over with a ticket, in the order in which Discord sent it, and
 * acknowledged with dc_gateway_committed once it is stored. The sequence number that survives a
 * restart moves only over what is committed, together with everything before it. What cannot be
 * stored at once just is not acknowledged: when too much waits, nothing more is read from Discord.
 *
 * The gateway knows nothing of REST: it asks its owner to GET /gateway/bot and is told the answer.
 */
#ifndef PLATFORM_DISCORD_DC_GATEWAY_H
#define PLATFORM_DISCORD_DC_GATEWAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"
#include "net/http_client.h"
#include "net/loop.h"

/* What we want to be told of: bits of the number in IDENTIFY. */
#define DC_INTENT_GUILDS                   (1u << 0)
#define DC_INTENT_GUILD_MEMBERS            (1u << 1)
#define DC_INTENT_GUILD_PRESENCES          (1u << 8)
#define DC_INTENT_GUILD_MESSAGES           (1u << 9)
#define DC_INTENT_GUILD_MESSAGE_REACTIONS  (1u << 10)
#define DC_INTENT_DIRECT_MESSAGES          (1u << 12)
#define DC_INTENT_DIRECT_MESSAGE_REACTIONS (1u << 13)
#define DC_INTENT_MESSAGE_CONTENT          (1u << 15)
/* What an agent needs: 46593. */
#define DC_INTENTS                                                                         \
        (DC_INTENT_GUILDS | DC_INTENT_GUILD_MESSAGES | DC_INTENT_GUILD_MESSAGE_REACTIONS | \
         DC_INTENT_DIRECT_MESSAGES | DC_INTENT_DIRECT_MESSAGE_REACTIONS |                  \
         DC_INTENT_MESSAGE_CONTENT)

struct dc_gateway;

/* Waits in milliseconds; 0 stands for what is in the comment. Tests make them short. */
struct dc_gateway_times {
        int64_t hello_ms; /* 20000: from the open socket to HELLO */
        /* 60000: from IDENTIFY or RESUME to READY or RESUMED, as long as nothing comes */
        int64_t ready_ms;
        int64_t backoff_ms; /* 1000: the first wait after a failure; doubles, with full jitter */
        int64_t backoff_max_ms; /* 60000 */
        int64_t identify_ms;    /* 5000: between two IDENTIFY of one bucket */
        int64_t invalid_ms;     /* 5000: the longest wait after op 9; at least a fifth of it */
        int64_t save_ms;        /* 1000: how late the session's file may be */
        int64_t suspend_ms;     /* 60000: a jump of the clock that means the machine slept */
        /* 5000: a connection that is back within this time was never lost */
        int64_t grace_ms;
        /* 60000: a session that lived this long makes the failures before it forgotten */
        int64_t stable_ms;
};

struct dc_gateway_options {
        struct loop *loop;
        struct http_client *http;
        const char *name;           /* the adapter's, for log, file names and sentences; copied */
        const struct secret *token; /* must live as long as the gateway */
        /* the data directory: sessions are kept in state/; NULL: they are not kept. Copied. */
        const char *dir;
        const char *url; /* instead of what GET /gateway/bot says; NULL: that. Copied. */
        unsigned intents;
        int64_t shards;       /* 0: as many as Discord recommends */
        const char *compress; /* "zlib-stream", "zstd-stream"; NULL or "none": none. Copied. */
        int64_t flags;        /* of the application, to name a missing intent; 0: not known */
        struct dc_gateway_times times;
        int64_t (*wall_ms)(void); /* NULL: the wall clock */
};

/*
 * Who we are, told by READY, or remembered when a session is resumed by a new process. Borrowed for
 * the call.
 */
struct dc_gateway_ready {
        unsigned shard;
        bool resumed;
        const char *user_id, *username, *application_id;
};

/* Something that happened. Borrowed for the call; json_incref d to keep it: it is nobody else's. */
struct dc_dispatch {
        uint64_t ticket; /* for dc_gateway_committed */
        unsigned shard;
        const char *type; /* "MESSAGE_CREATE" */
        json_t *d;
        const char *session; /* with seq it names this dispatch, also when it is told again */
        int64_t seq;
};

struct dc_gateway_handlers {
        /*
         * GET /gateway/bot is wanted; answer with dc_gateway_bot, later. Asked again when the
         * answer was an error.
         */
        void (*ask)(void *arg);
        /*
         * Acknowledge each with dc_gateway_committed, whether it means anything or not, in this
         * call or later. READY and RESUMED do not come here.
         */
        void (*event)(void *arg, const struct dc_dispatch *e);
        void (*ready)(void *arg, const struct dc_gateway_ready *ready); /* a session is up */
        /*
         * A session begins anew, or one is resumed before what an earlier one missed was read back:
         * what happened after since_ms, by Discord's clock, may be missing. 0: there was no session
         * before. Follows `ready`; told again after a restart until dc_gateway_caught_up.
         */
        void (*gap)(void *arg, unsigned shard, int64_t since_ms);
        /*
         * A session is about to be resumed although an earlier one left a gap: what is replayed now
         * is newer than what is missing. `gap` follows.
         */
        void (*behind)(void *arg, unsigned shard);
        void (*up)(void *arg);                    /* all shards are */
        void (*lost)(void *arg, const char *why); /* it tries again by itself */
        /*
         * It does not: the operator has to act, `why` says how. bad_token: Discord does not know
         * the token.
         */
        void (*stopped)(void *arg, bool bad_token, const char *why);
};

/* Begins: `ask` is called from the loop. */
struct dc_gateway *dc_gateway_new(const struct dc_gateway_options *options,
                                  const struct dc_gateway_handlers *handlers, void *arg);
/*
 * Leaves so that the sessions can be resumed; what is needed for it is on disk when this returns.
 * NULL is fine. Allowed inside handlers.
 */
void dc_gateway_free(struct dc_gateway *g);

/*
 * The answer to `ask`: the body, or why there is none (body NULL). status 401: the token is wrong,
 * and the gateway stops.
 */
void dc_gateway_bot(struct dc_gateway *g, int status, const json_t *body, const char *why);
/* What was handed over with this ticket is stored (or not worth it). Any order; each once. */
void dc_gateway_committed(struct dc_gateway *g, uint64_t ticket);
/* What was missing on this shard has been read back and stored. */
void dc_gateway_caught_up(struct dc_gateway *g, unsigned shard);

/* For status pages and tests. */
struct dc_gateway_stats {
        unsigned shards, ready; /* how many there are, how many are up */
        uint64_t events;        /* dispatches handed over */
        size_t uncommitted;     /* of them, not yet acknowledged */
        uint64_t identifies, resumes, lost, zombies;
        uint64_t our_mistakes; /* closes that say we broke the protocol: 4001, 4002, 4005, 4008 */
        /* the last heartbeat's way there and back on the slowest shard; -1: not known */
        int64_t ping_ms;
};
void dc_gateway_stats(const struct dc_gateway *g, struct dc_gateway_stats *out);

#endif
