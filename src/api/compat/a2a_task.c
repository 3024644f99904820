/*
 * a2a_task: a task from its rows, and as the protocol writes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/a2a.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "rows/approval_row.h"
#include "rows/delivery_row.h"
#include "rows/journal_row.h"
#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"

#define ANSWER_ID      "answer" /* of the one artifact */
#define CONTEXT_DIGITS 24

void a2a_task_release(struct a2a_task *t)
{
        free(t->context);
        free(t->message);
        free(t->trace);
        json_decref(t->payload);
        free(t->answer);
        free(t->said);
        *t = (struct a2a_task){ 0 };
}

/* ---- whose it is ---- */

char *a2a_chats(int64_t caller, const char *agent)
{
        return mem_printf("a2a:%lld:%s:", (long long)caller, agent ? agent : "");
}

char *a2a_key(int64_t caller, const char *message)
{
        return mem_printf("a2a:%lld:%s", (long long)caller, message);
}

char *a2a_context_for(int64_t caller, const char *message)
{
        char *text = mem_printf("%lld\n%s", (long long)caller, message), hex[SHA256_HEX_SIZE];
        char *context;

        crypto_sha256_hex(text, strlen(text), hex);
        context = mem_printf("ctx-%.*s", CONTEXT_DIGITS, hex);
        free(text);
        return context;
}

/* ---- reading ---- */

/* What the turn asks a person, as it was posted. */
static int read_question(struct store_tx *tx, int64_t turn, char **out, struct error *err)
{
        const enum approval_state open = APPROVAL_OPEN;
        struct store_stmt *s = approval_row_list(
                tx, &(struct approval_filter){ .state = &open, .turn = turn, .limit = 1 });
        struct approval_row row;
        struct delivery_row *d;
        const char *deliveries;
        int64_t id = 0;
        json_t *payload;
        int rc = approval_row_next(s, &row, err);

        if (rc == 1) {
                deliveries = row.deliveries;
                turn_row_next_input(&deliveries, &id);
                *out = mem_printf("%s\n%s", row.title, row.detail);
                rows_end(s);
        }
        if (rc != 1 || id == 0)
                return rc;
        if (delivery_row_get(tx, id, &d, err) < 0)
                return -1;
        payload = d ? json_loads(d->payload, 0, NULL) : NULL;
        if (json_str(payload, "text", NULL)) {
                free(*out);
                *out = mem_strdup(json_str(payload, "text", NULL));
        }
        json_decref(payload);
        free(d);
        return 1;
}

static int read_open(struct store_tx *tx, struct a2a_task *t, struct error *err)
{
        struct turn_row *turn = NULL;
        int rc = t->turn > 0 ? turn_row_get(tx, t->turn, &turn, err) : 0;

        t->state = A2A_SUBMITTED;
        if (rc == 1 && turn->state == TURN_RUNNING) {
                t->state = A2A_WORKING;
                t->time_ms = turn->started_ms;
                rc = read_question(tx, t->turn, &t->said, err);
                if (rc == 1)
                        t->state = A2A_INPUT_REQUIRED;
        }
        free(turn);
        return rc < 0 ? -1 : 0;
}

static int read_state(struct store_tx *tx, struct a2a_task *t, struct error *err)
{
        struct trigger_log_row *row;
        struct reply_outcome o;
        int rc = trigger_log_row_get(tx, t->event, &row, err);

        if (rc < 0)
                return -1;
        if (row) {
                t->turn = row->turn;
                t->time_ms = row->ended_ms ? row->ended_ms : row->time_ms;
        }
        free(row);
        reply_outcome_init(&o);
        rc = reply_outcome_read(tx, t->event, &o, err);
        if (rc == 0 && !o.ended) {
                rc = read_open(tx, t, err);
        } else if (rc == 0) {
                t->state = a2a_state_of(&o.reply);
                if (t->state == A2A_COMPLETED)
                        t->answer = mem_strdup(o.reply.text);
                else
                        t->said = mem_strdup(a2a_reason_of(&o.reply));
        }
        reply_outcome_release(&o);
        return rc;
}

