/*
 * discord: one bot on Discord. The way in:
 *
 *     dc_gateway.h   the gateway: dc_gateway, dc_shard, dc_connection, dc_session
 *     dc_webhook.c   interactions over HTTP
 *     dc_intake.h    from there to the inbox: dc_intake, dc_lookup, dc_cache, dc_event, dc_describe
 *     dc_catchup.h   after a lost session: dc_catchup, dc_dm_scan, dc_readback
 *
 * The way out:
 *
 *     dc_send.c      sends deliveries; dc_payload.c makes their calls, dc_destination.c finds the
 *                    channel, dc_outcome.c reads the answers, dc_window.c says when an unsure one
 *                    may have arrived
 *     dc_scheduled_event.h  the calendar's events, both ways
 *     dc_deferred.c  acknowledges slash commands and replies to them; dc_commands.c registers them
 *     dc_tools.c     tools for agents, lookups for the road and the API
 *     dc_rest.h      the REST API: dc_rest, dc_call, dc_rate_limit
 *
 * In a thread or forum post Discord's channel_id is the thread. In events and deliveries `channel`
 * is the parent and `thread` the thread's id, so that rules and access lists of a channel apply to
 * its threads. A thread started at a message has that message's id. The channel of a delivery may
 * also be "user:ID", the person's DM, or "operator", the DM of the first of `admins`.
 */
#ifndef PLATFORM_DISCORD_DISCORD_H
#define PLATFORM_DISCORD_DISCORD_H

#include <sys/queue.h>

#include "base/map.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_intake.h"
#include "platform/discord/dc_rest.h"
#include "platform/platform.h"

#define DC_OPERATOR "operator"
#define DC_USER     "user:"

/* The message Discord shows while a command waits for its reply. */
#define DC_PLACEHOLDER_ROUTE "/webhooks/{webhook_id}/{webhook_token}/messages/@original"

struct discord_conf {
        struct secret *token; /* NULL: DISCORD_BOT_TOKEN of the environment */
        char *api_base;
        char *gateway_url;
        int64_t shards; /* 0: automatic */
        char *compress;
        bool message_content;
        struct setting_list intents;
        bool streaming;
        bool role_mentions;
        bool ping_on_reply;
        int64_t catch_up_messages, catch_up_seconds;
        int64_t media_max_bytes;
        bool slash_commands;
        struct setting_list command_guilds; /* none: everywhere */
        char *public_key;                   /* hex; NULL: ask Discord */
};

/* Only enter() of discord.c writes it. */
enum discord_state {
        DISCORD_GREETING, /* tests the token */
        DISCORD_LINKED,   /* the gateway connects and reconnects by itself */
        DISCORD_WAITING,  /* greeting failed; retries */
        DISCORD_STOPPED,  /* the operator has to act */
};

#define DC_NONCES_KEPT 1024

/* Detects another process with the same token. */
struct dc_duplicate_bot {
        struct {
                uint64_t nonce; /* its first digits */
                int64_t wall_ms;
        } sent[DC_NONCES_KEPT]; /* a ring */
        size_t next;
        unsigned seen;
        int64_t warned_ms; /* 0: never */
};

#define DC_WRITTEN_KEPT 64

/* What the bot wrote into a scheduled event and the gateway has not reported yet. */
struct dc_written {
        uint64_t number; /* 0: none */
        char event[DC_ID_SIZE];
        json_t *body; /* NULL: deleted */
        int64_t boot_ms;
};

struct dc_send;
struct dc_event_send;
struct dc_post;
struct dc_deferred;

struct discord {
        struct adapter *adapter;
        const struct discord_conf *conf;
        struct secret *token;
        int lock;
        int64_t opened_ms; /* an earlier run may have tried older deliveries */
        enum discord_state state;
        struct { /* from DISCORD_LINKED on */
                char *id, *username;
                char *application;
                char *public_key; /* hex; NULL: unknown */
                int64_t flags;    /* of the application: granted intents; 0: unknown */
        } self;
        struct dc_rest *rest;
        struct dc_intake *intake; /* NULL before DISCORD_LINKED */
        struct dc_call *call;
        struct timer *timer;
        TAILQ_HEAD(, dc_send) sends;
        TAILQ_HEAD(, dc_event_send) event_sends;
        struct {
                struct dc_written items[DC_WRITTEN_KEPT]; /* a ring */
                uint64_t last;
        } written;
        struct {
                TAILQ_HEAD(, dc_deferred) list; /* oldest first */
                size_t count;
                struct timer *timer;
                struct state_file *file;
        } deferred;
        struct timer *commands_timer; /* registration is retried */
        LIST_HEAD(, dc_post) posts;   /* interactions over HTTP that are being stored */
        struct dc_duplicate_bot duplicate;
        /* the state file: DMs of operators, registered commands, guilds with scheduled events */
        json_t *saved;
        struct map dms;         /* of others than operators: user to channel, owned */
        struct map dm_channels; /* the channels of dms */
};

