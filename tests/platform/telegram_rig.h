/*
 * telegram_rig: a Telegram adapter against a scripted server and a recording road.
 *
 * Include it in one file of a test program.
 */
#ifndef TESTS_TELEGRAM_RIG_H
#define TESTS_TELEGRAM_RIG_H

#include "adapter_rig.h"

#define TOKEN "42:A-secret_token"

#define ME                                                                                        \
        "{\"ok\":true,\"result\":{\"id\":42,\"is_bot\":true,\"first_name\":\"Bot\",\"username\":" \
        "\"TestBot\"}}"
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

static inline struct rig *rig_new(void)
{
        return adapter_rig_new("telegram", "tg");
}

static inline int rig_begin(void **state)
{
        *state = rig_new();
        return 0;
}

/* Starts the server and the adapter "tg"; `more` are further settings. */
static inline void rig_open(struct rig *g, const char *more)
{
        g->server = fake_server_new(g->loop, g->script, g->count);
        rig_apply(g, TOKEN, more);
}

/*
 * Greeting, no webhook, a first look that finds nothing, then a long poll that hangs: ready to
 * send.
 */
static inline void rig_connect(struct rig *g)
{
        static const char *const greeting[] = { ME, NO_HOOK, NONE, NULL };

        says_first(g, greeting, COUNT(greeting));
        rig_open(g, "");
        for (int i = 0; i < 10000 && fake_server_requests(g->server) < 4; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
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

/* ---- for tests of the link and the intake ---- */

/* The script begins with getMe and no webhook. */
static inline int rig_begin_greeted(void **state)
{
        struct rig *g = rig_new();

        says(g, 200, ME);
        says(g, 200, NO_HOOK);
        *state = g;
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
        const char *params = rig_body(g, request);
        json_t *j = json_read(params, strlen(params), NULL);
        json_int_t offset = json_integer_value(json_object_get(j, "offset"));

        assert_string_equal(rig_method(g, request), "getUpdates");
        assert_int_equal(json_array_size(json_object_get(j, "allowed_updates")), 7);
        json_decref(j);
        return offset;
}

#endif
