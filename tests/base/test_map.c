#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"

#define KEYS 200

static void an_empty_map_has_nothing(void **state)
{
        struct map m;
        size_t at = 0;

        (void)state;
        map_init(&m);
        assert_null(map_get(&m, "a"));
        assert_null(map_remove(&m, "a"));
        assert_int_equal(map_each(&m, &at, NULL, NULL), 0);
        map_release(&m);
}

static void put_returns_the_previous_value(void **state)
{
        int one, two;
        struct map m;

        (void)state;
        map_init(&m);
        assert_null(map_put(&m, "a", &one));
        assert_ptr_equal(map_put(&m, "a", &two), &one);
        assert_int_equal(m.count, 1);
        assert_ptr_equal(map_remove(&m, "a"), &two);
        assert_int_equal(m.count, 0);
        map_release(&m);
}

/* The map and the model have the same entries. */
static void assert_same(const struct map *m, int *const model[KEYS])
{
        size_t at = 0, seen = 0, expected = 0;
        const char *key;
        void *value;

        while (map_each(m, &at, &key, &value)) {
                assert_ptr_equal(model[strtoul(key + 1, NULL, 10)], value);
                seen++;
        }
        for (size_t i = 0; i < KEYS; i++)
                expected += model[i] != NULL;
        assert_int_equal(seen, expected);
        assert_int_equal(m->count, expected);
}

static void random_operations_agree_with_a_plain_array(void **state)
{
        unsigned seed = (unsigned)id_random_below(UINT32_MAX);
        int values[KEYS], *model[KEYS] = { 0 };
        struct map m;

        (void)state;
        print_message("seed %u\n", seed);
        srandom(seed);
        map_init(&m);
        for (int step = 0; step < 20000; step++) {
                size_t k = (size_t)random() % KEYS;
                char key[16];

                snprintf(key, sizeof(key), "k%zu", k);
                switch (random() % 3) {
                case 0:
                        assert_ptr_equal(map_put(&m, key, &values[k]), model[k]);
                        model[k] = &values[k];
                        break;
                case 1:
                        assert_ptr_equal(map_remove(&m, key), model[k]);
                        model[k] = NULL;
                        break;
                default:
                        assert_ptr_equal(map_get(&m, key), model[k]);
                }
                if (step % 500 == 0)
                        assert_same(&m, model);
        }
        assert_same(&m, model);
        assert_true(m.cap <= 4 * KEYS);
        map_release(&m);
}

static void the_visited_entry_may_be_removed(void **state)
{
        struct map m;
        const char *key;
        size_t at = 0, seen = 0;
        void *value;

        (void)state;
        map_init(&m);
        for (int i = 0; i < 100; i++) {
                char *name = mem_printf("n%d", i);

                map_put(&m, name, &m);
                free(name);
        }
        for (; map_each(&m, &at, &key, &value); seen++)
                assert_ptr_equal(map_remove(&m, key), &m);
        assert_int_equal(seen, 100);
        assert_int_equal(m.count, 0);
        map_release(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_map_has_nothing),
                cmocka_unit_test(put_returns_the_previous_value),
                cmocka_unit_test(random_operations_agree_with_a_plain_array),
                cmocka_unit_test(the_visited_entry_may_be_removed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
