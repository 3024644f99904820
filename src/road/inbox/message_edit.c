/*
 * message_edit: edits and deletions of unanswered messages.
 *
 * A queued turn reads the new text or drops the message, and is cancelled when no message is left.
 * A running turn stops when all its messages are deleted. The journal keeps the original; the
 * trigger log names the edit, and a restart reads that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/inbox/decide.h"
#include "road/road_state.h"
#include "rows/trigger_log_row.h"

#define WHY_DELETED "its message was deleted"

struct message_edit {
        struct effect effect; /* first, so that they convert */
        struct road *road;
        int64_t turn;
        int64_t event;             /* the message */
        int64_t edit;              /* 0: deleted */
        char *inputs;              /* without the deleted message; NULL: unchanged */
        bool cancels;              /* no message is left */
        bool blocks_start;         /* counted in the turn's queue.changes */
        struct incoming *replaced; /* no longer an input */
};

/* ---- finding the turn ---- */

static char *input_key(const struct incoming *in)
{
        return mem_printf("%s%s%s%s%s", in->adapter, ROAD_KEY_BREAK, in->channel, ROAD_KEY_BREAK,
                          in->id);
}

static bool is_indexed(const struct incoming *in)
{
        return in->id && strcmp(in->type, EVENT_MESSAGE_RECEIVED) == 0;
}

void message_edit_index(struct turn *t, const struct incoming *in)
{
        char *key;

        if (!is_indexed(in))
                return;
        key = input_key(in);
        map_put(&t->road->turns.inputs, key, t);
        free(key);
}

void message_edit_unindex(struct turn *t, const struct incoming *in)
{
        char *key;

        if (!is_indexed(in))
                return;
        key = input_key(in);
        if (map_get(&t->road->turns.inputs, key) == t)
                map_remove(&t->road->turns.inputs, key);
        free(key);
}

/* The turn with the message, and its index in *at. */
static struct turn *find(const struct road *r, const struct incoming *in, unsigned *at)
{
        char *key = input_key(in);
        struct turn *t = map_get(&r->turns.inputs, key);

        free(key);
        for (*at = 0; t && *at < t->run.input_count; (*at)++) {
                if (t->inputs[*at]->id && strcmp(t->inputs[*at]->id, in->id) == 0)
                        return t;
        }
        return NULL;
}

/* ---- storing the change ---- */

static int write_edit(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct message_edit *m = (struct message_edit *)e;

        if (m->edit > 0)
                return trigger_log_row_set_edited_by(tx, m->event, m->edit, err);
        if (m->cancels)
                return turn_row_cancel(tx, m->turn, WHY_DELETED, err);
        if (!m->inputs)
                return 0;
        if (turn_row_set_inputs(tx, m->turn, m->inputs, err) < 0)
                return -1;
        return trigger_log_row_cancel(tx, m->event, "it was deleted before it was answered", err);
}

static void on_committed(struct effect *e)
{
        struct message_edit *m = (struct message_edit *)e;
        struct turn *t = turn_find(m->road, m->turn);

        if (m->cancels)
                turn_cancel(m->road, m->turn, WHY_DELETED, NULL, NULL);
        if (!t || !m->blocks_start)
                return;
        t->queue.changes--;
        turn_files_forget(t, m->event);
        for (unsigned i = 0; i < t->run.input_count; i++) {
                if (t->inputs[i]->event != m->event)
                        continue;
                turn_files_want(t, t->inputs[i]);
                if (turn_has_others(t, t->inputs[i]->sender_id))
                        turn_files_hurry(t, m->event);
        }
        turn_check_cancel(t);
        lane_pump(m->road, t->lane);
}

static void edit_free(struct effect *e)
{
        struct message_edit *m = (struct message_edit *)e;

        free(m->inputs);
        incoming_free(m->replaced);
        free(m);
}

static struct message_edit *edit_new(struct turn *t, unsigned at)
{
        struct message_edit *m = mem_zalloc(sizeof(*m));

        m->effect = (struct effect){ write_edit, on_committed, edit_free };
        m->road = t->road;
        m->turn = t->run.id;
        m->event = t->inputs[at]->event;
        return m;
}

/* ---- permitted changes ---- */

static bool is_waiting(const struct turn *t)
{
        return !t->cancel.why && (t->phase == PHASE_QUEUED || t->phase == PHASE_STORING);
}

static struct message_edit *apply_edit(struct turn *t, unsigned at, const struct incoming *in,
                                       char **reason)
{
        const char *author = t->inputs[at]->sender_id;
        struct message_edit *m;

        /* only the author edits; anyone may delete: a moderator, or an unnamed sender */
        if (!is_waiting(t) || (author && in->sender_id && strcmp(author, in->sender_id) != 0))
                return NULL;
        m = edit_new(t, at);
        m->edit = in->event;
        m->replaced = t->inputs[at];
        m->blocks_start = true;
        t->inputs[at] = incoming_edited(m->replaced, in);
        t->queue.changes++;
        *reason = mem_printf("changed a waiting message of %s", t->key);
        return m;
}

/* Omits messages deleted while running, which are unindexed: a restart skips them. */
static char *remaining_inputs(const struct turn *t)
{
        struct buf inputs;

        buf_init(&inputs, 0);
        for (unsigned i = 0; i < t->run.input_count; i++) {
                const struct incoming *in = t->inputs[i];
                char *key = is_indexed(in) ? input_key(in) : NULL;

                if (!key || map_get(&t->road->turns.inputs, key))
                        buf_addf(&inputs, "%s%lld", inputs.len > 0 ? "," : "",
                                 (long long)in->event);
                free(key);
        }
        return buf_take(&inputs);
}

static struct message_edit *apply_deletion(struct turn *t, unsigned at, char **reason)
{
        bool waiting = is_waiting(t);
        struct message_edit *m;

        if (t->cancel.why || t->phase == PHASE_ENDING)
                return NULL;
        m = edit_new(t, at);
        m->blocks_start = waiting;
        t->queue.changes += waiting;
        if (waiting && t->run.input_count > 1) {
                m->replaced = t->inputs[at];
                message_edit_unindex(t, t->inputs[at]);
                memmove(&t->inputs[at], &t->inputs[at + 1],
                        (t->run.input_count - at - 1) * sizeof(t->inputs[0]));
                t->run.input_count--;
                t->lane->mailbox--;
                m->inputs = remaining_inputs(t);
                *reason = mem_printf("removed a waiting message from %s", t->key);
                return m;
        }
        message_edit_unindex(t, t->inputs[at]); /* a second deletion finds nothing */
        t->progress.deleted++;
        m->cancels = turn_is_withdrawn(t);
        t->cancel.pending = t->cancel.pending || m->cancels;
        if (m->cancels) {
                *reason = mem_printf("cancelled %s: %s", t->key, WHY_DELETED);
        } else {
                m->inputs = remaining_inputs(t);
                *reason = mem_printf("one message of %s, which continues with the others", t->key);
        }
        return m;
}

struct effect *message_edit_new(struct road *r, const struct incoming *in, struct turn **turn,
                                char **reason)
{
        bool edited = strcmp(in->type, EVENT_MESSAGE_EDITED) == 0;
        struct message_edit *m;
        unsigned at;

        *turn = in->id ? find(r, in, &at) : NULL;
        if (!*turn)
                return NULL;
        m = edited ? apply_edit(*turn, at, in, reason) : apply_deletion(*turn, at, reason);
        return m ? &m->effect : NULL;
}
