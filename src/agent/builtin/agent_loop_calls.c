/*
 * agent_loop_calls: the tool calls of one answer, side by side.
 *
 *     NEW ──► ASKING a person ──► STARTING ──► RUNNING ──► ENDING ──► ENDED
 *      └──────────── refused, unknown, malformed, interrupted ──┘
 *
 * That a call starts is stored before it does, and its result before the model sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "agent/builtin/loop_guard.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define LABEL_MAX 80

static void pump(struct agent_loop *l);

static void add_call(struct buf *members, const struct agent_loop_call *c)
{
        jsonw_str(members, "toolCallId", json_str(c->block, "id", ""));
        jsonw_str(members, "toolName", json_str(c->block, "name", ""));
}

/* ---- results ---- */

static void on_ended(struct agent_loop *l, void *arg)
{
        struct agent_loop_call *c = arg;

        fault_point("agent.tool_done");
        c->state = LOOP_CALL_ENDED;
        l->calls.active--;
        if (--l->calls.left > 0) {
                pump(l);
                return;
        }
        loop_calls_release(l);
        agent_loop_advance(l);
}

/* No other call of the answer is still to end. */
static bool is_last(const struct agent_loop *l, const struct agent_loop_call *c)
{
        for (unsigned i = 0; i < l->calls.count; i++)
                if (&l->calls.items[i] != c && l->calls.items[i].state < LOOP_CALL_ENDING)
                        return false;
        return true;
}

/* The row and the event of a call's end. Takes the result message. */
static void add_result(struct loop_write *w, const struct agent_loop_call *c, json_t *result)
{
        struct buf members;

        buf_init(&members, 0);
        add_call(&members, c);
        loop_event_message(&members, "result", result);
        jsonw_bool(&members, "isError", json_flag(result, "isError", false));
        if (c->started_ms > 0)
                jsonw_int(&members, "durationMs", clock_mono_ms() - c->started_ms);
        loop_write_event(w, "tool_execution_end", members.data);
        buf_release(&members);
        loop_write_row(
                w, &(struct loop_row){ .kind = STEP_TOOL_DONE, .call = c->key, .body = result });
}

/* Takes the result message. */
static void store_result(struct agent_loop_call *c, json_t *result)
{
        struct agent_loop *l = c->loop;
        struct loop_write *w = loop_write_new(l);

        /* a restart is not the model's fault */
        if (l->env.conf->guard && !json_flag(result, "interrupted", false))
                loop_guard_mark(&l->steps, l->run->id, c->block, result);
        c->ended_ms = clock_mono_ms();
        c->result = json_incref(result);
        add_result(w, c, result);
        if (is_last(l, c)) {
                char *detail = turn_shows_details(l->run) ? loop_detail_text(l) : NULL;

                loop_write_event(w, "turn_end", NULL);
                loop_write_event(w, "turn_start", NULL);
                if (detail)
                        loop_write_detail(w, detail);
                free(detail);
        }
        c->state = LOOP_CALL_ENDING;
        loop_write_submit(w, on_ended, c);
}

static void answer_error(struct agent_loop_call *c, const char *text)
{
        store_result(c, steps_error_result(c->block, text));
}

/* Secrets that we know must not reach the model, whatever printed them. */
static void redact(json_t *content)
{
        json_t *block;
        size_t i;

        json_array_foreach(content, i, block) {
                json_t *text = json_object_get(block, "text");
                char *copy;

                if (!json_is_string(text))
                        continue;
                copy = mem_strdup(json_string_value(text));
                log_redact(copy);
                if (strcmp(copy, json_string_value(text)) != 0)
                        json_string_set(text, copy);
                free(copy);
        }
}

/* The same for details, in any member of them; takes and returns them. */
static json_t *redact_details(json_t *details)
{
        char *text = json_text(details), *copy = mem_strdup(text);

        log_redact(copy);
        if (strcmp(copy, text) != 0) {
                json_decref(details);
                details = json_read(copy, strlen(copy), NULL); /* NULL: a number was one */
        }
        free(text);
        free(copy);
        return details ? details : json_object();
}

