/* `dragoman why` for people, from the rows of a data directory without a daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "net/loop.h"
#include "rows/journal_row.h"
#include "rows/schema.h"
#include "rows/trigger_log_row.h"
#include "rows/turn_row.h"

/* ---- rows ---- */

static int insert_event(struct store_tx *tx, int64_t id, const char *channel, struct error *err)
{
        char key[40], payload[100];
        int64_t seq;

        snprintf(key, sizeof(key), "%s:%lld", channel, (long long)id);
        snprintf(payload, sizeof(payload), "{\"id\":\"%lld\",\"text\":\"hello\"}", (long long)id);
        return journal_row_insert(tx,
                                  &(struct journal_row){ .type = "message.received",
                                                         .time_ms = 1000,
                                                         .adapter = "tg",
                                                         .channel = channel,
                                                         .key = key,
                                                         .trace = "t",
                                                         .payload = payload },
                                  &seq, err);
}

static int insert_decision(struct store_tx *tx, struct trigger_log_row row, struct error *err)
{
        row.time_ms = 1000;
        row.event_type = "message.received";
        row.adapter = "tg";
        row.channel = "-100123";
        row.trace = "t";
        return trigger_log_row_insert(tx, &row, err);
}

/* evt-1 was refused, evt-2 answered by another agent than the one chosen, evt-3 is elsewhere. */
static int insert_rows(struct store_tx *tx, void *arg, struct error *err)
{
        struct turn_row turn = { .id = 7,
                                 .agent = "gpt",
                                 .inputs = "2",
                                 .trace = "t",
                                 .attempt = 1,
                                 .created_ms = 1000,
                                 .started_ms = 3000 };

        (void)arg;
        if (insert_event(tx, 77, "-100123", err) < 0 || insert_event(tx, 78, "-100123", err) < 0 ||
            insert_event(tx, 77, "42", err) < 0 ||
            insert_decision(tx,
                            (struct trigger_log_row){
                                    .event = 1,
                                    .agent = "gpt",
                                    .rule = "cheap",
                                    .status = TRIGGER_SKIPPED,
                                    .reason = "it has cost $2.00 today",
                                    .rules = "[{\"name\":\"night\",\"matched\":false,\"why\":"
                                             "\"it was noon\"},{\"name\":\"cheap\",\"matched\":"
                                             "true,\"why\":\"all conditions hold\"}]" },
                            err) < 0 ||
            insert_decision(tx,
                            (struct trigger_log_row){
                                    .event = 2, .agent = "gpt", .turn = 7, .status = TRIGGER_DONE },
                            err) < 0 ||
            turn_row_insert(tx, &turn, err) < 0)
                return -1;
        turn.state = TURN_DONE;
        turn.ended_ms = 3500;
        turn.answered_by = "local";
        turn.failed_agents = "[{\"agent\":\"gpt\",\"error\":\"no connection\"}]";
        if (turn_row_finish(tx, &turn, err) < 0 ||
            turn_row_discard_reply(tx, 7, 5000, "it is empty", err) < 0)
                return -1;
        /* a turn that runs after a failover */
        turn = (struct turn_row){ .id = 8,
                                  .agent = "gpt",
                                  .state = TURN_RUNNING,
                                  .inputs = "3",
                                  .trace = "t",
                                  .attempt = 1,
                                  .created_ms = 1000,
                                  .started_ms = 3000,
                                  .answered_by = "local",
                                  .failed_agents =
                                          "[{\"agent\":\"gpt\",\"error\":\"no connection\"}]" };
        if (turn_row_insert(tx, &turn, err) < 0)
                return -1;
        return turn_row_fail_over(tx, &turn, err);
}

