/*
 * slack: one Slack app in one workspace. The way in:
 *
 *     sl_socket.c    Socket Mode: several connections, refreshed without a gap; sl_connection.c is
 *                    one of them, sl_order.c puts their events in order
 *     sl_webhook.c   the Events API over HTTP: signature, url_verification
 *     sl_intake.c    from there to the inbox; sl_event.c reads events, sl_text.c their text,
 *                    sl_interaction.c commands, buttons and modals
 *     sl_catchup.c   what was missed while we were down
 *
 * The way out:
 *
 *     sl_send.c      sends deliveries; sl_payload.c makes their calls, sl_blocks.c the blocks,
 *                    sl_upload.c files, sl_outcome.c reads the answers
 *     sl_readback.c  whether a send without an answer arrived
 *     sl_stream.c    growing answers: chat.startStream where there is a thread, else edits
 *     sl_assistant.c Assistant threads: status, suggested prompts, titles
 *     sl_tools.c     tools for agents, lookups for the road and the API
 *     sl_files.c     how files that people send are fetched
 *     sl_api.h       the Web API: sl_api, sl_call, sl_rate_limit, sl_method
 *     sl_cache.h     names of users and channels, bounded
 *
 * A message is named by its ts, unique in its channel. `channel` of events and deliveries is the
 * conversation (C, G or D and more), `thread` the ts of the thread's first message. The channel of
 * a delivery may also be "user:ID", the person's DM, or "operator", that of the first of `admins`.
 * Tokens are only in request headers; URLs of connections and uploads are secrets and never logged.
 */
#ifndef PLATFORM_SLACK_SLACK_H
#define PLATFORM_SLACK_SLACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/intake.h"
#include "platform/platform.h"
#include "platform/slack/sl_api.h"

#define SL_OPERATOR "operator"
#define SL_USER     "user:"

struct slack_conf {
        struct secret *bot_token; /* NULL: SLACK_BOT_TOKEN of the environment */
        struct secret *app_token; /* NULL: SLACK_APP_TOKEN of the environment */
        struct secret *signing_secret;
        char *api_base;
        char *mode;          /* "socket" or "http" */
        int64_t connections; /* of Socket Mode, 1 to 10 */
        char *reply_in;      /* "channel" or "thread": where a mention in a channel is answered */
        char *streaming;     /* "auto", "edits" or "off" */
        int64_t stream_seconds;
        char *details; /* "thread" or "off": where the steps of a turn are shown */
        int64_t catch_up_messages, catch_up_seconds;
        int64_t media_max_bytes, reconcile_after_ms;
        int64_t cached_users;
        struct setting_list suggested_prompts; /* "Title: message" */
};

/* Only enter() of slack.c writes it. */
enum slack_state {
        SLACK_GREETING, /* auth.test: who are we, is the token good? */
        SLACK_LINKED,   /* receiving; connections renew themselves */
        SLACK_WAITING,  /* greeting failed; retries */
        SLACK_STOPPED,  /* the operator has to act */
};

enum sl_arrival {
        SL_EVENT,       /* an event_callback */
        SL_INTERACTIVE, /* block_actions, view_submission, ... */
        SL_COMMAND,     /* a slash command */
};

struct sl_assistant;
struct sl_cache;
struct sl_catchup;
struct sl_intake;
struct sl_send;
struct sl_sends;
struct sl_socket;
struct sl_streams;
struct sl_webhook;

struct slack {
        struct adapter *adapter;
        const struct slack_conf *conf;
        struct secret *bot_token, *app_token; /* app_token NULL: none */
        int lock;
        int64_t opened_ms; /* an earlier run may have tried older deliveries */
        enum slack_state state;
        struct { /* from SLACK_LINKED on, by auth.test */
                char *user, *bot, *name;
                char *team, *team_name;
                char *url;
                char *app; /* NULL: not known yet */
        } self;
        struct sl_api *api;
        struct sl_call *call; /* the greeting */
        struct timer *timer;
        bool lacks_scopes;               /* that the manifest names; the status lists them */
        const struct sl_method *lacking; /* the last one refused for another scope; or NULL */
        bool warned_of_workspace;        /* events of one that no adapter serves are logged once */
        json_t *saved;                   /* the state file */
        /* parts, each owned by the file of its name; NULL: not open */
        struct sl_cache *cache;
        struct sl_intake *intake;
        struct sl_socket *socket;
        struct sl_webhook *webhook;
        struct sl_catchup *catchup;
        struct sl_sends *sends;
        struct sl_streams *streams;
        struct sl_assistant *assistant;
};

/* ---- slack.c: opens the parts once auth.test has said who we are, sends and cache before ---- */

/* Slack does not accept a token, or the app is removed: the adapter stops and says what to do. */
void slack_stop(struct slack *sl, const char *why);
/* tokens_revoked, app_uninstalled: asks Slack whether the bot's token is still good. */
void slack_check_token(struct slack *sl);
/*
 * The adapter of the workspace that Slack sent this for: one app in several workspaces has several
 * adapters, and Slack gives an event to any connection of the app. While one of them is greeting,
 * it may be its event: that one is returned, without an intake. NULL: no adapter serves it.
 */
struct slack *slack_serving(struct slack *sl, enum sl_arrival kind, const json_t *payload);
/* Do they have the same secret of an app? */
bool slack_same_app(const struct slack *a, const struct slack *b);
/* The link is up after a gap, however short, or lost. */
void slack_up(struct slack *sl);
void slack_lost(struct slack *sl, const char *why);