/* ---- dc_send.c ---- */

void dc_send_delivery(struct adapter *a, const struct delivery *d);
/* platform_ops.read_from */
void dc_send_read_from(struct adapter *a, const struct delivery *d, char *out, size_t size);
/* Continues deliveries that wait for the placeholder of an interaction. */
void dc_sends_resume(struct discord *dc, const char *interaction);
void dc_sends_release(struct discord *dc);
/* A hook of dc_intake: warns of messages sent by another process. */
void dc_send_check_own(void *discord, const json_t *message);

/* ---- dc_scheduled_event_send.c ---- */

void dc_scheduled_event_send(struct adapter *a, const struct delivery *d);
void dc_scheduled_events_release(struct discord *dc);
/* Hooks of dc_intake. */
bool dc_scheduled_event_wrote(void *discord, const char *type, const json_t *event);
void dc_scheduled_event_set_guild(void *discord, const char *guild, bool any);
bool dc_scheduled_event_had(void *discord, const char *guild);

/* ---- dc_outcome.c ---- */

void dc_outcome_read(enum delivery_kind kind, const struct dc_answer *answer,
                     struct send_result *out, char *text, size_t size);
void dc_outcome_error(const struct dc_answer *a, struct error *err);
/* Advice for the operator about a code; NULL: unknown. */
const char *dc_outcome_advice(int code);

/* ---- dc_destination.c ---- */

/* NULL: a DM must be opened first. */
const char *dc_destination_channel(const struct discord *dc, const char *channel,
                                   const char *thread);
/* The channel that holds a message: a thread's first message is in its parent. */
const char *dc_destination_of_message(const struct discord *dc, const char *channel,
                                      const char *thread, const char *message);
/* The person meant by "user:ID" or "operator"; NULL: none. */
const char *dc_destination_person(const struct discord *dc, const char *channel);
bool dc_destination_is_dm(const struct discord *dc, const char *channel);
/* NULL: unknown. */
const char *dc_destination_dm(const struct discord *dc, const char *user);
/* A hook of dc_intake. */
void dc_destination_set_dm(void *discord, const char *user, const char *channel);
/* Except those of operators. */
void dc_destination_forget(struct discord *dc);

/* ---- dc_deferred.c ---- */

enum dc_placeholder {
        DC_PLACEHOLDER_GONE,
        DC_PLACEHOLDER_PENDING, /* Discord has not confirmed it; dc_sends_resume follows */
        DC_PLACEHOLDER_OPEN,
};

enum dc_deferred_result {
        DC_DEFERRED_SETTLED,   /* as the answer says */
        DC_DEFERRED_TOO_EARLY, /* the placeholder is not there yet */
        DC_DEFERRED_LOST,      /* there is no placeholder for the message */
};

void dc_deferred_open(struct discord *dc);
void dc_deferred_release(struct discord *dc);
/* A hook of dc_intake: acknowledges the interaction. */
void dc_deferred_stored(void *discord, const json_t *interaction);
/* Returns the acknowledgement for the response to a post; yours. */
json_t *dc_deferred_posted(struct discord *dc, const json_t *interaction);
/* Is this the id of a recent interaction, not of a message? */
bool dc_deferred_knows(const struct discord *dc, const char *id);
enum dc_placeholder dc_deferred_placeholder(const struct discord *dc, const char *interaction);
/* False: the placeholder is gone. */
bool dc_deferred_claim(struct discord *dc, const char *interaction);
/* The arguments of DC_PLACEHOLDER_ROUTE. */
void dc_deferred_address(const struct discord *dc, const char *interaction,
                         const char **application, const char **token);
enum dc_deferred_result dc_deferred_answered(struct discord *dc, const char *interaction,
                                             const struct dc_answer *a, bool is_message);

/* ---- dc_webhook.c ---- */

bool dc_webhook_admits(struct adapter *a, struct http_exchange *x);
void dc_webhook_handle(struct adapter *a, struct http_exchange *x);
/* After dc_intake_free: answers open posts with 503. */
void dc_webhook_release(struct discord *dc);

/* ---- dc_commands.c ---- */

void dc_commands_publish(void *discord);

/* ---- dc_tools.c ---- */

/* platform_ops.channel_history, .message, .channel_info and .user_info. */
void dc_tools_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg);
void dc_tools_message(struct adapter *a, const char *channel, const char *thread, const char *id,
                      channel_history_fn *done, void *arg);
int dc_tools_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err);
int dc_tools_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err);

extern const struct platform_tool dc_tools[];

#endif
