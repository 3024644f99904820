/*
 * tg_describe: message content that is neither text nor a file, described in words.
 *
 * Places, contacts, polls and the like become one line; a rich message becomes plain text. Pure.
 */
#ifndef PLATFORM_TELEGRAM_TG_DESCRIBE_H
#define PLATFORM_TELEGRAM_TG_DESCRIBE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "platform/telegram/tg_text.h"

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

#endif