static void on_tool_done(struct tool_call *tc, struct tool_result *r)
{
        struct agent_loop_call *c = tc->arg;
        json_t *content = r->content ? r->content : json_array();
        bool untrusted = r->untrusted;
        json_t *result;

        r->content = NULL;
        redact(content);
        if (json_array_size(content) == 0)
                json_array_append_new(
                        content, json_pack("{s:s, s:s}", "type", "text", "text", "(no output)"));
        else if (untrusted)
                json_array_insert_new(
                        content, 0,
                        json_pack("{s:s, s:s}", "type", "text", "text", UNTRUSTED_MARK));
        result = json_pack("{s:s, s:s, s:s, s:o, s:b, s:I}", "role", "toolResult", "toolCallId",
                           json_str(c->block, "id", ""), "toolName", json_str(c->block, "name", ""),
                           "content", content, "isError", r->is_error, "timestamp",
                           (json_int_t)clock_wall_ms());
        if (r->details)
                json_object_set_new(result, "details", redact_details(r->details));
        r->details = NULL;
        if (untrusted)
                json_object_set_new(result, "untrusted", json_true());
        store_result(c, result);
}

/* ---- running ---- */

static void on_output(struct tool_call *tc, const char *text, size_t n)
{
        struct agent_loop_call *c = tc->arg;
        char *clean = utf8_clean(text, n);
        struct buf members;

        log_redact(clean);
        buf_init(&members, 0);
        add_call(&members, c);
        jsonw_str(&members, "partialResult", clean);
        loop_publish(c->loop, "tool_execution_update", members.data);
        buf_release(&members);
        free(clean);
}

static const json_t *arguments_of(const struct agent_loop_call *c)
{
        return json_object_get(c->block, "arguments");
}

/* What people see meanwhile. */
static void show_label(const struct agent_loop_call *c)
{
        char *label =
                mem_strdup(json_str(arguments_of(c), "label", json_str(c->block, "name", "")));

        for (char *p = label; *p; p++)
                if ((unsigned char)*p < ' ')
                        *p = ' ';
        label[utf8_prefix(label, strlen(label), UTF8_BYTES, LABEL_MAX)] = '\0';
        log_redact(label);
        if (*label)
                turn_progress(c->loop->run, label);
        free(label);
}

static void run_tool(struct agent_loop *l, void *arg)
{
        struct agent_loop_call *c = arg;
        size_t share = TOOL_ROUND_MAX / l->calls.count;

        fault_point("agent.tool_started");
        c->state = LOOP_CALL_RUNNING;
        c->started_ms = clock_mono_ms();
        c->tool_call = (struct tool_call){ .tool = c->tool,
                                           .scope = l->env.parts->scope(l->turn),
                                           .id = c->key,
                                           .arguments = arguments_of(c),
                                           .bytes_max = share < TOOL_BYTES_MAX ? share : 0,
                                           .on_output = on_output,
                                           .on_done = on_tool_done,
                                           .arg = c };
        show_label(c);
        c->tool->start(&c->tool_call);
}

static void start_tool(struct agent_loop_call *c)
{
        struct agent_loop *l = c->loop;
        struct loop_write *w = loop_write_new(l);
        json_t *body = json_pack("{s:s, s:s}", "toolCallId", json_str(c->block, "id", ""),
                                 "toolName", json_str(c->block, "name", ""));
        char *args = json_text(arguments_of(c));
        struct buf members;

        c->state = LOOP_CALL_STARTING;
        buf_init(&members, 0);
        add_call(&members, c);
        if (strlen(args) <= 4096)
                jsonw_raw(&members, "args", args);
        loop_write_event(w, "tool_execution_start", members.data);
        buf_release(&members);
        free(args);
        loop_write_row(
                w, &(struct loop_row){ .kind = STEP_TOOL_STARTED, .call = c->key, .body = body });
        loop_write_submit(w, run_tool, c);
}

/* ---- asking a person ---- */

static void on_decision(void *arg, bool allowed, const char *why)
{
        struct agent_loop_call *c = arg;

        c->gate = NULL; /* freed */
        if (allowed)
                start_tool(c);
        else
                answer_error(c, why ? why : "This call is not allowed. It was not run.");
}

