/*
 * rpc_question: a question with a choice, or in free words, is the answer of the turn; the next
 * message of the conversation answers it, and its turn goes on with the same run.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/rpc/rpc.h"
#include "agent/tools/call_detail.h"
#include "base/json.h"
#include "base/mem.h"

#define OPTIONS_MAX  30
#define TITLE_CHARS  1500
#define OPTION_CHARS 200
#define OWN_WORDS    "Other (type your own)" /* of omp: an editor follows */

/* ---- asking ---- */

static void add_options(struct buf *out, const json_t *m, const json_t *options)
{
        const json_t *details = json_object_get(m, "optionDetails"), *option;
        size_t i;

        json_array_foreach(options, i, option) {
                const char *more = json_str(json_array_get(details, i), "description", "");

                buf_addf(out, "%s%zu. ", i ? "\n" : "\n\n", i + 1);
                call_detail_short(out, json_string_value(option), OPTION_CHARS);
                if (*more) {
                        buf_addstr(out, ": ");
                        call_detail_short(out, more, OPTION_CHARS);
                }
        }
        buf_addstr(out, "\n\nAnswer with a number, or in your own words.");
}

/* Yours to free. */
static char *describe(const json_t *m, const json_t *options)
{
        int64_t seconds = json_int(m, "timeout", 0) / 1000;
        struct buf out;

        buf_init(&out, 0);
        call_detail_short(&out, json_str(m, "title", "The agent asks for an answer."), TITLE_CHARS);
        if (options)
                add_options(&out, m, options);
        if (seconds > 0)
                buf_addf(&out, " Without an answer it goes on in %lld s.", (long long)seconds);
        return buf_take(&out);
}

static bool are_labels(const json_t *options)
{
        const json_t *option;
        size_t i;

        json_array_foreach(options, i, option)
                if (!json_is_string(option))
                        return false;
        return json_array_size(options) > 0 && json_array_size(options) <= OPTIONS_MAX;
}

bool rpc_question_ask(struct rpc *r, const json_t *m)
{
        json_t *options = json_object_get(m, "options");
        char *text;

        if (options && !are_labels(options))
                return false;
        text = describe(m, options);
        r->question.id = mem_strdup(json_str(m, "id", ""));
        r->question.options = json_incref(options);
        child_text(r->child, text, strlen(text));
        free(text);
        return true;
}

void rpc_question_forget(struct rpc *r)
{
        free(r->question.id);
        free(r->question.own);
        json_decref(r->question.options);
        r->question.id = r->question.own = NULL;
        r->question.options = NULL;
}

/* ---- the answer ---- */

/* What people wrote, without names; yours to free. */
static char *read_answer(const struct turn_run *run)
{
        struct buf text;
        char *start;

        buf_init(&text, 0);
        for (unsigned i = 0; i < run->input_count; i++)
                if (run->inputs[i]->text)
                        buf_addf(&text, "%s%s", text.len ? "\n" : "", run->inputs[i]->text);
        while (text.len > 0 && strchr(" \t\r\n.", text.data[text.len - 1]))
                buf_truncate(&text, text.len - 1);
        start = mem_strdup(text.data + strspn(text.data, " \t\r\n"));
        buf_release(&text);
        return start;
}

/* The option that is meant by its number or label, or the one for own words; NULL: none. */
static const char *choose(const json_t *options, const char *answer, bool *own)
{
        char *end;
        unsigned long number = strtoul(answer, &end, 10);
        const json_t *option;
        const char *other = NULL;
        size_t i;

        *own = false;
        if (end != answer && *end == '\0' && number >= 1)
                return json_string_value(json_array_get(options, number - 1));
        json_array_foreach(options, i, option) {
                if (strcasecmp(json_string_value(option), answer) == 0)
                        return json_string_value(option);
                if (strcmp(json_string_value(option), OWN_WORDS) == 0)
                        other = json_string_value(option);
        }
        *own = other != NULL;
        return other;
}

bool rpc_question_answer(struct rpc *r)
{
        char *answer = read_answer(child_run(r->child));
        const char *value = answer;
        bool own = false;

        if (r->question.options)
                value = choose(r->question.options, answer, &own);
        if (value)
                rpc_dialog_answer(r, r->question.id, value);
        else
                rpc_dialog_answer(r, r->question.id, NULL);
        rpc_question_forget(r);
        if (own)
                r->question.own = answer;
        else
                free(answer);
        return value != NULL;
}

bool rpc_question_answer_own(struct rpc *r, const json_t *m)
{
        bool follows = r->question.own && strcmp(json_str(m, "method", ""), "editor") == 0;

        if (follows)
                rpc_dialog_answer(r, json_str(m, "id", ""), r->question.own);
        if (r->question.own)
                rpc_question_forget(r);
        return follows;
}
