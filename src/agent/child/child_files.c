/*
 * child_files: the files of a turn's messages; pictures are read on a pool thread.
 */
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "agent/child/child_private.h"
#include "agent/tools/tool_file.h"
#include "base/crypto.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define IMAGE_MAX  ((size_t)4 << 20)
#define IMAGES_MAX ((size_t)6 << 20) /* of a turn: agents limit the length of a line */
#define FILES_MAX  20

struct child_files {
        struct child *child; /* NULL: dropped */
        child_files_fn *done;
        bool images;
        char *dir; /* of the daemon */
        struct child_file files[FILES_MAX];
        char *below[FILES_MAX]; /* the same files, beneath the workspace */
        size_t count;
};

static void files_free(struct child_files *f)
{
        for (size_t i = 0; i < f->count; i++) {
                free(f->files[i].path);
                free(f->files[i].name);
                free(f->files[i].mime);
                free(f->files[i].image);
                free(f->below[i]);
        }
        free(f->dir);
        free(f);
}

void child_files_drop(struct child_files *f)
{
        if (f)
                f->child = NULL;
}

static bool is_image(const struct child_file *f)
{
        return f->mime && strncmp(f->mime, "image/", 6) == 0;
}

/* Agents may change the folder of the chat, so no link is followed, and nothing is waited for. */
static void read_images(void *arg)
{
        struct child_files *all = arg;
        int root = channel_folder_open_root(all->dir);
        size_t total = 0;

        for (size_t i = 0; root >= 0 && i < all->count; i++) {
                struct child_file *f = &all->files[i];
                const struct tool_file file = { .folder = root,
                                                .path = all->below[i],
                                                .name = f->name };
                struct buf bytes;

                if (!is_image(f) || f->size > (int64_t)IMAGE_MAX)
                        continue;
                buf_init(&bytes, 0);
                if (tool_file_read(&file, IMAGE_MAX, &bytes, NULL) == 0 &&
                    total + bytes.len <= IMAGES_MAX) {
                        f->image = crypto_base64(bytes.data, bytes.len);
                        total += bytes.len;
                }
                buf_release(&bytes);
        }
        if (root >= 0)
                close(root);
}

static void on_read(void *arg)
{
        struct child_files *f = arg;

        if (f->child)
                f->done(f->child, f->files, f->count);
        files_free(f);
}

static void add_file(struct child_files *all, const struct attachment *a)
{
        struct child_file *f = &all->files[all->count];

        if (!a->path || all->count >= FILES_MAX)
                return;
        f->path = child_file_path(all->child, a);
        all->below[all->count] = mem_strdup(a->path);
        f->name = mem_strdup(a->name ? a->name : "file");
        f->mime = mem_strdup(a->mime);
        f->size = a->size;
        all->count++;
}

struct child_files *child_files_read(struct child *c, bool images, child_files_fn *done)
{
        const struct turn_run *run = child_run(c);
        struct child_files *f = mem_zalloc(sizeof(*f));

        f->child = c;
        f->done = done;
        f->images = images;
        f->dir = mem_strdup(c->owner->agent->dir);
        for (unsigned i = 0; i < run->input_count; i++)
                for (size_t k = 0; k < run->inputs[i]->attachment_count; k++)
                        add_file(f, &run->inputs[i]->attachments[k]);
        if (images && f->count > 0)
                loop_work(c->owner->agent->loop, read_images, on_read, f);
        else
                loop_defer(c->owner->agent->loop, on_read, f);
        return f;
}
