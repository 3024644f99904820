/*
 * edit: changes pieces of a file. All of them, or none.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/tools/text_edit.h"
#include "agent/tools/tool_file.h"
#include "agent/tools/tools_private.h"
#include "base/json.h"
#include "base/mem.h"

#define FILE_MAX (8 << 20)
#define DIFF_MAX (64 << 10)

struct edit_job {
        struct file_job base;
        struct text_edit *edits; /* the texts are ours */
        size_t count;
};

static int apply(struct edit_job *e, struct buf *text, struct buf *diff, int64_t *first)
{
        for (size_t i = 0; i < e->count; i++) {
                int64_t line = 0;

                if (i > 0)
                        buf_addstr(diff, "\n");
                if (text_edit_apply(text, &e->edits[i], diff, &line, &e->base.err) < 0)
                        return e->count > 1 ? error_prefix(&e->base.err,
                                                           "edit %zu (nothing was changed)", i + 1)
                                            : -1;
                if (i == 0 || line < *first)
                        *first = line;
        }
        return 0;
}

static void edit_on_pool(struct file_job *j)
{
        struct edit_job *e = (struct edit_job *)j;
        struct buf text, diff;
        int64_t first = 0;
        bool created;
        char *note;

        buf_init(&text, 0);
        buf_init(&diff, DIFF_MAX);
        j->result.untrusted = true; /* hints quote the file */
        if (tool_file_read(&j->file, FILE_MAX, &text, &j->err) < 0)
                goto out;
        if (memchr(text.data, '\0', text.len)) {
                error_set(&j->err, ERR_INVALID,
                          "'%.200s' is a binary file, which edit cannot change", j->file.name);
                goto out;
        }
        if (apply(e, &text, &diff, &first) < 0) {
                error_prefix(&j->err, "%.200s", j->file.name);
                goto out;
        }
        if (tool_file_write(&j->file, text.data, text.len, &created, &j->err) < 0)
                goto out;
        note = mem_printf("Replaced %zu piece%s of %s, from line %lld on", e->count,
                          e->count == 1 ? "" : "s", j->file.name, (long long)first);
        j->result.untrusted = false;
        j->result.content = json_pack("[o]", tool_text_block(note, strlen(note)));
        j->result.details =
                json_pack("{s:s, s:I}", "diff", diff.data, "firstChangedLine", (json_int_t)first);
        free(note);
out:
        buf_release(&text);
        buf_release(&diff);
}

static void release(struct file_job *j)
{
        struct edit_job *e = (struct edit_job *)j;

        for (size_t i = 0; i < e->count; i++) {
                free((char *)e->edits[i].old.p);
                free((char *)e->edits[i].new.p);
        }
        free(e->edits);
}

static struct slice copy_of(const json_t *value)
{
        size_t n = json_string_length(value);

        return (struct slice){ mem_dup(json_string_value(value), n + 1), n };
}

static void add_edit(struct edit_job *e, const json_t *from)
{
        e->edits[e->count++] = (struct text_edit){ copy_of(json_object_get(from, "oldText")),
                                                   copy_of(json_object_get(from, "newText")) };
}

static void edit_start(struct tool_call *c)
{
        const json_t *list = json_object_get(c->arguments, "edits");
        bool single = json_object_get(c->arguments, "oldText") &&
                      json_object_get(c->arguments, "newText");
        struct edit_job *e;

        if (single == (json_array_size(list) > 0)) {
                tool_finish_text(
                        c, true,
                        "edit takes either oldText and newText, or edits with at least one "
                        "{oldText, newText}");
                return;
        }
        e = mem_zalloc(sizeof(*e));
        e->base.work = edit_on_pool;
        e->base.release = release;
        e->edits = mem_array(single ? 1 : json_array_size(list), sizeof(*e->edits));
        if (single)
                add_edit(e, c->arguments);
        for (size_t i = 0; i < json_array_size(list); i++)
                add_edit(e, json_array_get(list, i));
        file_job_start(c, &e->base, json_str(c->arguments, "path", ""), true);
}

#define OLD_TEXT                                                                                \
        "\"oldText\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Exactly as in the " \
        "file, with white space; must occur once\"}"
#define NEW_TEXT "\"newText\":{\"type\":\"string\",\"description\":\"What replaces it\"}"

const struct tool edit_tool = {
        .name = "edit",
        .description =
                "Replace a piece of a text file. oldText must match exactly and occur exactly "
                "once. For several changes of one file give edits: they are made in this "
                "order, all or none.",
        .parameters =
                "{\"properties\":{"
                "\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Path of the file, "
                "absolute below the channel's folder or relative to it\"}," OLD_TEXT "," NEW_TEXT
                ","
                "\"edits\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,\"items\":{\"type\":"
                "\"object\",\"properties\":{" OLD_TEXT "," NEW_TEXT "},\"required\":[\"oldText\","
                "\"newText\"],\"additionalProperties\":false}}},"
                "\"required\":[\"path\"],\"additionalProperties\":false}",
        .start = edit_start,
        .cancel = file_job_cancel,
};
