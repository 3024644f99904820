/* Clients with a key may name the agent; on a chat platform the field is ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../lib/placement_stub.h"
#include "../lib/rule_list.h"
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
        struct incoming in = { .adapter = "api",
                               .key = "k",
                               .channel = "c",
                               .text = "hello",
                               .agent = "expert",
                               .caller = "key-3" };
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
        assert_string_equal(back->caller, "key-3");
        incoming_free(back);
        incoming_free(copy);
        buf_release(&payload);
}

static struct dispatch *dispatch_with_rules(const char *text)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct dispatch *d = dispatch_new();
        size_t count;
        struct rule *rules = rule_list_read(text, &count);

        a[0] = (struct dispatch_adapter){ .name = mem_strdup("api"),
                                          .platform = mem_strdup("api"),
                                          .agent = mem_strdup("helper"),
                                          .trusted = true };
        dispatch_set(d, a, 1, rules, count, NULL);
        return d;
}

static struct decision decide(struct dispatch *d, const char *text, const char *agent,
                              const char *channel)
{
        struct incoming in = { .adapter = "api",
                               .key = "k",
                               .channel = channel,
                               .chat = CHAT_DM,
                               .sender_id = channel,
                               .text = text,
                               .agent = agent,
                               .caller = "key-3" };
        struct decision out;

        dispatch_decide(d, &in, BEGINS_TURN, &out);
        return out;
}

static void a_rule_that_says_off_wins_over_a_named_agent(void **state)
{
        struct dispatch *d = dispatch_with_rules(
                "[{\"name\":\"quiet\",\"when\":{\"text\":\"secret\"},\"mode\":\"off\"},"
                "{\"name\":\"short\",\"when\":{\"text\":\"short\"},\"agent\":\"expert\","
                "\"prompt\":\"be brief\"}]");
        struct decision out = decide(d, "a secret", "expert", "c");

        (void)state;
        assert_false(out.trigger);
        assert_string_equal(out.rule, "quiet");
        /* a rule that chooses the agent applies as a whole, one that chooses another does not */
        out = decide(d, "short", "expert", "c");
        assert_true(out.trigger);
        assert_string_equal(out.rule, "short");
        assert_string_equal(out.policy.prompt, "be brief");
        out = decide(d, "short", "helper", "c");
        assert_true(out.trigger);
        assert_string_equal(out.agent, "helper");
        assert_null(out.rule);
        assert_null(out.policy.prompt);
        /* and none need match */
        out = decide(d, "anything", "expert", "c");
        assert_true(out.trigger);
        dispatch_free(d);
}

/* What a client may ask that is restricted to an adapter: chat_bridge.c. */
static void an_adapter_may_choose_its_agent_and_those_of_its_rules(void **state)
{
        struct dispatch *d = dispatch_with_rules(
                "[{\"name\":\"quiet\",\"when\":{\"text\":\"secret\"},\"mode\":\"off\","
                "\"agent\":\"muted\"},"
                "{\"name\":\"elsewhere\",\"when\":{\"adapter\":\"other\"},"
                "\"agent\":\"foreign\"},"
                "{\"name\":\"short\",\"when\":{\"text\":\"short\"},\"agent\":\"expert\"}]");

        (void)state;
        assert_true(dispatch_may_choose(d, "api", "helper"));
        assert_true(dispatch_may_choose(d, "api", "expert"));
        assert_false(dispatch_may_choose(d, "api", "foreign"));
        assert_false(dispatch_may_choose(d, "api", "muted"));
        assert_false(dispatch_may_choose(d, "other", "foreign"));
        dispatch_free(d);
}

/* Clients choose a new chat and sender for each request, if they like. */
static void the_rate_limit_counts_the_key_that_asks(void **state)
{
        struct dispatch *d = dispatch_with_rules(
                "[{\"agent\":\"helper\",\"rateLimit\":{\"turns\":2,\"seconds\":60}}]");

        (void)state;
        assert_true(decide(d, "hello", "expert", "a").trigger);
        assert_true(decide(d, "hello", NULL, "b").trigger);
        assert_false(decide(d, "hello", "expert", "c").trigger);
        assert_false(decide(d, "hello", NULL, "d").trigger);
        dispatch_free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_trusted_client_may_name_the_agent),
                cmocka_unit_test(the_named_agent_survives_in_the_journal),
                cmocka_unit_test(a_rule_that_says_off_wins_over_a_named_agent),
                cmocka_unit_test(an_adapter_may_choose_its_agent_and_those_of_its_rules),
                cmocka_unit_test(the_rate_limit_counts_the_key_that_asks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
