/*
 * tg_words: content that is neither text nor a file, put into words.
 *
 * Places, contacts, polls and the like are told in a line; a rich message is read as plain text,
 * line by line. Pure.
 */
#ifndef PLATFORM_TELEGRAM_TG_DESCRIBE_H
#define PLATFORM_TELEGRAM_TG_DESCRIBE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "platform/telegram/tg_text.h"

struct tg_words {
        const char *text;  /* from the arena */
        const char *field; /* of the message that was read */
        const char *kind;  /* of an attachment without a file; NULL: none */
        bool mention;      /* the bot is addressed by name */
};

/* false: the message has no such content. */
bool tg_words_read(struct arena *arena, const struct tg_self *self, const json_t *message,
                   struct tg_words *out);
/* How people know a user, a chat or a contact; NULL: not at all. From the arena, or borrowed. */
const char *tg_full_name(struct arena *arena, const json_t *who);

#endif