static void judge(struct agent_loop_call *c)
{
        struct agent_loop *l = c->loop;
        const struct loop_parts *parts = l->env.parts;
        enum policy_decision decision = POLICY_ALLOW;
        char *why = NULL;

        if (parts->gate) {
                c->state = LOOP_CALL_ASKING;
                decision = parts->gate(l->turn, c->tool, arguments_of(c), c->key,
                                       steps_untrusted(&l->steps), &why, on_decision, c, &c->gate);
        }
        if (decision == POLICY_ALLOW)
                start_tool(c);
        else if (decision == POLICY_DENY)
                answer_error(c, why ? why : "This call is not allowed. It was not run.");
        free(why);
}

/* ---- beginning ---- */

static void begin(struct agent_loop_call *c)
{
        struct agent_loop *l = c->loop;
        enum call_state before = steps_call_state(&l->steps, c->key);
        const char *name = json_str(c->block, "name", "");
        struct error err = { 0 };
        unsigned flags;
        char text[600];

        c->tool = l->env.parts->find_tool(l->turn, name);
        flags = c->tool && json_is_object(arguments_of(c))
                        ? tool_flags(c->tool, l->env.parts->scope(l->turn), arguments_of(c))
                        : 0;
        if (before == CALL_STARTED && !(flags & TOOL_READ_ONLY)) {
                json_t *result = steps_error_result(
                        c->block, "Interrupted by a restart of the agent: this call may have "
                                  "happened in part. Check before repeating it.");

                json_object_set_new(result, "interrupted", json_true());
                store_result(c, result);
        } else if (json_flag(c->block, "incomplete", false) || !json_is_object(arguments_of(c))) {
                answer_error(c, "The arguments of this call were cut off or are not a JSON object, "
                                "so it was not run. Write large files in parts.");
        } else if (!c->tool) {
                snprintf(text, sizeof(text), "There is no tool '%.60s'.", name);
                answer_error(c, text);
        } else if (tool_check(c->tool, arguments_of(c), &err) < 0) {
                answer_error(c, err.text);
        } else if (before == CALL_STARTED) {
                c->state = LOOP_CALL_STARTING;
                run_tool(l, c);
        } else {
                judge(c);
        }
}

static void pump(struct agent_loop *l)
{
        for (unsigned i = 0; i < l->calls.count; i++) {
                struct agent_loop_call *c = &l->calls.items[i];

                if ((int64_t)l->calls.active >= l->env.conf->parallel)
                        return;
                if (c->state != LOOP_CALL_NEW)
                        continue;
                l->calls.active++;
                begin(c);
        }
}

void loop_calls_begin(struct agent_loop *l, const struct step *answer)
{
        const json_t *block;
        unsigned n = 0;

        while (steps_call(answer->body, n))
                n++;
        l->calls.items = mem_array(n, sizeof(*l->calls.items));
        l->calls.count = n;
        for (unsigned i = 0; (block = steps_call(answer->body, i)); i++) {
                struct agent_loop_call *c = &l->calls.items[i];

                c->loop = l;
                c->block = block;
                steps_call_key(answer, i, c->key);
                if (steps_call_state(&l->steps, c->key) == CALL_DONE)
                        c->state = LOOP_CALL_ENDED;
                else
                        l->calls.left++;
        }
        pump(l);
}

void loop_calls_cancel(struct agent_loop *l)
{
        char text[200];

        snprintf(text, sizeof(text),
                 "This call was stopped by the user (%.100s) and may have "
                 "happened in part.",
                 l->run->stopped ? l->run->stopped : "");
        for (unsigned i = 0; i < l->calls.count; i++) {
                struct agent_loop_call *c = &l->calls.items[i];
                struct loop_write *w;

                if (c->state == LOOP_CALL_RUNNING && c->tool->cancel)
                        c->tool->cancel(&c->tool_call);
                if (c->gate)
                        l->env.parts->gate_free(c->gate);
                if (!l->run->stopped || c->state >= LOOP_CALL_ENDING)
                        continue;
                w = loop_write_new(l);
                add_result(w, c, steps_error_result(c->block, text));
                loop_write_submit(w, NULL, NULL);
        }
}

void loop_calls_release(struct agent_loop *l)
{
        for (unsigned i = 0; i < l->calls.count; i++)
                json_decref(l->calls.items[i].result);
        free(l->calls.items);
        l->calls.items = NULL;
        l->calls.count = l->calls.left = l->calls.active = 0;
}
