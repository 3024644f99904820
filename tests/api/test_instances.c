/* Channels and users, looked up on the platform of an adapter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "../lib/fake_server.h"
#include "base/mem.h"

/* A bot that is connected, two lookups, then one that finds nothing. */
static const char *const answers[] = {
        "{\"ok\":true,\"result\":{\"id\":42,\"is_bot\":true,\"first_name\":\"Bot\"}}",
        "{\"ok\":true,\"result\":{\"url\":\"\"}}",
        "{\"ok\":true,\"result\":[]}",
        NULL, /* the long poll */
        "{\"ok\":true,\"result\":{\"id\":-1005,\"type\":\"supergroup\",\"title\":\"Lab\"}}",
        "{\"ok\":true,\"result\":12}",
        "{\"ok\":true,\"result\":{\"id\":7,\"type\":\"private\",\"first_name\":\"Ann\","
        "\"username\":\"ann\"}}",
        "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: chat not found\"}",
};

struct fixture {
        struct api_rig *rig;
        struct fake_server *server;
        struct fake_answer script[COUNT(answers)];
        char *bytes[COUNT(answers)];
};

static int setup(void **state)
{
        struct fixture *f = mem_zalloc(sizeof(*f));
        struct error err = { 0 };
        struct adapter_conf *confs[3];
        char *url, *json;

        f->rig = api_rig_new();
        for (size_t i = 0; i < COUNT(answers); i++) {
                if (answers[i])
                        f->bytes[i] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s",
                                                 strstr(answers[i], "\"ok\":true") ? 200 : 400,
                                                 strlen(answers[i]), answers[i]);
                f->script[i] = (struct fake_answer){ .bytes = f->bytes[i] };
        }
        f->server = fake_server_new(f->rig->loop, f->script, COUNT(answers));
        url = fake_server_url(f->server, "");
        json = mem_printf("{\"botToken\":\"42:a\",\"apiBase\":\"%s\"}", url);
        confs[0] = adapter_conf_make("api", "api", "{}", &err);
        confs[1] = adapter_conf_make("tg", "telegram", json, &err);
        confs[2] = adapter_conf_make("gone", "telegram",
                                     "{\"botToken\":\"2:b\",\"apiBase\":\"http://127.0.0.1:9\"}",
                                     &err);
        free(json);
        free(url);
        assert_int_equal(adapters_apply(f->rig->adapters, confs, 3, &err), 0);
        while (fake_server_requests(f->server) < 4)
                loop_step(f->rig->loop, true);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        fake_server_free(f->server); /* its handles are on the rig's loop */
        api_rig_free(f->rig);
        for (size_t i = 0; i < COUNT(answers); i++)
                free(f->bytes[i]);
        free(f);
        return 0;
}

static void channels_and_users_are_looked_up(void **state)
{
        struct api_rig *r = ((struct fixture *)*state)->rig;

        api_rig_expect(
                r, "GET", "/api/v2/instances/tg/channels/-1005", NULL, 200,
                "{\"data\":{\"id\":\"-1005\",\"chatType\":\"group\",\"name\":\"Lab\","
                "\"topic\":null,\"parentId\":null,\"threads\":\"none\",\"memberCount\":12}}");
        api_rig_expect(r, "GET", "/api/v2/instances/tg/users/7", NULL, 200,
                       "{\"data\":{\"id\":\"7\",\"username\":\"ann\",\"displayName\":\"Ann\","
                       "\"isBot\":false}}");
        api_rig_expect(r, "GET", "/api/v2/instances/tg/channels/8", NULL, 404, "chat not found");
}

static void a_failed_lookup_says_why(void **state)
{
        struct api_rig *r = ((struct fixture *)*state)->rig;

        api_rig_expect(r, "GET", "/api/v2/instances/none/users/7", NULL, 404,
                       "there is no adapter 'none'");
        api_rig_expect(r, "GET", "/api/v2/instances/api/users/7", NULL, 404,
                       "platform 'api' cannot look up users");
        api_rig_expect(r, "GET", "/api/v2/instances/gone/channels/7", NULL, 503,
                       "adapter 'gone' is not connected");
        api_rig_expect(r, "GET", "/api/v2/instances/tg/users/ann", NULL, 404,
                       "'ann' is not a Telegram user id");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(channels_and_users_are_looked_up, setup, teardown),
                cmocka_unit_test_setup_teardown(a_failed_lookup_says_why, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
