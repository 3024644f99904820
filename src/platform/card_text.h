/*
 * card_text: what a platform shows of a card: rendered texts within its limits.
 *
 * Each text is well-formed in the dialect by itself: code that is cut is closed, and nothing in one
 * of them reaches into the next.
 */
#ifndef PLATFORM_CARD_TEXT_H
#define PLATFORM_CARD_TEXT_H

#include "platform/markdown/markdown.h"
#include "road/outbox/card.h"

/* Longest texts, in units; each at least MARKDOWN_CUT_MIN, the total four times that. */
struct card_limits {
        enum markdown_dialect dialect;
        enum utf8_unit unit;
        bool plain_footer; /* it shows no markup there */
        size_t title, body, name, value, footer;
        size_t total;    /* of all of them */
        size_t overhead; /* of a field, and of the body, in the total */
};

/* "" where the card has nothing to show. */
struct card_text {
        char *title, *body, *footer;
        struct {
                char *name, *value;
                bool is_inline;
        } fields[CARD_FIELDS_MAX];
        size_t field_count;
};

/* A value that is cut says so in its name; fields that do not fit are counted in a last one. */
void card_text_init(struct card_text *t, const struct card *c, const struct card_limits *limits);
void card_text_release(struct card_text *t);

/* As one message of a platform that has no cards; yours to free. */
char *card_text_message(const struct card *c, const struct markdown_limits *limits);
/* As Markdown, for clients that render it; yours to free. */
char *card_text_markdown(const struct card *c);

#endif
