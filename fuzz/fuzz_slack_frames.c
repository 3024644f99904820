/*
 * Any bytes as the messages of a Socket Mode connection: envelopes with objects come out, each is
 * stored once, now or after the connection has ended. The first byte says how.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/slack/sl_socket.h"

#define KEPT 64

struct owner {
        struct sl_connection *c;
        bool keeps, frees;
        struct {
                sl_stored_fn *stored;
                void *arg;
        } kept[KEPT];
        size_t count;
};

static void on_hello(void *arg, struct sl_connection *c, const json_t *hello)
{
        (void)arg, (void)c;
        if (!json_is_object(hello))
                abort();
}

static void on_envelope(void *arg, struct sl_connection *c, enum sl_arrival kind, json_t *payload,
                        int retry, sl_stored_fn *stored, void *stored_arg)
{
        struct owner *o = arg;

        if (!json_is_object(payload) || kind > SL_COMMAND || retry < 0)
                abort();
        if (o->keeps && o->count < KEPT) {
                o->kept[o->count].stored = stored;
                o->kept[o->count++].arg = stored_arg;
        } else {
                stored(stored_arg, true, payload);
        }
        if (o->frees) {
                sl_connection_free(c);
                o->c = NULL;
        }
}

static void on_disconnect(void *arg, struct sl_connection *c, const char *reason)
{
        (void)arg;
        if (!reason)
                abort();
        sl_connection_drain(c);
}

static void on_closed(void *arg, struct sl_connection *c, const char *why, int64_t retry_after_ms)
{
        struct owner *o = arg;

        (void)retry_after_ms;
        if (!*why)
                abort();
        sl_connection_free(c);
        o->c = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const struct sl_connection_handlers handlers = { .hello = on_hello,
                                                                .envelope = on_envelope,
                                                                .disconnect = on_disconnect,
                                                                .closed = on_closed };
        static struct loop *loop;
        struct owner o = { 0 };
        const char *at, *end;

        if (n < 1)
                return 0;
        if (!loop)
                loop = loop_new();
        o.keeps = data[0] & 1;
        o.frees = data[0] & 2;
        o.c = sl_connection_open(
                &(struct sl_connection_options){
                        .loop = loop,
                        .name = "slack",
                        .times = { .ping_ms = 60000, .drain_ms = 60000, .hello_ms = 60000 } },
                &handlers, &o);
        if (data[0] & 4)
                sl_connection_feed(o.c, false, "{\"type\":\"hello\"}", 16);
        end = (const char *)data + n;
        for (at = (const char *)data + 1; at < end && o.c;) { /* a message each line */
                const char *line = memchr(at, '\n', (size_t)(end - at));

                if (!line)
                        line = end;
                sl_connection_feed(o.c, data[0] & 8, at, (size_t)(line - at));
                at = line + 1;
        }
        if (data[0] & 16) {
                sl_connection_free(o.c);
                o.c = NULL;
        }
        for (size_t i = 0; i < o.count; i++)
                o.kept[i].stored(o.kept[i].arg, i % 2 == 0, NULL);
        sl_connection_free(o.c);
        loop_step(loop, false);
        return 0;
}
