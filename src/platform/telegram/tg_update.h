/*
 * tg_update: one update of the Bot API, from its arrival to its acknowledgement.
 *
 * Reading is pure: no network, no clock, no disk. It gives no event (service messages), one, or
 * several. Dedup keys are derived from the contents, so an event repeated under another update id
 * is recognised.
 */
#ifndef PLATFORM_TELEGRAM_TG_UPDATE_H
#define PLATFORM_TELEGRAM_TG_UPDATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "platform/intake.h"

/* The bot, from getMe. */
struct tg_self {
        int64_t id;
        const char *username; /* without @; NULL: none */
};

struct tg_update {
        struct intake_update base;      /* first */
        json_t *json;                   /* as Telegram sent it; strings of the content live in it */
        int64_t id;                     /* update_id */
        int64_t message;                /* message id; 0: none */
        const char *album;              /* messages with the same one belong together; NULL: none */
        const char *callback;           /* a pressed button, to be answered once stored */
        const char *migrated;           /* the chat's new id */
        struct http_exchange *exchange; /* of a posted update; NULL: it was polled */
};

/* Fills in everything but `exchange` from an update, which is borrowed. */
void tg_update_read(struct tg_update *u, const struct tg_self *self, json_t *json);
/* For an update that no intake owns. */
void tg_update_release(struct tg_update *u);
/* The id of the first update in a text that is not valid JSON; -1: there is none. */
int64_t tg_update_first_id(const char *text, size_t n);

/* ---- tg_text.c: mentions and commands, which Telegram marks by entities ---- */

struct tg_text {
        const char *text;    /* without the mentions of the bot; from the arena, or the original */
        const char *raw;     /* the original, when it differs; NULL: the same */
        const char *command; /* "start" of a leading "/start" or "/start@ourbot"; NULL: none */
        bool mention;        /* the bot is addressed by name */
        bool for_other;      /* begins with "/start@otherbot" */
};

/* text may be NULL; entities may be anything. */
void tg_text_read(struct arena *arena, const struct tg_self *self, const char *text,
                  const json_t *entities, struct tg_text *out);
/* Our own HTML as plain text, for when Telegram refuses the markup. Yours to free. */
char *tg_text_plain(const char *html);

/* ---- tg_describe.c: content that is neither text nor a file, in words ---- */

struct tg_description {
        const char *text;  /* from the arena */
        const char *field; /* of the message that was described */
        const char *kind;  /* of an attachment without a file; NULL: none */
        bool mention;      /* the bot is addressed by name */
};

/* False: the message has no such content. */
bool tg_describe(struct arena *arena, const struct tg_self *self, const json_t *message,
                 struct tg_description *out);
/* The display name of a user, chat or contact; NULL: none. From the arena, or borrowed. */
const char *tg_describe_name(struct arena *arena, const json_t *who);
enum chat_kind tg_describe_kind(const json_t *chat);

#endif
