/* Counters after a restart, and explanations of journal events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../lib/placement_stub.h"
#include "../lib/road_rig.h"
#include "../lib/rule_list.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/dry_run.h"

/* Trusts the rig's adapter "j" and allows so many turns a minute. */
static struct dispatch *dispatch_with(int64_t turns, const char *rules_json)
{
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct dispatch *d = dispatch_new();
        size_t count;
        struct rule *rules = rule_list_read(rules_json, &count);

        a[0] = (struct dispatch_adapter){ .name = mem_strdup("j"),
                                          .platform = mem_strdup("journaled"),
                                          .trusted = true,
                                          .rate = { turns, 60 } };
        dispatch_set(d, a, 1, rules, count, "echo");
        return d;
}

static bool admitted(struct dispatch *d, const char *channel, const char *sender)
{
        struct incoming in = {
                .adapter = "j", .channel = channel, .sender_id = sender, .text = "hello"
        };
        struct decision out;

        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        return out.trigger;
}

static void turns_count_after_a_restart_and_joined_messages_do_not(void **state)
{
        struct rig *g = rig_new();
        struct dispatch *d = dispatch_with(3, "[]");
        struct error err;

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until_idle(g);
        g->debounce_ms = 200; /* the pieces may be stored one by one */
        g->debounce_max_ms = 5000;
        for (int i = 0; i < 4; i++)
                rig_say(g, "j", "c", "batch", "piece", NULL);
        rig_until(g, &g->run_count, 2);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 2);
        assert_int_equal(dispatch_restore(d, g->store, &err), 0);
        assert_true(admitted(d, "c", "7")); /* the third of three */
        assert_false(admitted(d, "c", "7"));
        assert_true(admitted(d, "c", "8"));
        assert_true(admitted(d, "other", "7"));
        dispatch_free(d);
        rig_free(g);
}

static void the_rate_of_a_rule_counts_after_a_restart(void **state)
{
        static const char rules[] = "[{\"name\": \"slow\", \"rateLimit\": {\"turns\": 1, "
                                    "\"seconds\": 3600}}]";
        struct dispatch *d = dispatch_with(0, rules);
        struct rig *g = rig_new();
        struct error err;

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_say(g, "look", "c", "echo", "on an adapter that is not configured", NULL);
        rig_until(g, &g->run_count, 2);
        rig_until_idle(g);
        rig_update(g, "trigger_log SET rule = 'slow', time_ms = time_ms - ?1", 600000, 0);
        assert_int_equal(dispatch_restore(d, g->store, &err), 0);
        assert_false(admitted(d, "c", "7"));
        assert_true(admitted(d, "c", "8"));
        dispatch_free(d);
        rig_free(g);
}

static void listening_counts_apart_after_a_restart_too(void **state)
{
        static const char rules[] =
                "[{\"name\": \"room\", \"mode\": \"ambient\", \"when\": "
                "{\"channel\": \"c\"}, \"rateLimit\": {\"turns\": 1, \"seconds\": 60}}]";
        struct dispatch *d = dispatch_with(1, rules);
        struct rig *g = rig_new();
        struct incoming asked = { .adapter = "j", .channel = "c", .sender_id = "7", .text = "?" };
        struct decision out;
        struct error err;

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "j", "c", "echo", "nice weather", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until_idle(g);
        rig_update(g, "trigger_log SET rule = 'room', time_ms = time_ms - ?1", 1, 0);
        assert_int_equal(dispatch_restore(d, g->store, &err), 0);
        asked.chat = CHAT_GROUP;
        dispatch_decide(d, &asked, BEGINS_TURN, &out);
        assert_false(out.trigger);
        asked.is_mention = true;
        dispatch_decide(d, &asked, BEGINS_TURN, &out);
        assert_true(out.trigger);
        dispatch_free(d);
        rig_free(g);
}

struct asked {
        int64_t seq;
        struct incoming *in;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct asked *a = arg;

        a->in = dry_run_find(tx, a->seq, err);
        return a->in ? 0 : -1;
}

static void a_journal_event_can_be_explained(void **state)
{
        struct rig *g = rig_new();
        struct asked a = { 0 };
        struct error err;

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "j", "c", "echo", "hello", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until_idle(g);
        a.seq = g->last_event;
        assert_int_equal(store_read_now(g->store, find, &a, &err), 0);
        assert_string_equal(a.in->text, "hello");
        assert_string_equal(a.in->sender_id, "7");
        incoming_free(a.in);
        a.seq++; /* an event of the turn */
        assert_int_equal(store_read_now(g->store, find, &a, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        a.seq = 1000000;
        assert_int_equal(store_read_now(g->store, find, &a, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
        a.seq = g->last_event;
        rig_update(g, "journal SET payload = '{}' WHERE key IS NOT NULL", 0, 0);
        assert_int_equal(store_read_now(g->store, find, &a, &err), -1); /* pruned to its key */
        assert_int_equal(err.kind, ERR_MISSING);
        rig_free(g);
}

static struct incoming *read_event(const char *text, struct error *err)
{
        json_t *j = json_read(text, strlen(text), err);
        struct incoming *in = dry_run_event(j, err);

        json_decref(j);
        return in;
}

static void an_event_is_read_as_the_api_shows_it(void **state)
{
        struct error err = { 0 };
        struct incoming *in = read_event(
                "{\"id\": \"evt-3\", \"type\": \"reaction.received\", \"instanceId\": \"tg\", "
                "\"channel\": \"c\", \"threadId\": \"t\", \"payload\": {\"chatType\": \"dm\", "
                "\"emoji\": \"👍\", \"sender\": {\"id\": \"7\", \"isBot\": true}, \"hops\": 2}}",
                &err);

        (void)state;
        assert_non_null(in);
        assert_string_equal(in->type, EVENT_REACTION_RECEIVED);
        assert_string_equal(in->adapter, "tg");
        assert_string_equal(in->thread, "t");
        assert_string_equal(in->emoji, "👍");
        assert_int_equal(in->chat, CHAT_DM);
        assert_int_equal(in->hops, 2);
        assert_true(in->sender_is_bot);
        incoming_free(in);
}

static void an_invalid_event_is_refused(void **state)
{
        static const char *const texts[] = {
                "[]", "{}", "{\"instanceId\": \"tg\"}",
                "{\"instanceId\": \"tg\", \"channel\": \"c\", \"payload\": []}",
                "{\"instanceId\": \"tg\", \"channel\": \"c\", \"type\": \"turn.done\"}"
        };
        struct error err;

        (void)state;
        for (size_t i = 0; i < COUNT(texts); i++) {
                assert_null(read_event(texts[i], &err));
                assert_int_equal(err.kind, ERR_INVALID);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(turns_count_after_a_restart_and_joined_messages_do_not),
                cmocka_unit_test(the_rate_of_a_rule_counts_after_a_restart),
                cmocka_unit_test(listening_counts_apart_after_a_restart_too),
                cmocka_unit_test(a_journal_event_can_be_explained),
                cmocka_unit_test(an_event_is_read_as_the_api_shows_it),
                cmocka_unit_test(an_invalid_event_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
