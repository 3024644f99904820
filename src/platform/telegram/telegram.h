/*
 * telegram: one Telegram bot, as the files of this folder see it.
 *
 *     telegram.c    settings, opening and closing, the platform's table of functions
 *     tg_link.c     the connection: getMe, polling or webhook, waiting after failures
 *     tg_call.c     one call of the Bot API
 *     tg_intake.c   updates from arrival (polled or posted) to acknowledgement
 *     tg_update.c   reads an update: tg_text.c its text, tg_describe.c other content
 *     tg_send.c     deliveries become calls; tg_reaction.c knows the permitted emoji
 *     tg_reconcile.c  whether a send without an answer arrived; tg_ids.c knows message ids
 *     tg_topic.c    topics of forums, and those whose creation got no answer
 *     tg_chat.c     chats that changed their id; lookups of chats and users
 *     tg_commands.c the bot's command menu
 *
 * The token is part of every URL: no URL is ever logged, stored or handed out.
 */
#ifndef PLATFORM_TELEGRAM_TELEGRAM_H
#define PLATFORM_TELEGRAM_TELEGRAM_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/map.h"
#include "platform/intake.h"
#include "platform/telegram/tg_call.h"
#include "platform/telegram/tg_update.h"

struct telegram_conf {
        struct secret *token;
        char *api_base;
        char *mode, *when_unsure;
        struct secret *webhook_secret;
        int64_t poll_seconds;
        int64_t media_max_bytes, reconcile_after_ms;
        bool streaming;
        struct setting_list commands;
};

enum tg_state {
        TG_GREETING,    /* getMe */
        TG_CONFIGURING, /* removing a webhook, or setting ours */
        TG_LISTENING,   /* polling, or waiting for posts */
        TG_WAITING,     /* after a failure, until the next attempt */
        TG_STOPPED,     /* the operator has to act */
};

struct tg_lookup;
struct tg_send;
struct tg_doubt;
struct records_wait;
TAILQ_HEAD(tg_sends, tg_send);
TAILQ_HEAD(tg_doubts, tg_doubt);
LIST_HEAD(tg_calls, tg_call);
LIST_HEAD(tg_lookups, tg_lookup);

#define TG_ALBUMS 32

/* The last albums received, and whether they address the bot. */
struct tg_albums {
        struct {
                char *chat, *id;
                bool is_mention, is_reply;
        } items[TG_ALBUMS];
        unsigned next;
};

#define TG_CONFLICTS 8 /* remembered */

/* When polls got 409, oldest first. */
struct tg_conflicts {
        int64_t at_ms[TG_CONFLICTS];
        unsigned count;
};

struct telegram {
        struct adapter *adapter;
        const struct telegram_conf *conf;
        int lock;      /* on the token */
        json_t *saved; /* the state file: published commands, chats that moved */
        /* the bot, from getMe */
        struct tg_self self;
        char *username, *name;
        bool private_topics; /* its private chats have topics */
        /* the link */
        enum tg_state state;                /* only enter() of tg_link.c writes it */
        bool configured;                    /* TG_CONFIGURING has succeeded once */
        char *webhook_secret, *webhook_url; /* NULL when polling */
        struct tg_call *call;               /* the link's one call */
        struct timer *timer;                /* the next attempt, or the next poll */
        struct timer *watch;                /* webhook mode: the next check of the webhook */
        struct tg_conflicts pollers;        /* polls that another poller interrupted */
        struct tg_conflicts webhooks;       /* polls that a webhook refused or interrupted */
        int64_t polled_ms, poll_seconds;    /* the last getUpdates, and how long it may be held */
        int64_t offset; /* everything below is received; 0: Telegram remembers */
        int64_t batch;  /* updates per poll: fewer after an answer that could not be read */
        /* in and out */
        struct intake intake;
        struct tg_albums albums;
        struct tg_calls calls; /* all of them */
        struct tg_sends sends;
        struct tg_doubts doubts;      /* sends that may have arrived */
        struct map spaces;            /* message ids, by chat or for the account */
        struct records_wait *loading; /* stored ids are being read; NULL: not now */
        bool loaded;
        struct tg_lookups lookups;
        unsigned limited; /* answers 429 to sends in a row */
};

/* ---- tg_link.c ---- */

void tg_link_open(struct telegram *tg);
void tg_link_close(struct telegram *tg);
/* Telegram does not accept the token: the adapter stops. */
void tg_link_bad_token(struct telegram *tg);
bool tg_link_polls(const struct telegram *tg);
/* intake_handlers.advanced: polls when nothing is pending, or when there is room for more. */
void tg_link_poll(struct intake *in);

/* Configured, and stored message ids are known: the adapter is ready. */
void tg_link_listen(struct telegram *tg);
/* A send without an answer waits for news: asks sooner whether updates are waiting. */
void tg_link_hurry(struct telegram *tg);

/* ---- tg_intake.c ---- */

