#include "agent/custom/saved_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workspace/scratch_folder.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/mem.h"

#define PREFIX "tool-"

struct saved_file {
        char *name, *inside; /* in the scratch folder, and the path for the agent */
        char *bytes;
        size_t n;
        json_t *block;
        struct error error;
};

struct saved_files {
        int channel;
        char *folder; /* inside */
        struct saved_file *items;
        size_t count;
        loop_fn *done;
        void *arg;
};

struct saved_files *saved_files_new(const struct workspace_view *v)
{
        struct saved_files *f = mem_zalloc(sizeof(*f));

        f->channel = fcntl(v->channel_fd, F_DUPFD_CLOEXEC, 3);
        f->folder = mem_strdup(v->folder);
        return f;
}

void saved_files_free(struct saved_files *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < f->count; i++) {
                free(f->items[i].name);
                free(f->items[i].inside);
                free(f->items[i].bytes);
                json_decref(f->items[i].block);
        }
        free(f->items);
        free(f->folder);
        if (f->channel >= 0)
                close(f->channel);
        free(f);
}

static const char *extension(const char *type)
{
        static const char *const known[][2] = {
                { "audio/wav", "wav" },       { "audio/mpeg", "mp3" },
                { "audio/ogg", "ogg" },       { "image/png", "png" },
                { "image/jpeg", "jpg" },      { "image/gif", "gif" },
                { "image/webp", "webp" },     { "image/svg+xml", "svg" },
                { "application/pdf", "pdf" }, { "application/json", "json" },
                { "application/zip", "zip" }, { "text/html", "html" },
                { "text/csv", "csv" },        { "text/markdown", "md" },
                { "application/gzip", "gz" }, { "text/plain", "txt" },
        };

        for (size_t i = 0; i < COUNT(known); i++)
                if (strcmp(known[i][0], type) == 0)
                        return known[i][1];
        return "bin";
}

const char *saved_files_add(struct saved_files *f, const char *type, char *bytes, size_t n)
{
        char hash[SHA256_HEX_SIZE];
        struct saved_file *s;

        f->items = mem_realloc(f->items, (f->count + 1) * sizeof(*f->items));
        s = &f->items[f->count++];
        *s = (struct saved_file){ .bytes = bytes, .n = n };
        crypto_sha256_hex(bytes, n, hash);
        /* sorted by name is sorted by time */
        s->name = mem_printf(PREFIX "%013lld-%.8s.%s", (long long)clock_wall_ms(), hash,
                             extension(type));
        s->inside = mem_printf("%s/" SCRATCH_FOLDER "/%s", f->folder, s->name);
        return s->inside;
}

void saved_files_named_by(struct saved_files *f, json_t *block)
{
        f->items[f->count - 1].block = json_incref(block);
}

size_t saved_files_count(const struct saved_files *f)
{
        return f ? f->count : 0;
}

/* ---- on a pool thread ---- */

static void write_work(void *arg)
{
        struct saved_files *f = arg;
        struct error none = { 0 };
        int folder = scratch_folder_open(f->channel, &none);

        for (size_t i = 0; i < f->count; i++) {
                struct saved_file *s = &f->items[i];
                int fd = -1;

                s->error = none;
                if (folder < 0)
                        continue;
                unlinkat(folder, s->name, 0); /* a part of the same result may be equal to it */
                fd = scratch_folder_make(folder, s->name, &s->error);
                if (fd >= 0 && file_write(fd, s->bytes, s->n) < 0)
                        error_set(&s->error, ERR_IO, "%s", strerror(errno));
                if (fd >= 0)
                        close(fd);
        }
        if (folder >= 0) {
                scratch_folder_trim(folder, PREFIX, SAVED_FILES_KEPT);
                close(folder);
        }
}

static void write_done(void *arg)
{
        struct saved_files *f = arg;

        for (size_t i = 0; i < f->count; i++) {
                char *text;

                if (f->items[i].error.kind == ERR_NONE || !f->items[i].block)
                        continue;
                text = mem_printf("[A part of the result, %zu bytes, could not be saved: %s]",
                                  f->items[i].n, f->items[i].error.text);
                json_object_set_new(f->items[i].block, "text", json_string(text));
                free(text);
        }
        f->done(f->arg);
        saved_files_free(f);
}

void saved_files_write(struct saved_files *f, struct loop *l, loop_fn *done, void *arg)
{
        f->done = done;
        f->arg = arg;
        loop_work(l, write_work, write_done, f);
}