/* ---- sl_socket.c ---- */

void sl_socket_open(struct slack *sl);
void sl_socket_close(struct slack *sl);

/* ---- sl_webhook.c ---- */

void sl_webhook_open(struct slack *sl);
/* After sl_intake_close: answers open posts with 503. */
void sl_webhook_close(struct slack *sl);
/* platform_ops.webhook_admits and .webhook */
bool sl_webhook_admits(struct adapter *a, struct http_exchange *x);
void sl_webhook_handle(struct adapter *a, struct http_exchange *x);

/* ---- sl_intake.c ---- */

/*
 * stored: it is committed, so acknowledge it, with this response if it is not NULL (borrowed).
 * Else it was refused, or we close: Slack shall send it again.
 */
typedef void sl_stored_fn(void *arg, bool stored, const json_t *response);

void sl_intake_open(struct slack *sl);
void sl_intake_close(struct slack *sl);
/*
 * Takes what Slack sent (borrowed). `stored` is called once, perhaps at once, also when there is
 * nothing to store. retry: how often Slack tried before, for the metadata.
 */
void sl_intake_take(struct slack *sl, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *arg);
/* A missed message (borrowed), oldest first: goes before held events of its channel. */
void sl_intake_missed(struct slack *sl, const char *channel, json_t *message);
/* Receives no more than this; the link stops reading while it is full. */
bool sl_intake_is_full(const struct slack *sl);

/* ---- sl_interaction.c ---- */

/*
 * Where a command is answered: the response_url for a delivery that replies to this id, or follows
 * such a delivery of its turn (reply_to NULL); counts as one of its five uses. NULL: not a command,
 * or it is over; answer in the channel.
 */
const char *sl_interaction_url(struct slack *sl, const char *reply_to, int64_t turn);

/* ---- sl_catchup.c ---- */

void sl_catchup_open(struct slack *sl);
void sl_catchup_close(struct slack *sl);
/* The link was down until now, and is up. */
void sl_catchup_start(struct slack *sl);
/* A message with this ts is committed: reading begins there after the next gap. */
void sl_catchup_seen(struct slack *sl, const char *ts);

/* ---- sl_send.c ---- */

void sl_sends_open(struct slack *sl);
/* Ends all sends in flight: repeatable ones are retried, others may have arrived. */
void sl_sends_close(struct slack *sl);
/* platform_ops.send */
void sl_send(struct adapter *a, const struct delivery *d);

/* ---- sl_stream.c ---- */

void sl_streams_open(struct slack *sl);
void sl_streams_close(struct slack *sl);
/*
 * For sl_send, about messages and edits (struct sl_send of sl_send.h). Just before the call is
 * made: its method and arguments become those of a stream, if it is a piece or the end of one.
 */
void sl_stream_prepare(struct sl_send *s);
/*
 * The answer to a call of a message or edit, before it is looked at. True: there is more to do,
 * and the next call is made (Slack refused to stream, or the end has two steps).
 */
bool sl_stream_goes_on(struct sl_send *s, const struct sl_answer *a);
/* Is it a stream of this process? */
bool sl_stream_knows(const struct slack *sl, const char *channel, const char *ts);
/* platform_ops.draft_ms: Slack wants at most one edit in three seconds. */
int64_t sl_stream_draft_ms(const struct adapter *a, const char *channel, const char *thread);

/* ---- sl_assistant.c ---- */

void sl_assistant_open(struct slack *sl);
void sl_assistant_close(struct slack *sl);
/*
 * An event that is no message: assistant_thread_started, assistant_thread_context_changed,
 * app_home_opened, app_context_changed; others are ignored. After its commit, or instead of one.
 */
void sl_assistant_event(struct slack *sl, const json_t *event);
/* A person wrote in a thread of a DM: the first text becomes the title. thread NULL: none. */
void sl_assistant_said(struct slack *sl, const char *channel, const char *thread, const char *text);
/* Sends a DELIVER_TYPE: the status of its thread. delivery_result follows. */
void sl_assistant_type(struct slack *sl, const struct delivery *d);
/* False: Slack refuses to show a status. */
bool sl_assistant_shows_status(const struct slack *sl);
/* For tests: when a status is repeated, and when it is cleared. */
void sl_assistant_set_times(struct slack *sl, int64_t repeat_ms, int64_t idle_ms);
/* A message of ours arrived in a chat (sent), or was edited: the status ends. */
void sl_assistant_answered(struct slack *sl, const struct delivery *d, bool sent);

/* ---- sl_readback.c: platform_ops.reconcile and .read_from ---- */

void sl_readback(struct adapter *a, const struct delivery *d);
void sl_readback_from(struct adapter *a, const struct delivery *d, char *out, size_t size);
/* An event arrived (the inner one): it shows Slack's time, or that a message of ours is deleted. */
void sl_readback_event(struct slack *sl, const json_t *event);
/* Those under way are asked for again when the adapter is back. */
void sl_readback_close(struct slack *sl);

/* ---- sl_files.c: platform_ops.files ---- */

extern const struct attachment_source sl_files;

/* ---- sl_tools.c ---- */

void sl_tools_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg);
void sl_tools_message(struct adapter *a, const char *channel, const char *thread, const char *id,
                      channel_history_fn *done, void *arg);
int sl_tools_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err);
int sl_tools_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err);
extern const struct platform_tool sl_tools[];

#endif
