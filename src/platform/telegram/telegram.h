/*
 * telegram: one bot, as the files of this folder see it.
 *
 *     telegram.c    settings, the link: greeting, polling or webhook, waiting, stopped
 *     tg_call.c     one call of the Bot API
 *     tg_intake.c   updates from arrival (polled or posted) to acknowledgement
 *     tg_update.c   reads an update: tg_text.c its text, tg_describe.c what is neither text nor a
 *                   file
 *     tg_send.c     deliveries become calls; tg_reaction.c knows the permitted emoji
 *     tg_commands.c what must survive a restart besides the store, and the lock on the token
 *
 * The token is part of every URL: no URL is ever logged, stored or handed over.
 */
#ifndef PLATFORM_TELEGRAM_TELEGRAM_H
#define PLATFORM_TELEGRAM_TELEGRAM_H

#include <stdbool.h>
#include <sys/queue.h>

#include "platform/intake.h"
#include "platform/telegram/tg_call.h"
#include "platform/telegram/tg_update.h"

struct telegram_conf {
        struct secret *token;
        char *api_base;
        char *mode;
        struct secret *webhook_secret;
        int64_t poll_seconds;
        int64_t media_max_bytes;
        bool streaming;
        struct setting_list commands;
};

/* What the link does; only link_enter writes it. */
enum tg_state {
        TG_GREETING,  /* getMe */
        TG_SETTLING,  /* getting rid of a webhook, or setting ours */
        TG_LISTENING, /* polling, or waiting for posts */
        TG_WAITING,   /* after a failure; tries again by itself */
        TG_STOPPED,   /* the operator has to act */
};

struct tg_send;
TAILQ_HEAD(tg_sends, tg_send);
LIST_HEAD(tg_calls, tg_call);

#define TG_ALBUMS 32

/* The last albums received, and whether they address the bot. */
struct tg_albums {
        struct {
                char *chat, *id;
                bool is_mention, is_reply;
        } items[TG_ALBUMS];
        unsigned next;
};

struct telegram {
        struct adapter *adapter;
        const struct telegram_conf *conf;
        enum tg_state state;
        struct tg_self self;
        char *username, *name;
        char *secret;         /* of the webhook */
        char *hook;           /* its address; NULL when polling */
        struct tg_call *call; /* the link's one call */
        struct timer *timer;  /* the next try, or the next look beside pending updates */
        struct timer *watch;  /* webhook mode: does Telegram reach us? */
        unsigned failures, conflicts;
        /* the last question for updates, and how long it may be held */
        int64_t asked_ms, held_seconds;
        /* everything below is committed; 0: not known, Telegram remembers */
        int64_t offset;
        /* how many updates are asked for at once: fewer after an answer that could not be read */
        int64_t batch;
        struct intake intake;
        struct tg_albums albums;
        struct tg_calls calls; /* all of them */
        struct tg_sends sends;
        unsigned limited; /* answers 429 in a row */
        json_t *memory;
        int lock;
};

/* ---- telegram.c ---- */

/* The token does not work any more. */
void tg_stop(struct telegram *tg, const char *why);
/* Something left the window: it may be time to ask for more. */
void tg_listen_on(struct telegram *tg);
bool tg_polls(const struct telegram *tg);

/* ---- tg_intake.c ---- */

void tg_intake_open(struct telegram *tg);
/* Answers waiting posts with 503. */
void tg_intake_close(struct telegram *tg);
/* Takes one update (borrowed). x: answered with 200 after the commit; NULL: it was polled. */
void tg_intake_add(struct telegram *tg, json_t *update, struct http_exchange *x);
/* The first update that is not committed; `otherwise` when there is none. */
int64_t tg_intake_offset(const struct telegram *tg, int64_t otherwise);
/* Updates wait for files or for the rest of an album, and there is room to poll for more. */
bool tg_intake_has_room(const struct telegram *tg);
/* platform_ops.webhook_admits and .webhook: posted updates. */
bool tg_intake_admits_post(struct adapter *a, struct http_exchange *x);
void tg_intake_post(struct adapter *a, struct http_exchange *x);

/* ---- tg_send.c ---- */

void tg_send(struct adapter *a, const struct delivery *d);
/* All sends in flight end as unsure. */
void tg_sends_release(struct telegram *tg);
/* What Telegram's answer means for a delivery of this kind; why goes to `text`. */
void tg_outcome(enum delivery_kind kind, const struct tg_answer *answer, struct send_result *out,
                char *text, size_t size);

/* ---- tg_reaction.c ---- */

/* The nearest emoji a bot may react with, or NULL. */
const char *tg_reaction(const char *emoji);

/* ---- tg_commands.c ---- */

/* 0, or -1 with a sentence: another adapter or process of this data directory has the token. */
int tg_lock(struct telegram *tg, struct error *err);
void tg_unlock(struct telegram *tg);
void tg_memory_read(struct telegram *tg);
/* Where a chat has moved to; the id itself when it has not. Borrowed. */
const char *tg_chat_now(const struct telegram *tg, const char *chat);
void tg_chat_moved(struct telegram *tg, const char *from, const char *to);
/* setMyCommands, when what is configured is not what was set last. */
void tg_commands_publish(struct telegram *tg);
/* "name - what it does", as BotFather wants them. NULL, or what is wrong with it. */
const char *tg_command_check(const char *line);

#endif
