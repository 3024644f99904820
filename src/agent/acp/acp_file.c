/*
 * acp_file: fs/read_text_file and fs/write_text_file.
 *
 * A command in the agent's sandbox does the work, so that its mounts and its user decide, as they
 * do for the agent's own tools: the daemon may have rights that the agent has not, and may itself
 * be confined to other folders.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "agent/sandbox/sandbox.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define FILE_MS    60000
#define FILES_OPEN 16  /* requests at a time */
#define WHY_MAX    300 /* bytes of what a command says about its failure */

enum exits { EXIT_MISSING = 20, EXIT_NO_FILE = 21 };

static const char reads[] =
        "[ -e \"$1\" ] || exit 20; [ -f \"$1\" ] || exit 21; exec cat -- \"$1\"";
static const char writes[] = "mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat >\"$1\"";

struct acp_file {
        struct acp *acp;
        json_t *id;
        struct sandbox_run *run;
        char *path;
        bool writes;
        int64_t line, limit; /* to read; 0: from the first one, all */
        struct buf text;     /* that was read */
        struct buf why;
        LIST_ENTRY(acp_file) next;
};

static void file_free(struct acp_file *f)
{
        LIST_REMOVE(f, next);
        f->acp->file_count--;
        sandbox_abandon(f->run);
        json_decref(f->id);
        buf_release(&f->text);
        buf_release(&f->why);
        free(f->path);
        free(f);
}

/* The lines that were asked for; yours to free. */
static char *cut_lines(const struct acp_file *f)
{
        const char *from = f->text.data, *end = f->text.data + f->text.len, *to;

        for (int64_t line = 1; line < f->line && from < end; line++) {
                const char *lf = memchr(from, '\n', (size_t)(end - from));

                from = lf ? lf + 1 : end;
        }
        to = f->limit > 0 ? from : end;
        for (int64_t i = 0; i < f->limit && to < end; i++) {
                const char *lf = memchr(to, '\n', (size_t)(end - to));

                to = lf ? lf + 1 : end;
        }
        return utf8_clean(from, (size_t)(to - from));
}

/* NULL: it was done. Yours to free. */
static char *describe_failure(const struct acp_file *f, const struct sandbox_result *r)
{
        if (r->kind == ERR_LIMIT)
                return mem_printf("'%.200s' is larger than 4 MB", f->path);
        if (r->kind == ERR_NONE && r->exit_code == EXIT_MISSING)
                return mem_printf("there is no file '%.200s'", f->path);
        if (r->kind == ERR_NONE && r->exit_code == EXIT_NO_FILE)
                return mem_printf("'%.200s' is no regular file", f->path);
        if (r->kind != ERR_NONE || r->exit_code != 0)
                return mem_printf("cannot %s '%.200s': %s", f->writes ? "write" : "read", f->path,
                                  f->why.len ? f->why.data
                                  : r->why   ? r->why
                                             : "it failed");
        return NULL;
}

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct acp_file *f = arg;

        buf_add(fd == 1 ? &f->text : &f->why, bytes, n);
}

static void on_exit_seen(void *arg, const struct sandbox_result *r)
{
        struct acp_file *f = arg;
        char *why = describe_failure(f, r), *text;

        f->run = NULL;
        if (why) {
                acp_answer_error(f->acp, f->id,
                                 r->exit_code == EXIT_MISSING ? ACP_NOT_FOUND : ACP_INVALID_PARAMS,
                                 why);
        } else if (f->writes) {
                acp_answer(f->acp, f->id, json_object());
        } else {
                text = cut_lines(f);
                acp_answer(f->acp, f->id, json_pack("{s:s}", "content", text));
                free(text);
        }
        free(why);
        file_free(f);
}

static void start(struct acp *a, const json_t *id, const json_t *params, bool wants_write)
{
        static const struct sandbox_handlers handlers = { on_output, on_exit_seen };
        const struct acp_conf *conf = child_conf(a->child);
        const json_t *content = json_object_get(params, "content");
        const char *path = json_str(params, "path", NULL);
        const char *const argv[] = { "sh", "-c", wants_write ? writes : reads, "sh", path, NULL };
        struct sandbox_key key = child_sandbox_key(a->child);
        struct error err = { 0 };
        struct acp_file *f;

        if (!conf->files) {
                acp_answer_error(a, id, ACP_METHOD_NOT_FOUND,
                                 "files are not read or written for agents here: use your own "
                                 "tools");
                return;
        }
        if (!path || path[0] != '/' || (wants_write && !json_is_string(content))) {
                acp_answer_error(a, id, ACP_INVALID_PARAMS,
                                 wants_write ? "path must be absolute, and content a text"
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
        f->path = mem_strdup(path);
        f->writes = wants_write;
        f->line = json_int(params, "line", 0);
        f->limit = json_int(params, "limit", 0);
        buf_init(&f->text, 0);
        buf_init(&f->why, WHY_MAX);
        LIST_INSERT_HEAD(&a->file_requests, f, next);
        a->file_count++;
        f->run = sandbox_start(
                child_sandboxes(a->child), &key,
                &(struct sandbox_command){ .argv = argv,
                                           .input = wants_write ? json_string_value(content) : NULL,
                                           .input_n = wants_write ? json_string_length(content) : 0,
                                           .cwd = "/",
                                           .timeout_ms = FILE_MS },
                &handlers, f, &err);
        if (f->run)
                return;
        file_free(f);
        acp_answer_error(a, id, ACP_INTERNAL_ERROR, err.text);
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

        while ((f = LIST_FIRST(&a->file_requests)))
                file_free(f);
}
