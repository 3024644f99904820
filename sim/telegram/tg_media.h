/*
 * media: kinds of media in messages.
 */
#ifndef SIM_TELEGRAM_TG_MEDIA_H
#define SIM_TELEGRAM_TG_MEDIA_H

#include <jansson.h>
#include <stdbool.h>

#include "sim/telegram/tg_files.h"

struct media_kind {
        const char *name;   /* of the message member and the parameter: "photo" */
        const char *folder; /* of file paths: "photos" */
        const char *mime;   /* default */
        bool caption;       /* has one */
        bool timed;         /* has a duration */
        bool sized;         /* has width and height */
        bool named;         /* has the file's name and type */
        bool image;         /* only images are accepted */
};

/* NULL: no such kind. */
const struct media_kind *tg_media_kind(const char *name);
/* "photo" for "sendPhoto". NULL for other methods. */
const struct media_kind *tg_media_kind_of_method(const char *method);
/*
 * The message member as JSON text, "photo":[{...}]. details (may be NULL) has duration, width,
 * title... Yours to free.
 */
char *tg_media_member(const struct media_kind *k, const struct file *f, const json_t *details);

#endif