static char *data_directory(void)
{
        char *dir = scratch_new(), *state = mem_printf("%s/state", dir);
        struct store_options o = { .url = "sqlite", .dir = state, .migrations = schema_steps };
        struct loop *loop = loop_new();
        struct error err = { 0 };
        struct store *s;

        assert_int_equal(file_make_dirs(state, &err), 0);
        s = store_open(loop, &o, &err);
        if (!s || store_write_now(s, insert_rows, NULL, &err) < 0)
                fail_msg("%s", err.text);
        store_close(s);
        loop_free(loop);
        free(state);
        return dir;
}

/* ---- what is printed ---- */

static const char *why(const char *dir, const char *id)
{
        static char out[8000];
        char word[] = "dragoman", command[] = "why", flag[] = "-C", *where = mem_strdup(dir),
             *which = mem_strdup(id);
        char *argv[] = { word, command, flag, where, which, NULL };
        FILE *to = tmpfile();
        int saved = dup(STDOUT_FILENO), code;

        fflush(stdout);
        dup2(fileno(to), STDOUT_FILENO);
        code = cli_main(id ? 5 : 4, argv, &(const struct cli_env){ 0 });
        fflush(stdout);
        dup2(saved, STDOUT_FILENO);
        close(saved);
        rewind(to);
        out[fread(out, 1, sizeof(out) - 1, to)] = '\0';
        fclose(to);
        assert_int_equal(code, CLI_OK);
        free(where);
        free(which);
        return out;
}

static void expect(const char *out, const char *part)
{
        if (!strstr(out, part))
                fail_msg("'%s' is missing in: %s", part, out);
}

static void a_refusal_reads_like_one(void **state)
{
        char *dir = data_directory();
        const char *out = why(dir, "evt-1");

        (void)state;
        expect(out, "refused: it has cost $2.00 today; it was meant for agent 'gpt', by rule "
                    "'cheap'\n");
        expect(out, "rule 'night' does not match: it was noon\n");
        expect(out, "rule 'cheap' matches\n");
        assert_null(strstr(out, "decided"));
        scratch_free(dir);
}

static void a_failover_shows_each_agent(void **state)
{
        char *dir = data_directory();
        const char *out = why(dir, "evt-2");

        (void)state;
        expect(out, "decided: for agent 'gpt'\n");
        expect(out, "trn-7 started, attempt 1, after a wait of 2.000 s\n");
        expect(out, "agent 'gpt' failed: no connection\n");
        expect(out, "trn-7 done by agent 'local' in 0.500 s\n");
        expect(why(dir, "trn-8"), "trn-8 running with agent 'local'\n");
        scratch_free(dir);
}

static void a_discarded_late_answer_has_a_line(void **state)
{
        char *dir = data_directory();

        (void)state;
        expect(why(dir, "evt-2"), "1 late answer discarded: it is empty\n");
        scratch_free(dir);
}

static void ids_of_a_platform_are_found_or_listed(void **state)
{
        char *dir = data_directory();
        const char *out;

        (void)state;
        expect(why(dir, "tg/-100123/77"), "evt-1 stored:");
        expect(why(dir, "-100123:77"), "evt-1 stored:");
        expect(why(dir, "tg/42/77"), "evt-3 stored:");
        out = why(dir, "77");
        expect(out, "77: 2 messages have this id");
        expect(out, "tg/42/77");
        expect(out, "tg/-100123/77");
        scratch_free(dir);
}

static void without_an_id_the_last_messages_are_shown(void **state)
{
        char *dir = data_directory();
        const char *out = why(dir, NULL);

        (void)state;
        expect(out, "tg/-100123/77");
        expect(out, "silent because it has cost $2.00 today\n");
        assert_true(strstr(out, "evt-2") < strstr(out, "evt-1"));
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_refusal_reads_like_one),
                cmocka_unit_test(a_failover_shows_each_agent),
                cmocka_unit_test(a_discarded_late_answer_has_a_line),
                cmocka_unit_test(ids_of_a_platform_are_found_or_listed),
                cmocka_unit_test(without_an_id_the_last_messages_are_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
