/* Text of Slack as a person reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "slack_intake_rig.h"

static int set_up(void **state)
{
        struct slack_intake_rig *g = mem_zalloc(sizeof(*g));

        rig_open(g);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        rig_close(*state);
        free(*state);
        return 0;
}

static void expect_message(struct slack_intake_rig *g, const char *message, const char *expected)
{
        json_t *m = parse(message);
        struct arena arena;
        const char *text;

        arena_init(&arena);
        text = sl_text_read(&arena, &g->context, m);
        if (expected)
                assert_string_equal(text ? text : "(none)", expected);
        else
                assert_null(text);
        arena_release(&arena);
        json_decref(m);
}

static void expect(struct slack_intake_rig *g, const char *raw, const char *expected)
{
        char *message = mem_printf("{'text':'%s'}", raw);

        expect_message(g, message, expected);
        free(message);
}

static void entities_are_unescaped_once(void **state)
{
        expect(*state, "1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2");
        expect(*state, "&amp;lt;b&amp;gt;", "&lt;b&gt;");
        expect(*state, "&quot; &lt", "&quot; &lt");
}

static void mentions_become_handles(void **state)
{
        expect(*state, "ask <@U1> or <@U2|old.name>", "ask @anna.k or @bo");
        expect(*state, "<@U9> and <@U9|zoe>", "@U9 and @zoe");
}

static void our_own_mention_is_removed(void **state)
{
        expect(*state, "<@U0BOT> hello", "hello");
        expect(*state, "<@U0BOT>: hello", "hello");
        expect(*state, "<@U0BOT>, hello", "hello");
        expect(*state, "hello <@U0BOT> you", "hello you");
        expect(*state, "hello <@U0BOT>", "hello");
        expect(*state, "<@U0BOT|dragoman>", NULL);
}

static void channels_groups_and_broadcasts_have_names(void **state)
{
        expect(*state, "see <#C1> and <#C2|random>, <#C3|>", "see #general and #random, #C3");
        expect(*state, "<!here> <!channel|channel> <!everyone>", "@here @channel @everyone");
        expect(*state, "<!subteam^S1|@devs> <!subteam^S2>", "@devs @S2");
        expect(*state, "on <!date^1392734382^{date}|Feb 18>", "on Feb 18");
}

static void links_show_their_label_and_address(void **state)
{
        expect(*state, "<https://example.com/a?b=1&amp;c=2>", "https://example.com/a?b=1&c=2");
        expect(*state, "<https://example.com|the page>", "the page (https://example.com)");
        expect(*state, "<http://example.com|example.com>", "http://example.com");
        expect(*state, "<mailto:a@example.com|a@example.com> <tel:+46123|+46123>",
               "a@example.com +46123");
        expect(*state, "<mailto:a@example.com>", "a@example.com");
        expect(*state, "<mailto:bo@example.com|bo> <tel:+46123|call me>",
               "bo@example.com call me (+46123)");
}

static void broken_tags_stay_text(void **state)
{
        expect(*state, "a < b", "a < b");
        expect(*state, "<> <@> <|x> <@U1", "<> @ <|x> <@U1");
        expect(*state, "<@u1>", "@u1");
}

static void blocks_are_read_when_there_is_no_text(void **state)
{
        expect_message(*state,
                       "{'text':'','blocks':[{'type':'rich_text','elements':["
                       "{'type':'rich_text_section','elements':[{'type':'text','text':'Hi '},"
                       "{'type':'user','user_id':'U1'},{'type':'text','text':' & '},"
                       "{'type':'link','url':'https://a.example','text':'A'},"
                       "{'type':'emoji','name':'wave'}]},"
                       "{'type':'rich_text_list','elements':[{'type':'rich_text_section',"
                       "'elements':[{'type':'text','text':'one'}]},{'type':'rich_text_section',"
                       "'elements':[{'type':'text','text':'two'}]}]}]}]}",
                       "Hi @anna.k & A (https://a.example):wave:\none\ntwo");
        expect_message(*state,
                       "{'blocks':[{'type':'header','text':{'type':'plain_text','text':'T &amp;'}},"
                       "{'type':'section','text':{'type':'mrkdwn','text':'<@U1> &amp; you'},"
                       "'fields':[{'type':'mrkdwn','text':'f'}]},{'type':'divider'}]}",
                       "T &amp;\n@anna.k & you\nf");
        expect_message(*state,
                       "{'text':'x','blocks':[{'type':'header','text':{'type':'plain_text',"
                       "'text':'not read'}}]}",
                       "x");
}

static void attachments_are_put_in_words(void **state)
{
        expect_message(*state,
                       "{'text':'look','attachments':[{'is_share':true,'author_name':'Bo',"
                       "'text':'it &lt;works&gt;'},{'title':'Build','text':'failed','fields':"
                       "[{'title':'branch','value':'main'}]},{'from_url':'https://a.example',"
                       "'title':'a preview'}]}",
                       "look\n[shared message: Bo: it <works>]\n"
                       "[attachment: Build: failed\nbranch: main]");
        expect_message(*state, "{'text':'','attachments':[{'fallback':'only this'}]}",
                       "[attachment: only this]");
        expect_message(*state, "{'attachments':[{}]}", NULL);
}

static void a_mention_is_found_by_the_whole_id(void **state)
{
        (void)state;
        assert_true(sl_text_mentions("a <@U0BOT> b", SELF));
        assert_true(sl_text_mentions("<<@U0BOT|dragoman>>", SELF));
        assert_false(sl_text_mentions("<@U0BOTX> <@U0BO> @U0BOT &lt;@U0BOT&gt;", SELF));
        assert_false(sl_text_mentions("<@U0BOT>", NULL));
        assert_false(sl_text_mentions(NULL, SELF));
}

static void ids_are_capitals_and_digits(void **state)
{
        (void)state;
        assert_true(sl_id_valid("C0123ABCD"));
        assert_false(sl_id_valid(NULL));
        assert_false(sl_id_valid("C"));
        assert_false(sl_id_valid("c123"));
        assert_false(sl_id_valid("1C23"));
        assert_false(sl_id_valid("C12/../x"));
        assert_false(sl_id_valid("C1234567890123456789012345678901"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(entities_are_unescaped_once),
                TEST(mentions_become_handles),
                TEST(our_own_mention_is_removed),
                TEST(channels_groups_and_broadcasts_have_names),
                TEST(links_show_their_label_and_address),
                TEST(broken_tags_stay_text),
                TEST(blocks_are_read_when_there_is_no_text),
                TEST(attachments_are_put_in_words),
                cmocka_unit_test(a_mention_is_found_by_the_whole_id),
                cmocka_unit_test(ids_are_capitals_and_digits),
        };

        return cmocka_run_group_tests_name("slack_text", tests, NULL, NULL);
}
