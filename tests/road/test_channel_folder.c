/* Every channel has a folder of its own, whatever its id is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "road/channel_folder.h"

static void a_channel_id_becomes_a_name(void **state)
{
        static const struct {
                const char *channel, *folder;
        } rows[] = {
                { "42", "channels/tg/42" },
                { "-100200", "channels/tg/-100200" },
                { "general", "channels/tg/general" },
                { "büro 3", "channels/tg/büro 3" },
                { "", "channels/tg/%" },
                { "..", "channels/tg/%2E." },
                { ".", "channels/tg/%2E" },
                { ".git", "channels/tg/%2Egit" },
                { "a.b", "channels/tg/a.b" },
                { "a/b", "channels/tg/a%2Fb" },
                { "../../etc", "channels/tg/%2E.%2F..%2Fetc" },
                { "a:b", "channels/tg/a%3Ab" },
                { "a%2Fb", "channels/tg/a%252Fb" },
                { "a~b", "channels/tg/a%7Eb" },
                { "a\nb", "channels/tg/a%0Ab" },
                { "\xff", "channels/tg/%FF" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *folder = channel_folder("tg", rows[i].channel);

                assert_string_equal(folder, rows[i].folder);
                free(folder);
        }
}

static void long_ids_that_begin_alike_differ(void **state)
{
        char one[400], two[400], *a, *b;

        (void)state;
        memset(one, 'x', sizeof(one));
        memset(two, 'x', sizeof(two));
        one[399] = two[399] = '\0';
        two[398] = 'y';
        a = channel_folder("api", one);
        b = channel_folder("api", two);
        assert_string_not_equal(a, b);
        assert_true(strlen(a) < 130 && strlen(b) < 130);
        free(a);
        free(b);
}

static void only_root_gives_files_away(void **state)
{
        (void)state;
        channel_folder_set_user("no such user");
        if (geteuid() != 0) {
                assert_int_equal(channel_folder_uid(), geteuid());
                assert_int_equal(channel_folder_gid(), getegid());
                return;
        }
        assert_int_equal(channel_folder_uid(), CHANNEL_FOLDER_ID);
        assert_int_equal(channel_folder_gid(), CHANNEL_FOLDER_ID);
        channel_folder_set_user("root"); /* never */
        assert_int_equal(channel_folder_uid(), CHANNEL_FOLDER_ID);
        channel_folder_set_user("daemon");
        assert_int_not_equal(channel_folder_uid(), CHANNEL_FOLDER_ID);
        assert_int_not_equal(channel_folder_uid(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_channel_id_becomes_a_name),
                cmocka_unit_test(long_ids_that_begin_alike_differ),
                cmocka_unit_test(only_root_gives_files_away),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
