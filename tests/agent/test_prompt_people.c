/* The prompt names those who wrote in the channel lately. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "../lib/bus_rig.h"
#include "agent/workspace/prompt.h"
#include "base/mem.h"

static void said(struct bus_rig *r, const char *channel, const char *sender, const char *more)
{
        char *payload = mem_printf("{\"id\":\"1\",\"sender\":%s,\"text\":\"x\"%s}", sender, more);
        struct bus_event e = {
                .type = "message.received", .adapter = "tg", .channel = channel, .payload = payload
        };
        struct rig_append a;

        bus_rig_append(r, &a, &e, 1);
        free(payload);
}

struct read {
        size_t max;
        struct prompt_person people[8];
        int count;
};

static int read_people(struct store_tx *tx, void *arg, struct error *err)
{
        struct read *q = arg;

        q->count = prompt_people_read(tx, "tg", "42", q->people, q->max, err);
        return q->count < 0 ? -1 : 0;
}

static void check(struct bus_rig *r, size_t max, const char *expected)
{
        struct read q = { .max = max };
        struct buf names;

        assert_int_equal(store_read_now(r->store, read_people, &q, NULL), 0);
        buf_init(&names, 0);
        for (int i = 0; i < q.count; i++)
                buf_addf(&names, "%s|%s%s;", q.people[i].username ? q.people[i].username : "",
                         q.people[i].name ? q.people[i].name : "",
                         q.people[i].is_bot ? "|bot" : "");
        assert_string_equal(names.data, expected);
        buf_release(&names);
        prompt_people_release(q.people, (size_t)q.count);
}

static void each_sender_is_named_once_by_name(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event sent = { .type = "message.sent",
                                  .adapter = "tg",
                                  .channel = "42",
                                  .payload = "{\"text\":\"our answer\"}" };
        struct rig_append a;

        check(r, 8, "");
        said(r, "42", "{\"id\":\"2\",\"username\":\"zoe\",\"displayName\":\"Zoe\"}", "");
        said(r, "42", "{\"id\":\"1\",\"username\":\"ann\"}", "");
        said(r, "42", "{\"id\":\"2\",\"username\":\"zoe\",\"displayName\":\"Zoe\"}", "");
        said(r, "42", "{\"id\":\"3\",\"displayName\":\"Bob\",\"isBot\":true}", "");
        said(r, "42", "{\"id\":\"4\"}", "");
        said(r, "42", "{\"id\":\"5\",\"username\":\"ourselves\"}", ",\"isOwn\":true");
        said(r, "43", "{\"id\":\"6\",\"username\":\"elsewhere\"}", "");
        bus_rig_append(r, &a, &sent, 1);
        check(r, 8, "|Bob|bot;ann|;zoe|Zoe;");
        check(r, 2, "|Bob|bot;zoe|Zoe;");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(each_sender_is_named_once_by_name, bus_rig_setup,
                                                bus_rig_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
