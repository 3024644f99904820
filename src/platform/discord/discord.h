/*
 * discord: one bot, as the files of this folder see it.
 *
 *     discord.c        settings, the token test, life of the adapter
 *     dc_intents.c     what Discord calls the kinds of events
 *     dc_rest.c        REST calls within Discord's limits: dc_limit.c counts, dc_guard.c keeps us
 *                      from being banned, dc_call.c makes the request, dc_route.c its path,
 *                      dc_answer.c reads what comes back, dc_parse.c what is large of it
 *     dc_inbound.c     everything that comes in: gateway, cache, intake (see dc_inbound.h)
 *     dc_send.c        deliveries are sent; dc_make.c makes calls of them, dc_place.c knows where
 *                      they go, dc_outcome.c what the answers mean
 *     dc_reply.c       answers to slash commands and buttons; dc_webhook.c takes them over HTTP
 *     dc_commands.c    the slash commands are registered when they changed
 *     dc_recall.c      the last messages of a channel
 *     dc_tools.c       what agents and the API may call
 *     dc_memory.c      what must survive a restart besides the store; dc_file.c a file that follows
 *                      what is in memory
 *     dc_twin.c        whether another process speaks with the same token
 *
 * Places: in a thread (and in a forum's post) Discord's channel_id is the thread. Here `channel` is
 * always the parent and `thread` the thread's own id, so that rules and access lists of a channel
 * hold in its threads. A thread begun at a message has that message's id.
 *
 * Channels in deliveries may also be "user:ID", which opens the person's DM, and "operator", the DM
 * of the first of `admins`.
 */
#ifndef PLATFORM_DISCORD_DISCORD_H
#define PLATFORM_DISCORD_DISCORD_H

#include <sys/queue.h>

#include "base/map.h"
#include "platform/discord/dc_duplicate_bot.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_inbound.h"
#include "platform/discord/dc_intents.h"
#include "platform/discord/dc_rest.h"
#include "platform/platform.h"

#define DC_OPERATOR "operator"
#define DC_USER     "user:"

/* Where the answer to a command stands. */
#define DC_PLACE_OF_COMMAND "/webhooks/{webhook_id}/{webhook_token}/messages/@original"

struct discord_conf {
        struct secret *token; /* NULL: DISCORD_BOT_TOKEN of the environment */
        char *api_base;
        char *gateway_url;           /* NULL: asked with GET /gateway/bot */
        int64_t shards;              /* 0: as many as Discord recommends */
        char *compress;              /* "zlib-stream", "zstd-stream" or "none" */
        bool message_content;        /* ask for the privileged intent */
        struct setting_list intents; /* further ones, by Discord's names */
        bool streaming;
        bool role_mentions; /* a mention of a role the bot has counts as one of the bot */
        bool ping_on_reply; /* an answer notifies whoever asked */
        /* per channel, when a session could not be resumed */
        int64_t catch_up_messages, catch_up_seconds;
        int64_t media_max_bytes;
        bool slash_commands;                /* register /ask, /status, ... */
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
        char *id, *username; /* of the bot's user */
        char *application;
        char *public_key; /* hex, of the settings or as Discord says; NULL: not known */
        /* of the application: which privileged intents it may have; 0: not known */
        int64_t flags;
};

struct state_file;
struct dc_send;
struct dc_post;
struct dc_token;
TAILQ_HEAD(dc_sends, dc_send);
TAILQ_HEAD(dc_tokens, dc_token);
LIST_HEAD(dc_posts, dc_post);

struct discord {
        struct adapter *adapter;
        const struct discord_conf *conf;
        struct secret *token;
        /* wall clock: what is older may have been tried by another life of the process */
        int64_t opened_ms;
        enum dc_state state;
        struct dc_self self; /* from DC_LINKED on */
        struct dc_rest *rest;
        struct dc_inbound *inbound; /* NULL until DC_LINKED */
        struct dc_call *call;       /* of the greeting */
        struct timer *timer;
        unsigned failures;
        struct dc_sends sends;
        struct dc_tokens tokens; /* of interactions, the oldest first */
        size_t token_count;
        struct timer *tokens_timer;
        struct state_file *tokens_file; /* of those that are not answered */
        struct timer *commands_timer;   /* registering them is tried again */
        struct dc_posts posts;          /* interactions over HTTP that are being stored */
        struct dc_duplicate_bot duplicate;
        json_t *memory;
        struct map dms,
                /* of people who are no operators: user to channel (owned), channel to anything */
                dm_channels;
        int lock;
};

/* ---- discord.c ---- */

/* It makes no sense to go on (bad token, missing intent, ...): tells the operator. */
void dc_stop(struct discord *dc, const char *why);

/* ---- dc_send.c ---- */

