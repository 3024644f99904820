/*
 * tg_update: an update of the Bot API in the shape all platforms share.
 *
 * Pure: no network, no clock, no disk. One update gives no event (service messages), one, or
 * several (a reaction that replaces another). The keys are made so that the same happening
 * delivered again, even under another update id, is the same event.
 */
#ifndef PLATFORM_TELEGRAM_TG_UPDATE_H
#define PLATFORM_TELEGRAM_TG_UPDATE_H

#include <jansson.h>
#include <stdint.h>

#include "base/arena.h"
#include "platform/telegram/tg_text.h"
#include "road/incoming.h"

/*
 * Data of a button that begins like this is said by whoever presses it: "say:yes" is the message
 * "yes".
 */
#define TG_SAY "say:"

/* Where Telegram has an attachment. Not our secret: a file id is of no use without the token. */
struct tg_file {
        const char *id, *unique;
        const char *error; /* why we do not have it; set while fetching */
};

/* What one update says. Strings live as long as the item and the update it was read from. */
struct tg_item {
        struct arena arena;
        int64_t update;
        int64_t message;      /* message id; 0: none */
        const char *chat;     /* events of one chat stay in order; NULL: none */
        const char *album;    /* several messages with the same one belong together */
        const char *callback; /* to be answered once the event is stored */
        const char *migrated; /* the chat's new id */
        const char *ignored;  /* why there is no event */
        struct incoming *events;
        size_t event_count;
        struct attachment *attachments; /* of events[0] */
        struct tg_file *files;          /* one for each; id NULL: nothing to fetch */
        size_t attachment_count;
        json_t *metadata; /* of every event */
};

/* Always fills *out (release it); the update is borrowed and must outlive it. */
void tg_item_read(struct tg_item *out, const struct tg_self *self, json_t *update);
void tg_item_release(struct tg_item *item);
/* The number of the first update in a text that is no JSON we would read; -1: there is none. */
int64_t tg_update_number(const char *text, size_t n);

#endif
