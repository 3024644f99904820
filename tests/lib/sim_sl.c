#include "sim_sl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/slack/sl_control.h"
#include "sim/slack/sl_push.h"

struct slack_world *sim_sl_world(const struct sim_rig *r)
{
        return (struct slack_world *)r->world;
}

int sim_sl_setup(void **state)
{
        static const char *const headers[] = { "Content-Type: application/json; charset=utf-8",
                                               "Authorization: Bearer " SL_TOKEN, NULL };
        struct sim_rig *r = sim_rig_new(headers);
        struct http_server_hooks hooks = { .refuse = sl_control_refuse };
        struct ws_options socket = { .listen = "127.0.0.1:0" };
        struct slack_world *w = sl_world_new(r->loop);
        struct slack_user *ada = sl_user_make(w, NULL, SL_ADA, "ada", "Ada Lovelace");
        size_t count;

        r->world = (struct world *)w;
        sl_channel_make(w, NULL, SL_GENERAL, SLACK_PUBLIC, "general", ada)->general = true;
        sl_app_make(w, SL_TOKEN, NULL);
        assert_int_equal(sl_push_listen(w->links, &socket, NULL), 0);
        r->routes = sl_control_routes(&count);
        sim_rig_serve(r, &w->base, r->routes, count, &hooks);
        snprintf(w->base_url, sizeof(w->base_url), "http://%s", http_server_address(r->server));
        *state = r;
        return 0;
}

static void free_world(struct world *w)
{
        sl_world_free(sl_world_of(w));
}

int sim_sl_teardown(void **state)
{
        sim_rig_free(*state, free_world);
        return 0;
}

/* ---- the Web API ---- */

json_t *sim_sl_call(struct sim_rig *r, const char *method, const char *body)
{
        char *path = mem_printf("/api/%s", method);
        struct sim_answer a = sim_rig_ask(r, path, body);

        free(path);
        assert_int_equal(a.status, 200);
        return a.body;
}

void sim_sl_refused(struct sim_rig *r, const char *method, const char *body, const char *error)
{
        json_t *answer = sim_sl_call(r, method, body);

        assert_string_equal(json_str(answer, "error", "ok"), error);
        assert_false(json_flag(answer, "ok", true));
        json_decref(answer);
}

void sim_sl_ok(struct sim_rig *r, const char *method, const char *body)
{
        json_t *answer = sim_sl_call(r, method, body);

        assert_string_equal(json_str(answer, "error", ""), "");
        assert_true(json_flag(answer, "ok", false));
        json_decref(answer);
}

void sim_sl_post(struct sim_rig *r, const char *text, char out[SL_TS_SIZE])
{
        char *body = mem_printf("{\"channel\":\"" SL_GENERAL "\",\"text\":\"%s\"}", text);
        json_t *answer = sim_sl_call(r, "chat.postMessage", body);

        assert_true(json_flag(answer, "ok", false));
        snprintf(out, SL_TS_SIZE, "%s", json_str(answer, "ts", ""));
        json_decref(answer);
        free(body);
}

size_t sim_sl_count(struct sim_rig *r, const char *kind)
{
        char *what = mem_printf("messages?kind=%s", kind);
        json_t *page = sim_rig_control(r, what, NULL);
        size_t n = json_array_size(json_object_get(page, "items"));

        json_decref(page);
        free(what);
        return n;
}

/* ---- Socket Mode ---- */

static void on_frame(void *arg, bool binary, const char *bytes, size_t n)
{
        struct sim_sl_link *l = arg;
        json_t *frame = binary ? NULL : json_read(bytes, n, NULL);

        assert_non_null(frame);
        assert_true(l->count < COUNT(l->frames));
        l->frames[l->count++] = frame;
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct sim_sl_link *l = arg;

        l->closed = true;
        l->code = end->code;
}

void sim_sl_connect(struct sim_rig *r, struct sim_sl_link *l, const char *more)
{
        static const struct websocket_handlers handlers = { .on_message = on_frame,
                                                            .on_closed = on_closed };
        struct slack_world *w = sim_sl_world(r);
        char *ticket = sl_push_ticket(w->links, w->apps->id),
             *url = mem_printf("%s%s", ticket, more);
        struct websocket_options options = { .url = url };

        memset(l, 0, sizeof(*l));
        l->rig = r;
        l->ws = websocket_open(r->loop, r->client, &options, &handlers, l);
        free(url);
        free(ticket);
}

json_t *sim_sl_receive(struct sim_sl_link *l)
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

void sim_sl_hello(struct sim_rig *r, struct sim_sl_link *l)
{
        json_t *hello;

        sim_sl_connect(r, l, "");
        hello = sim_sl_receive(l);
        assert_string_equal(json_str(hello, "type", ""), "hello");
        json_decref(hello);
}

void sim_sl_send(struct sim_sl_link *l, const char *frame)
{
        assert_int_equal(websocket_send(l->ws, false, frame, strlen(frame), NULL), 0);
}

void sim_sl_ack(struct sim_sl_link *l, const json_t *envelope, const char *payload)
{
        char *frame =
                mem_printf("{\"envelope_id\":\"%s\"%s%s}", json_str(envelope, "envelope_id", ""),
                           payload ? ",\"payload\":" : "", payload ? payload : "");

        sim_sl_send(l, frame);
        free(frame);
}

json_t *sim_sl_event(struct sim_sl_link *l, const char *type, bool ack)
{
        for (;;) {
                json_t *envelope = sim_sl_receive(l),
                       *payload = json_object_get(envelope, "payload");
                const char *is =
                        json_str(json_object_get(payload, "event"), "type",
                                 json_str(payload, "type", json_str(payload, "command", "")));

                if (ack || strcmp(is, type) != 0)
                        sim_sl_ack(l, envelope, NULL);
                if (strcmp(is, type) == 0)
                        return envelope;
                json_decref(envelope);
        }
}

int sim_sl_close_code(struct sim_sl_link *l)
{
        while (!l->closed)
                assert_true(loop_step(l->rig->loop, true));
        return l->code;
}

void sim_sl_disconnect(struct sim_sl_link *l)
{
        while (l->count > 0)
                json_decref(l->frames[--l->count]);
        websocket_free(l->ws);
}

json_t *sim_sl_entry(struct sim_rig *r, const char *kind, int64_t *seen)
{
        char *what =
                mem_printf("links?after=%lld&kind=%s&limit=1&wait=60000", (long long)*seen, kind);
        json_t *page = sim_rig_control(r, what, NULL),
               *entry = json_incref(json_array_get(json_object_get(page, "items"), 0));

        assert_non_null(entry);
        *seen = json_int(entry, "seq", 0);
        json_decref(page);
        free(what);
        return entry;
}
