/*
 * files: uploads of bots and users.
 *
 * Contents are in memory or in the data directory, up to a cap; the oldest are dropped first.
 */
#ifndef SIM_TELEGRAM_TG_FILES_H
#define SIM_TELEGRAM_TG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FILES_MAX_UPLOAD   ((size_t)50 << 20)
#define FILES_MAX_PHOTO    ((size_t)10 << 20)
#define FILES_MAX_DOWNLOAD ((size_t)20 << 20)

struct world;
struct files;

struct file {
        char id[48], unique_id[24];
        char path[80]; /* of getFile: "photos/file_1.jpg" */
        char *name, *mime;
        size_t size;
        int width, height; /* of images; 0: unknown */
        char *data;        /* NULL: in the data directory, or dropped */
        bool dropped;
        struct file *next;
};

struct files *tg_files_new(struct world *w);
void tg_files_free(struct files *f);
/* Copies data. folder is of the media kind: "photos"; name and mime may be NULL. */
struct file *tg_files_add(struct files *f, const char *folder, const char *name, const char *mime,
                          const void *data, size_t n);
struct file *tg_files_by_id(const struct files *f, const char *id);
struct file *tg_files_by_path(const struct files *f, const char *path);
/* Appends the contents to b. -1: dropped. */
int tg_files_read(const struct files *f, const struct file *file, struct buf *b);
/* True: an image of a known type. Sets its size, if easily found. */
bool tg_files_image(const void *data, size_t n, int *width, int *height, const char **mime);

#endif
