#include "sim_dc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/discord/dc_control.h"
#include "sim/discord/dc_gateway.h"

int sim_dc_setup(void **state)
{
        static const char *const headers[] = { "Content-Type: application/json",
                                               "Authorization: Bot " TOKEN,
                                               "User-Agent: DiscordBot (https://example.org, 1)",
                                               NULL };
        struct sim_rig *r = sim_rig_new(headers);
        struct http_server_hooks hooks = { .refuse = dc_control_refuse };
        struct ws_options gateway = { .listen = "127.0.0.1:0" };
        struct user *ada;
        size_t count;

        r->world = dc_world_new(r->loop);
        ada = dc_world_make_user(r->world, 42, "ada", "Ada");
        dc_world_make_bot(r->world, TOKEN);
        dc_channel_make(r->world, dc_guild_make(r->world, 1000, "Lab", ada), 1001, CHANNEL_TEXT,
                        "general");
        assert_int_equal(dc_gateway_listen(r->world->gateway, &gateway, NULL), 0);
        r->routes = dc_control_routes(&count);
        sim_rig_serve(r, &r->world->base, r->routes, count, &hooks);
        snprintf(r->world->base_url, sizeof(r->world->base_url), "http://%s",
                 http_server_address(r->server));
        *state = r;
        return 0;
}

int sim_dc_teardown(void **state)
{
        sim_rig_free(*state, dc_world_free);
        return 0;
}

/* ---- the API ---- */

json_t *sim_dc_call(struct sim_rig *r, const char *method, const char *path, const char *body,
                    int status)
{
        char *full = mem_printf("/api/v10%s", path);
        struct sim_answer a;

        sim_rig_start(r, &a, method, full, body);
        sim_rig_await(r, &a);
        free(full);
        assert_int_equal(a.status, status);
        return a.body;
}

void sim_dc_refused(struct sim_rig *r, const char *method, const char *path, const char *body,
                    int status, int code)
{
        json_t *error = sim_dc_call(r, method, path, body, status);

        assert_int_equal(json_int(error, "code", -1), code);
        json_decref(error);
}

/* ---- the gateway ---- */

struct unpack {
        bool zstd;
        z_stream z;
        ZSTD_DCtx *dctx;
};

static struct unpack *unpack_new(const char *name)
{
        struct unpack *u = mem_zalloc(sizeof(*u));

        u->zstd = strcmp(name, "zstd-stream") == 0;
        if (u->zstd)
                u->dctx = ZSTD_createDCtx();
        else
                inflateInit(&u->z);
        return u;
}

static void unpack_free(struct unpack *u)
{
        if (!u)
                return;
        if (u->zstd)
                ZSTD_freeDCtx(u->dctx);
        else
                inflateEnd(&u->z);
        free(u);
}

static json_t *unpacked(struct unpack *u, const char *bytes, size_t n)
{
        char *out = mem_alloc(1 << 20);
        size_t length;
        json_t *frame;

        if (u->zstd) {
                ZSTD_inBuffer in = { bytes, n, 0 };
                ZSTD_outBuffer room = { out, 1 << 20, 0 };

                while (in.pos < in.size)
                        assert_false(ZSTD_isError(ZSTD_decompressStream(u->dctx, &room, &in)));
                length = room.pos;
        } else {
                u->z.next_in = (Bytef *)(uintptr_t)bytes;
                u->z.avail_in = (uInt)n;
                u->z.next_out = (Bytef *)out;
                u->z.avail_out = 1 << 20;
                assert_true(inflate(&u->z, Z_SYNC_FLUSH) >= 0);
                length = (1 << 20) - u->z.avail_out;
        }
        frame = json_read(out, length, NULL);
        free(out);
        return frame;
}

static void on_frame(void *arg, bool binary, const char *bytes, size_t n)
{
        struct sim_dc_link *l = arg;
        json_t *frame = binary ? unpacked(l->unpack, bytes, n) : json_read(bytes, n, NULL);

        assert_non_null(frame);
        assert_true(l->count < COUNT(l->frames));
        l->frames[l->count++] = frame;
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct sim_dc_link *l = arg;

        l->closed = true;
        l->code = end->code;
}

void sim_dc_connect(struct sim_rig *r, struct sim_dc_link *l, const char *path,
                    const char *compress)
{
        static const struct websocket_handlers handlers = { .on_message = on_frame,
                                                            .on_closed = on_closed };
        char *url = mem_printf("%s%s?v=10&encoding=json%s%s", dc_gateway_url(r->world->gateway),
                               path, *compress ? "&compress=" : "", compress);
        struct websocket_options options = { .url = url };
        json_t *hello;

        memset(l, 0, sizeof(*l));
        l->rig = r;
        l->unpack = *compress ? unpack_new(compress) : NULL;
        l->ws = websocket_open(r->loop, r->client, &options, &handlers, l);
        free(url);
        hello = sim_dc_receive(l);
        assert_int_equal(json_int(hello, "op", -1), 10);
        json_decref(hello);
}

void sim_dc_send(struct sim_dc_link *l, const char *frame)
{
        assert_int_equal(websocket_send(l->ws, false, frame, strlen(frame), NULL), 0);
}

json_t *sim_dc_receive(struct sim_dc_link *l)
{
        json_t *frame;

        while (l->count == 0) {
                assert_false(l->closed);
                assert_true(loop_step(l->rig->loop, true));
        }
        frame = l->frames[0];
        memmove(l->frames, l->frames + 1, --l->count * sizeof(l->frames[0]));
        return frame;
}

json_t *sim_dc_event(struct sim_dc_link *l, const char *name)
{
        for (;;) {
                json_t *frame = sim_dc_receive(l), *d = NULL;

                if (strcmp(json_str(frame, "t", ""), name) == 0)
                        d = json_incref(json_object_get(frame, "d"));
                json_decref(frame);
                if (d)
                        return d;
        }
}

int sim_dc_close_code(struct sim_dc_link *l)
{
        while (!l->closed)
                assert_true(loop_step(l->rig->loop, true));
        return l->code;
}

void sim_dc_disconnect(struct sim_dc_link *l)
{
        while (l->count > 0)
                json_decref(l->frames[--l->count]);
        websocket_free(l->ws);
        unpack_free(l->unpack);
}

json_t *sim_dc_identify(struct sim_rig *r, struct sim_dc_link *l, unsigned intents)
{
        char *frame = mem_printf("{\"op\":2,\"d\":{\"token\":\"" TOKEN
                                 "\",\"intents\":%u,\"properties\":{}}}",
                                 intents);
        json_t *ready;

        sim_dc_connect(r, l, "/", "");
        sim_dc_send(l, frame);
        free(frame);
        ready = sim_dc_event(l, "READY");
        return ready;
}
