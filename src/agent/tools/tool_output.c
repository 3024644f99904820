#include "agent/tools/tool_output.h"

#include <stdlib.h>
#include <string.h>

#include "agent/tools/tools_private.h"
#include "base/mem.h"

#define LIVE_MS  200
#define LIVE_MAX (4 << 10) /* bytes shown at a time */

void tool_output_init(struct tool_output *o, struct tool_call *c)
{
        o->call = c;
        c->data = o;
        text_tail_init(&o->tail, c->bytes_max);
        buf_init(&o->raw, 0);
        buf_init(&o->live, 0);
}

void tool_output_free(struct tool_output *o)
{
        if (o->stop)
                o->stop(o);
        output_file_drop(o->file);
        text_tail_release(&o->tail);
        buf_release(&o->raw);
        buf_release(&o->live);
        timer_free(o->pause);
        json_decref(o->details);
        free(o->ending);
        free(o);
}

void tool_output_cancel(struct tool_call *c)
{
        tool_output_free(c->data);
        c->data = NULL;
}

static void begin_file(struct tool_output *o)
{
        o->file = output_file_new(o->call->scope->loop, o->call->scope->view);
        output_file_add(o->file, o->raw.data, o->raw.len);
        buf_release(&o->raw);
        buf_init(&o->raw, 0);
}

/* What came meanwhile; of much of it the end. */
static void on_pause_over(void *arg)
{
        struct tool_output *o = arg;
        size_t from = o->live.len > LIVE_MAX ? o->live.len - LIVE_MAX : 0;

        if (o->live.len == 0)
                return;
        while (from < o->live.len && ((unsigned char)o->live.data[from] & 0xc0) == 0x80)
                from++;
        timer_start(o->pause, LIVE_MS);
        o->call->on_output(o->call, o->live.data + from, o->live.len - from);
        buf_clear(&o->live);
}

/* At once, but not too often: a command may print without end. */
static void show(struct tool_output *o, const struct buf *text)
{
        if (o->live.len > 2 * LIVE_MAX)
                buf_consume(&o->live, o->live.len - LIVE_MAX);
        buf_add(&o->live, text->data, text->len);
        if (!o->pause)
                o->pause = timer_new(o->call->scope->loop, on_pause_over, o);
        if (!timer_active(o->pause))
                on_pause_over(o);
}

void tool_output_add(struct tool_output *o, const char *bytes, size_t n)
{
        struct buf clean;

        buf_init(&clean, 0);
        text_cleaner_add(&o->cleaner, bytes, n, &clean);
        text_tail_add(&o->tail, clean.data, clean.len);
        if (o->file)
                output_file_add(o->file, bytes, n);
        else
                buf_add(&o->raw, bytes, n);
        if (!o->file && o->raw.len > TOOL_BYTES_MAX)
                begin_file(o);
        if (clean.len > 0 && o->call->on_output)
                show(o, &clean);
        buf_release(&clean);
}

static void add_notice(const struct tool_output *o, struct buf *out, const char *path,
                       const char *why)
{
        const struct truncation *t = &o->tail.result;

        if (!text_cleaner_is_binary(&o->cleaner)) {
                buf_addstr(out, out->len > 0 && out->data[out->len - 1] == '\n' ? "\n[" : "\n\n[");
                if (t->by)
                        buf_addf(out, "Showing lines %lld-%lld of %lld%s. ",
                                 (long long)t->first_line, (long long)t->total_lines,
                                 (long long)t->total_lines,
                                 strcmp(t->by, "bytes") == 0 ? " (byte limit)" : "");
                if (t->cut_lines > 0)
                        buf_addf(out, "%lld line%s cut at 2 KB. ", (long long)t->cut_lines,
                                 t->cut_lines == 1 ? " was" : "s were");
        } else {
                buf_addf(out, "(binary output, %lld bytes) [", (long long)o->cleaner.bytes);
        }
        if (path)
                buf_addf(out, "Full output: %s]", path);
        else
                buf_addf(out, "The full output was not kept: %s]", why);
}

/* path, why: of the file; both NULL: everything is shown. */
static void finish(struct tool_output *o, const char *path, const char *why)
{
        struct tool_call *c = o->call;
        struct tool_result r = { .is_error = o->is_error, .details = o->details };
        struct buf text;

        buf_init(&text, 0);
        if (!text_cleaner_is_binary(&o->cleaner))
                buf_add(&text, o->tail.text.data, o->tail.text.len);
        if (path || why) {
                add_notice(o, &text, path, why);
                json_object_set_new(r.details, "truncation", truncation_json(&o->tail.result));
                if (path)
                        json_object_set_new(r.details, "fullOutputPath", json_string(path));
        }
        if (strspn(text.data, " \t\n") == text.len) { /* services refuse blank text */
                buf_clear(&text);
                buf_addstr(&text, "(no output)");
        }
        if (o->ending)
                buf_addf(&text, "%s%s", text.data[text.len - 1] == '\n' ? "\n" : "\n\n", o->ending);
        r.content = json_pack("[o]", tool_text_block(text.data, text.len));
        buf_release(&text);
        if (json_object_size(r.details) == 0) {
                json_decref(r.details);
                r.details = NULL;
        }
        o->details = NULL;
        c->data = NULL;
        tool_output_free(o);
        tool_finish(c, &r);
}

static void on_file(void *arg, const char *path, const char *why)
{
        struct tool_output *o = arg;

        o->file = NULL;
        finish(o, path, why);
}

void tool_output_end(struct tool_output *o, bool is_error, char *ending, json_t *details)
{
        struct buf rest;

        o->is_error = is_error;
        o->ending = ending;
        o->details = details ? details : json_object();
        buf_init(&rest, 0);
        text_cleaner_end(&o->cleaner, &rest);
        text_tail_add(&o->tail, rest.data, rest.len);
        buf_release(&rest);
        if (!o->file && (text_tail_is_cut(&o->tail) || text_cleaner_is_binary(&o->cleaner)))
                begin_file(o);
        text_tail_end(&o->tail);
        if (o->file)
                output_file_finish(o->file, on_file, o);
        else
                finish(o, NULL, NULL);
}
