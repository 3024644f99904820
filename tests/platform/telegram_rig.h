/*
 * telegram_rig: a Telegram adapter against a scripted server and a recording road.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_TELEGRAM_RIG_H
#define TESTS_TELEGRAM_RIG_H

#include <stdio.h>
#include <sys/stat.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "fake_road.h"
#include "platform/platform.h"

#define TOKEN "42:A-secret_token"

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct adapters *adapters;
        struct fake_server *server;
        struct fake_answer script[40];
        char *bytes[40];
        size_t count;
};

/* Adds an answer to the script; json NULL: none comes. */
static inline void says(struct rig *g, int status, const char *json)
{
        if (json)
                g->bytes[g->count] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s",
                                                status, strlen(json), json);
        g->script[g->count] = (struct fake_answer){ .bytes = g->bytes[g->count] };
        g->count++;
}

#define ME                                                                                        \
        "{\"ok\":true,\"result\":{\"id\":42,\"is_bot\":true,\"first_name\":\"Bot\",\"username\":" \
        "\"TestBot\"}}"

static inline struct rig *rig_new(void)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        char *state;

        fake_road_reset();
        g->dir = scratch_new();
        state = scratch_path(g->dir, "state");
        assert_int_equal(mkdir(state, 0700), 0);
        free(state);
        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        g->adapters = adapters_new(g->loop, g->http, g->dir);
        adapters_set_road(g->adapters, FAKE_ROAD);
        return g;
}

static inline void rig_free(struct rig *g)
{
        adapters_free(g->adapters);
        /* late receipts are ignored */
        for (unsigned i = 0; i < COUNT(fake_road.arrivals); i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE);
        http_client_free(g->http);
        if (g->server)
                fake_server_free(g->server);
        loop_free(g->loop);
        for (size_t i = 0; i < g->count; i++)
                free(g->bytes[i]);
        scratch_free(g->dir);
        free(g);
}

/* Starts the server and the adapter "tg"; `more` are further settings. */
static inline void rig_open(struct rig *g, const char *more)
{
        struct error err = { 0 };
        struct adapter_conf *c;
        char *json;

        g->server = fake_server_new(g->loop, g->script, g->count);
        json = mem_printf("{\"botToken\":\"" TOKEN "\",\"apiBase\":\"http://127.0.0.1:%d\"%s}",
                          fake_server_port(g->server), more);
        c = adapter_conf_make("tg", "telegram", json, &err);
        free(json);
        if (!c)
                fail_msg("%s", err.text);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
}

static inline struct adapter *rig_adapter(struct rig *g)
{
        return adapters_find(g->adapters, "tg");
}

/*
 * Greeting, no webhook, a first look that finds nothing, then a long poll that hangs: ready to
 * send.
 */
static inline void rig_connect(struct rig *g)
{
        size_t wanted = g->count;

        memmove(g->script + 4, g->script, sizeof(g->script[0]) * wanted);
        memmove(g->bytes + 4, g->bytes, sizeof(g->bytes[0]) * wanted);
        memset(g->bytes, 0, 4 * sizeof(g->bytes[0]));
        g->count = 0;
        says(g, 200, ME);
        says(g, 200, "{\"ok\":true,\"result\":{\"url\":\"\"}}");
        says(g, 200, "{\"ok\":true,\"result\":[]}");
        says(g, 200, NULL);
        g->count = wanted + 4;
        rig_open(g, "");
        for (int i = 0; i < 10000 && fake_server_requests(g->server) < 4; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
}

/* Runs the loop until the server has had n requests. */
static inline void rig_requests(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && fake_server_requests(g->server) < n; i++)
                loop_step(g->loop, true);
        assert_true(fake_server_requests(g->server) >= n);
}

static inline void rig_until_state(struct rig *g, enum adapter_state state)
{
        for (int i = 0; i < 100000 && rig_adapter(g)->state != state; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, state);
}

/* The method the i-th request called; static memory. */
static inline const char *rig_method(struct rig *g, unsigned i)
{
        static char method[60];
        const char *request = fake_server_request(g->server, i), *at;

        assert_non_null(request);
        at = strstr(request, "/bot" TOKEN "/");
        assert_non_null(at);
        at += strlen("/bot" TOKEN "/");
        snprintf(method, sizeof(method), "%.*s", (int)strcspn(at, " "), at);
        return method;
}

/* The parameters of the i-th request as text; borrowed. */
static inline const char *rig_params(struct rig *g, unsigned i)
{
        return strstr(fake_server_request(g->server, i), "\r\n\r\n") + 4;
}

/* ---- for tests of the link and the intake ---- */

#define NO_HOOK        "{\"ok\":true,\"result\":{\"url\":\"\"}}"
#define TRUE           "{\"ok\":true,\"result\":true}"
#define NONE           "{\"ok\":true,\"result\":[]}"
#define GOT(list)      "{\"ok\":true,\"result\":[" list "]}"
#define NO(code, text) "{\"ok\":false,\"error_code\":" code ",\"description\":\"" text "\"}"
#define CHAT(id)                                                             \
        "\"chat\":{\"id\":" id ",\"type\":\"private\"},\"from\":{\"id\":" id \
        ",\"first_name\":\"A\"},\"date\":9"
#define TEXT(update, chat, message)                                      \
        "{\"update_id\":" update ",\"message\":{\"message_id\":" message \
        "," CHAT(chat) ",\"text\":\"t" message "\"}}"
#define PHOTO(update, chat, message, more)                                                   \
        "{\"update_id\":" update ",\"message\":{\"message_id\":" message "," CHAT(chat) more \
                ",\"photo\":[{\"file_id\":\"F" message                                       \
                "\",\"file_unique_id\":\"u\",\"width\":1,\"height\":1}]}}"

/* The script begins with getMe and no webhook. */
static inline int rig_begin_greeted(void **state)
{
        struct rig *g = rig_new();

        says(g, 200, ME);
        says(g, 200, NO_HOOK);
        *state = g;
        return 0;
}

static inline int rig_begin(void **state)
{
        *state = rig_new();
        return 0;
}

static inline int rig_end(void **state)
{
        rig_free(*state);
        return 0;
}

static inline void await_arrivals(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && fake_road.received_count < n; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.received_count, n);
}

static inline json_int_t offset_of(struct rig *g, unsigned request)
{
        const char *params = rig_params(g, request);
        json_t *j = json_read(params, strlen(params), NULL);
        json_int_t offset = json_integer_value(json_object_get(j, "offset"));

        assert_string_equal(rig_method(g, request), "getUpdates");
        assert_int_equal(json_array_size(json_object_get(j, "allowed_updates")), 7);
        json_decref(j);
        return offset;
}

#endif
