/*
 * tg_update: one update of the Bot API, from its arrival to its acknowledgement.
 *
 * Reading it is pure: no network, no clock, no disk. An update gives no event (service messages),
 * one, or several (a reaction that replaces another). The dedup keys are derived from what
 * happened, so an event that Telegram repeats under another update id is still recognised.
 */
#ifndef PLATFORM_TELEGRAM_TG_UPDATE_H
#define PLATFORM_TELEGRAM_TG_UPDATE_H

#include <jansson.h>
#include <stdint.h>

#include "platform/intake.h"
#include "platform/telegram/tg_text.h"

/* Button data with this prefix is a message of the person who presses: "say:yes" says "yes". */
#define TG_SAY "say:"

struct tg_update {
        struct intake_update base; /* first */
        json_t *json;              /* as Telegram sent it; strings of the content live in it */
        int64_t id;                /* update_id */
        int64_t message;           /* message id; 0: none */
        const char *album;         /* messages with the same one belong together; NULL: none */
        const char *callback;      /* a pressed button, to be answered once stored */
        const char *migrated;      /* the chat's new id */
        bool split;                /* some parts of the album are known: store each by itself */
        struct http_exchange *exchange; /* of a posted update; NULL: it was polled */
};

/* Fills in everything but `split` and `exchange` from an update, which is borrowed. */
void tg_update_read(struct tg_update *u, const struct tg_self *self, json_t *json);
void tg_update_release(struct tg_update *u);
/* The id of the first update in a text that is not valid JSON; -1: there is none. */
int64_t tg_update_first_id(const char *text, size_t n);

#endif
