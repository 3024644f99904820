#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/outbox/delivery_job.h"
#include "road/road_state.h"

static struct delivery_job *copy(const struct delivery *d)
{
        static const size_t strings[] = {
                offsetof(struct delivery_job, d.adapter), offsetof(struct delivery_job, d.channel),
                offsetof(struct delivery_job, d.thread),  offsetof(struct delivery_job, d.payload),
                offsetof(struct delivery_job, d.trace),
        };
        struct delivery_job j = { .d = *d }, *copied;

        copied = mem_dup_struct(&j, sizeof(j), strings, COUNT(strings));
        TAILQ_INIT(&copied->waiting);
        return copied;
}

struct delivery_job *delivery_new(struct road *r, const struct delivery *d)
{
        struct delivery_job *j = copy(d);

        j->d.created_ms = clock_wall_ms();
        j->journaled = (r->platforms.abilities(r->platforms.adapters, d->adapter) &
                        ADAPTER_JOURNALED) != 0;
        if (r->limits.delivery_expiry_seconds > 0)
                delivery_expire_at(j, j->d.created_ms + r->limits.delivery_expiry_seconds * 1000);
        return j;
}

struct delivery_job *delivery_load(const struct delivery_row *row)
{
        struct delivery_job *j = copy(&(struct delivery){ .id = row->id,
                                                          .fence = row->fence,
                                                          .attempt = (int)row->attempt,
                                                          .turn = row->turn,
                                                          .conversation = row->conversation,
                                                          .adapter = row->adapter,
                                                          .channel = row->channel,
                                                          .thread = row->thread,
                                                          .kind = row->kind,
                                                          .class = (enum pace_class)row->class,
                                                          .payload = row->payload,
                                                          .trace = row->trace,
                                                          .unsampled = row->unsampled,
                                                          .read_seq = row->read_seq,
                                                          .created_ms = row->created_ms });

        j->edits = row->edits;
        j->d.read_from = j->read_from = mem_strdup(row->read_from);
        delivery_expire_at(j, row->expires_ms);
        return j;
}

void delivery_free(struct delivery_job *j)
{
        if (!j)
                return;
        timer_free(j->deadline);
        delivery_free(j->follower);
        free(j->payload);
        free(j->target);
        free(j->thread);
        free(j->read_from);
        free(j->request_key);
        free(j->request_hash);
        free(j);
}

void delivery_enter(struct delivery_job *j, enum delivery_phase phase)
{
        static const char *const names[] = { [JOB_QUEUED] = "queued",
                                             [JOB_CLAIMING] = "claiming",
                                             [JOB_SENDING] = "sending",
                                             [JOB_SETTLING] = "settling" };

        log_debug("delivery", LOG_I("delivery", j->d.id), LOG_S("from", names[j->phase]),
                  LOG_S("to", names[phase]), LOG_I("attempt", j->d.attempt));
        j->phase = phase;
        if (phase != JOB_QUEUED)
                j->queue->active = j;
        else if (j->queue->active == j)
                j->queue->active = NULL;
}

void delivery_expire_at(struct delivery_job *j, int64_t wall_ms)
{
        j->expires_ms = wall_ms;
        j->expires_boot = clock_boot_ms() + (wall_ms - clock_wall_ms());
}

void delivery_set_payload(struct delivery_job *j, const char *payload)
{
        char *copy_of = mem_strdup(payload);

        free(j->payload);
        j->d.payload = j->payload = copy_of;
}

bool delivery_may_become_send(const struct delivery_job *j)
{
        return j->edits > 0 && j->d.turn > 0 && j->d.kind == DELIVER_EDIT &&
               j->d.class == PACE_FINAL;
}

bool delivery_has_place(enum delivery_kind kind)
{
        return kind == DELIVER_SEND || kind == DELIVER_UPLOAD || kind == DELIVER_TYPE ||
               kind == DELIVER_CHANGE_THREAD;
}

void delivery_set_thread(struct delivery_job *j, const char *thread)
{
        char *copy_of = mem_strdup(thread);

        free(j->thread);
        j->d.thread = j->thread = copy_of;
}

void delivery_become_send(struct delivery_job *j)
{
        outbox_forget_edit(j->queue->adapter->road, j);
        j->d.kind = DELIVER_SEND;
        j->edits = 0;
        j->unconfirmed = false; /* an edit was, if anything */
}

