/*
 * card: a message with a title, a colour, a text and named values.
 *
 * As JSON it is {"title", "color": "#FFA500", "body", "fields": [{"name", "value", "inline"}],
 * "footer", "time"}, all optional. Body and values are Markdown; the rest is text on one line.
 * A platform with ADAPTER_CARDS shows it as such, others get it as text. It is always one message,
 * cut where it is too long for the platform, and notifies nobody.
 */
#ifndef ROAD_OUTBOX_CARD_H
#define ROAD_OUTBOX_CARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CARD_FIELDS_MAX 25
#define CARD_COLOR_MAX  0xffffff
#define CARD_BYTES_MAX  524288 /* as JSON */

struct card_field {
        const char *name, *value;
        bool is_inline; /* may stand beside its neighbours */
};

/* NULL and 0: it has none. */
struct card {
        const char *title, *body, *footer;
        int64_t color; /* 0xRRGGBB */
        struct card_field fields[CARD_FIELDS_MAX];
        size_t field_count;
        int64_t time_ms; /* wall clock, shown with the footer */
};

/*
 * Its JSON, for struct outgoing; yours to free. Texts may be any bytes: what is longer than any
 * platform shows is cut, control characters go, fields without name or value are left out.
 */
char *card_json(const struct card *c);
/* Strings are borrowed from json. -1: ERR_INVALID names the wrong member. */
int card_read(const json_t *json, struct card *out, struct error *err);
/* From JSON text of at most CARD_BYTES_MAX; *json owns the strings. */
int card_parse(const char *text, json_t **json, struct card *out, struct error *err);
/* What a delivery's payload says in short: its text, else that of its card. NULL: neither. */
const char *card_said(const json_t *payload);

#endif
