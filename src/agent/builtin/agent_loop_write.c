/*
 * agent_loop_write: rows of a turn with their events, in one transaction.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "agent/builtin/blobs.h"
#include "agent/builtin/user_message.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

#define EVENT_TEXT_MAX 4096 /* bytes of a block in an event */

struct loop_write {
        struct agent_loop *loop;
        /* of the turn, which may change meanwhile */
        int64_t turn, fence, conversation;
        char *session, *agent, *payer, *dir;
        const struct turn_run *run; /* valid until done, see turn_store_step */
        struct step rows[LOOP_ROWS];
        int64_t costs[LOOP_ROWS];
        unsigned row_count;
        struct {
                char *type, *payload;
        } events[LOOP_EVENTS];
        unsigned event_count;
        struct turn_detail *detail; /* NULL: none */
        loop_stored_fn *then;
        void *arg;
};

struct loop_write *loop_write_new(struct agent_loop *l)
{
        struct loop_write *w = mem_zalloc(sizeof(*w));
        const struct turn_run *run = l->run;

        w->loop = l;
        w->run = run;
        w->turn = run->id;
        w->fence = run->fence;
        w->conversation = run->conversation;
        w->session = mem_strdup(run->session);
        w->agent = mem_strdup(l->env.name);
        w->payer = mem_strdup(l->payer);
        w->dir = mem_strdup(l->env.dir);
        return w;
}

void loop_write_row(struct loop_write *w, const struct loop_row *row)
{
        w->costs[w->row_count] = row->cost_microusd;
        w->rows[w->row_count++] = (struct step){ .turn = w->turn,
                                                 .kind = row->kind,
                                                 .call = mem_strdup(row->call),
                                                 .body = row->body,
                                                 .first_kept = row->first_kept,
                                                 .time_ms = clock_wall_ms() };
}

void loop_write_detail(struct loop_write *w, const char *markdown)
{
        w->detail = turn_detail_new(w->loop->run, markdown);
}

/* ---- events ---- */

static char *event_payload(const struct turn_run *run, const char *agent, const char *members)
{
        struct buf json;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "turnId", run->key);
        jsonw_str(&json, "traceId", run->trace);
        jsonw_str(&json, "agent", agent);
        if (members && *members)
                buf_addf(&json, ",%s", members);
        jsonw_close(&json, '}');
        return buf_take(&json);
}

void loop_write_event(struct loop_write *w, const char *name, const char *members)
{
        unsigned i = w->event_count++;

        w->events[i].type = mem_printf("agent.%s", name);
        w->events[i].payload = event_payload(w->run, w->agent, members);
}

void loop_publish(struct agent_loop *l, const char *name, const char *members)
{
        char *type = mem_printf("agent.%s", name);
        char *payload = event_payload(l->run, l->env.name, members);

        turn_publish_live(l->run, type, payload);
        free(type);
        free(payload);
}

/* Without the bytes of images, signatures and long texts. */
static json_t *short_block(const json_t *block)
{
        json_t *copy = json_copy((json_t *)block);
        const json_t *text = json_object_get(copy, "text");
        size_t n = json_string_length(text);

        json_object_del(copy, "data");
        json_object_del(copy, "thinkingSignature");
        if (n > EVENT_TEXT_MAX) {
                const char *whole = json_string_value(text);

                n = utf8_prefix(whole, n, UTF8_BYTES, EVENT_TEXT_MAX);
                json_object_set_new(copy, "text", json_stringn(whole, n));
                json_object_set_new(copy, "cut", json_true());
        }
        if (strcmp(json_str(copy, "type", ""), "toolCall") == 0) {
                char *args = json_text(json_object_get(copy, "arguments"));

                if (strlen(args) > EVENT_TEXT_MAX) {
                        json_object_set_new(copy, "arguments", json_object());
                        json_object_set_new(copy, "cut", json_true());
                }
                free(args);
        }
        return copy;
}

void loop_event_message(struct buf *members, const char *key, const json_t *message)
{
        json_t *copy = json_copy((json_t *)message), *blocks = json_array();
        const json_t *block;
        char *text;
        size_t i;

        json_array_foreach(json_object_get(message, "content"), i, block)
                json_array_append_new(blocks, short_block(block));
        json_object_set_new(copy, "content", blocks);
        text = json_text(copy);
        buf_addf(members, "%s\"%s\":%s", members->len ? "," : "", key, text);
        free(text);
        json_decref(copy);
}