void tg_intake_open(struct telegram *tg);
/* Answers waiting posts with 503. */
void tg_intake_close(struct telegram *tg);
/* Takes one update (borrowed). x: answered with 200 after the commit; NULL: it was polled. */
void tg_intake_add(struct telegram *tg, json_t *update, struct http_exchange *x);
/* The first update that is not committed; `otherwise` when there is none. */
int64_t tg_intake_offset(const struct telegram *tg, int64_t otherwise);
/* Updates wait for an album's rest, and there is room to poll for more. */
bool tg_intake_has_room(const struct telegram *tg);
/* platform_ops.webhook_admits and .webhook. */
extern const struct attachment_source tg_intake_files;
bool tg_intake_admits_post(struct adapter *a, struct http_exchange *x);
void tg_intake_post(struct adapter *a, struct http_exchange *x);

/* ---- tg_send.c ---- */

void tg_send(struct adapter *a, const struct delivery *d);
/* Cuts the call of a delivery that takes too long, if there is one; it has no result. */
void tg_send_abort(struct telegram *tg, int64_t delivery);
/* Ends all sends in flight: repeatable ones are retried, others may have arrived. */
void tg_sends_close(struct telegram *tg);
/* Maps Telegram's answer to the outcome of a delivery; `text` receives the reason. */
void tg_send_outcome(enum delivery_kind kind, const struct tg_answer *answer,
                     struct send_result *out, char *text, size_t size);

/* The keyboard of a delivery, yours; NULL: none, or not valid. */
json_t *tg_send_markup(const struct delivery *d);

/* ---- tg_ids.c ---- */

#define TG_IDS_MAX 4096 /* ids of the account that are remembered */

bool tg_ids_parse(const char *text, int64_t *out);
/* A supergroup or channel counts by itself. */
bool tg_ids_own_space(const char *chat);
bool tg_ids_same_space(const char *chat, const char *other);
/* A message of this id exists. date: Telegram's, 0: not known. */
void tg_ids_note(struct telegram *tg, const char *chat, int64_t id, int64_t date);
bool tg_ids_known(const struct telegram *tg, const char *chat, int64_t id);
/* In the chat's id space; 0: none is known. */
int64_t tg_ids_highest(const struct telegram *tg, const char *chat);
/* False: ids were seen that contradict their dates. */
bool tg_ids_in_order(const struct telegram *tg, const char *chat);
void tg_ids_release(struct telegram *tg);

/* ---- tg_reconcile.c ---- */

/* Reads the ids of stored messages, then calls tg_link_listen. */
void tg_reconcile_open(struct telegram *tg);
/* platform_ops.reconcile and .read_from. */
void tg_reconcile(struct adapter *a, const struct delivery *d);
void tg_reconcile_from(struct adapter *a, const struct delivery *d, char *out, size_t size);
/* A message was sent with this id, by a call that began then. After tg_ids_note. */
void tg_reconcile_sent(struct telegram *tg, const char *chat, int64_t id, int64_t started_ms);
/* A message of another sender arrived. After tg_ids_note. */
void tg_reconcile_received(struct telegram *tg, const char *chat, int64_t id);
/* Some message has this id, which is new; called by tg_ids_note. */
void tg_reconcile_known(struct telegram *tg, const char *chat, int64_t id);
/* Telegram had no updates for us when it was asked then. */
void tg_reconcile_quiet(struct telegram *tg, int64_t asked_ms);
/* A search waits for such a poll; in a busy bot, each poll that Telegram holds brings an update. */
bool tg_reconcile_needs_quiet(const struct telegram *tg);
void tg_reconcile_progress(struct telegram *tg);
void tg_reconcile_close(struct telegram *tg);

/* ---- tg_topic.c ---- */

#define TG_TOPIC_NAME_MAX 128 /* UTF-16 units */

/* A message of the bot's own. */
void tg_topic_update(struct telegram *tg, const json_t *message);
/* A topic of the bot's own with this name and a later id; 0: none is known. */
int64_t tg_topic_find(const struct telegram *tg, const char *chat, const char *name, int64_t after);
/* The highest id of one; 0: none is known. */
int64_t tg_topic_newest(const struct telegram *tg, const char *chat);
/* The name that a payload wants, as Telegram takes it, yours; NULL: none. */
char *tg_topic_name(const json_t *payload);

/* tg_reaction.c: the nearest emoji a bot may react with, or NULL. */
const char *tg_reaction(const char *emoji);

/* ---- tg_chat.c ---- */

/* The current id of a chat, borrowed: a group that became a supergroup has a new one. */
const char *tg_chat_id(const struct telegram *tg, const char *chat);
/* Remembers, also after a restart, that a chat has a new id. */
void tg_chat_moved(struct telegram *tg, const char *from, const char *to);
/* platform_ops.channel_info and .user_info. */
int tg_chat_channel_info(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                         struct error *err);
int tg_chat_user_info(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                      struct error *err);
void tg_chat_close(struct telegram *tg);

/* ---- tg_commands.c ---- */

/* setMyCommands, unless the configured commands were published last time. */
void tg_commands_publish(struct telegram *tg);
/* NULL, or what is wrong with a configured command: "name - what it does". */
const char *tg_command_check(const char *line);

#endif