static bool begins(const char *text, const char *with)
{
        return text && strncmp(text, with, strlen(with)) == 0;
}

static void set_task(struct a2a_task *t, const struct journal_row *e, const char *chats,
                     const char *keys)
{
        t->found = true;
        t->event = e->seq;
        t->time_ms = e->time_ms;
        t->context = mem_strdup(e->channel + strlen(chats));
        t->message = mem_strdup(e->key + strlen(keys));
        t->trace = mem_strdup(e->trace);
}

int a2a_task_read(struct store_tx *tx, const struct key *caller, const char *agent, int64_t event,
                  struct a2a_task *out, struct error *err)
{
        char *chats = a2a_chats(caller->id, agent);
        char *keys = a2a_key(caller->id, "");
        struct journal_row *e;
        int rc;

        a2a_task_release(out);
        rc = journal_row_get(tx, event, &e, err);
        if (rc == 1 && strcmp(e->type, EVENT_MESSAGE_RECEIVED) == 0 && begins(e->key, keys) &&
            begins(e->channel, chats) && key_reaches(caller, e->adapter)) {
                out->payload = json_loads(e->payload, 0, NULL);
                if (json_object_size(out->payload) > 0) { /* else it was pruned */
                        set_task(out, e, chats, keys);
                        rc = read_state(tx, out, err);
                }
        }
        free(chats);
        free(keys);
        free(e);
        return rc < 0 ? -1 : 0;
}

enum a2a_state a2a_state_of(const struct awaited_reply *r)
{
        enum trigger_status status;

        if (!r || !trigger_status_parse(r->status, &status))
                return A2A_WORKING; /* time is up */
        switch (status) {
        case TRIGGER_DONE:
                return A2A_COMPLETED;
        case TRIGGER_FAILED:
                return A2A_FAILED;
        case TRIGGER_CANCELLED:
                return A2A_CANCELED;
        case TRIGGER_SKIPPED:
        case TRIGGER_EXPIRED:
                return A2A_REJECTED;
        default:
                return A2A_WORKING;
        }
}

const char *a2a_reason_of(const struct awaited_reply *r)
{
        if (!r || a2a_state_of(r) == A2A_COMPLETED)
                return NULL;
        return r->text ? r->text : r->turn == 0 ? r->reason : NULL;
}

/* ---- writing ---- */

static void write_id(struct buf *b, const char *key, int64_t event)
{
        char id[BUS_ID_SIZE];

        jsonw_str(b, key, bus_event_id(event, id));
}

/* Its id is made of what it says: the same status is the same message. */
static void write_said(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                       enum a2a_state state, const char *said)
{
        char task[BUS_ID_SIZE], hex[SHA256_HEX_SIZE];
        char *id;

        bus_event_id(t->event, task);
        crypto_sha256_hex(said, strlen(said), hex);
        id = mem_printf("%s-%s-%.8s", task, a2a_state_name(A2A_0_3, state), hex);
        a2a_message_open(b, "message", v,
                         &(struct a2a_message){
                                 .id = id, .context = t->context, .task = task, .by_agent = true });
        a2a_part_write(b, v, &(struct a2a_part){ .kind = A2A_TEXT, .text = said });
        a2a_message_close(b);
        free(id);
}

static void write_status(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                         enum a2a_state state, const char *said, int64_t time_ms)
{
        char iso[CLOCK_ISO_SIZE];

        jsonw_open_member(b, "status", '{');
        jsonw_str(b, "state", a2a_state_name(v, state));
        jsonw_str(b, "timestamp", clock_iso(time_ms, iso));
        if (said && *said)
                write_said(b, v, t, state, said);
        jsonw_close(b, '}');
}

