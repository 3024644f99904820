/*
 * write: makes or replaces a file.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/tools/tool_file.h"
#include "agent/tools/tools_private.h"
#include "base/json.h"
#include "base/mem.h"

struct write_tool_job {
        struct file_job base;
        char *content;
        size_t n;
};

static void write_on_pool(struct file_job *j)
{
        struct write_tool_job *w = (struct write_tool_job *)j;
        bool created;
        char *note;

        if (tool_file_write(&j->file, w->content, w->n, &created, &j->err) < 0)
                return;
        note = mem_printf("%s %s (%zu bytes)", created ? "Created" : "Replaced", j->file.name,
                          w->n);
        j->result.content = json_pack("[o]", tool_text_block(note, strlen(note)));
        free(note);
}

static void release(struct file_job *j)
{
        free(((struct write_tool_job *)j)->content);
}

static void write_start(struct tool_call *c)
{
        const json_t *content = json_object_get(c->arguments, "content");
        struct write_tool_job *w = mem_zalloc(sizeof(*w));

        w->base.work = write_on_pool;
        w->base.release = release;
        w->n = json_string_length(content);
        w->content = mem_dup(json_string_value(content), w->n + 1);
        file_job_start(c, &w->base, json_str(c->arguments, "path", ""), true);
}

const struct tool write_tool = {
        .name = "write",
        .description =
                "Write a file: make it, with its folders, or replace what it holds. To change "
                "a part of a file use edit.",
        .parameters =
                "{\"properties\":{"
                "\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Path of the file, "
                "absolute below the channel's folder or relative to it\"},"
                "\"content\":{\"type\":\"string\",\"description\":\"All of its new text\"}},"
                "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
        .start = write_start,
        .cancel = file_job_cancel,
};
