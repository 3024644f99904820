/*
 * change: somebody edits or deletes a message that is not answered yet.
 *
 * While the message waits, its turn reads the new text, or does without it; a turn with nothing
 * left to answer is cancelled. Once the turn runs, a deleted question stops it. The journal keeps
 * what was written first: the trigger log names the edit whose text counts, and a restart reads
 * that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/road_private.h"

#define WHY_DELETED "its message was deleted"

struct change {
        struct effect effect; /* first, so that they convert */
        struct road *road;
        int64_t turn;
        int64_t event;        /* the message */
        int64_t by;           /* the edit; 0: it is deleted */
        char *inputs;         /* of the turn, without the deleted message; NULL: they stay */
        bool cancels;         /* nothing is left to answer */
        bool joined;          /* the turn must not start before this is stored */
        struct incoming *old; /* not the turn's any more */
};

/* ---- which turn has a message ---- */

static char *input_key(const struct incoming *in)
{
        return mem_printf("%s%s%s%s%s", in->adapter, ROAD_KEY_BREAK, in->channel, ROAD_KEY_BREAK,
                          in->id);
}

static bool is_indexed(const struct incoming *in)
{
        return in->id && strcmp(in->type, EVENT_MESSAGE_RECEIVED) == 0;
}

void change_index(struct turn *t, const struct incoming *in)
{
        char *key;

        if (!is_indexed(in))
                return;
        key = input_key(in);
        map_put(&t->road->inputs, key, t);
        free(key);
}

void change_unindex(struct turn *t, const struct incoming *in)
{
        char *key;

        if (!is_indexed(in))
                return;
        key = input_key(in);
        if (map_get(&t->road->inputs, key) == t)
                map_remove(&t->road->inputs, key);
        free(key);
}

static bool is_found(const struct road *r, const struct incoming *in)
{
        char *key = is_indexed(in) ? input_key(in) : NULL;
        bool found = !key || map_get(&r->inputs, key) != NULL;

        free(key);
        return found;
}

/* The turn that is to answer the message which was changed; *at: which of its messages it is. */
static struct turn *find(const struct road *r, const struct incoming *in, unsigned *at)
{
        char *key = input_key(in);
        struct turn *t = map_get(&r->inputs, key);

        free(key);
        for (*at = 0; t && *at < t->input_count; (*at)++) {
                if (t->inputs[*at]->id && strcmp(t->inputs[*at]->id, in->id) == 0)
                        return t;
        }
        return NULL;
}

/* ---- in the decision's transaction, and after it ---- */

static int write_edit(struct store_tx *tx, const struct change *c, struct error *err)
{
        struct store_stmt *s =
                store_prepare(tx, "UPDATE trigger_log SET edited_by = ?2 WHERE event = ?1");

        store_bind_int(s, 1, c->event);
        store_bind_int(s, 2, c->by);
        return store_run(s, err);
}

static int write_removal(struct store_tx *tx, const struct change *c, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "UPDATE turns SET inputs = ?2 WHERE id = ?1 AND state IN ('queued', 'running')");

        store_bind_int(s, 1, c->turn);
        store_bind_text(s, 2, c->inputs);
        if (store_run(s, err) < 0)
                return -1;
        s = store_prepare(
                tx, "UPDATE trigger_log SET status = 'cancelled', error = ?2 WHERE event = ?1 AND "
                    "status = 'queued'");
        store_bind_int(s, 1, c->event);
        store_bind_text(s, 2, "it was deleted before it was answered");
        return store_run(s, err);
}

static int write_change(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct change *c = (struct change *)e;

        if (c->by > 0)
                return write_edit(tx, c, err);
        if (c->cancels)
                return turn_mark_cancelled(tx, c->turn, WHY_DELETED, err);
        return c->inputs ? write_removal(tx, c, err) : 0;
}

static void on_committed(struct effect *e)
{
        struct change *c = (struct change *)e;
        char key[TURN_KEY_SIZE];
        struct turn *t = map_get(&c->road->turns, road_key("trn", c->turn, key));

        if (c->cancels)
                turn_cancel(c->road, c->turn, WHY_DELETED, NULL, NULL);
        if (!t || !c->joined)
                return;
        t->joining--;
        turn_check_cancel(t);
        lane_pump(c->road, t->lane);
}