static void write_artifact(struct buf *b, const char *key, enum a2a_version v, const char *text,
                           size_t n)
{
        char *copy = mem_strndup(text, n);

        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        jsonw_str(b, "artifactId", ANSWER_ID);
        jsonw_open_member(b, "parts", '[');
        a2a_part_write(b, v, &(struct a2a_part){ .kind = A2A_TEXT, .text = copy });
        jsonw_close(b, ']');
        jsonw_close(b, '}');
        free(copy);
}

/* Files that were sent along are named; their bytes are not kept with the message. */
static void write_history(struct buf *b, enum a2a_version v, const struct a2a_task *t)
{
        const char *text = json_str(t->payload, "text", "");
        char task[BUS_ID_SIZE];
        const json_t *file;
        size_t i;

        jsonw_open_member(b, "history", '[');
        a2a_message_open(b, NULL, v,
                         &(struct a2a_message){ .id = t->message,
                                                .context = t->context,
                                                .task = bus_event_id(t->event, task) });
        if (*text)
                a2a_part_write(b, v, &(struct a2a_part){ .kind = A2A_TEXT, .text = text });
        json_array_foreach(json_object_get(t->payload, "attachments"), i, file) {
                const char *url = json_str(file, "url", NULL);
                const char *name = json_str(file, "name", "file");
                char *note = url ? NULL : mem_printf("[attached: %s]", name);

                a2a_part_write(b, v,
                               url ? &(struct a2a_part){ .kind = A2A_URL,
                                                         .text = url,
                                                         .name = name,
                                                         .mime = json_str(file, "mimeType", NULL) }
                                   : &(struct a2a_part){ .kind = A2A_TEXT, .text = note });
                free(note);
        }
        a2a_message_close(b);
        jsonw_close(b, ']');
}

void a2a_task_write(struct buf *b, const char *key, const struct a2a_task_form *f,
                    const struct a2a_task *t)
{
        if (key)
                jsonw_open_member(b, key, '{');
        else
                jsonw_open(b, '{');
        if (f->version == A2A_0_3)
                jsonw_str(b, "kind", "task");
        write_id(b, "id", t->event);
        jsonw_str(b, "contextId", t->context);
        write_status(b, f->version, t, t->state, t->said, t->time_ms);
        if (f->artifacts) {
                jsonw_open_member(b, "artifacts", '[');
                if (t->answer)
                        write_artifact(b, NULL, f->version, t->answer, strlen(t->answer));
                jsonw_close(b, ']');
        }
        if (f->history != 0)
                write_history(b, f->version, t);
        jsonw_close(b, '}');
}

/* 1.0 wraps an event in a member, 0.3 tells its kind. */
static void open_event(struct buf *b, enum a2a_version v, const char *member, const char *kind,
                       const struct a2a_task *t)
{
        jsonw_open(b, '{');
        if (v == A2A_1_0)
                jsonw_open_member(b, member, '{');
        else
                jsonw_str(b, "kind", kind);
        write_id(b, "taskId", t->event);
        jsonw_str(b, "contextId", t->context);
}

static void close_event(struct buf *b, enum a2a_version v)
{
        if (v == A2A_1_0)
                jsonw_close(b, '}');
        jsonw_close(b, '}');
}

void a2a_status_write(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                      enum a2a_state state, const char *said)
{
        open_event(b, v, "statusUpdate", "status-update", t);
        write_status(b, v, t, state, said, clock_wall_ms());
        if (v == A2A_0_3)
                jsonw_bool(b, "final", a2a_state_is_final(state) || a2a_state_is_waiting(state));
        close_event(b, v);
}

void a2a_artifact_write(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                        const char *text, size_t n, bool append)
{
        open_event(b, v, "artifactUpdate", "artifact-update", t);
        write_artifact(b, "artifact", v, text, n);
        jsonw_bool(b, "append", append);
        close_event(b, v);
}
