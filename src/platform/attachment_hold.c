/*
 * attachment_hold: the files of one message, for the turn that answers it. Fetches them and pins
 * them; the outcome of each is written into a copy of its attachment.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "platform/adapters.h"
#include "platform/attachment_fetch.h"
#include "road/channel_folder.h"

struct hold_file {
        struct attachment_hold *hold;
        struct attachment_fetch *fetch; /* NULL: over, or there was none */
        const char *path;               /* pinned; NULL: nothing to fetch */
};

struct attachment_hold {
        struct held_files base; /* first */
        struct attachment_files *saved;
        struct hold_file *files; /* one for each item */
        unsigned pending;
        files_ready_fn *done;
        void *arg;
        struct arena arena;
};

/* ---- fetching ---- */

static void set_error(struct attachment_hold *h, size_t i, const char *why)
{
        h->base.items[i].error = arena_strdup(&h->arena, why);
}

static void on_fetched(void *arg, int64_t size, const char *why)
{
        struct hold_file *file = arg;
        struct attachment_hold *h = file->hold;
        size_t i = (size_t)(file - h->files);

        file->fetch = NULL;
        if (size >= 0) {
                h->base.items[i].path = file->path;
                h->base.items[i].size = size;
        } else {
                set_error(h, i, why);
        }
        if (--h->pending > 0)
                return;
        h->base.ready = true;
        h->done(h->arg);
}

static void begin(struct attachment_hold *h, const struct adapter *a, const struct incoming *in,
                  size_t i)
{
        const struct attachment *wanted = &h->base.items[i];
        const char *refusal = a && a->files ? attachment_fetch_refusal(a->files, wanted->size)
                                            : "its adapter is not running";
        char *path;

        if (refusal) {
                set_error(h, i, refusal);
                return;
        }
        h->files[i].hold = h;
        path = channel_folder_attachment(in, i);
        h->files[i].path = arena_strdup(&h->arena, path);
        free(path);
        attachment_files_pin(h->saved, h->files[i].path);
        h->pending++;
        h->files[i].fetch = attachment_fetch_start(
                a->files,
                &(struct attachment_order){ .source = wanted->source,
                                            .path = h->files[i].path,
                                            .sender = in->sender_id ? in->sender_id : in->channel,
                                            .size = wanted->size },
                on_fetched, &h->files[i]);
}

static bool is_wanted(const struct attachment *a)
{
        return a->source && !a->path;
}

struct held_files *adapters_hold_files(struct adapters *as, const struct incoming *in,
                                       files_ready_fn *done, void *arg)
{
        const struct adapter *a = adapters_find(as, in->adapter);
        size_t n = in->attachment_count, wanted = 0;
        struct attachment_hold *h;

        for (size_t i = 0; i < n; i++)
                wanted += is_wanted(&in->attachments[i]);
        if (wanted == 0)
                return NULL;
        h = mem_zalloc(sizeof(*h));
        arena_init(&h->arena);
        h->saved = as->attachments;
        h->done = done;
        h->arg = arg;
        h->files = arena_alloc(&h->arena, n * sizeof(*h->files));
        h->base.items = arena_alloc(&h->arena, n * sizeof(*h->base.items));
        h->base.count = n;
        for (size_t i = 0; i < n; i++) {
                const struct attachment *from = &in->attachments[i];

                h->base.items[i] = (struct attachment){
                        .kind = arena_strdup(&h->arena, from->kind),
                        .name = arena_strdup(&h->arena, from->name),
                        .mime = arena_strdup(&h->arena, from->mime),
                        .url = arena_strdup(&h->arena, from->url),
                        .source = arena_strdup(&h->arena, from->source),
                        .path = arena_strdup(&h->arena, from->path),
                        .size = from->size,
                };
                if (is_wanted(from))
                        begin(h, a, in, i);
        }
        h->base.ready = h->pending == 0;
        return &h->base;
}

struct attachment_job *adapters_save_file(struct adapters *as, const struct incoming *in, size_t i,
                                          char *bytes, size_t n, file_saved_fn *done, void *arg)
{
        char *path = channel_folder_attachment(in, i);
        struct attachment_job *j =
                attachment_files_save(as->attachments, path, bytes, n, done, arg);

        free(path);
        return j;
}

void adapters_drop_saving(struct attachment_job *j)
{
        attachment_files_drop(j);
}

void adapters_stop_files(struct held_files *held, const char *why)
{
        struct attachment_hold *h = (struct attachment_hold *)held;

        for (size_t i = 0; i < held->count; i++) {
                if (!h->files[i].fetch)
                        continue;
                attachment_fetch_drop(h->files[i].fetch);
                h->files[i].fetch = NULL;
                set_error(h, i, why);
        }
        h->pending = 0;
        held->ready = true;
}

void adapters_release_files(struct held_files *held)
{
        struct attachment_hold *h = (struct attachment_hold *)held;

        if (!h)
                return;
        for (size_t i = 0; i < held->count; i++) {
                attachment_fetch_drop(h->files[i].fetch);
                if (h->files[i].path)
                        attachment_files_unpin(h->saved, h->files[i].path);
        }
        arena_release(&h->arena);
        free(h);
}
