/*
 * tg_text: mentions and commands in the text of a message, and text from our own HTML.
 *
 * Telegram marks mentions and commands by entities, with offsets in UTF-16 units.
 */
#ifndef PLATFORM_TELEGRAM_TG_TEXT_H
#define PLATFORM_TELEGRAM_TG_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* The bot, from getMe. */
struct tg_self {
        int64_t id;
        const char *username; /* without @; NULL: none */
};

struct tg_text {
        const char *text;    /* without the mentions of the bot; from the arena, or the original */
        const char *raw;     /* the original, when it differs; NULL: the same */
        const char *command; /* "start" of a leading "/start" or "/start@ourbot"; NULL: none */
        bool mention;        /* the bot is addressed by name */
};

/* text may be NULL; entities may be anything. */
void tg_text_read(struct arena *arena, const struct tg_self *self, const char *text,
                  const json_t *entities, struct tg_text *out);
/* The byte offset of the n-th UTF-16 unit; the length of a text that is shorter. */
size_t tg_text_offset(const char *text, int64_t units);
/* Our own HTML as plain text, for when Telegram refuses the markup. Yours to free. */
char *tg_text_plain(const char *html);

#endif