static void change_free(struct effect *e)
{
        struct change *c = (struct change *)e;

        free(c->inputs);
        incoming_free(c->old);
        free(c);
}

static struct change *change_begin(struct turn *t, unsigned at)
{
        struct change *c = mem_zalloc(sizeof(*c));

        c->effect = (struct effect){ write_change, on_committed, change_free };
        c->road = t->road;
        c->turn = t->run.id;
        c->event = t->inputs[at]->event;
        return c;
}

/* ---- what may be changed ---- */

static bool waits(const struct turn *t)
{
        return !t->cancel_why &&
               (t->phase == PHASE_QUEUED || (t->phase == PHASE_STORING && !t->starts_now));
}

static bool runs(const struct turn *t)
{
        return !t->cancel_why &&
               (t->phase == PHASE_STARTING || t->phase == PHASE_RUNNING || t->starts_now) &&
               t->phase != PHASE_ENDING;
}

/*
 * Who deletes is often not told, and may be a moderator; only the author can change what he said.
 */
static bool is_author(const struct incoming *said, const struct incoming *edit)
{
        return !said->sender_id || !edit->sender_id ||
               strcmp(said->sender_id, edit->sender_id) == 0;
}

static struct change *edit(struct turn *t, unsigned at, const struct incoming *in, char **reason)
{
        struct change *c;

        if (!waits(t) || !is_author(t->inputs[at], in))
                return NULL;
        c = change_begin(t, at);
        c->by = in->event;
        c->old = t->inputs[at];
        c->joined = true;
        t->inputs[at] = incoming_edited(c->old, in);
        t->joining++;
        *reason = mem_printf("changed a waiting message of %s", t->key);
        return c;
}

/*
 * Without those that were deleted while it runs, which nobody finds any more: the next life does
 * not read them.
 */
static char *inputs_left(const struct turn *t)
{
        struct buf inputs;

        buf_init(&inputs, 0);
        for (unsigned i = 0; i < t->input_count; i++) {
                if (is_found(t->road, t->inputs[i]))
                        buf_addf(&inputs, "%s%lld", inputs.len > 0 ? "," : "",
                                 (long long)t->inputs[i]->event);
        }
        return buf_take(&inputs);
}

static void take_out(struct turn *t, unsigned at, struct change *c)
{
        change_unindex(t, t->inputs[at]);
        c->old = t->inputs[at];
        c->joined = true;
        memmove(&t->inputs[at], &t->inputs[at + 1],
                (t->input_count - at - 1) * sizeof(t->inputs[0]));
        t->input_count--;
        t->lane->mailbox--;
        t->joining++;
        c->inputs = inputs_left(t);
}

static struct change *delete (struct turn *t, unsigned at, char **reason)
{
        struct change *c;

        if (!waits(t) && !runs(t))
                return NULL;
        c = change_begin(t, at);
        if (waits(t) && t->input_count > 1) {
                take_out(t, at, c);
                *reason = mem_printf("took a waiting message out of %s", t->key);
                return c;
        }
        change_unindex(t, t->inputs[at]); /* told once */
        t->deleted++;
        c->cancels = turn_is_taken_back(t);
        t->doomed = t->doomed || c->cancels;
        c->joined = waits(t);
        t->joining += c->joined;
        if (c->cancels) {
                *reason = mem_printf("cancelled %s: %s", t->key, WHY_DELETED);
        } else {
                c->inputs = inputs_left(t);
                *reason = mem_printf("one of several messages of %s, which goes on with the others",
                                     t->key);
        }
        return c;
}

struct effect *change_new(struct road *r, const struct incoming *in, struct turn **turn,
                          char **reason)
{
        bool edited = strcmp(in->type, EVENT_MESSAGE_EDITED) == 0;
        struct change *c;
        unsigned at;

        *turn = NULL;
        if (!in->id || (!edited && strcmp(in->type, EVENT_MESSAGE_DELETED) != 0))
                return NULL;
        *turn = find(r, in, &at);
        if (!*turn)
                return NULL;
        c = edited ? edit(*turn, at, in, reason) : delete (*turn, at, reason);
        return c ? &c->effect : NULL;
}
