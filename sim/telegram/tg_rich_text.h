/*
 * rich: text with entities, as messages carry it.
 *
 * Made from HTML, MarkdownV2 or Markdown with the errors the real server gives, or from an entity
 * list; mentions, commands, hashtags and addresses are found in what is left. Offsets count UTF-16
 * units.
 */
#ifndef SIM_TELEGRAM_TG_RICH_TEXT_H
#define SIM_TELEGRAM_TG_RICH_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"

#define RICH_PROBLEM_SIZE 200

struct rich_entity {
        const char *type;      /* a constant, or owned by `owner` */
        size_t offset, length; /* UTF-16 units */
        char *extra;           /* more members as JSON text, such as "url":"..."; NULL: none */
};

struct rich {
        struct buf text;
        size_t units; /* length of text */
        struct rich_entity *list;
        size_t count, room;
        json_t *owner; /* keeps type names of foreign entity lists alive */
};

void rich_init(struct rich *r);
void rich_release(struct rich *r);

/* Adds text; `units` follows. */
void rich_add(struct rich *r, const char *bytes, size_t n);
/*
 * Adds an entity from `offset` up to the end of the text so far, unless that is nothing. Takes over
 * extra.
 */
void rich_mark(struct rich *r, const char *type, size_t offset, char *extra);

/*
 * All return 0, or -1 with the real server's words, which go behind "Bad Request: can't parse
 * entities: ".
 */
int rich_from_html(struct rich *r, const char *html, char problem[RICH_PROBLEM_SIZE]);
int rich_from_markdown_v2(struct rich *r, const char *text, char problem[RICH_PROBLEM_SIZE]);
int rich_from_markdown(struct rich *r, const char *text, char problem[RICH_PROBLEM_SIZE]);
/* entities may be NULL. */
int rich_from_entities(struct rich *r, const char *text, json_t *entities,
                       char problem[RICH_PROBLEM_SIZE]);

/* White space around the text goes, as in every message. */
void rich_trim(struct rich *r);
/* Adds what the server finds by itself: mention, bot_command, hashtag, url. */
void rich_detect(struct rich *r);
/* The entities as a JSON array in order; NULL when there are none; yours to free. */
char *rich_entities(struct rich *r);

#endif
