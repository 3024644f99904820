/*
 * withdraw: the place of an answer that does not come.
 *
 * Some platforms show that a command is being worked on until its answer takes that place. A turn
 * answers the last of its messages; whatever else waits there, and everything when nothing is said
 * at all (silence, a stop, a refusal), is taken away by a delivery of the same transaction.
 */
#include "base/jsonw.h"
#include "road/road_private.h"

struct out *withdraw_new(struct road *r, const struct incoming *in, int64_t turn,
                         const char *turn_key)
{
        struct buf payload;
        struct out *o;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", in->id);
        jsonw_opt(&payload, "turnId", turn_key);
        jsonw_close(&payload, '}');
        o = out_new(r->next_delivery++, turn, in->adapter, in->channel, in->thread,
                    DELIVER_CANCEL_DEFERRED, PACE_EDIT, payload.data, in->trace);
        out_set_expiry(r, o);
        buf_release(&payload);
        return o;
}

bool withdraw_is_due(const struct incoming *in)
{
        return in->is_awaited && in->id;
}

/* A draft has taken the place already, and stays or is deleted by its own delivery. */
static bool is_answered(const struct turn *t, const struct answer *a, unsigned input)
{
        return input + 1 == t->input_count && a->refers && (a->said > 0 || t->draft_delivery != 0);
}

void withdraw_unanswered(struct turn *t, struct answer *a)
{
        for (unsigned i = 0; i < t->input_count; i++) {
                if (withdraw_is_due(t->inputs[i]) && !is_answered(t, a, i))
                        answer_add(a, withdraw_new(t->road, t->inputs[i], t->run.id, t->key));
        }
}