/* ---- storing ---- */

static int write_rows(struct store_tx *tx, struct bus_batch *batch, void *arg, struct error *err)
{
        struct loop_write *w = arg;

        for (unsigned i = 0; i < w->row_count; i++) {
                struct step *step = &w->rows[i];
                struct step_row row = { .conversation = w->conversation,
                                        .turn = w->turn,
                                        .session = w->session,
                                        .agent = w->agent,
                                        .person = w->payer,
                                        .kind = step->kind,
                                        .call = step->call,
                                        .first_kept = step->first_kept,
                                        .cost_microusd = w->costs[i],
                                        .time_ms = step->time_ms };
                char *text;
                int rc;

                if (blobs_save(step->body, w->dir, err) < 0)
                        return -1;
                text = blobs_row_text(step->body);
                row.body = text;
                rc = step_row_insert(tx, &row, w->fence, err);
                free(text);
                if (rc != 1)
                        return rc; /* the first row decides: the fence is the same for all */
                step->id = row.id;
        }
        for (unsigned i = 0; i < w->event_count; i++)
                if (turn_append_event(tx, batch, w->run, w->events[i].type, w->events[i].payload,
                                      err) < 0)
                        return -1;
        return turn_detail_store(tx, batch, w->detail, err) < 0 ? -1 : 1;
}

static void write_free(struct loop_write *w)
{
        turn_detail_stored(w->detail, false);
        for (unsigned i = 0; i < w->row_count; i++) {
                free(w->rows[i].call);
                json_decref(w->rows[i].body);
        }
        for (unsigned i = 0; i < w->event_count; i++) {
                free(w->events[i].type);
                free(w->events[i].payload);
        }
        free(w->session);
        free(w->agent);
        free(w->payer);
        free(w->dir);
        free(w);
}

static void take_rows(struct agent_loop *l, struct loop_write *w)
{
        for (unsigned i = 0; i < w->row_count; i++) {
                const struct step *step = &w->rows[i];

                steps_count_usage(&l->totals, step->body, w->costs[i]);
                l->totals.rounds += step->kind == STEP_ASSISTANT;
                l->totals.started_tool = l->totals.started_tool || step->kind == STEP_TOOL_STARTED;
                steps_add(&l->steps, step);
        }
        w->row_count = 0;
}

static void on_stored(void *arg, bool stored)
{
        struct loop_write *w = arg;
        struct agent_loop *l = w->loop;
        loop_stored_fn *then = w->then;
        void *then_arg = w->arg;

        l->pending--;
        turn_detail_stored(w->detail, stored);
        w->detail = NULL;
        if (stored && !l->over) {
                take_rows(l, w);
                turn_set_usage(l->run, &l->totals.usage);
        }
        write_free(w);
        if (l->over) {
                agent_loop_free_if_over(l);
        } else if (stored) {
                fault_point("agent.step_stored");
                then(l, then_arg);
        } else if (!l->run->interrupted) {
                agent_loop_fail(l, ERR_CONFLICT, NULL, "another process has this turn");
        }
}

bool loop_write_submit(struct loop_write *w, loop_stored_fn *then, void *arg)
{
        struct agent_loop *l = w->loop;

        w->then = then;
        w->arg = arg;
        l->pending++;
        fault_point("agent.before_step");
        if (turn_store_step(l->run, write_rows, on_stored, w))
                return true;
        l->pending--; /* the next process goes on from the rows */
        write_free(w);
        return false;
}

/* ---- steering ---- */

static void on_take(void *arg, const struct incoming *const *inputs, unsigned count)
{
        struct loop_write *w = arg;
        struct agent_loop *l = w->loop;
        json_t *message =
                user_message(inputs, count, l->run->inputs[0]->sender_id, l->limits.images);
        struct buf members;

        buf_init(&members, 0);
        loop_event_message(&members, "message", message);
        loop_write_event(w, "message_end", members.data);
        buf_release(&members);
        loop_write_row(w, &(struct loop_row){ .kind = STEP_USER, .body = message });
        l->pending++;
}

bool loop_write_steer(struct agent_loop *l, loop_stored_fn *then)
{
        static const struct turn_steering steering = { on_take, write_rows, on_stored };
        struct loop_write *w = loop_write_new(l);

        w->then = then;
        if (turn_steer(l->run, &steering, w))
                return true;
        write_free(w);
        return false;
}
