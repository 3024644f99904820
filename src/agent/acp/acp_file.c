/*
 * acp_file: fs/read_text_file and fs/write_text_file, for files that the agent's sandbox has.
 *
 * The work is done on a pool thread; what is beneath a folder is opened as tools/tool_file.h says,
 * so that no link leads out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "agent/tools/tool_file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/loop.h"

#define FILE_MAX   (4 << 20) /* bytes */
#define FILES_OPEN 32        /* requests at a time */

struct acp_file {
        struct acp *acp; /* NULL: its process has ended */
        json_t *id;
        struct tool_file file;
        bool writes;
        int64_t line, limit; /* to read; 0: from the first one, all */
        char *content;       /* to write, or what was read */
        size_t n;
        struct error err;
        LIST_ENTRY(acp_file) next;
};

static void file_free(struct acp_file *f)
{
        if (f->acp) {
                LIST_REMOVE(f, next);
                f->acp->file_count--;
        }
        json_decref(f->id);
        tool_file_release(&f->file);
        free(f->content);
        free(f);
}

/* The lines that were asked for. */
static void cut_lines(struct acp_file *f, const struct buf *text)
{
        const char *from = text->data, *end = text->data + text->len, *to;

        for (int64_t line = 1; line < f->line && from < end; line++) {
                const char *lf = memchr(from, '\n', (size_t)(end - from));

                from = lf ? lf + 1 : end;
        }
        to = f->limit > 0 ? from : end;
        for (int64_t i = 0; i < f->limit && to < end; i++) {
                const char *lf = memchr(to, '\n', (size_t)(end - to));

                to = lf ? lf + 1 : end;
        }
        f->content = utf8_clean(from, (size_t)(to - from));
}

static void work(void *arg)
{
        struct acp_file *f = arg;
        struct buf text;
        bool created;

        if (f->writes) {
                tool_file_write(&f->file, f->content, f->n, &created, &f->err);
                return;
        }
        buf_init(&text, 0);
        if (tool_file_read(&f->file, FILE_MAX, &text, &f->err) == 0)
                cut_lines(f, &text);
        buf_release(&text);
}

static void on_done(void *arg)
{
        struct acp_file *f = arg;

        if (f->acp && f->err.kind != ERR_NONE)
                acp_answer_error(f->acp, f->id,
                                 f->err.kind == ERR_MISSING ? ACP_NOT_FOUND : ACP_INVALID_PARAMS,
                                 f->err.text);
        else if (f->acp && f->writes)
                acp_answer(f->acp, f->id, json_object());
        else if (f->acp)
                acp_answer(f->acp, f->id, json_pack("{s:s}", "content", f->content));
        file_free(f);
}

static int find(struct acp_file *f, const char *path)
{
        int folder;

        f->file.name = mem_strdup(path);
        if (child_find_path(f->acp->child, path, f->writes, &folder, &f->file.path, &f->err) < 0)
                return -1;
        f->file.folder = fcntl(folder, F_DUPFD_CLOEXEC, 3);
        return f->file.folder < 0
                       ? error_set(&f->err, ERR_IO, "cannot open its folder: %s", strerror(errno))
                       : 0;
}

static void start(struct acp *a, const json_t *id, const json_t *params, bool writes)
{
        const struct acp_conf *conf = child_conf(a->child);
        const json_t *content = json_object_get(params, "content");
        const char *path = json_str(params, "path", NULL);
        struct acp_file *f;

        if (!conf->files) {
                acp_answer_error(a, id, ACP_METHOD_NOT_FOUND,
                                 "files are not read or written for agents here: use your own "
                                 "tools");
                return;
        }
        if (!path || path[0] != '/' || (writes && !json_is_string(content))) {
                acp_answer_error(a, id, ACP_INVALID_PARAMS,
                                 writes ? "path must be absolute, and content a text"
                                        : "path must be absolute");
                return;
        }
        if (a->file_count >= FILES_OPEN) {
                acp_answer_error(a, id, ACP_INTERNAL_ERROR, "too many requests at a time");
                return;
        }
        f = mem_zalloc(sizeof(*f));
        f->acp = a;
        f->id = json_incref((json_t *)id);
        f->writes = writes;
        f->line = json_int(params, "line", 0);
        f->limit = json_int(params, "limit", 0);
        f->file.folder = -1;
        if (writes) {
                f->n = json_string_length(content);
                f->content = mem_dup(json_string_value(content), f->n + 1);
        }
        LIST_INSERT_HEAD(&a->file_requests, f, next);
        a->file_count++;
        if (find(f, path) < 0)
                loop_defer(child_agent(a->child)->loop, on_done, f);
        else
                loop_work(child_agent(a->child)->loop, work, on_done, f);
}

void acp_file_read(struct acp *a, const json_t *id, const json_t *params)
{
        start(a, id, params, false);
}

void acp_file_write(struct acp *a, const json_t *id, const json_t *params)
{
        start(a, id, params, true);
}

void acp_files_release(struct acp *a)
{
        struct acp_file *f;

        while ((f = LIST_FIRST(&a->file_requests))) {
                LIST_REMOVE(f, next);
                f->acp = NULL;
        }
}
