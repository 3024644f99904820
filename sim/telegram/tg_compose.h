/*
 * compose: parts of messages for sending and editing.
 */
#ifndef SIM_TELEGRAM_TG_COMPOSE_H
#define SIM_TELEGRAM_TG_COMPOSE_H

#include <jansson.h>
#include <stddef.h>

#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_media.h"
#include "sim/telegram/tg_rich_text.h"

#define MAX_TEXT    4096
#define MAX_CAPTION 1024

/* All return 0, or -1 after tg_call_fail; tg_compose_file may also return TG_CALL_FETCH. */

/* Parses text in the markup of args; r must be initialised, and released in any case. */
int tg_compose_text(struct call *c, const json_t *args, const char *text_key,
                    const char *entities_key, struct rich_text *r);
/* Sets the text, which must not be empty. */
int tg_compose_body(struct call *c, struct message *m);
/* Sets the caption, if any. */
int tg_compose_caption(struct call *c, const json_t *args, struct message *m);
/* Sets keyboard, topic and reply of a new message. */
int tg_compose_options(struct call *c, struct message *m);
/* The inline keyboard in args as JSON text; *out is yours, NULL when there is none. */
int tg_compose_markup(struct call *c, char **out);
/* The file of a value: an upload, a URL or a file_id. */
int tg_compose_file(struct call *c, const struct media_kind *k, const char *value,
                    struct file **out);

/* Takes over m: posts and records it and writes it to the result. */
void tg_compose_post(struct call *c, struct message *m);
/* Opens an entry in GET /sim/messages; add members, then journal_close(c->world->base.sent). */
struct buf *tg_compose_record(struct call *c, const char *kind, const struct chat *chat);

#endif
