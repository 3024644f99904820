/*
 * deferred_reply: the placeholder a platform shows while a command is being answered.
 *
 * A turn answers its last message. Placeholders of the others, and of messages that get no answer
 * (silence, a stop, a refusal), are removed by deliveries in the same transaction.
 */
#include "base/id.h"
#include "base/jsonw.h"
#include "road/outbox/delivery_job.h"
#include "road/turn/turn.h"

bool deferred_reply_is_open(const struct incoming *in)
{
        return in->is_awaited && in->id;
}

struct delivery_job *deferred_reply_cancel(struct road *r, const struct incoming *in,
                                           const struct turn *turn)
{
        struct delivery_job *j;
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "messageId", in->id);
        jsonw_opt(&payload, "turnId", turn ? turn->key : NULL);
        jsonw_close(&payload, '}');
        j = delivery_new(r, &(struct delivery){
                                    .turn = turn ? turn->run.id : 0,
                                    .conversation = turn ? turn->run.conversation : 0,
                                    .adapter = in->adapter,
                                    .channel = in->channel,
                                    .thread = in->thread,
                                    .kind = DELIVER_CANCEL_DEFERRED,
                                    .class = PACE_EDIT,
                                    .payload = payload.data,
                                    .trace = in->trace,
                                    .unsampled = !id_parent_samples(in->traceparent, in->trace) });
        buf_release(&payload);
        return j;
}
