#include "agent/a2a/a2a_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/a2a/a2a_wire.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NAME_MAX_BYTES 200

static bool is_blank(const char *text)
{
        return text[strspn(text, " \t\r\n")] == '\0';
}

/* ---- artifacts ---- */

void a2a_answer_init(struct a2a_answer *a)
{
        *a = (struct a2a_answer){ 0 };
}

static void clear(struct a2a_answer *a, struct a2a_artifact *artifact)
{
        a->text_bytes -= artifact->text.len;
        a->file_count -= artifact->file_count;
        for (size_t i = 0; i < artifact->file_count; i++) {
                a->file_bytes -= artifact->files[i].n;
                free(artifact->files[i].name);
                free(artifact->files[i].mime);
                free(artifact->files[i].base64);
        }
        free(artifact->files);
        artifact->files = NULL;
        artifact->file_count = 0;
        buf_clear(&artifact->text);
}

void a2a_answer_release(struct a2a_answer *a)
{
        for (size_t i = 0; i < a->count; i++) {
                clear(a, &a->artifacts[i]);
                buf_release(&a->artifacts[i].text);
                free(a->artifacts[i].id);
        }
        free(a->artifacts);
        a2a_answer_init(a);
}

/* NULL: there are too many. */
static struct a2a_artifact *find_or_add(struct a2a_answer *a, const char *id)
{
        struct a2a_artifact *artifact;

        for (size_t i = 0; i < a->count; i++)
                if (strcmp(a->artifacts[i].id, id) == 0)
                        return &a->artifacts[i];
        if (a->count == A2A_ARTIFACTS_MAX) {
                a->cut = true;
                return NULL;
        }
        a->artifacts = mem_realloc(a->artifacts, (a->count + 1) * sizeof(*a->artifacts));
        artifact = &a->artifacts[a->count++];
        *artifact = (struct a2a_artifact){ .id = mem_strdup(id) };
        buf_init(&artifact->text, 0);
        return artifact;
}

/* ---- parts ---- */

static void begin_line(struct buf *out)
{
        if (out->len > 0 && out->data[out->len - 1] != '\n')
                buf_addch(out, '\n');
}

/* Markdown that a name or URL cannot break out of. */
static void add_link(struct buf *out, const struct a2a_part *p)
{
        bool web =
                strncasecmp(p->text, "https://", 8) == 0 || strncasecmp(p->text, "http://", 7) == 0;
        const char *name = p->name && *p->name ? p->name : p->text;

        begin_line(out);
        if (!web || p->text[strcspn(p->text, " \t\r\n<>\\")]) {
                buf_addf(out, "(a file at an address that cannot be shown)\n");
                return;
        }
        buf_addch(out, '[');
        for (const char *c = name; *c; c++) {
                if (strchr("[]\\`*_<>", *c))
                        buf_addch(out, '\\');
                buf_addch(out, (unsigned char)*c < ' ' ? ' ' : *c);
        }
        buf_addf(out, "](<%s>)\n", p->text);
}

static void add_data(struct buf *out, const json_t *data)
{
        char *text = json_dumps(data, JSON_INDENT(2) | JSON_ENCODE_ANY);

        begin_line(out);
        buf_addf(out, "```json\n%s\n```\n", text ? text : "null");
        free(text);
}

/* As text; a file alone is none. */
static void add_text(struct buf *out, const struct a2a_part *p)
{
        switch (p->kind) {
        case A2A_TEXT:
                buf_addstr(out, p->text);
                break;
        case A2A_URL:
                add_link(out, p);
                break;
        case A2A_DATA:
                add_data(out, p->data);
                break;
        case A2A_RAW:
                break;
        }
}

static void keep_file(struct a2a_answer *a, struct a2a_artifact *artifact, const struct a2a_part *p)
{
        const char *name = p->name && *p->name ? p->name : "file";
        size_t n = strlen(p->text);

        if (a->file_count == A2A_FILES_MAX || n > A2A_FILE_BYTES_MAX - a->file_bytes) {
                a->cut = true;
                return;
        }
        artifact->files =
                mem_realloc(artifact->files, (artifact->file_count + 1) * sizeof(*artifact->files));
        artifact->files[artifact->file_count++] = (struct a2a_file){
                .name = utf8_clean(name,
                                   utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_MAX_BYTES)),
                .mime = mem_strdup(p->mime),
                .base64 = mem_dup(p->text, n),
                .n = n,
        };
        a->file_count++;
        a->file_bytes += n;
}

