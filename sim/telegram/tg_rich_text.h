/*
 * rich_text: text with entities.
 *
 * Parsed from HTML, MarkdownV2 or Markdown with the real server's errors, or made from an entity
 * list; mentions, commands, hashtags and URLs are detected. Offsets count UTF-16 units.
 */
#ifndef SIM_TELEGRAM_TG_RICH_TEXT_H
#define SIM_TELEGRAM_TG_RICH_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"

#define TG_RICH_TEXT_PROBLEM_SIZE 200

struct rich_text_entity {
        const char *type;      /* a constant, or owned by `owner` */
        size_t offset, length; /* UTF-16 units */
        char *extra;           /* more members as JSON text: "url":"..."; NULL: none */
};

struct rich_text {
        struct buf text;
        size_t units; /* length of text */
        struct rich_text_entity *list;
        size_t count, room;
        json_t *owner; /* of type names in entity lists */
};

void tg_rich_text_init(struct rich_text *r);
void tg_rich_text_release(struct rich_text *r);

/* Appends text and updates `units`. */
void tg_rich_text_add(struct rich_text *r, const char *bytes, size_t n);
/* Adds an entity from `offset` to the end of the text, unless empty. Takes over extra. */
void tg_rich_text_mark(struct rich_text *r, const char *type, size_t offset, char *extra);

/* All return 0, or -1 with the real server's text after "can't parse entities: ". */
int tg_rich_text_html(struct rich_text *r, const char *html,
                      char problem[TG_RICH_TEXT_PROBLEM_SIZE]);
int tg_rich_text_markdown_v2(struct rich_text *r, const char *text,
                             char problem[TG_RICH_TEXT_PROBLEM_SIZE]);
int tg_rich_text_markdown(struct rich_text *r, const char *text,
                          char problem[TG_RICH_TEXT_PROBLEM_SIZE]);
/* entities may be NULL. */
int tg_rich_text_from_entities(struct rich_text *r, const char *text, json_t *entities,
                               char problem[TG_RICH_TEXT_PROBLEM_SIZE]);

/* Removes white space around the text. */
void tg_rich_text_trim(struct rich_text *r);
/* Adds the entities the server detects: mention, bot_command, hashtag, url. */
void tg_rich_text_detect(struct rich_text *r);
/* The sorted entities as a JSON array, yours to free; NULL: none. */
char *tg_rich_text_entities(struct rich_text *r);

#endif
