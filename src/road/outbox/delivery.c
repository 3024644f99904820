/*
 * out: one delivery as an object and as a row.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

struct out *out_new(int64_t id, int64_t turn, const char *adapter, const char *channel,
                    const char *thread, enum delivery_kind kind, enum pace_class class,
                    const char *payload, const char *trace)
{
        struct out *o = mem_zalloc(sizeof(*o));

        o->d = (struct delivery){
                .id = id,
                .turn = turn,
                .adapter = mem_strdup(adapter),
                .channel = mem_strdup(channel),
                .thread = mem_strdup(thread),
                .kind = kind,
                .class = class,
                .payload = mem_strdup(payload),
                .trace = mem_strdup(trace),
                .created_ms = clock_wall_ms(),
        };
        return o;
}

void out_free(struct out *o)
{
        if (!o)
                return;
        timer_free(o->deadline);
        out_free(o->follower);
        free((char *)o->d.adapter);
        free((char *)o->d.channel);
        free((char *)o->d.thread);
        free((char *)o->d.payload);
        free((char *)o->d.trace);
        free((char *)o->d.target);
        free(o);
}

void out_expires_at(struct out *o, int64_t wall_ms)
{
        o->expires_ms = wall_ms;
        o->expires_boot = clock_boot_ms() + (wall_ms - clock_wall_ms());
}

void out_set_expiry(const struct road *r, struct out *o)
{
        if (r->limits.delivery_expiry_seconds > 0)
                out_expires_at(o, o->d.created_ms + r->limits.delivery_expiry_seconds * 1000);
}

void out_delay(const struct road *r, struct out *o, int64_t ms)
{
        o->delay_ms = ms;
        o->due_mono = loop_now_ms(r->loop) + ms;
}

void out_set_payload(struct out *o, const char *payload)
{
        free((char *)o->d.payload);
        o->d.payload = mem_strdup(payload);
}

void out_becomes_send(struct out *o)
{
        o->d.kind = DELIVER_SEND;
        o->ref = 0;
}

bool out_is_fleeting(const struct out *o)
{
        return o->d.class == PACE_TYPING;
}

bool out_is_repeatable(const struct out *o)
{
        return o->d.kind != DELIVER_SEND && o->d.kind != DELIVER_UPLOAD;
}

/* ---- rows ---- */

static enum delivery_state state_of(const struct out *o, bool sent)
{
        if (sent)
                return DELIVERY_SENT;
        return o->state == OUT_CLAIMING ? DELIVERY_SENDING : DELIVERY_QUEUED;
}

static int insert(struct store_tx *tx, const struct out *o, bool sent, const char *request_key,
                  struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO deliveries(id, turn, adapter, channel, thread, kind, class, payload, state, "
                "attempt,"
                " due_ms, expires_ms, created_ms, ended_ms, platform_id, trace, request_key, edits, fence, "
                "owner,"
                " lease_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?21, ?12, ?11, ?13, ?14, "
                "?15, ?16, ?17, ?18, ?19, ?20)");
        char key[TURN_KEY_SIZE];

        store_bind_int(s, 1, o->d.id);
        if (o->d.turn > 0)
                store_bind_int(s, 2, o->d.turn);
        else
                store_bind_null(s, 2);
        store_bind_text(s, 3, o->d.adapter);
        store_bind_text(s, 4, o->d.channel);
        store_bind_text(s, 5, o->d.thread);
        store_bind_text(s, 6, delivery_kind_name(o->d.kind));
        store_bind_int(s, 7, o->d.class);
        store_bind_text(s, 8, o->d.payload);
        store_bind_text(s, 9, delivery_state_name(state_of(o, sent)));
        store_bind_int(s, 10, sent ? 1 : o->d.attempt);
        store_bind_int(s, 11, o->d.created_ms);
        store_bind_int(s, 12, o->expires_ms);
        if (sent)
                store_bind_int(s, 13, o->d.created_ms);
        else
                store_bind_null(s, 13);
        store_bind_text(s, 14, sent ? road_key("dlv", o->d.id, key) : NULL);
        store_bind_text(s, 15, o->d.trace);
        store_bind_text(s, 16, request_key);
        store_bind_int(s, 17, o->ref);
        store_bind_int(s, 18, o->d.fence);
        store_bind_text(s, 19, o->state == OUT_CLAIMING ? o->channel->adapter->road->owner : NULL);
        store_bind_int(s, 20, o->lease_ms);
        store_bind_int(s, 21, o->d.created_ms + o->delay_ms);
        return store_run(s, err);
}

void out_sent_payload(const struct out *o, const char *platform_id, int64_t time_ms,
                      struct buf *payload)
{
        char key[TURN_KEY_SIZE];
        size_t n = strlen(o->d.payload);

        road_key("dlv", o->d.id, key);
        jsonw_open(payload, '{');
        jsonw_str(payload, "deliveryId", key);
        jsonw_str(payload, "id", platform_id ? platform_id : key);
        jsonw_str(payload, "channelId", o->d.channel);
        jsonw_opt(payload, "threadId", o->d.thread);
        jsonw_int(payload, "timestamp", time_ms);
        /* the rest is what was sent: the members of the delivery's own payload */
        if (n > 2) {
                buf_addch(payload, ',');
                buf_add(payload, o->d.payload + 1, n - 2);
        }
        jsonw_close(payload, '}');
}

int out_event(struct store_tx *tx, struct bus_batch *batch, const struct out *o, const char *type,
              int64_t time_ms, const char *payload, struct error *err)
{
        struct bus_event e = {
                .type = type,
                .time_ms = time_ms,
                .adapter = o->d.adapter,
                .channel = o->d.channel,
                .thread = o->d.thread,
                .trace = o->d.trace,
                .payload = payload,
        };

        return bus_append(tx, batch, &e, NULL, err) < 0 ? -1 : 0;
}

int out_store(struct store_tx *tx, struct bus_batch *batch, const struct out *o, bool journaled,
              const char *request_key, struct error *err)
{
        struct buf payload;
        int rc;

        if (insert(tx, o, journaled, request_key, err) < 0)
                return -1;
        if (!journaled || out_is_fleeting(o))
                return 0;
        buf_init(&payload, 0);
        out_sent_payload(o, NULL, o->d.created_ms, &payload);
        rc = out_event(tx, batch, o,
                       o->d.kind == DELIVER_SEND ? EVENT_MESSAGE_SENT : "delivery.sent",
                       o->d.created_ms, payload.data, err);
        buf_release(&payload);
        return rc;
}

int out_replace_payload(struct store_tx *tx, int64_t delivery, const char *payload,
                        struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "UPDATE deliveries SET payload = ?2 WHERE id = ?1 AND state = 'queued'");

        store_bind_int(s, 1, delivery);
        store_bind_text(s, 2, payload);
        if (store_run(s, err) < 0)
                return -1;
        return store_changes(tx) > 0 ? 1 : 0;
}
