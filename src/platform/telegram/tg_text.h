/*
 * tg_text: what the text of a message says to the bot.
 *
 * Telegram marks mentions and commands by entities whose places are counted in UTF-16 units.
 */
#ifndef PLATFORM_TELEGRAM_TG_TEXT_H
#define PLATFORM_TELEGRAM_TG_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Who we are, from getMe. */
struct tg_self {
        int64_t id;
        const char *username; /* without @; NULL: none */
};

struct tg_text {
        const char *text; /* without the mentions of the bot; from the arena, or the original */
        const char *raw;  /* as it was written, when that is something else; NULL: the same */
        /* "start" of "/start" or "/start@ourbot" at the beginning; NULL: none for us */
        const char *command;
        bool mention; /* the bot is addressed by name */
};

/* text may be NULL; entities may be anything. */
void tg_text_read(struct arena *arena, const struct tg_self *self, const char *text,
                  const json_t *entities, struct tg_text *out);
/* Where the n-th UTF-16 unit of text begins, in bytes; the end of the text when it is shorter. */
size_t tg_text_offset(const char *text, int64_t units);
/* Our own HTML as plain text, for when Telegram refuses the markup; yours to free. */
char *tg_text_plain(const char *html);

#endif
