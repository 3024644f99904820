#include "agent/builtin/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/builtin/blobs.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define SUMMARY_INTRO                                                                         \
        "The conversation before this point was compacted into the following summary. Go on " \
        "from it.\n\n<summary>\n"

void steps_release(struct steps *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free(s->items[i].call);
                json_decref(s->items[i].body);
        }
        free(s->items);
        *s = (struct steps){ 0 };
}

void steps_add(struct steps *s, const struct step *step)
{
        if (s->count == s->cap) {
                s->cap = s->cap ? s->cap * 2 : 16;
                s->items = mem_realloc(s->items, s->cap * sizeof(*s->items));
        }
        s->items[s->count++] = *step;
}

/* ---- reading ---- */

void steps_count_usage(struct steps_totals *t, const json_t *body, int64_t cost_microusd)
{
        const json_t *u = json_object_get(body, "usage");
        int64_t cached = json_int(u, "cacheRead", 0);

        t->usage.tokens_in += json_int(u, "input", 0) + cached + json_int(u, "cacheWrite", 0);
        t->usage.tokens_cached += cached;
        t->usage.tokens_out += json_int(u, "output", 0);
        t->usage.cost_microusd += cost_microusd;
}

static int read_totals(struct store_tx *tx, int64_t turn, struct steps_totals *t, struct error *err)
{
        struct store_stmt *s = step_row_list_turn(tx, turn);
        struct step_row row;
        int rc;

        *t = (struct steps_totals){ 0 };
        while ((rc = step_row_next(s, &row, err)) == 1) {
                json_t *body = row.kind == STEP_ASSISTANT || row.kind == STEP_COMPACTION
                                       ? json_read(row.body, strlen(row.body), NULL)
                                       : NULL;

                t->rounds += row.kind == STEP_ASSISTANT;
                t->started_tool = t->started_tool || row.kind == STEP_TOOL_STARTED;
                steps_count_usage(t, body, row.cost_microusd);
                json_decref(body);
        }
        return rc;
}

int steps_read(struct store_tx *tx, const struct steps_query *q, struct steps *out,
               struct steps_totals *totals, struct error *err)
{
        struct store_stmt *s = step_row_list(tx, q->conversation, q->session, q->from);
        size_t room = BLOBS_SHOWN;
        struct step_row row;
        int rc;

        steps_release(out);
        while ((rc = step_row_next(s, &row, err)) == 1) {
                json_t *body = json_read(row.body, strlen(row.body), NULL);

                if (!json_is_object(body)) { /* damaged: as if it had not been said */
                        json_decref(body);
                        body = json_object();
                }
                steps_add(out, &(struct step){ .id = row.id,
                                               .turn = row.turn,
                                               .kind = row.kind,
                                               .call = mem_strdup(row.call),
                                               .body = body,
                                               .first_kept = row.first_kept,
                                               .time_ms = row.time_ms });
        }
        if (rc < 0)
                return -1;
        for (size_t i = out->count; i > 0; i--) /* the newest images are shown */
                blobs_load(out->items[i - 1].body, q->dir, &room);
        return read_totals(tx, q->turn, totals, err);
}

/* ---- calls ---- */

const json_t *steps_call(const json_t *body, unsigned n)
{
        const json_t *block;
        size_t i;

        json_array_foreach(json_object_get(body, "content"), i, block)
                if (strcmp(json_str(block, "type", ""), "toolCall") == 0 && n-- == 0)
                        return block;
        return NULL;
}

char *steps_call_key(const struct step *answer, unsigned i, char out[STEP_CALL_SIZE])
{
        snprintf(out, STEP_CALL_SIZE, "%lld.%u", (long long)answer->id, i);
        return out;
}

static const struct step *find_call(const struct steps *s, const char *call, enum step_kind kind)
{
        for (size_t i = s->count; i > 0; i--) {
                const struct step *step = &s->items[i - 1];

                if (step->kind == kind && step->call && strcmp(step->call, call) == 0)
                        return step;
        }
        return NULL;
}

enum call_state steps_call_state(const struct steps *s, const char *call)
{
        if (find_call(s, call, STEP_TOOL_DONE))
                return CALL_DONE;
        return find_call(s, call, STEP_TOOL_STARTED) ? CALL_STARTED : CALL_NEW;
}

const json_t *steps_call_result(const struct steps *s, const char *call)
{
        const struct step *step = find_call(s, call, STEP_TOOL_DONE);

        return step ? step->body : NULL;
}

/* ---- what is next ---- */

enum next_action steps_next(const struct steps *s, int64_t turn, const struct step **answer)
{
        const struct step *last = NULL;
        bool begun = false, said = false; /* something after the last answer */
        char key[STEP_CALL_SIZE];
        unsigned calls = 0;

        for (size_t i = 0; i < s->count; i++) {
                const struct step *step = &s->items[i];

                if (step->turn != turn)
                        continue;
                begun = true; /* also if a compaction covers what people said */
                if (step->kind == STEP_ASSISTANT) {
                        last = step;
                        said = false;
                } else if (step->kind == STEP_USER) {
                        said = true;
                }
        }
        *answer = last;
        if (!begun)
                return NEXT_BEGIN;
        for (; last && steps_call(last->body, calls); calls++)
                if (steps_call_state(s, steps_call_key(last, calls, key)) != CALL_DONE)
                        return NEXT_CALLS;
        if (!last || said || calls > 0 ||
            strcmp(json_str(last->body, "stopReason", ""), "pause") == 0)
                return NEXT_ASK;
        return NEXT_END;
}

/* ---- messages ---- */

