/* The identity index, which never evicts, and the seen cache, which does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dispatch/people/persons_private.h"

#define PEOPLE 100000

static const char *user(int n)
{
        static char text[24];

        snprintf(text, sizeof(text), "%d", n);
        return text;
}

static void an_identity_takes_less_than_fifty_bytes(void **state)
{
        struct identity_index w = { 0 };

        (void)state;
        assert_int_equal(identity_index_get(&w, "telegram", "7"), 0);
        for (int i = 1; i <= PEOPLE; i++)
                identity_index_set(&w, "telegram", user(i), i);
        assert_int_equal(w.count, PEOPLE);
        assert_true(identity_index_bytes(&w) < (size_t)PEOPLE * 50);
        for (int i = 1; i <= PEOPLE; i++)
                if (identity_index_get(&w, "telegram", user(i)) != i)
                        fail_msg("telegram:%d is not known", i);
        assert_int_equal(identity_index_get(&w, "telegram", user(PEOPLE + 1)), 0);
        assert_int_equal(identity_index_get(&w, "discord", "7"), 0);
        identity_index_release(&w);
}

static void an_identity_moves_to_another_person(void **state)
{
        struct identity_index w = { 0 };

        (void)state;
        identity_index_set(&w, "telegram", "7", 1);
        identity_index_set(&w, "telegram", "7", 2);
        assert_int_equal(w.count, 1);
        assert_int_equal(identity_index_get(&w, "telegram", "7"), 2);
        identity_index_release(&w);
}

static void only_changes_of_a_sender_are_recorded(void **state)
{
        struct seen_cache *s = seen_cache_new(10, 1000);

        (void)state;
        assert_true(seen_cache_update(s, "telegram", "7", 1, 5000));
        assert_false(seen_cache_update(s, "telegram", "7", 1, 5999));
        assert_true(seen_cache_update(s, "telegram", "7", 1, 6000)); /* no longer fresh */
        assert_true(seen_cache_update(s, "telegram", "7", 2, 6001)); /* something changed */
        assert_true(seen_cache_update(s, "telegram", "7", 2, 100));  /* the clock was set back */
        assert_true(seen_cache_update(s, "discord", "7", 2, 100));
        assert_int_equal(seen_cache_count(s), 2);
        seen_cache_free(s);
}

static void the_oldest_sender_is_evicted(void **state)
{
        struct seen_cache *s = seen_cache_new(100, 1000);

        (void)state;
        for (int i = 0; i < PEOPLE; i++)
                assert_true(seen_cache_update(s, "telegram", user(i), 1, 5000));
        assert_int_equal(seen_cache_count(s), 100);
        assert_false(seen_cache_update(s, "telegram", user(PEOPLE - 100), 1, 5000));
        assert_true(seen_cache_update(s, "telegram", user(PEOPLE - 101), 1, 5000));
        seen_cache_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_identity_takes_less_than_fifty_bytes),
                cmocka_unit_test(an_identity_moves_to_another_person),
                cmocka_unit_test(only_changes_of_a_sender_are_recorded),
                cmocka_unit_test(the_oldest_sender_is_evicted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
