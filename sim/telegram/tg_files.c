#include "sim/telegram/tg_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/map.h"
#include "base/mem.h"
#include "sim/telegram/tg_world.h"

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_FILES 20000

struct files {
        struct world *world;
        struct map by_id, by_path;
        struct file *oldest, *newest;
        struct file *next_to_drop; /* older contents are dropped */
        size_t bytes, count;
        uint64_t made;
};

struct files *tg_files_new(struct world *w)
{
        struct files *f = mem_zalloc(sizeof(*f));

        f->world = w;
        map_init(&f->by_id);
        map_init(&f->by_path);
        return f;
}

static char *disk_path(const struct files *f, const struct file *file)
{
        const char *name = strrchr(file->path, '/');

        return mem_printf("%s/%s", f->world->data_dir, name ? name + 1 : file->path);
}

static void drop_contents(struct files *f, struct file *file)
{
        if (file->dropped)
                return;
        if (!file->data) {
                char *path = disk_path(f, file);

                unlink(path);
                free(path);
        }
        free(file->data);
        file->data = NULL;
        file->dropped = true;
        f->bytes -= file->size;
}

static void drop_oldest(struct files *f)
{
        struct file *file = f->oldest;

        drop_contents(f, file);
        if (f->next_to_drop == file)
                f->next_to_drop = file->next;
        f->oldest = file->next;
        if (!f->oldest)
                f->newest = NULL;
        map_remove(&f->by_id, file->id);
        map_remove(&f->by_path, file->path);
        f->count--;
        free(file->name);
        free(file->mime);
        free(file);
}

static int write_to_disk(const struct files *f, const struct file *file, const void *data)
{
        char *path = disk_path(f, file);
        FILE *out = fopen(path, "wb");
        int rc = -1;

        if (out) {
                rc = fwrite(data, 1, file->size, out) == file->size ? 0 : -1;
                rc = fclose(out) == 0 ? rc : -1;
        }
        free(path);
        return rc;
}

/* ".pdf" of the name, or by type. */
static const char *extension(const char *name, const char *mime)
{
        static const struct {
                const char *mime, *extension;
        } usual[] = {
                { "image/jpeg", ".jpg" },
                { "image/png", ".png" },
                { "audio/ogg", ".oga" },
                { "video/mp4", ".mp4" },
        };
        const char *dot = name ? strrchr(name, '.') : NULL;

        if (dot && dot[1] && strlen(dot) <= 8 &&
            strspn(dot + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
                    strlen(dot + 1))
                return dot;
        for (size_t i = 0; mime && i < COUNT(usual); i++) {
                if (strcmp(mime, usual[i].mime) == 0)
                        return usual[i].extension;
        }
        return "";
}

struct file *tg_files_add(struct files *f, const char *folder, const char *name, const char *mime,
                          const void *data, size_t n)
{
        struct file *file = mem_zalloc(sizeof(*file));
        unsigned char hash[SHA256_SIZE];
        const char *image_mime = NULL;

        while (f->count >= MAX_FILES)
                drop_oldest(f);
        while (f->bytes + n > MAX_BYTES && f->next_to_drop) {
                drop_contents(f, f->next_to_drop);
                f->next_to_drop = f->next_to_drop->next;
        }
        f->made++;
        crypto_sha256(data, n, hash);
        snprintf(file->id, sizeof(file->id), "SimFile%08llxAgADAQAD", (unsigned long long)f->made);
        crypto_hex(hash, 8, file->unique_id);
        if (tg_files_image(data, n, &file->width, &file->height, &image_mime) && !mime)
                mime = image_mime;
        snprintf(file->path, sizeof(file->path), "%s/file_%llu%s", folder,
                 (unsigned long long)f->made, extension(name, mime));
        file->name = mem_strdup(name);
        file->mime = mem_strdup(mime);
        file->size = n;
        if (!f->world->data_dir || write_to_disk(f, file, data) != 0) {
                file->data = mem_alloc(n + 1);
                memcpy(file->data, data, n);
        }
        if (f->newest)
                f->newest->next = file;
        else
                f->oldest = file;
        f->newest = file;
        if (!f->next_to_drop)
                f->next_to_drop = file;
        f->bytes += n;
        f->count++;
        map_put(&f->by_id, file->id, file);
        map_put(&f->by_path, file->path, file);
        return file;
}

struct file *tg_files_by_id(const struct files *f, const char *id)
{
        return map_get(&f->by_id, id);
}

struct file *tg_files_by_path(const struct files *f, const char *path)
{
        return map_get(&f->by_path, path);
}

int tg_files_read(const struct files *f, const struct file *file, struct buf *b)
{
        char *path, *to;
        FILE *in;
        size_t got = 0;

        if (file->dropped)
                return -1;
        if (file->data)
                return buf_add(b, file->data, file->size);
        path = disk_path(f, file);
        in = fopen(path, "rb");
        free(path);
        if (!in)
                return -1;
        to = buf_reserve(b, file->size);
        if (to)
                got = fread(to, 1, file->size, in);
        fclose(in);
        if (got != file->size)
                return -1;
        buf_grew(b, got);
        return 0;
}

void tg_files_free(struct files *f)
{
        if (!f)
                return;
        while (f->oldest)
                drop_oldest(f);
        map_release(&f->by_id);
        map_release(&f->by_path);
        free(f);
}

/* ---- images ---- */

static int be16(const unsigned char *p)
{
        return p[0] << 8 | p[1];
}

/* Finds the segment of a JPEG with its size. */
static void jpeg_size(const unsigned char *p, size_t n, int *width, int *height)
{
        for (size_t at = 2; at + 9 < n && p[at] == 0xff;) {
                unsigned char marker = p[at + 1];

                if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
                    marker != 0xcc) {
                        *height = be16(p + at + 5);
                        *width = be16(p + at + 7);
                        return;
                }
                at += 2u + (size_t)be16(p + at + 2);
        }
}

bool tg_files_image(const void *data, size_t n, int *width, int *height, const char **mime)
{
        const unsigned char *p = data;

        *width = *height = 0;
        if (n >= 24 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) {
                *width = be16(p + 18);
                *height = be16(p + 22);
                *mime = "image/png";
        } else if (n >= 4 && memcmp(p, "\xff\xd8\xff", 3) == 0) {
                jpeg_size(p, n, width, height);
                *mime = "image/jpeg";
        } else if (n >= 10 && memcmp(p, "GIF8", 4) == 0) {
                *width = p[6] | p[7] << 8;
                *height = p[8] | p[9] << 8;
                *mime = "image/gif";
        } else if (n >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0) {
                *mime = "image/webp";
        } else {
                return false;
        }
        return true;
}
