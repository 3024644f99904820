/*
 * a2a_files: files of people's messages become parts of ours, and files of the answer go to the
 * chat by the outbox, before its text.
 *
 * A delivery may wait for hours, so files of an answer are saved among the attachments of the chat,
 * where old ones are removed (platform/attachment_files.h). Its key is made of turn and content:
 * what a crash repeats is not sent twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/a2a/a2a.h"
#include "agent/tools/tool_file.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/channel_folder.h"
#include "road/road.h"

#define IN_MAX       10 /* files of a message */
#define IN_BYTES_MAX ((int64_t)12 << 20)

/* ---- in ---- */

struct a2a_reading {
        struct a2a_turn *turn; /* NULL: it has gone */
        char *dir;
        int64_t max;
        struct {
                char *path, *name, *mime;
        } files[IN_MAX];
        size_t count;
        json_t *parts; /* result; in the form of 1.0 */
};

static json_t *read_part(int root, const char *path, const char *name, const char *mime,
                         int64_t max, int64_t *bytes)
{
        struct tool_file file = { .folder = root, .path = (char *)path, .name = (char *)name };
        json_t *part = NULL;
        struct buf content;
        char *base64;

        buf_init(&content, 0);
        if (tool_file_read(&file, max, &content, NULL) == 0) {
                base64 = crypto_base64(content.data, content.len);
                part = json_pack("{s:s, s:s, s:s*}", "raw", base64, "filename", name, "mediaType",
                                 mime);
                *bytes += (int64_t)content.len;
                free(base64);
        }
        buf_release(&content);
        return part;
}

static void read_on_pool(void *arg)
{
        struct a2a_reading *r = arg;
        int root = channel_folder_open_root(r->dir);
        int64_t bytes = 0;

        r->parts = json_array();
        for (size_t i = 0; root >= 0 && i < r->count; i++) {
                int64_t left = IN_BYTES_MAX - bytes, max = r->max < left ? r->max : left;
                json_t *part = read_part(root, r->files[i].path, r->files[i].name, r->files[i].mime,
                                         max, &bytes);

                if (part)
                        json_array_append_new(r->parts, part);
        }
        if (root >= 0)
                close(root);
}

static void on_read(void *arg)
{
        struct a2a_reading *r = arg;
        struct a2a_turn *t = r->turn;

        if (t) {
                t->reading = NULL;
                t->parts = json_incref(r->parts);
                a2a_files_read(t);
        }
        for (size_t i = 0; i < r->count; i++) {
                free(r->files[i].path);
                free(r->files[i].name);
                free(r->files[i].mime);
        }
        json_decref(r->parts);
        free(r->dir);
        free(r);
}

static void add_file(struct a2a_reading *r, const struct attachment *a)
{
        if (!a->path || r->count == IN_MAX || a->size > r->max)
                return;
        r->files[r->count].path = mem_strdup(a->path);
        r->files[r->count].name = mem_strdup(a->name ? a->name : "file");
        r->files[r->count].mime = mem_strdup(a->mime);
        r->count++;
}

bool a2a_read_files(struct a2a_turn *t)
{
        struct a2a_reading *r = mem_zalloc(sizeof(*r));

        r->max = t->owner->conf->max_file_bytes;
        for (unsigned i = 0; r->max > 0 && i < t->run->input_count; i++)
                for (size_t k = 0; k < t->run->inputs[i]->attachment_count; k++)
                        add_file(r, &t->run->inputs[i]->attachments[k]);
        if (r->count == 0) {
                free(r);
                return false;
        }
        r->turn = t;
        r->dir = mem_strdup(t->owner->agent->dir);
        t->reading = r;
        loop_work(t->owner->agent->loop, read_on_pool, on_read, r);
        return true;
}

/* ---- out ---- */

struct upload_file {
        char *base64, *name, *mime;
        size_t n;
        char *path, *key; /* in the workspace; of the delivery. path NULL: it could not be saved */
};

struct a2a_upload {
        struct a2a_turn *turn; /* NULL: it has gone */
        struct road *road;
        int64_t turn_id;
        char *dir, *adapter, *channel, *thread, *trace;
        int64_t max;
        struct upload_file files[A2A_FILES_MAX];
        size_t count, at;
};

static void upload_free(struct a2a_upload *u)
{
        for (size_t i = 0; i < u->count; i++) {
                free(u->files[i].base64);
                free(u->files[i].name);
                free(u->files[i].mime);
                free(u->files[i].path);
                free(u->files[i].key);
        }
        free(u->dir);
        free(u->adapter);
        free(u->channel);
        free(u->thread);
        free(u->trace);
        free(u);
}

