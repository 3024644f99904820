/*
 * compose: the parts of messages that sending and editing share.
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

/* All return 0, or -1 after tg_call_fail; tg_compose_file may also return CALL_FETCH. */

/*
 * Text in whichever markup args asks for; r must be initialised and is to be released in any case.
 */
int tg_compose_text(struct call *c, const json_t *args, const char *text_key,
                    const char *entities_key, struct rich_text *r);
/* The message's text, which must not be empty. */
int tg_compose_body(struct call *c, struct message *m);
/* The caption in args, if there is one. */
int tg_compose_caption(struct call *c, const json_t *args, struct message *m);
/* The keyboard, topic and reply of a new message. */
int tg_compose_options(struct call *c, struct message *m);
/* The inline keyboard in args as JSON text; *out is yours, NULL when there is none. */
int tg_compose_markup(struct call *c, char **out);
/* The file a value means: an upload, an address or a file_id. */
int tg_compose_file(struct call *c, const struct media_kind *k, const char *value,
                    struct file **out);

/* Takes over m: posts it, tells the journal and writes it as (part of) the result. */
void tg_compose_post(struct call *c, struct message *m);
/*
 * Tells the journal that the bot did something; add members to the result, then
 * journal_close(c->world->sent).
 */
struct buf *tg_compose_record(struct call *c, const char *kind, const struct chat *chat);

#endif