static bool is_blank(const char *text)
{
        return text[strspn(text, " \t\r\n")] == '\0';
}

/* NULL: left out. */
static json_t *usable_block(json_t *block, bool plain)
{
        const char *type = json_str(block, "type", "");

        if (strcmp(type, "text") == 0)
                return is_blank(json_str(block, "text", "")) ? NULL : json_incref(block);
        if (strcmp(type, "image") == 0 || strcmp(type, "document") == 0) {
                if (plain || !json_object_get(block, "data"))
                        return json_pack("{s:s, s:s}", "type", "text", "text",
                                         "[a picture or document was here]");
                return json_incref(block);
        }
        if (strcmp(type, "thinking") == 0)
                return plain ? NULL : json_incref(block);
        return json_incref(block);
}

static json_t *usable_content(const json_t *body, bool plain)
{
        json_t *blocks = json_array(), *block;
        size_t i;

        json_array_foreach(json_object_get(body, "content"), i, block) {
                json_t *usable = usable_block(block, plain);

                if (usable)
                        json_array_append_new(blocks, usable);
        }
        return blocks;
}

static void add_user(json_t *messages, json_t *content)
{
        if (json_array_size(content) > 0)
                json_array_append_new(messages,
                                      json_pack("{s:s, s:o}", "role", "user", "content", content));
        else
                json_decref(content);
}

json_t *steps_error_result(const json_t *call, const char *text)
{
        return json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}], s:b, s:I}", "role", "toolResult",
                         "toolCallId", json_str(call, "id", ""), "toolName",
                         json_str(call, "name", ""), "content", "type", "text", "text", text,
                         "isError", 1, "timestamp", (json_int_t)clock_wall_ms());
}

static json_t *result_message(const json_t *call, const struct step *done, bool plain)
{
        json_t *content;

        if (!done)
                return steps_error_result(call, "This call was interrupted and may have happened "
                                                "in part. Check before repeating it.");
        content = usable_content(done->body, plain);
        if (json_array_size(content) == 0)
                json_array_append_new(
                        content, json_pack("{s:s, s:s}", "type", "text", "text", "(no output)"));
        return json_pack("{s:s, s:s, s:s, s:o, s:b}", "role", "toolResult", "toolCallId",
                         json_str(call, "id", ""), "toolName", json_str(call, "name", ""),
                         "content", content, "isError", json_flag(done->body, "isError", false));
}

/* Services refuse an answer of thinking alone. */
static bool says_something(const json_t *content)
{
        const json_t *block;
        size_t i;

        json_array_foreach(content, i, block)
                if (strcmp(json_str(block, "type", ""), "thinking") != 0)
                        return true;
        return false;
}

/* Results are near their answer, however long the conversation is. */
static const struct step *find_result(const struct steps *s, const struct step *answer, unsigned i)
{
        char key[STEP_CALL_SIZE];

        steps_call_key(answer, i, key);
        for (const struct step *step = answer + 1; step < s->items + s->count; step++)
                if (step->kind == STEP_TOOL_DONE && step->call && strcmp(step->call, key) == 0)
                        return step;
        return NULL;
}

static void add_answer(json_t *messages, const struct steps *s, const struct step *answer,
                       bool plain)
{
        json_t *content = usable_content(answer->body, plain), *message;
        const json_t *call;

        /* nothing precedes it: what did was pruned */
        if (!says_something(content) || json_array_size(messages) == 0) {
                json_decref(content);
                return;
        }
        message = json_copy(answer->body);
        json_object_set_new(message, "content", content);
        json_array_append_new(messages, message);
        for (unsigned i = 0; (call = steps_call(answer->body, i)); i++)
                json_array_append_new(messages,
                                      result_message(call, find_result(s, answer, i), plain));
}

const struct step *steps_compaction(const struct steps *s)
{
        for (size_t i = s->count; i > 0; i--)
                if (s->items[i - 1].kind == STEP_COMPACTION)
                        return &s->items[i - 1];
        return NULL;
}

static void add_summary(json_t *messages, const struct step *compaction)
{
        const char *last = json_str(compaction->body, "lastUser", NULL);
        struct buf text;

        buf_init(&text, 0);
        buf_addf(&text, SUMMARY_INTRO "%s\n</summary>",
                 json_str(compaction->body, "summary", "(empty)"));
        if (last)
                buf_addf(&text, "\n\nThe message you are working on, unchanged:\n\n%s", last);
        add_user(messages, json_pack("[{s:s, s:s}]", "type", "text", "text", text.data));
        buf_release(&text);
}

json_t *steps_messages(const struct steps *s, bool plain)
{
        const struct step *compaction = steps_compaction(s);
        json_t *messages = json_array();

        if (compaction)
                add_summary(messages, compaction);
        for (size_t i = 0; i < s->count; i++) {
                const struct step *step = &s->items[i];

                if (compaction && step->id < compaction->first_kept)
                        continue;
                if (step->kind == STEP_USER)
                        add_user(messages, usable_content(step->body, plain));
                else if (step->kind == STEP_ASSISTANT)
                        add_answer(messages, s, step, plain);
        }
        return messages;
}

char *steps_text(const json_t *body)
{
        const json_t *block;
        struct buf text;
        size_t i;

        buf_init(&text, 0);
        json_array_foreach(json_object_get(body, "content"), i, block)
                if (strcmp(json_str(block, "type", ""), "text") == 0)
                        buf_addstr(&text, json_str(block, "text", ""));
        return buf_take(&text);
}

bool steps_untrusted(const struct steps *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (json_flag(s->items[i].body, "untrusted", false))
                        return true;
        return false;
}
