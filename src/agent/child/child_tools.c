/*
 * child_tools: the tool calls of a turn, as events of the journal, progress and details.
 *
 * Agents tell of a call in several messages, in any order and with any of its members. A call is
 * journaled as started once it has arguments or runs, and as ended once. Some agents tell arguments
 * as the model writes them: the end has them, too, if they are others than those of the start. Its
 * detail is posted with those that end soon after it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "agent/tools/call_detail.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rows/turn_row.h"

#define TOOLS_MAX    5000 /* in a turn; further ones are not told */
#define EVENT_BYTES  4096 /* of arguments and output */
#define DETAIL_MAX   2800 /* code points, so that one message of any platform holds it */
#define DETAIL_CALL  1200 /* of one call */
#define DETAIL_CALLS 8
#define DETAIL_MS    1500
#define WRITE_EVENTS 2

struct tool_entry {
        char *id, *name, *title, *output;
        json_t *arguments;
        enum child_tool_state state;
        bool started; /* the journal says so */
        bool grown;   /* its arguments have changed since then */
        int64_t started_ms;
        TAILQ_ENTRY(tool_entry) next;
};

/* ---- storing ---- */

struct tool_write {
        const struct turn_run *run; /* valid until done, see turn_store_step */
        int64_t turn, fence;
        char *type, *payload; /* NULL: no event */
        struct turn_detail *detail;
};

static int write_tool(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        const struct tool_write *w = arg;
        int rc = turn_row_progress(tx, w->turn, w->fence, err);

        if (rc != 1)
                return rc;
        if (w->type && turn_append_event(tx, batch, w->run, w->type, w->payload, err) < 0)
                return -1;
        return turn_detail_store(tx, batch, w->detail, err) < 0 ? -1 : 1;
}

static void on_written(void *arg, bool stored)
{
        struct tool_write *w = arg;

        turn_detail_stored(w->detail, stored);
        free(w->type);
        free(w->payload);
        free(w);
}

/* Takes type and payload. */
static void store(struct child_turn *t, char *type, char *payload, struct turn_detail *detail)
{
        struct tool_write *w = mem_zalloc(sizeof(*w));

        w->run = t->run;
        w->turn = t->run->id;
        w->fence = t->run->fence;
        w->type = type;
        w->payload = payload;
        w->detail = detail;
        if (!turn_store_step(t->run, write_tool, on_written, w))
                on_written(w, false);
}

/* ---- events ---- */

static void open_event(struct buf *json, const struct child_turn *t, const struct tool_entry *e)
{
        buf_init(json, 0);
        jsonw_open(json, '{');
        jsonw_str(json, "turnId", t->run->key);
        jsonw_str(json, "traceId", t->run->trace);
        jsonw_str(json, "agent", t->owner->agent->name);
        jsonw_str(json, "toolCallId", e->id);
        jsonw_str(json, "toolName", e->name ? e->name : "tool");
        jsonw_opt(json, "title", e->title);
}

static void store_event(struct child_turn *t, const char *name, struct buf *json)
{
        char *payload;

        jsonw_close(json, '}');
        payload = buf_take(json);
        log_redact(payload);
        store(t, mem_printf("agent.%s", name), payload, NULL);
}

static void add_arguments(struct buf *json, const struct tool_entry *e)
{
        char *arguments = json_text(e->arguments);

        if (e->arguments && strlen(arguments) <= EVENT_BYTES)
                jsonw_raw(json, "args", arguments);
        free(arguments);
}

static void journal_start(struct child_turn *t, struct tool_entry *e)
{
        struct buf json;

        e->started = true;
        e->started_ms = clock_mono_ms();
        open_event(&json, t, e);
        add_arguments(&json, e);
        store_event(t, "tool_execution_start", &json);
}

static void journal_end(struct child_turn *t, struct tool_entry *e)
{
        const char *output = e->output ? e->output : "";
        size_t n = utf8_prefix(output, strlen(output), UTF8_BYTES, EVENT_BYTES);
        struct buf json;

        open_event(&json, t, e);
        if (e->grown)
                add_arguments(&json, e);
        jsonw_open_member(&json, "result", '{');
        jsonw_open_member(&json, "content", '[');
        jsonw_open(&json, '{');
        jsonw_str(&json, "type", "text");
        jsonw_strn(&json, "text", output, n);
        if (output[n])
                jsonw_bool(&json, "cut", true);
        jsonw_close(&json, '}');
        jsonw_close(&json, ']');
        jsonw_close(&json, '}');
        jsonw_bool(&json, "isError", e->state == CHILD_TOOL_FAILED);
        jsonw_int(&json, "durationMs", clock_mono_ms() - e->started_ms);
        store_event(t, "tool_execution_end", &json);
}

