/*
 * fake_road: the functions of the road that platforms call; they only record the call.
 *
 * Include it in one file of a test program, where it replaces the real ones.
 */
#ifndef TESTS_FAKE_ROAD_H
#define TESTS_FAKE_ROAD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "road/road.h"

#define FAKE_ROAD ((struct road *)&fake_road)

struct fake_sent {
        int64_t delivery, fence;
        struct send_result result;
        char platform_id[100], why[300];
};

static struct {
        struct fake_sent sent[32];
        size_t count;
        char read_from[100]; /* the last of delivery_set_read_from */
        unsigned wakes;
        char woken[100];
        bool ignores_results; /* the road waits for none of them */
        const struct message_records *records;
        struct incoming received; /* only its borrowed pointers */
        unsigned received_count;
        struct fake_arrival {
                inbox_ack_fn *ack; /* NULL once answered */
                void *arg;
                char key[100], text[100], metadata[1000];
                unsigned attachments, parts;
                bool is_mention, more_follows;
        } arrivals[1024];
        struct {
                char kind[20], channel[60], thread[30], text[200], reply_to[30], message_id[30],
                        emoji[30], name[60];
                bool broadcast;
                outbox_ack_fn *ack;
                void *arg;
        } put; /* the last delivery submitted */
} fake_road;

static void fake_road_reset(void)
{
        memset(&fake_road, 0, sizeof(fake_road));
}

bool delivery_result(struct road *r, int64_t delivery, int64_t fence,
                     const struct send_result *result)
{
        struct fake_sent *s = &fake_road.sent[fake_road.count];

        if (!r)
                return false;
        assert_ptr_equal(r, FAKE_ROAD);
        fake_road.count++;
        assert_true(fake_road.count < COUNT(fake_road.sent));
        s->delivery = delivery;
        s->fence = fence;
        s->result = *result;
        snprintf(s->platform_id, sizeof(s->platform_id), "%s",
                 result->platform_id ? result->platform_id : "");
        snprintf(s->why, sizeof(s->why), "%s", result->why ? result->why : "");
        return !fake_road.ignores_results;
}

void message_records_read(struct road *r, const struct delivery *d, message_records_fn *done,
                          void *arg)
{
        const struct message_records none = { .whole = true };

        (void)d;
        assert_ptr_equal(r, FAKE_ROAD);
        done(arg, fake_road.records ? fake_road.records : &none);
}

void delivery_set_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text)
{
        (void)delivery;
        (void)fence;
        if (!r)
                return;
        assert_ptr_equal(r, FAKE_ROAD);
        snprintf(fake_road.read_from, sizeof(fake_road.read_from), "%s", text);
}

bool delivery_store_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text,
                              read_from_stored_fn *done, void *arg)
{
        delivery_set_read_from(r, delivery, fence, text);
        if (!r || fake_road.ignores_results)
                return false;
        done(arg, true);
        return true;
}

int64_t delivery_take_probe(struct road *r, const char *adapter, const char *channel)
{
        (void)adapter;
        (void)channel;
        assert_ptr_equal(r, FAKE_ROAD);
        return 0;
}

static inline void fake_copy(char *to, size_t size, const char *from)
{
        snprintf(to, size, "%s", from ? from : "");
}

void outbox_submit(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg)
{
        assert_ptr_equal(r, FAKE_ROAD);
        fake_copy(fake_road.put.kind, sizeof(fake_road.put.kind), delivery_kind_name(out->kind));
        fake_copy(fake_road.put.channel, sizeof(fake_road.put.channel), out->channel);
        fake_copy(fake_road.put.thread, sizeof(fake_road.put.thread), out->thread);
        fake_copy(fake_road.put.text, sizeof(fake_road.put.text), out->text);
        fake_copy(fake_road.put.reply_to, sizeof(fake_road.put.reply_to), out->reply_to);
        fake_copy(fake_road.put.message_id, sizeof(fake_road.put.message_id), out->message_id);
        fake_copy(fake_road.put.emoji, sizeof(fake_road.put.emoji), out->emoji);
        fake_copy(fake_road.put.name, sizeof(fake_road.put.name), out->file.name);
        fake_road.put.broadcast = out->broadcast;
        fake_road.put.ack = ack;
        fake_road.put.arg = arg;
}

void outbox_wake(struct road *r, const char *adapter)
{
        assert_ptr_equal(r, FAKE_ROAD);
        fake_road.wakes++;
        snprintf(fake_road.woken, sizeof(fake_road.woken), "%s", adapter);
}

void inbox_receive(struct road *r, const struct incoming *in, inbox_ack_fn *ack, void *arg)
{
        struct fake_arrival *a =
                &fake_road.arrivals[fake_road.received_count % COUNT(fake_road.arrivals)];

        assert_ptr_equal(r, FAKE_ROAD);
        fake_road.received = *in;
        fake_road.received_count++;
        *a = (struct fake_arrival){ .ack = ack,
                                    .arg = arg,
                                    .attachments = (unsigned)in->attachment_count,
                                    .parts = (unsigned)in->part_count,
                                    .is_mention = in->is_mention,
                                    .more_follows = in->more_follows };
        snprintf(a->key, sizeof(a->key), "%s", in->key ? in->key : "");
        snprintf(a->text, sizeof(a->text), "%s", in->text ? in->text : "");
        snprintf(a->metadata, sizeof(a->metadata), "%s", in->metadata ? in->metadata : "");
}

static inline void fake_road_answer(unsigned i, enum inbox_outcome outcome, enum error_kind kind)
{
        struct fake_arrival *a = &fake_road.arrivals[i];
        struct inbox_receipt r = { .outcome = outcome, .event = i + 1, .error = { .kind = kind } };
        inbox_ack_fn *ack = a->ack;

        a->ack = NULL;
        ack(a->arg, &r);
}

/* The commit of the i-th arrival is over; kind ERR_NONE: it is stored. */
static inline void fake_road_ack(unsigned i, enum error_kind kind)
{
        fake_road_answer(i, kind == ERR_NONE ? INBOX_STORED : INBOX_FAILED, kind);
}

void rendered_release(struct rendered *r)
{
        for (size_t i = 0; i < r->count; i++) {
                free(r->parts[i].text);
                free(r->parts[i].plain);
        }
        free(r->parts);
        *r = (struct rendered){ 0 };
}

#endif
