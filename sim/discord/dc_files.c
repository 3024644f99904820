#include "sim/discord/dc_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/file_content.h"

#define VALID_S   86400
#define KEEP_SIZE ((size_t)512 << 20)

struct file {
        char *name, *content_type, *data;
        size_t n;
};

static char *type_of(const char *name, const char *fallback)
{
        const char *suffix, *type = file_content_type(name, &suffix);

        if (type && strncmp(type, "text/", 5) == 0)
                return mem_printf("%s; charset=utf-8", type);
        return mem_strdup(type ? type : fallback ? fallback : "application/octet-stream");
}

json_t *dc_file_add(struct world *w, const struct channel *c, const char *name,
                    const char *content_type, const void *data, size_t n)
{
        struct file *f = mem_zalloc(sizeof(*f));
        uint64_t id = dc_id_new(w);
        int64_t now_s = clock_wall_ms() / 1000;
        char key[DC_ID_SIZE], *url;
        const unsigned char *bytes = data;
        json_t *out;

        f->name = file_content_name(name && *name ? name : "file");
        f->content_type = type_of(f->name, content_type);
        f->data = mem_dup(data, n);
        f->n = n;
        if (w->file_bytes + n > KEEP_SIZE)
                dc_files_release(w); /* older links answer 404 now, as expired ones do */
        w->file_bytes += n;
        map_put(&w->files, dc_id_text(id, key), f);
        url = mem_printf("%s/attachments/%llu/%s/%s?ex=%" PRIx64 "&is=%" PRIx64 "&hm=sim",
                         w->base_url, (unsigned long long)c->id, key, f->name, now_s + VALID_S,
                         now_s);
        out = json_pack("{s:s,s:s,s:I,s:s,s:s,s:s}", "id", key, "filename", f->name, "size",
                        (json_int_t)n, "url", url, "proxy_url", url, "content_type",
                        f->content_type);
        if (n >= 24 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) {
                json_object_set_new(out, "width", json_integer(bytes[18] << 8 | bytes[19]));
                json_object_set_new(out, "height", json_integer(bytes[22] << 8 | bytes[23]));
        }
        free(url);
        return out;
}

void dc_file_serve(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        const struct file *f = map_get(&w->files, http_param(x, "id"));
        const char *expires = http_query(x, "ex");

        if (!f || !expires || strtoll(expires, NULL, 16) < clock_wall_ms() / 1000) {
                static const char gone[] = "This content is no longer available.";

                http_answer(x, f ? 403 : 404, "text/plain", gone, strlen(gone));
                return;
        }
        http_answer(x, 200, f->content_type, f->data, f->n);
}

void dc_files_release(struct world *w)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->files, &i, &key, &value);) {
                struct file *f = value;

                free(f->name);
                free(f->content_type);
                free(f->data);
                free(f);
        }
        map_release(&w->files);
        map_init(&w->files);
        w->file_bytes = 0;
}