static void keep_text(struct a2a_answer *a, struct a2a_artifact *artifact, const struct a2a_part *p)
{
        size_t room = A2A_TEXT_MAX - a->text_bytes, before = artifact->text.len;

        add_text(&artifact->text, p);
        if (artifact->text.len - before > room) {
                buf_truncate(&artifact->text,
                             before + utf8_prefix(artifact->text.data + before,
                                                  artifact->text.len - before, UTF8_BYTES, room));
                a->cut = true;
        }
        a->text_bytes += artifact->text.len - before;
}

static void add(struct a2a_answer *a, const char *id, const json_t *object, bool append)
{
        struct a2a_artifact *artifact = find_or_add(a, id);
        struct a2a_part part;
        const json_t *item;
        size_t i;

        if (!artifact)
                return;
        if (!append)
                clear(a, artifact);
        artifact->old = false;
        json_array_foreach(json_object_get(object, "parts"), i, item) {
                if (!a2a_part_read(item, &part))
                        continue;
                if (part.kind == A2A_RAW)
                        keep_file(a, artifact, &part);
                else
                        keep_text(a, artifact, &part);
        }
}

void a2a_answer_add(struct a2a_answer *a, const json_t *artifact, bool append)
{
        add(a, json_str(artifact, "artifactId", ""), artifact, append);
}

static bool is_same(const struct a2a_artifact *a, const struct a2a_artifact *b)
{
        return strcmp(a->id, b->id) == 0 && a->text.len == b->text.len &&
               memcmp(a->text.data, b->text.data, a->text.len) == 0 &&
               a->file_count == b->file_count;
}

/* Careless agents repeat an id, or have none. */
void a2a_answer_replace(struct a2a_answer *a, const json_t *artifacts)
{
        struct a2a_answer before = *a;
        const json_t *artifact;
        char place[32];
        size_t i;

        a2a_answer_init(a);
        json_array_foreach(artifacts, i, artifact) {
                snprintf(place, sizeof(place), "\n%zu", i);
                add(a, json_str(artifact, "artifactId", place), artifact, true);
        }
        for (i = 0; i < before.count; i++)
                for (size_t k = 0; before.artifacts[i].old && k < a->count; k++)
                        a->artifacts[k].old = a->artifacts[k].old ||
                                              is_same(&before.artifacts[i], &a->artifacts[k]);
        a2a_answer_release(&before);
}

void a2a_answer_set_old(struct a2a_answer *a)
{
        for (size_t i = 0; i < a->count; i++)
                a->artifacts[i].old = true;
}

/* ---- reading ---- */

void a2a_answer_write(const struct a2a_answer *a, struct buf *out)
{
        for (size_t i = 0; i < a->count; i++) {
                const struct buf *text = &a->artifacts[i].text;
                size_t n = text->len;

                if (a->artifacts[i].old || is_blank(text->data))
                        continue;
                while (n > 0 && text->data[n - 1] == '\n')
                        n--;
                if (out->len > 0)
                        buf_addstr(out, "\n\n");
                buf_add(out, text->data, n);
        }
}

void a2a_answer_each_file(const struct a2a_answer *a,
                          void (*fn)(void *arg, const struct a2a_file *f), void *arg)
{
        for (size_t i = 0; i < a->count; i++)
                for (size_t k = 0; !a->artifacts[i].old && k < a->artifacts[i].file_count; k++)
                        fn(arg, &a->artifacts[i].files[k]);
}

char *a2a_message_text(const json_t *message)
{
        struct a2a_answer a;
        struct buf text;

        if (!message)
                return NULL;
        a2a_answer_init(&a);
        a2a_answer_add(&a, message, false);
        buf_init(&text, 0);
        a2a_answer_write(&a, &text);
        a2a_answer_release(&a);
        if (is_blank(text.data)) {
                buf_release(&text);
                return NULL;
        }
        return buf_take(&text);
}