void dc_send(struct adapter *a, const struct delivery *d);
/* Discord has taken the acknowledgement of a command, or has not: what waited for that goes on. */
void dc_sends_acknowledged(struct discord *dc, const char *interaction);
/* All sends in flight end, as unsure or to be repeated. */
void dc_sends_release(struct discord *dc);

/* ---- dc_outcome.c ---- */

/* What Discord's answer means for a delivery of this kind; why goes to `text`. */
void dc_outcome(enum delivery_kind kind, const struct dc_answer *answer, struct send_result *out,
                char *text, size_t size);
/*
 * What the operator can do about one of Discord's codes; NULL: nothing more is known than Discord
 * says.
 */
const char *dc_advice(int code);

/* ---- dc_place.c ---- */

bool dc_is_dm(const struct discord *dc, const char *channel);
/*
 * The Discord channel a delivery goes to: thread, channel or the DM of a person; NULL: the DM must
 * be opened first. Borrowed.
 */
const char *dc_place(const struct discord *dc, const char *channel, const char *thread);
/* The channel a message is in: the one a thread began at is outside of the thread. */
const char *dc_place_of_message(const struct discord *dc, const char *channel, const char *thread,
                                const char *message);
/*
 * The person whose DM the channel means ("user:ID", "operator"); NULL: none is meant, or there is
 * no operator. Borrowed.
 */
const char *dc_person(const struct discord *dc, const char *channel);
/* "<:name:id>", "name:id" or the emoji itself as routes want it; yours to free. */
char *dc_emoji(const char *emoji);
/*
 * {"parse": [], "users": [...]}: only those who are really mentioned in the text may be notified.
 */
json_t *dc_allowed_mentions(const char *text, bool replied_user);

/* ---- dc_reply.c ---- */

/*
 * An interaction is stored: it is acknowledged, and its token kept as long as it is worth
 * something. The hook of dc_inbound.
 */
void dc_reply_stored(void *discord, const json_t *interaction);
/*
 * The application and token with which the interaction can still be answered, by whoever asks;
 * false: it cannot (any more). Borrowed.
 */
bool dc_reply_token(struct discord *dc, const char *interaction, const char **application,
                    const char **token);
/* It has been answered, or cannot be. */
void dc_reply_done(struct discord *dc, const char *interaction);
/* It is not answered in its place: what Discord shows there is taken away. */
void dc_reply_withdraw(struct discord *dc, const char *interaction);
/* Has Discord still to say whether it takes the acknowledgement? dc_sends_acknowledged follows. */
bool dc_reply_is_acknowledging(const struct discord *dc, const char *interaction);
/*
 * Is there perhaps no place for its answer only because Discord has not read our acknowledgement
 * yet?
 */
bool dc_reply_may_come(const struct discord *dc, const char *interaction);
/* Is this the id of a command of the last minutes, rather than of a message? */
bool dc_reply_is(const struct discord *dc, const char *id);
/*
 * Keeps the token, and returns how it is acknowledged ({"type": 5}); yours. For whoever
 * acknowledges by answering a post.
 */
json_t *dc_reply_keep(struct discord *dc, const json_t *interaction);
void dc_replies_open(struct discord *dc);
void dc_replies_release(struct discord *dc);

/* ---- dc_webhook.c ---- */

bool dc_webhook_admits(struct adapter *a, struct http_exchange *x);
void dc_webhook(struct adapter *a, struct http_exchange *x);
/* After dc_inbound_free: whoever waits for an answer gets 503. */
void dc_webhook_release(struct discord *dc);

/* ---- dc_commands.c ---- */

/*
 * Registers the slash commands where what Discord has is not what we have; again later, when
 * Discord is unwell.
 */
void dc_commands_publish(struct discord *dc);
void dc_commands_open(struct discord *dc);
void dc_commands_release(struct discord *dc);

/* ---- dc_recall.c ---- */

void dc_recall(struct adapter *a, const char *channel, const char *thread, unsigned limit,
               channel_history_fn *done, void *arg);

/* ---- dc_tools.c ---- */

extern const struct platform_tool dc_tools[];

/* ---- dc_memory.c ---- */

void dc_memory_read(struct discord *dc);
/*
 * The DM with a person is this channel. Operators' are remembered over a restart, others for a
 * while.
 */
void dc_memory_dm(struct discord *dc, const char *user, const char *channel);
/* The DM channel of a person; NULL: not known. Borrowed. */
const char *dc_memory_dm_of(const struct discord *dc, const char *user);
bool dc_memory_has_dm(const struct discord *dc, const char *channel);
/* Named in `admins`? */
bool dc_is_operator(const struct discord *dc, const char *user);
/* A small value of a name; NULL: none. Borrowed. */
const json_t *dc_memory_get(const struct discord *dc, const char *name);
/* Takes the value over (NULL: forgets it); written when it changed. */
void dc_memory_set(struct discord *dc, const char *name, json_t *value);
void dc_memory_release(struct discord *dc);

#endif
