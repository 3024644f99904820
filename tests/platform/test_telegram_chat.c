/* Lookups of chats and users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

/* The report of a lookup, as one line. */
struct report {
        char line[600];
        enum error_kind kind;
        bool done;
};

static void on_channel(void *arg, const struct channel_info *info, const struct error *err)
{
        static const char *const kinds[] = { "dm", "group", "broadcast" };
        struct report *r = arg;

        r->done = true;
        r->kind = err ? err->kind : ERR_NONE;
        if (err)
                snprintf(r->line, sizeof(r->line), "%s", err->text);
        else
                snprintf(r->line, sizeof(r->line), "%s %s name=%s topic=%s members=%lld",
                         kinds[info->kind], info->id, info->name, info->topic ? info->topic : "-",
                         (long long)info->members);
}

static void on_user(void *arg, const struct user_info *info, const struct error *err)
{
        struct report *r = arg;

        r->done = true;
        r->kind = err ? err->kind : ERR_NONE;
        if (err)
                snprintf(r->line, sizeof(r->line), "%s", err->text);
        else
                snprintf(r->line, sizeof(r->line), "%s @%s name=%s%s", info->id,
                         info->username ? info->username : "-", info->name,
                         info->is_bot ? " bot" : "");
}

static void wait_for(struct rig *g, const struct report *r)
{
        for (int i = 0; i < 100000 && !r->done; i++)
                loop_step(g->loop, true);
        assert_true(r->done);
}

static void a_group_is_looked_up_with_its_members(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };

        says(g, 200,
             "{\"ok\":true,\"result\":{\"id\":-1005,\"type\":\"supergroup\",\"title\":\"Lab\","
             "\"description\":\"about\"}}");
        says(g, 200, "{\"ok\":true,\"result\":12}");
        rig_connect(g);
        assert_int_equal(adapters_channel_info(g->adapters, "tg", "-1005", on_channel, &r, NULL),
                         0);
        assert_false(r.done);
        wait_for(g, &r);
        assert_string_equal(r.line, "group -1005 name=Lab topic=about members=12");
        assert_string_equal(rig_method(g, 4), "getChat");
        assert_string_equal(rig_body(g, 4), "{\"chat_id\":-1005}");
        assert_string_equal(rig_method(g, 5), "getChatMemberCount");
}

struct threads_report {
        enum chat_threads threads;
        enum error_kind kind;
        bool done;
};

static void on_threads(void *arg, enum chat_threads threads, const struct error *err)
{
        struct threads_report *r = arg;

        *r = (struct threads_report){ threads, err ? err->kind : ERR_NONE, true };
}

static struct threads_report ask_threads(struct rig *g, const char *adapter, const char *channel)
{
        struct threads_report r = { 0 };

        adapters_threads(g->adapters, adapter, channel, on_threads, &r);
        assert_false(r.done);
        for (int i = 0; i < 100000 && !r.done; i++)
                loop_step(g->loop, true);
        assert_true(r.done);
        return r;
}

static void a_forum_has_topics_which_is_remembered(void **state)
{
        struct rig *g = *state;

        says(g, 200,
             "{\"ok\":true,\"result\":{\"id\":-1005,\"type\":\"supergroup\",\"is_forum\":true}}");
        says(g, 200, "{\"ok\":true,\"result\":12}");
        says(g, 200, "{\"ok\":true,\"result\":{\"id\":-1006,\"type\":\"supergroup\"}}");
        says(g, 200, "{\"ok\":true,\"result\":12}");
        says(g, 400, NO("400", "Bad Request: chat not found"));
        rig_connect(g);
        for (int i = 0; i < 3; i++)
                assert_int_equal(ask_threads(g, "tg", "-1005").threads, CHAT_THREADS_BY_NAME);
        assert_int_equal(ask_threads(g, "tg", "-1006").threads, CHAT_NO_THREADS);
        assert_int_equal(ask_threads(g, "tg", "-1007").kind, ERR_MISSING);
        assert_int_equal(ask_threads(g, "other", "7").kind, ERR_MISSING);
        assert_int_equal(fake_server_requests(g->server), 9);
}

static void a_user_is_the_private_chat_with_them(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };

        says(g, 200,
             "{\"ok\":true,\"result\":{\"id\":7,\"type\":\"private\",\"first_name\":\"Ann\","
             "\"last_name\":\"Lee\",\"username\":\"ann\"}}");
        rig_connect(g);
        assert_int_equal(adapters_user_info(g->adapters, "tg", "7", on_user, &r, NULL), 0);
        wait_for(g, &r);
        assert_string_equal(r.line, "7 @ann name=Ann Lee");
}

static void an_unknown_chat_is_missing(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };

        says(g, 400,
             "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: chat not found\"}");
        rig_connect(g);
        assert_int_equal(adapters_channel_info(g->adapters, "tg", "8", on_channel, &r, NULL), 0);
        wait_for(g, &r);
        assert_int_equal(r.kind, ERR_MISSING);
        assert_string_equal(r.line, "Telegram says: Bad Request: chat not found");
}

static void a_group_is_not_a_user(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };

        says(g, 200, "{\"ok\":true,\"result\":{\"id\":8,\"type\":\"group\"}}");
        rig_connect(g);
        assert_int_equal(adapters_user_info(g->adapters, "tg", "8", on_user, &r, NULL), 0);
        wait_for(g, &r);
        assert_int_equal(r.kind, ERR_MISSING);
        assert_string_equal(r.line, "this is the id of a chat, not of a user");
}

static void invalid_lookups_fail_at_once(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };
        struct error err = { 0 };

        rig_connect(g);
        assert_int_equal(adapters_user_info(g->adapters, "tg", "@ann", on_user, &r, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
        assert_int_equal(adapters_user_info(g->adapters, "other", "7", on_user, &r, &err), -1);
        assert_string_equal(err.text, "there is no adapter 'other'");
        adapter_lost(rig_adapter(g), "test");
        assert_int_equal(adapters_user_info(g->adapters, "tg", "7", on_user, &r, &err), -1);
        assert_int_equal(err.kind, ERR_NET);
        assert_false(r.done);
}

static void a_lookup_is_cancelled_when_the_adapter_closes(void **state)
{
        struct rig *g = *state;
        struct report r = { 0 };
        struct error err = { 0 };

        says(g, 200, NULL);
        rig_connect(g);
        assert_int_equal(adapters_channel_info(g->adapters, "tg", "8", on_channel, &r, NULL), 0);
        assert_int_equal(adapters_apply(g->adapters, NULL, 0, &err), 0);
        assert_true(r.done);
        assert_int_equal(r.kind, ERR_CANCELLED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_group_is_looked_up_with_its_members),
                TEST(a_forum_has_topics_which_is_remembered),
                TEST(a_user_is_the_private_chat_with_them),
                TEST(an_unknown_chat_is_missing),
                TEST(a_group_is_not_a_user),
                TEST(invalid_lookups_fail_at_once),
                TEST(a_lookup_is_cancelled_when_the_adapter_closes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