static void save(const struct a2a_upload *u, struct upload_file *f, int root, const char *folder)
{
        size_t n = 0;
        char *bytes = crypto_unbase64(f->base64, f->n, &n), hash[SHA256_HEX_SIZE];
        char *safe = channel_folder_safe_name(f->name);
        struct tool_file file = { .folder = root, .name = f->name };
        struct error err = { 0 };
        bool created;

        if (bytes && n > 0 && (int64_t)n <= u->max) {
                crypto_sha256_hex(bytes, n, hash);
                file.path = mem_printf("%s/attachments/%lld-%.8s-%s", folder, (long long)u->turn_id,
                                       hash, safe);
                if (tool_file_write(&file, bytes, n, &created, &err) == 0) {
                        f->path = file.path;
                        f->key = mem_printf("a2a:trn-%lld:%.16s:%s", (long long)u->turn_id, hash,
                                            safe);
                } else {
                        log_warn("cannot save a file of an agent", LOG_S("why", err.text));
                        free(file.path);
                }
        }
        free(safe);
        free(bytes);
}

static void save_on_pool(void *arg)
{
        struct a2a_upload *u = arg;
        char *folder = channel_folder(u->adapter, u->channel);
        int root = channel_folder_open_root(u->dir);

        for (size_t i = 0; root >= 0 && i < u->count; i++)
                save(u, &u->files[i], root, folder);
        if (root >= 0)
                close(root);
        free(folder);
}

static void name_unshown(struct a2a_turn *t, const char *name)
{
        if (t)
                buf_addf(&t->unshown, "%s%s", t->unshown.len ? ", " : "", name);
}

static void submit_next(struct a2a_upload *u);

static void on_stored(void *arg, const struct outbox_receipt *receipt)
{
        struct a2a_upload *u = arg;

        if (receipt->error.kind != ERR_NONE)
                name_unshown(u->turn, u->files[u->at - 1].name);
        submit_next(u);
}

static void submit_next(struct a2a_upload *u)
{
        const struct upload_file *f;

        while (u->turn && u->at < u->count) {
                f = &u->files[u->at++];
                if (!f->path) {
                        name_unshown(u->turn, f->name);
                        continue;
                }
                outbox_submit(u->road,
                              &(struct outgoing){
                                      .adapter = u->adapter,
                                      .channel = u->channel,
                                      .thread = u->thread,
                                      .kind = DELIVER_UPLOAD,
                                      .file = { .path = f->path, .name = f->name, .mime = f->mime },
                                      .trace = u->trace,
                                      .request_key = f->key,
                                      .class = PACE_FINAL },
                              on_stored, u);
                return;
        }
        if (u->turn) {
                u->turn->upload = NULL;
                a2a_files_sent(u->turn);
        }
        upload_free(u);
}

static void on_saved(void *arg)
{
        submit_next(arg);
}

static void add_upload(void *arg, const struct a2a_file *f)
{
        struct a2a_upload *u = arg;

        u->files[u->count++] = (struct upload_file){ .base64 = mem_dup(f->base64, f->n),
                                                     .name = mem_strdup(f->name),
                                                     .mime = mem_strdup(f->mime),
                                                     .n = f->n };
}

static void add_name(void *arg, const struct a2a_file *f)
{
        name_unshown(arg, f->name);
}

bool a2a_send_files(struct a2a_turn *t)
{
        const struct agent *a = t->owner->agent;
        struct road *road = agent_road(a);
        int64_t max = road ? road_upload_max(road, t->adapter) : 0;
        struct a2a_upload *u;

        if (t->answer.file_count == 0)
                return false;
        if (max == 0 || t->mode == MODE_SILENT) {
                a2a_answer_each_file(&t->answer, add_name, t);
                return false;
        }
        u = mem_zalloc(sizeof(*u));
        u->turn = t;
        u->road = road;
        u->turn_id = t->id;
        u->max = max;
        u->dir = mem_strdup(a->dir);
        u->adapter = mem_strdup(t->adapter);
        u->channel = mem_strdup(t->channel);
        u->thread = mem_strdup(t->thread);
        u->trace = mem_strdup(t->trace);
        a2a_answer_each_file(&t->answer, add_upload, u);
        t->upload = u;
        loop_work(a->loop, save_on_pool, on_saved, u);
        return true;
}

void a2a_files_forget(struct a2a_turn *t)
{
        if (t->reading)
                t->reading->turn = NULL;
        if (t->upload)
                t->upload->turn = NULL;
        t->reading = NULL;
        t->upload = NULL;
}
