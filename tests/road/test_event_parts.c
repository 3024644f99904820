/* A message of several parts is one event; each part has a dedup key of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/road_rig.h"
#include "base/mem.h"

static void hear(struct rig *g, const struct incoming *in)
{
        unsigned before = g->acks;

        rig_receive(g, in);
        rig_until(g, &g->acks, before + 1);
}

/* The album "c:1" with one further part. */
static void hear_album(struct rig *g)
{
        static const struct incoming_part second = { "c:2", "2" };

        hear(g,
             &(struct incoming){
                     .key = "c:1", .id = "1", .text = "album", .parts = &second, .part_count = 1 });
}

static void hear_part(struct rig *g, const char *key)
{
        hear(g, &(struct incoming){ .key = key, .text = "part" });
}

static void a_part_of_a_stored_event_is_a_duplicate_after_a_restart(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->auto_answer = true;
        hear_album(g);
        rig_until_idle(g);
        rig_restart(g);
        hear_part(g, "c:2");
        hear_part(g, "c:1");
        hear_album(g);
        assert_int_equal(g->duplicates, 3);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.received'"), 1);
        assert_int_equal(rig_count(g, "turns"), 1);
        rig_free(g);
}

static void an_event_with_a_known_part_is_a_duplicate(void **state)
{
        static const char *const known[] = { "c:1", "c:2" };

        (void)state;
        for (size_t i = 0; i < COUNT(known); i++) {
                struct rig *g = rig_new();

                g->auto_answer = true;
                hear_part(g, known[i]);
                rig_until_idle(g);
                rig_restart(g);
                hear_album(g);
                assert_int_equal(g->duplicates, 1);
                assert_int_equal(rig_count(g, "journal WHERE key IS NOT NULL"), 1);
                hear_part(g, "c:1");
                hear_part(g, "c:2");
                assert_int_equal(g->duplicates, 2);
                rig_until_idle(g);
                assert_int_equal(rig_count(g, "turns WHERE state = 'done'"), 2);
                rig_free(g);
        }
}

static void parts_are_journaled_before_their_event_and_name_it(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        hear_album(g);
        assert_string_equal(
                rig_list(g, "type || ' ' || key FROM journal WHERE key IS NOT NULL ORDER BY seq"),
                "message.part c:2, message.received c:1");
        assert_string_equal(rig_text(g, "payload FROM journal WHERE type = 'message.part'"),
                            "{\"id\":\"2\",\"channelId\":\"c\",\"partOf\":\"1\"}");
        assert_int_equal(rig_number(g, "count(DISTINCT trace) FROM journal WHERE key IS NOT NULL"),
                         1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_part_of_a_stored_event_is_a_duplicate_after_a_restart),
                cmocka_unit_test(an_event_with_a_known_part_is_a_duplicate),
                cmocka_unit_test(parts_are_journaled_before_their_event_and_name_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
