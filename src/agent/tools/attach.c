/*
 * attach: sends a file to the chat, through the outbox.
 *
 * A delivery may wait for hours, and the agent goes on working meanwhile: it gets a copy among the
 * attachments of the chat, where old files are removed (platform/attachment_files.h). The call ends
 * when the delivery is stored; its key is made of turn and call, so that a call which is repeated
 * after a crash sends nothing twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/tools/tool_file.h"
#include "agent/tools/tools_private.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "road/channel_folder.h"
#include "road/road.h"

#define NAME_KEPT 100
#define COPY_MAX  (64 << 20) /* larger files are sent from where they are */

struct attach_call {
        struct tool_call *call; /* NULL: cancelled */
        struct tool_file file;
        char *name, *title; /* title: may be NULL */
        char *copy;         /* "attachments/7-5feceb66-report.pdf"; NULL: none is made */
        int64_t max, size;
        struct error err;
};

static void free_call(struct attach_call *a)
{
        tool_file_release(&a->file);
        free(a->name);
        free(a->title);
        free(a->copy);
        free(a);
}

static void end(struct attach_call *a)
{
        struct tool_call *c = a->call;

        if (c)
                c->data = NULL;
        if (c && a->err.kind != ERR_NONE)
                tool_finish_text(c, true, "%s was not attached: %s", a->file.name, a->err.text);
        else if (c)
                tool_finish_text(c, false, "Attached %s (%lld bytes) to the chat.", a->name,
                                 (long long)a->size);
        free_call(a);
}

static void on_stored(void *arg, const struct outbox_receipt *receipt)
{
        struct attach_call *a = arg;

        a->err = receipt->error;
        end(a);
}

/* The path below DIR/workspace; yours to free. */
static char *workspace_path(const struct attach_call *a)
{
        const struct workspace_view *v = a->call->scope->view;
        char *folder, *path;

        if (a->file.is_shared)
                return mem_strdup(a->file.path);
        folder = channel_folder(v->adapter, v->channel);
        path = mem_printf("%s/%s", folder, a->copy ? a->copy : a->file.path);
        free(folder);
        return path;
}

static void submit(struct attach_call *a)
{
        const struct turn_run *run = a->call->scope->run;
        char *path = workspace_path(a), *key = tool_request_key(a->call);

        outbox_submit(a->call->scope->road,
                      &(struct outgoing){ .adapter = run->adapter,
                                          .channel = run->channel,
                                          .thread = run->thread,
                                          .kind = DELIVER_UPLOAD,
                                          .text = a->title,
                                          .file = { .path = path, .name = a->name },
                                          .trace = run->trace,
                                          .request_key = key,
                                          .class = PACE_FINAL },
                      on_stored, a);
        free(path);
        free(key);
}

static void check_on_pool(void *arg)
{
        struct attach_call *a = arg;
        int fd = tool_file_open(&a->file, a->max, &a->size, &a->err);

        if (fd < 0)
                return;
        if (a->size > COPY_MAX) {
                free(a->copy);
                a->copy = NULL;
        }
        if (a->size == 0)
                error_set(&a->err, ERR_INVALID, "the file is empty");
        else if (a->copy)
                tool_file_copy(&a->file, fd, a->copy, &a->err);
        close(fd);
}

/* Equal for every attempt of the call; yours to free. */
static char *copy_name(const struct tool_call *c, const char *name)
{
        char hash[SHA256_HEX_SIZE];
        size_t n = strlen(name), cut = n > NAME_KEPT ? n - NAME_KEPT : 0; /* keeps the extension */

        crypto_sha256_hex(c->id, strlen(c->id), hash);
        while (((unsigned char)name[cut] & 0xc0) == 0x80)
                cut++;
        return mem_printf("attachments/%lld-%.8s-%s", (long long)c->scope->run->id, hash,
                          name + cut);
}

static void on_checked(void *arg)
{
        struct attach_call *a = arg;

        if (a->call && a->err.kind == ERR_NONE)
                submit(a);
        else
                end(a);
}

static void attach_start(struct tool_call *c)
{
        const struct tool_scope *scope = c->scope;
        struct attach_call *a = mem_zalloc(sizeof(*a));
        const char *path = json_str(c->arguments, "path", "");
        const char *title = json_str(c->arguments, "title", NULL);
        const char *name = json_str(c->arguments, "name", path), *slash = strrchr(name, '/');

        a->call = c;
        a->name = mem_strdup(slash ? slash + 1 : name);
        a->title = mem_strdup(title && title[strspn(title, " \t\r\n")] ? title : NULL);
        a->max = road_upload_max(scope->road, scope->run->adapter);
        if (a->max == 0)
                error_set(&a->err, ERR_INVALID, "this chat takes no files; give its text or path");
        else if (a->name[0] == '\0')
                error_set(&a->err, ERR_INVALID, "the path must name a file");
        if (a->err.kind != ERR_NONE ||
            tool_file_find(&a->file, scope->view, path, false, &a->err) < 0) {
                if (!a->file.name)
                        a->file = (struct tool_file){ .folder = -1, .name = mem_strdup(path) };
                end(a);
                return;
        }
        if (!a->file.is_shared)
                a->copy = copy_name(c, a->name);
        c->data = a;
        loop_work(scope->loop, check_on_pool, on_checked, a);
}

static void attach_cancel(struct tool_call *c)
{
        ((struct attach_call *)c->data)->call = NULL;
        c->data = NULL;
}

static bool takes_files(const struct tool_scope *scope)
{
        return scope->road && road_upload_max(scope->road, scope->run->adapter) > 0;
}

const struct tool attach_tool = {
        .name = "attach",
        .description = "Send a file to the chat.",
        .parameters =
                "{\"properties\":{"
                "\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Path of the file, "
                "absolute below /workspace or relative to the channel's folder\"},"
                "\"title\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Text shown "
                "with it\"},"
                "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200,\"description\":"
                "\"Name that people see; else that of the file\"}},"
                "\"required\":[\"path\"],\"additionalProperties\":false}",
        .offered = takes_files,
        .start = attach_start,
        .cancel = attach_cancel,
};