bool delivery_is_typing(const struct delivery_job *j)
{
        return j->d.class == PACE_TYPING;
}

/* A thread at a message is the same whenever it is begun, one with a name alone is another. */
static bool begins_by_name(const struct delivery_job *j)
{
        return j->d.kind == DELIVER_THREAD && j->edits == 0 &&
               !strstr(j->d.payload, "\"messageId\":");
}

bool delivery_is_repeatable(const struct delivery_job *j)
{
        return j->d.kind != DELIVER_SEND && j->d.kind != DELIVER_UPLOAD && !begins_by_name(j);
}

bool delivery_is_unseen(const struct delivery_job *j)
{
        return j->phase == JOB_QUEUED && !j->unconfirmed && j->d.attempt == 0;
}

/* ---- in store functions ---- */

void delivery_write_members(const struct delivery_job *j, struct buf *payload)
{
        size_t n = strlen(j->d.payload);

        if (n > 2) {
                buf_addch(payload, ',');
                buf_add(payload, j->d.payload + 1, n - 2);
        }
}

void delivery_write_sent(const struct delivery_job *j, const char *platform_id, int64_t time_ms,
                         struct buf *payload)
{
        char key[ROAD_KEY_SIZE];

        road_key("dlv", j->d.id, key);
        jsonw_open(payload, '{');
        jsonw_str(payload, "deliveryId", key);
        jsonw_str(payload, "id", platform_id ? platform_id : key);
        jsonw_str(payload, "channelId", j->d.channel);
        jsonw_opt(payload, "threadId", j->d.thread);
        jsonw_int(payload, "timestamp", time_ms);
        delivery_write_members(j, payload);
        jsonw_close(payload, '}');
}

int delivery_append_event(struct store_tx *tx, struct bus_batch *batch,
                          const struct delivery_job *j, const char *type, int64_t time_ms,
                          const char *payload, struct error *err)
{
        struct bus_event e = {
                .type = type,
                .time_ms = time_ms,
                .adapter = j->d.adapter,
                .channel = j->d.channel,
                .thread = j->d.thread,
                .trace = j->d.trace,
                .payload = payload,
        };

        return bus_append(tx, batch, &e, NULL, err) < 0 ? -1 : 0;
}

int delivery_store(struct store_tx *tx, struct bus_batch *batch, const struct delivery_job *j,
                   struct error *err)
{
        char key[ROAD_KEY_SIZE];
        struct delivery_row row = {
                .id = j->d.id,
                .turn = j->d.turn,
                .adapter = j->d.adapter,
                .channel = j->d.channel,
                .thread = j->d.thread,
                .kind = j->d.kind,
                .class = (int)j->d.class,
                .payload = j->d.payload,
                .attempt = j->d.attempt,
                .fence = j->d.fence,
                .lease_ms = j->lease_ms,
                .due_ms = j->d.created_ms + j->delay_ms,
                .expires_ms = j->expires_ms,
                .created_ms = j->d.created_ms,
                .trace = j->d.trace,
                .unsampled = j->d.unsampled,
                .request_key = j->request_key,
                .request_hash = j->request_hash,
                .edits = j->edits,
                .read_from = j->d.read_from,
                .read_seq = j->d.read_seq,
        };
        struct buf payload;
        int rc;

        if (j->journaled) {
                row.state = DELIVERY_SENT;
                row.attempt = 1;
                row.ended_ms = j->d.created_ms;
                row.platform_id = road_key("dlv", j->d.id, key);
        } else if (j->phase == JOB_CLAIMING) {
                row.state = DELIVERY_SENDING;
                row.owner = j->queue->adapter->road->owner;
        }
        if (delivery_row_insert(tx, &row, err) < 0)
                return -1;
        if (!j->journaled || delivery_is_typing(j))
                return 0;
        buf_init(&payload, 0);
        delivery_write_sent(j, NULL, j->d.created_ms, &payload);
        rc = delivery_append_event(
                tx, batch, j, j->d.kind == DELIVER_SEND ? EVENT_MESSAGE_SENT : EVENT_DELIVERY_SENT,
                j->d.created_ms, payload.data, err);
        buf_release(&payload);
        return rc;
}
