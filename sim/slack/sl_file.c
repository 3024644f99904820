/*
 * Files: their bytes, where they are shared, and who may have them.
 */
#include "sim/slack/sl_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/file_content.h"

#define KEEP_SIZE ((size_t)512 << 20)

struct slack_file *sl_file_find(const struct slack_world *w, const char *id)
{
        return id ? map_get(&w->files, id) : NULL;
}

struct slack_file *sl_file_new(struct slack_world *w, struct slack_user *u, const char *name)
{
        struct slack_file *f = mem_zalloc(sizeof(*f));
        const char *suffix = "binary", *mimetype = file_content_type(name, &suffix);

        sl_world_id(w, 'F', f->id);
        f->team = u->team;
        f->user = u;
        f->name = file_content_name(name);
        f->title = mem_strdup(name);
        f->mimetype = mem_strdup(mimetype ? mimetype : "application/octet-stream");
        f->filetype = mem_strdup(suffix);
        f->created_s = clock_wall_ms() / 1000;
        f->shares = json_object();
        map_put(&w->files, f->id, f);
        return f;
}

struct slack_file *sl_file_add(struct slack_world *w, struct slack_user *u, const char *name,
                               const char *mimetype, const void *data, size_t n)
{
        struct slack_file *f = sl_file_new(w, u, name);

        if (mimetype) {
                free(f->mimetype);
                f->mimetype = mem_strdup(mimetype);
        }
        sl_file_store(w, f, data, n);
        f->complete = true;
        return f;
}

/* Older files answer 404 then. */
static void forget_bytes(struct slack_world *w)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->files, &i, &key, &value);) {
                struct slack_file *f = value;

                free(f->data);
                f->data = NULL;
        }
        w->file_bytes = 0;
}

void sl_file_store(struct slack_world *w, struct slack_file *f, const void *data, size_t n)
{
        if (w->file_bytes + n > KEEP_SIZE)
                forget_bytes(w);
        free(f->data);
        f->data = mem_dup(data, n);
        w->file_bytes += n;
        f->n = n;
        f->uploaded = true;
}

void sl_file_share(struct slack_file *f, const struct slack_message *m)
{
        const char *where = m->channel->kind == SLACK_PUBLIC ? "public" : "private";
        json_t *group = json_object_get(f->shares, where), *list;
        json_t *share = json_pack("{s:[],s:i,s:i,s:s,s:s,s:s}", "reply_users", "reply_users_count",
                                  0, "reply_count", 0, "ts", m->ts, "channel_name",
                                  m->channel->name, "team_id", m->channel->team->id);

        if (m->thread_ts[0])
                json_object_set_new(share, "thread_ts", json_string(m->thread_ts));
        if (m->user)
                json_object_set_new(share, "share_user_id", json_string(m->user->id));
        if (!group)
                json_object_set_new(f->shares, where, group = json_object());
        list = json_object_get(group, m->channel->id);
        if (!list)
                json_object_set_new(group, m->channel->id, list = json_array());
        json_array_append_new(list, share);
}

void sl_files_release(struct slack_world *w)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->files, &i, &key, &value);) {
                struct slack_file *f = value;

                free(f->name);
                free(f->title);
                free(f->mimetype);
                free(f->filetype);
                free(f->alt_text);
                free(f->upload_token);
                free(f->data);
                json_decref(f->shares);
                free(f);
        }
}
