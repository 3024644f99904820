/* Clients with a key may name the agent; on a chat platform the field is ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/dispatch.h"

static struct dispatch *dispatch_of_two(void)
{
        struct dispatch_adapter *adapters = mem_array(2, sizeof(*adapters));
        char star[] = "*", *items[] = { star };
        struct setting_list everybody = { items, 1, true };
        struct dispatch *d = dispatch_new();

        adapters[0] = (struct dispatch_adapter){ .name = mem_strdup("chat"),
                                                 .platform = mem_strdup("discord"),
                                                 .agent = mem_strdup("helper"),
                                                 .access = access_new(&(struct access_lists){
                                                         .dm = &everybody, .allow = &everybody }) };
        adapters[1] = (struct dispatch_adapter){ .name = mem_strdup("api"),
                                                 .platform = mem_strdup("api"),
                                                 .agent = mem_strdup("helper"),
                                                 .trusted = true };
        dispatch_set(d, adapters, 2, NULL, 0, NULL);
        return d;
}

static void a_trusted_client_may_name_the_agent(void **state)
{
        static const struct {
                const char *adapter, *wanted, *chosen;
        } rows[] = { { "api", NULL, "helper" },
                     { "api", "expert", "expert" },
                     { "chat", "expert", "helper" } };
        struct dispatch *d = dispatch_of_two();

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct incoming in = { .adapter = rows[i].adapter,
                                       .key = "k",
                                       .channel = "c",
                                       .chat = CHAT_DM,
                                       .sender_id = "7",
                                       .text = "hello",
                                       .agent = rows[i].wanted };
                struct decision out;

                dispatch_decide(d, &in, NULL, &out);
                assert_true(out.trigger);
                assert_string_equal(out.agent, rows[i].chosen);
                /* elsewhere, naming an agent addresses no one */
                in.chat = CHAT_GROUP;
                dispatch_decide(d, &in, NULL, &out);
                assert_int_equal(out.trigger, strcmp(rows[i].adapter, "api") == 0);
        }
        dispatch_free(d);
}

static void the_named_agent_survives_in_the_journal(void **state)
{
        struct incoming in = {
                .adapter = "api", .key = "k", .channel = "c", .text = "hello", .agent = "expert"
        };
        struct bus_event e = { .seq = 1,
                               .type = EVENT_MESSAGE_RECEIVED,
                               .adapter = "api",
                               .channel = "c",
                               .key = "k" };
        struct incoming *copy = incoming_dup(&in), *back;
        struct error err;
        struct buf payload;

        (void)state;
        buf_init(&payload, 0);
        incoming_payload(copy, &payload);
        e.payload = payload.data;
        back = incoming_parse(&e, &err);
        assert_non_null(back);
        assert_string_equal(back->agent, "expert");
        incoming_free(back);
        incoming_free(copy);
        buf_release(&payload);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_trusted_client_may_name_the_agent),
                cmocka_unit_test(the_named_agent_survives_in_the_journal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
