/* Messages of a handover are history for the agent afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../lib/road_rig.h"

/* Texts that begin with "aside" are stored, not answered. */
static void sets_aside(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        if (strncmp(in->text, "aside", 5) != 0)
                return;
        out->trigger = false;
        out->remember = true;
        out->reason = "a person has taken over";
}

static struct rig *rig_with_handover(void)
{
        struct rig *g = rig_new();

        g->decides = sets_aside;
        return g;
}

static void on_put(void *arg, const struct outbox_receipt *r)
{
        assert_int_equal(r->error.kind, ERR_NONE);
        ++*(unsigned *)arg;
}

/* A person posts as the bot. */
static void answer_as(struct rig *g, const char *channel, const char *author, const char *text,
                      const char *key)
{
        struct outgoing out = { .adapter = "j",
                                .channel = channel,
                                .text = text,
                                .author = author,
                                .request_key = key,
                                .class = PACE_FINAL };
        unsigned stored = 0;

        outbox_submit(g->road, &out, on_put, &stored);
        rig_until(g, &stored, 1);
}

/* The history of the last run as "role name: text" lines. */
static const char *history(const struct rig *g)
{
        static char out[1024];
        const struct turn_run *run = g->runs[g->run_count - 1].run;

        out[0] = '\0';
        for (unsigned i = 0; i < run->history_count; i++) {
                size_t n = strlen(out);

                snprintf(out + n, sizeof(out) - n, "%s %s: %s\n", run->history[i].role,
                         run->history[i].name ? run->history[i].name : "?", run->history[i].text);
        }
        return out;
}

static void ask(struct rig *g, const char *text)
{
        unsigned runs = g->run_count;

        rig_say(g, "j", "c", "batch", text, NULL);
        rig_until(g, &g->run_count, runs + 1);
}

static void the_agent_reads_messages_of_the_handover(void **state)
{
        struct rig *g = rig_with_handover();

        (void)state;
        ask(g, "one");
        rig_answer(g, 0, "re: one");
        rig_until_idle(g);
        rig_say(g, "j", "c", "batch", "aside: where is my money?", NULL);
        rig_until(g, &g->acks, 2);
        rig_until_idle(g);
        answer_as(g, "c", "Ann", "On its way.", "once");
        answer_as(g, "c", "Ann", "On its way.", "once"); /* the same request again */
        answer_as(g, "elsewhere", "Ann", "Not here.", NULL);
        answer_as(g, "c", NULL, "An announcement.", NULL);
        rig_restart(g);
        g->decides = sets_aside;
        ask(g, "two");
        assert_non_null(strstr(history(g), "assistant batch: re: one\n"));
        assert_non_null(
                strstr(history(g), "aside: where is my money?\nassistant Ann: On its way.\n"));
        assert_int_equal(g->runs[g->run_count - 1].run->history_count, 4);
        rig_answer(g, g->run_count - 1, "re: two");
        rig_until_idle(g);
        rig_free(g);
}

static void a_conversation_may_begin_during_a_handover(void **state)
{
        struct rig *g = rig_with_handover();

        (void)state;
        rig_say(g, "j", "c", "batch", "aside: hello", NULL);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 0);
        assert_string_equal(rig_text(g, "reason FROM trigger_log"), "a person has taken over");
        ask(g, "now you");
        assert_non_null(strstr(history(g), "aside: hello\n"));
        assert_int_equal(rig_count(g, "conversations"), 1);
        rig_answer(g, 0, "yes");
        rig_until_idle(g);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_agent_reads_messages_of_the_handover),
                cmocka_unit_test(a_conversation_may_begin_during_a_handover),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
