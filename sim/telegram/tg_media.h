/*
 * media: the kinds of things besides text a message can hold.
 */
#ifndef SIM_TELEGRAM_TG_MEDIA_H
#define SIM_TELEGRAM_TG_MEDIA_H

#include <jansson.h>
#include <stdbool.h>

#include "sim/telegram/tg_files.h"

struct media_kind {
        /* member of the message, and the parameter that holds the file: "photo" */
        const char *name;
        const char *folder; /* of file paths: "photos" */
        const char *mime;   /* when nobody told */
        bool caption;       /* has one */
        bool timed;         /* has a duration */
        bool sized;         /* has width and height */
        bool named;         /* tells the file's name and type */
        bool image;         /* only images are accepted */
};

/* NULL when there is no such kind. */
const struct media_kind *tg_media_kind(const char *name);
/* Of sendPhoto: photo. NULL for other methods. */
const struct media_kind *tg_media_kind_of_method(const char *method);
/*
 * The message member as JSON text, "photo":[{...}]. details (may be NULL) has duration, width,
 * title... Yours to free.
 */
char *tg_media_member(const struct media_kind *k, const struct file *f, const json_t *details);

#endif
