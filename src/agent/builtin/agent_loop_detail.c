/*
 * agent_loop_detail: the tool calls of one answer as a message for people.
 *
 *     I'll look at the tests first.
 *     ✅ **bash** running the tests (1.2 s)
 *     ```
 *     command: make test
 *     ```
 *     ```
 *     12 tests passed
 *     ```
 */
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TEXT_MAX   2800 /* code points, so that one message of any platform holds it */
#define SAID_MAX   400
#define SHOWN_MAX  8 /* calls */
#define LABEL_MAX  120
#define ARGS_SHARE 3 /* a third is for the arguments */

/* At most `max` code points, with "…" if there are more. */
static void add_short(struct buf *out, const char *text, size_t max)
{
        size_t n = strlen(text), k = utf8_prefix(text, n, UTF8_CODE_POINTS, max);

        buf_add(out, text, k);
        if (k < n)
                buf_addstr(out, "…");
}

/* A code block; backticks in it would end it, so the fence is longer. */
static void add_block(struct buf *out, const char *text, size_t max)
{
        size_t fence = 3, run = 0;

        if (text[strspn(text, " \t\r\n")] == '\0')
                return;
        for (const char *p = text; *p; p++) {
                run = *p == '`' ? run + 1 : 0;
                if (run >= fence)
                        fence = run + 1;
        }
        for (int i = 0; i < 2; i++) {
                buf_addch(out, '\n');
                for (size_t k = 0; k < fence; k++)
                        buf_addch(out, '`');
                if (i > 0)
                        break;
                buf_addch(out, '\n');
                add_short(out, text, max);
        }
}

/* "command: make test", a line for each. */
static void add_arguments(struct buf *out, const json_t *arguments, size_t max)
{
        const char *name;
        struct buf lines;
        json_t *value;

        buf_init(&lines, 0);
        json_object_foreach((json_t *)arguments, name, value) {
                char *text;

                if (strcmp(name, "label") == 0)
                        continue;
                text = json_is_string(value) ? mem_strdup(json_string_value(value))
                                             : json_text(value);
                buf_addf(&lines, "%s%s: %s", lines.len ? "\n" : "", name, text);
                free(text);
        }
        if (lines.len > 0)
                add_block(out, lines.data, max);
        buf_release(&lines);
}

static void add_result(struct buf *out, const json_t *result, size_t max)
{
        struct buf text;
        json_t *block;
        size_t i;

        buf_init(&text, 0);
        json_array_foreach(json_object_get(result, "content"), i, block) {
                const char *type = json_str(block, "type", "");

                if (i == 0 && strcmp(json_str(block, "text", ""), UNTRUSTED_MARK) == 0)
                        continue;
                if (text.len > 0)
                        buf_addch(&text, '\n');
                if (strcmp(type, "text") == 0)
                        buf_addstr(&text, json_str(block, "text", ""));
                else
                        buf_addf(&text, "(%s)", type);
        }
        if (text.len > 0)
                add_block(out, text.data, max);
        buf_release(&text);
}

static void add_call(struct buf *out, const struct agent_loop_call *c, const json_t *result,
                     size_t max)
{
        const json_t *arguments = json_object_get(c->block, "arguments");
        const char *label = json_str(arguments, "label", "");

        buf_addf(out, "%s%s **%s**", out->len ? "\n\n" : "",
                 json_flag(result, "isError", false) ? "❌" : "✅", json_str(c->block, "name", ""));
        if (*label) {
                buf_addch(out, ' ');
                add_short(out, label, LABEL_MAX);
        }
        if (c->started_ms > 0 && c->ended_ms >= c->started_ms)
                buf_addf(out, " (%.1f s)", (double)(c->ended_ms - c->started_ms) / 1000);
        add_arguments(out, arguments, max / ARGS_SHARE);
        add_result(out, result, max - max / ARGS_SHARE);
}

char *loop_detail_text(const struct agent_loop *l)
{
        unsigned shown = l->calls.count < SHOWN_MAX ? l->calls.count : SHOWN_MAX;
        const struct step *answer;
        struct buf out;
        char *said;

        buf_init(&out, 0);
        steps_next(&l->steps, l->run->id, &answer);
        said = answer ? steps_text(answer->body) : mem_strdup("");
        add_short(&out, said, SAID_MAX);
        free(said);
        for (unsigned i = 0; i < shown; i++) {
                const struct agent_loop_call *c = &l->calls.items[i];

                add_call(&out, c, c->result ? c->result : steps_call_result(&l->steps, c->key),
                         (TEXT_MAX - SAID_MAX) / shown - LABEL_MAX);
        }
        if (l->calls.count > shown)
                buf_addf(&out, "\n\n… and %u more", l->calls.count - shown);
        log_redact(out.data);
        return buf_take(&out);
}
