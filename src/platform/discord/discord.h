/*
 * discord: one bot, as the files of this folder see it.
 *
 *     discord.c        settings, the token test, life of the adapter
 *     dc_rest.c        REST calls within Discord's limits
 *     dc_gateway*.c    the WebSocket: identify, heartbeat, resume; dc_cache.c what it tells about guilds, channels and people
 *     dc_intake.c      dispatches on their way to the inbox, in order, the sequence moves after the commit
 *     dc_send.c        deliveries become calls
 *     dc_interaction.c slash commands and buttons, from the gateway or over HTTP; dc_verify.c checks the signature
 *     dc_commands.c    the commands are registered when they changed
 *     dc_recall.c      the last messages of a channel
 *     dc_tools.c       what agents and the API may call
 *     dc_memory.c      what must survive a restart besides the store
 *
 * Places: in a thread (and in a forum's post) Discord's channel_id is the thread. Here `channel` is always the parent and `thread` the
 * thread's own id, so that rules and access lists of a channel hold in its threads. A thread begun at a message has that message's id.
 *
 * Channels in deliveries may also be "user:ID", which opens the person's DM, and "operator", the first of `admins`.
 */
#ifndef PLATFORM_DISCORD_DISCORD_H
#define PLATFORM_DISCORD_DISCORD_H

#include <sys/queue.h>

#include "platform/discord/dc_rest.h"
#include "platform/platform.h"

struct discord_conf {
        struct secret *token;
        char *api_base;
        char *gateway_url;           /* NULL: asked with GET /gateway/bot */
        int64_t shards;              /* 0: as many as Discord recommends */
        char *compress;              /* "zlib-stream", "zstd-stream" or "none" */
        struct setting_list intents; /* names, besides the ones we need */
        bool message_content;        /* ask for the privileged intent */
        bool streaming;
        bool role_mentions; /* a mention of a role the bot has counts as one of the bot */
        int64_t catch_up_messages, catch_up_seconds; /* per channel, when a session could not be resumed */
        int64_t media_max_bytes;
        bool commands;                      /* register slash commands */
        struct setting_list command_guilds; /* where; none: everywhere (global) */
        char *public_key;                   /* of the application, hex; NULL: asked of Discord */
};

/* What the link does; only dc_enter writes it. */
enum dc_state {
        DC_GREETING, /* does the token work, and who are we? */
        DC_LINKED,   /* the gateway connects, and connects again, by itself */
        DC_WAITING,  /* greeting failed; tries again */
        DC_STOPPED,  /* the operator has to act */
};

struct dc_self {
        char *id, *username, *name; /* of the bot's user */
        char *application;
        char *public_key; /* hex, of the settings or as Discord says */
        int64_t flags;    /* of the application: which privileged intents it may use */
};

struct dc_gateway;
struct dc_cache;
struct dc_intake;
struct dc_send;
struct dc_interaction;
struct dc_errand;
TAILQ_HEAD(dc_sends, dc_send);
TAILQ_HEAD(dc_interactions, dc_interaction);
LIST_HEAD(dc_errands, dc_errand);

struct discord {
        struct adapter *adapter;
        const struct discord_conf *conf;
        enum dc_state state;
        struct dc_self self; /* valid from DC_LINKED on */
        struct dc_rest *rest;
        struct dc_gateway *gateway; /* NULL until DC_LINKED */
        struct dc_cache *cache;     /* from open to close */
        struct dc_intake *intake;   /* from open to close */
        struct dc_call *call;       /* of the greeting */
        struct timer *timer;
        unsigned failures;
        struct dc_sends sends;
        struct dc_interactions interactions;
        struct dc_errands errands; /* calls of tools and recall in flight */
        json_t *memory;
        int lock;
};

/* ---- discord.c ---- */

/* It makes no sense to go on (bad token, missing intent, ...): closes the gateway later, tells the operator. */
void dc_stop(struct discord *dc, const char *why);
/* The sentence for a token that Discord does not know; for 401 and close code 4004. */
void dc_stop_bad_token(struct discord *dc);

/* ---- dc_gateway.c ---- */

/* Begins; afterwards adapter_ready, adapter_lost or dc_stop tell how it goes. Never before it has returned. */
struct dc_gateway *dc_gateway_open(struct discord *dc);
/* NULL is fine. */
void dc_gateway_close(struct dc_gateway *g);

/* ---- dc_intake.c ---- */

struct dc_intake *dc_intake_new(struct discord *dc);
/* Late acknowledgements find nobody. NULL is fine. */
void dc_intake_free(struct dc_intake *in);

/* ---- dc_cache.c: bounded; what it does not know is asked of Discord by whoever needs it ---- */

struct dc_cache *dc_cache_new(void);
void dc_cache_free(struct dc_cache *c);
/* The guild of a channel or thread; NULL: not known, or a DM. Borrowed until the next change. */
const char *dc_cache_guild_of(const struct dc_cache *c, const char *channel);
/* The channel a thread is in; NULL: not known, or no thread. Borrowed until the next change. */
const char *dc_cache_parent_of(const struct dc_cache *c, const char *thread);
/* The id of somebody with this user name (unique on Discord), as far as we have seen them; NULL: not known. */
const char *dc_cache_user_named(const struct dc_cache *c, const char *username);

/* ---- dc_send.c ---- */

void dc_send(struct adapter *a, const struct delivery *d);
void dc_reconcile(struct adapter *a, const struct delivery *d);
/* All sends in flight end, as unsure or to be repeated. */
void dc_sends_release(struct discord *dc);

/* ---- dc_interaction.c ---- */

/*
 * Takes an INTERACTION_CREATE (borrowed): it becomes an event in the inbox, and after the commit it is acknowledged to Discord, within the
 * three seconds. taken(arg, stored) is called once, later, when it is committed or needs no storing (then the sequence may move); false: the inbox
 * refused, and it was told to the user. No call after dc_interactions_release.
 */
typedef void dc_taken_fn(void *arg, bool stored);
void dc_interaction_take(struct discord *dc, const json_t *interaction, dc_taken_fn *taken, void *arg);
void dc_interactions_release(struct discord *dc);

/* ---- dc_memory.c ---- */

void dc_memory_read(struct discord *dc);
/* A DM with this person was seen in this channel: remembered, durably when the person is one of `admins`. */
void dc_memory_dm(struct discord *dc, const char *user, const char *channel);
/* The DM channel of a person; NULL: not known. Borrowed. */
const char *dc_memory_dm_of(const struct discord *dc, const char *user);
/* Is this channel a DM we know of? */
bool dc_memory_is_dm(const struct discord *dc, const char *channel);

#endif
