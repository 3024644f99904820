/*
 * agent_loop_detail: the tool calls of one answer as a message for people, after what was said:
 *
 *     I'll look at the tests first.
 *     ✅ **bash** running the tests (1.2 s) ...
 */
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/agent_loop_private.h"
#include "agent/tools/call_detail.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define TEXT_MAX  2800 /* code points, so that one message of any platform holds it */
#define SAID_MAX  400
#define SHOWN_MAX 8 /* calls */

static char *result_text(const json_t *result)
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
        return buf_take(&text);
}

static void add_call(struct buf *out, const struct agent_loop_call *c, const json_t *result,
                     size_t max)
{
        const json_t *arguments = json_object_get(c->block, "arguments");
        bool timed = c->started_ms > 0 && c->ended_ms >= c->started_ms;
        char *text = result_text(result);

        call_detail_add(out,
                        &(struct call_detail){ .name = json_str(c->block, "name", ""),
                                               .label = json_str(arguments, "label", ""),
                                               .is_error = json_flag(result, "isError", false),
                                               .took_ms = timed ? c->ended_ms - c->started_ms : -1,
                                               .arguments = arguments,
                                               .output = text },
                        max);
        free(text);
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
        call_detail_short(&out, said, SAID_MAX);
        free(said);
        for (unsigned i = 0; i < shown; i++) {
                const struct agent_loop_call *c = &l->calls.items[i];

                add_call(&out, c, c->result ? c->result : steps_call_result(&l->steps, c->key),
                         (TEXT_MAX - SAID_MAX) / shown - CALL_DETAIL_LABEL);
        }
        if (l->calls.count > shown)
                buf_addf(&out, "\n\n… and %u more", l->calls.count - shown);
        log_redact(out.data);
        return buf_take(&out);
}
