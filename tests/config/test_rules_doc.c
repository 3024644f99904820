/* Runs every example of docs/RULES.md: loads its configuration and compares each decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/placement_stub.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/config.h"
#include "dispatch/dry_run.h"

#define MANUAL "docs/RULES.md" /* tests run in the project's directory */

static char *read_manual(void)
{
        FILE *f = fopen(MANUAL, "r");
        struct buf text;
        char *at;

        assert_non_null(f);
        buf_init(&text, 1 << 20);
        while (!feof(f) && (at = buf_reserve(&text, 4096)))
                buf_grew(&text, fread(at, 1, 4096, f));
        fclose(f);
        return buf_take(&text);
}

/* Sets only the tokens that the configuration names: each one adds an adapter. */
static void set_tokens(const char *config)
{
        static const char *const tokens[][2] = { { "TELEGRAM_BOT_TOKEN", "1:secret-of-the-test" },
                                                 { "DISCORD_BOT_TOKEN", "secret-of-the-test" } };

        for (size_t i = 0; i < COUNT(tokens); i++) {
                if (strstr(config, tokens[i][0]))
                        setenv(tokens[i][0], tokens[i][1], 1);
                else
                        unsetenv(tokens[i][0]);
        }
}

static struct dispatch *dispatch_by(const char *dir, const char *config)
{
        char *path = scratch_path(dir, "config.json");
        FILE *f = fopen(path, "w");
        struct dispatch *d = dispatch_new();
        struct config *c = NULL;
        struct error err = { 0 };

        assert_non_null(f);
        set_tokens(config);
        fputs(config, f);
        fclose(f);
        if (config_load(dir, &c, &err) < 0)
                fail_msg("%s in:\n%s", err.text, config);
        assert_string_equal(config_warnings(c), "");
        config_dispatch_apply(c, d);
        config_free(c);
        free(path);
        return d;
}

/* The first line of `dragoman route test`. */
static void first_line(const json_t *decision, struct buf *out)
{
        if (json_flag(decision, "trigger", false))
                buf_addf(out, "agent '%s' would answer", json_str(decision, "agent", "?"));
        else
                buf_addf(out, "no agent would answer: %s", json_str(decision, "reason", "?"));
        if (json_str(decision, "rule", NULL))
                buf_addf(out, " (rule '%s')", json_str(decision, "rule", ""));
}

static void ask(struct dispatch *d, const char *event, const char *answer)
{
        struct error err = { 0 };
        json_t *json = json_read(event, strlen(event), &err), *result;
        struct incoming *in = dry_run_event(json, &err);
        struct buf text, line;

        if (!in)
                fail_msg("%s in: %s", err.text, event);
        buf_init(&text, 0);
        buf_init(&line, 0);
        dry_run_explain(d, in, DRY_RUN_ALL_RULES, &text);
        result = json_read(text.data, text.len, &err);
        first_line(json_object_get(result, "decision"), &line);
        if (strcmp(line.data, answer) != 0)
                fail_msg("%s\ndecided:  %s\nnot:       %s", event, line.data, answer);
        json_decref(result);
        json_decref(json);
        incoming_free(in);
        buf_release(&text);
        buf_release(&line);
}

/* Decides the event for real, so that its turn is recorded. */
static void let_happen(struct dispatch *d, const char *event)
{
        struct error err = { 0 };
        json_t *json = json_read(event, strlen(event), &err);
        struct incoming *in = dry_run_event(json, &err);
        struct decision out;

        if (!in)
                fail_msg("%s in: %s", err.text, event);
        dispatch_decide(d, in, BEGINS_TURN, &out);
        if (!out.trigger)
                fail_msg("%s is not answered: %s", event, out.reason);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        incoming_free(in);
        json_decref(json);
}

/* Runs one ```console block: lines of events and answers alternate. */
static unsigned ask_all(struct dispatch *d, char *block)
{
        char *line, *event = NULL;
        unsigned asked = 0;

        while ((line = strsep(&block, "\n"))) {
                if (strncmp(line, "$ ", 2) == 0) {
                        event = line + 2;
                } else if (strncmp(line, "> ", 2) == 0) {
                        let_happen(d, line + 2);
                } else if (*line) {
                        assert_non_null(event);
                        ask(d, event, line);
                        event = NULL;
                        asked++;
                }
        }
        return asked;
}

/* The text of the next block of this kind; moves *at past it. NULL: no more. */
static char *next_block(char **at, const char *fence)
{
        char *begin = strstr(*at, fence),
             *end = begin ? strstr(begin + strlen(fence), "\n```") : NULL;

        if (!end)
                return NULL;
        *at = end + 4;
        return mem_strndup(begin + strlen(fence), (size_t)(end - begin) - strlen(fence));
}

static void every_example_of_the_manual_works(void **state)
{
        char *text = read_manual(), *at = text, *config, *questions;
        char *dir = scratch_new();
        unsigned asked = 0;

        (void)state;
        while ((config = next_block(&at, "```jsonc\n"))) {
                struct dispatch *d = dispatch_by(dir, config);

                questions = next_block(&at, "```console\n");
                assert_non_null(questions);
                asked += ask_all(d, questions);
                dispatch_free(d);
                free(questions);
                free(config);
        }
        assert_true(asked >= 35);
        scratch_free(dir);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_example_of_the_manual_works) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