/* ---- details ---- */

static void post_details(struct child_turn *t)
{
        timer_stop(t->detail_timer);
        if (t->detail_count == 0)
                return;
        log_redact(t->detail.data);
        store(t, NULL, NULL, turn_detail_new(t->run, t->detail.data));
        buf_clear(&t->detail);
        t->detail_count = 0;
}

static void on_detail_timer(void *arg)
{
        post_details(arg);
}

static void add_detail(struct child_turn *t, const struct tool_entry *e)
{
        if (!turn_shows_details(t->run))
                return;
        if (utf8_length(t->detail.data, t->detail.len, UTF8_CODE_POINTS) >
                    DETAIL_MAX - DETAIL_CALL - CALL_DETAIL_LABEL ||
            t->detail_count >= DETAIL_CALLS)
                post_details(t);
        call_detail_add(&t->detail,
                        &(struct call_detail){ .name = e->name ? e->name : "tool",
                                               .label = e->title,
                                               .is_error = e->state == CHILD_TOOL_FAILED,
                                               .took_ms = clock_mono_ms() - e->started_ms,
                                               .arguments = e->arguments,
                                               .output = e->output },
                        DETAIL_CALL);
        if (!t->detail_timer)
                t->detail_timer = timer_new(t->owner->agent->loop, on_detail_timer, t);
        if (t->detail_count++ == 0)
                timer_start(t->detail_timer, DETAIL_MS);
}

/* ---- calls ---- */

static void set_text(char **to, const char *text)
{
        if (!text)
                return;
        free(*to);
        *to = utf8_clean(text, strlen(text));
}

static void forget_contents(struct tool_entry *e)
{
        json_decref(e->arguments);
        free(e->name);
        free(e->title);
        free(e->output);
        e->arguments = NULL;
        e->name = e->title = e->output = NULL;
}

static struct tool_entry *find_entry(struct child_turn *t, const char *id)
{
        struct tool_entry *e;

        TAILQ_FOREACH_REVERSE(e, &t->tools, tool_list, next)
        if (strcmp(e->id, id) == 0)
                return e;
        if (t->tool_count >= TOOLS_MAX)
                return NULL;
        child_turn_aside(t);
        e = mem_zalloc(sizeof(*e));
        e->id = mem_strdup(id);
        TAILQ_INSERT_TAIL(&t->tools, e, next);
        t->tool_count++;
        return e;
}

static bool has_ended(const struct tool_entry *e)
{
        return e->state == CHILD_TOOL_DONE || e->state == CHILD_TOOL_FAILED;
}

static void end_entry(struct child_turn *t, struct tool_entry *e)
{
        journal_end(t, e);
        add_detail(t, e);
        forget_contents(e);
}

void child_tool(struct child *c, const struct child_tool *tool)
{
        struct child_turn *t = c->turn;
        struct tool_entry *e;

        if (!child_run(c))
                return;
        e = find_entry(t, tool->id);
        if (!e || has_ended(e))
                return;
        set_text(&e->name, tool->name);
        set_text(&e->title, tool->title);
        set_text(&e->output, tool->output);
        if (json_object_size(tool->arguments) > 0) {
                e->grown = e->started && (e->grown || !json_equal(e->arguments, tool->arguments));
                json_decref(e->arguments);
                e->arguments = json_deep_copy(tool->arguments);
        }
        if (tool->state > e->state)
                e->state = tool->state;
        if (!e->started && (e->state >= CHILD_TOOL_RUNS || e->arguments))
                journal_start(t, e);
        if (has_ended(e))
                end_entry(t, e);
        else if (e->title || e->name)
                child_turn_progress(t, e->title ? e->title : e->name);
}

void child_tools_end(struct child_turn *t, const char *why)
{
        struct tool_entry *e;

        TAILQ_FOREACH(e, &t->tools, next) {
                if (has_ended(e))
                        continue;
                if (!e->started)
                        journal_start(t, e);
                e->state = why ? CHILD_TOOL_FAILED : CHILD_TOOL_DONE;
                set_text(&e->output, why);
                end_entry(t, e);
        }
        if (t->detail_timer)
                post_details(t);
}

void child_tools_release(struct child_turn *t)
{
        struct tool_entry *e;

        while ((e = TAILQ_FIRST(&t->tools))) {
                TAILQ_REMOVE(&t->tools, e, next);
                forget_contents(e);
                free(e->id);
                free(e);
        }
        timer_free(t->detail_timer);
        t->detail_timer = NULL;
}
