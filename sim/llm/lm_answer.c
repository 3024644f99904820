#include "sim/llm/lm_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/llm/lm_scenario.h"

#define MAX_PAUSED 10000

void lm_answer_text(struct lm_answer *a, const char *type, const char *text)
{
        json_array_append_new(a->content, json_pack("{s:s,s:s}", "type", type, "text", text));
}

void lm_answer_call(struct lm_answer *a, const char *name, const char *arguments)
{
        json_array_append_new(a->content, json_pack("{s:s,s:s,s:s}", "type", "call", "name", name,
                                                    "arguments", arguments));
}

static void write_usage(const struct call *c, struct buf *b)
{
        const struct lm_answer *a = &c->answer;

        jsonw_open_member(b, "usage", '{');
        jsonw_int(b, "input", a->input);
        jsonw_int(b, "output", a->output);
        jsonw_int(b, "cache_read", a->cached.read);
        jsonw_int(b, "cache_write", a->cached.written_5m + a->cached.written_1h);
        jsonw_close(b, '}');
}

void lm_answer_write(const struct call *c, struct buf *b)
{
        char *content = json_text(c->answer.content);

        jsonw_str(b, "stop", c->answer.stop);
        jsonw_raw(b, "content", content);
        write_usage(c, b);
        free(content);
}

/* Calls the tool that the request demands, unless the answer calls one. */
static void force_call(struct call *c)
{
        const char *name = c->prompt.forced;
        json_t *content = c->answer.content;

        if (strcmp(name, "*") == 0)
                name = json_str(json_array_get(c->prompt.tools, 0), "name", "");
        if (!*name || strcmp(c->answer.stop, "tool_use") == 0)
                return;
        json_array_clear(content);
        lm_answer_call(&c->answer, name, "{}");
        snprintf(c->answer.stop, sizeof(c->answer.stop), "tool_use");
}

/* Leaves out what this request cannot have: thinking nobody wanted, a second call. */
static void fit(struct call *c)
{
        json_t *content = c->answer.content;
        bool called = false;

        force_call(c);
        if (c->prompt.warms) {
                json_array_clear(content);
                snprintf(c->answer.stop, sizeof(c->answer.stop), "max_tokens");
                c->answer.output = 0;
        }

        for (size_t i = 0; i < json_array_size(content);) {
                json_t *part = json_array_get(content, i);
                bool call = lm_prompt_is(part, "type", "call");
                bool thought = lm_prompt_is(part, "type", "thinking") ||
                               lm_prompt_is(part, "type", "redacted");

                if ((thought && !c->prompt.thinks) || (call && called && c->prompt.one_call)) {
                        json_array_remove(content, i);
                        continue;
                }
                called = called || call;
                i++;
        }
}

static const char *text_key(const json_t *part)
{
        return lm_prompt_is(part, "type", "call")   ? "arguments"
               : lm_prompt_is(part, "type", "wait") ? NULL
                                                    : "text";
}

/* Cuts the text of a block to at most n bytes. */
static void shorten(json_t *part, size_t n)
{
        const char *text = json_str(part, text_key(part), "");
        size_t keep = lm_pieces_step(text, strlen(text), n);

        json_object_set_new(part, text_key(part), json_stringn(text, keep < n ? keep : n));
}

/* Counts the output; ends it with max_tokens beyond the limit. */
static void limit_output(struct call *c, int64_t limit)
{
        struct lm_answer *a = &c->answer;
        int64_t used = 0;
        json_t *part;
        size_t i;

        a->reasoning = 0;
        json_array_foreach(a->content, i, part) {
                const char *key = text_key(part), *text = key ? json_str(part, key, "") : "";
                int64_t tokens = lm_tokens_of(text, strlen(text));

                if (key && used + tokens > limit && limit > 0) {
                        shorten(part, (size_t)(limit - used) * LM_BYTES_PER_TOKEN);
                        while (json_array_size(a->content) > i + 1)
                                json_array_remove(a->content, i + 1);
                        snprintf(a->stop, sizeof(a->stop), "max_tokens");
                        tokens = limit - used;
                }
                used += tokens;
                if (lm_prompt_is(part, "type", "thinking"))
                        a->reasoning += tokens;
        }
        if (a->output < 0)
                a->output = used > 0 ? used : 1;
}

static json_t *last_of(json_t *content, const char *type)
{
        for (size_t i = json_array_size(content); i-- > 0;) {
                json_t *part = json_array_get(content, i);

                if (lm_prompt_is(part, "type", type))
                        return part;
        }
        return NULL;
}

/* Cuts the last block in half. */
static void truncate_answer(struct lm_answer *a)
{
        json_t *last = last_of(a->content, "call");

        if (!last)
                last = last_of(a->content, "text");
        if (last)
                shorten(last, strlen(json_str(last, text_key(last), "")) / 2);
        while (last && json_array_get(a->content, json_array_size(a->content) - 1) != last)
                json_array_remove(a->content, json_array_size(a->content) - 1);
        snprintf(a->stop, sizeof(a->stop), "max_tokens");
}

static void spoil_arguments(struct lm_answer *a)
{
        json_t *last = last_of(a->content, "call");
        char *bad;

        if (!last)
                return;
        bad = mem_printf("%s, \"oops\": ]", json_str(last, "arguments", "{}"));
        json_object_set_new(last, "arguments", json_string(bad));
        free(bad);
}

static void apply_faults(struct call *c)
{
        struct faults *f = &c->world->base.faults;
        struct lm_answer *a = &c->answer;
        const struct fault *fault;

        if (faults_fire(f, FAULT_EMPTY, c->operation)) {
                json_array_clear(a->content);
                snprintf(a->stop, sizeof(a->stop), "end_turn");
        }
        if (faults_fire(f, FAULT_REFUSE, c->operation)) {
                json_array_clear(a->content);
                snprintf(a->stop, sizeof(a->stop), "refusal");
        }
        if (faults_fire(f, FAULT_PAUSE, c->operation)) {
                json_array_clear(a->content);
                json_array_append_new(
                        a->content, json_pack("{s:s,s:s}", "type", "text", "text", "One moment."));
                snprintf(a->stop, sizeof(a->stop), "pause_turn");
        }
        if (faults_fire(f, FAULT_TRUNCATE, c->operation))
                truncate_answer(a);
        if (faults_fire(f, FAULT_BAD_JSON, c->operation))
                spoil_arguments(a);
        a->same_index = faults_fire(f, FAULT_SAME_INDEX, c->operation) != NULL;
        a->no_end = faults_fire(f, FAULT_NO_DONE, c->operation) != NULL;
        if ((fault = faults_fire(f, FAULT_SLOW_PIECES, c->operation)))
                a->piece_ms = fault->ms;
}

/* Cuts or breaks the stream, which is written; a whole answer is not sent at all. */
static void break_stream(struct call *c)
{
        struct faults *f = &c->world->base.faults;
        const struct fault *at = faults_fire(f, FAULT_CUT_AT, c->operation);
        const struct fault *pieces = faults_fire(f, FAULT_CUT_PIECES, c->operation);
        const struct fault *overload = faults_fire(f, FAULT_OVERLOAD, c->operation);
        struct lm_pieces *p = &c->pieces;

        if (overload && !c->streams) {
                lm_call_fail(c, c->wire->anthropic ? 529 : 503, NULL);
        } else if (overload) {
                lm_pieces_keep(p, (size_t)overload->at);
                c->wire->fail(c, p);
        }
        if ((at || pieces) && !c->streams)
                c->base.cut = true;
        if (pieces && (size_t)pieces->at < p->count)
                p->cut_at = pieces->at > 0 ? (int64_t)p->list[pieces->at - 1].end : 0;
        if (at && at->at < (int64_t)p->bytes.len)
                p->cut_at = at->at;
}

static void count_input(struct call *c)
{
        struct world *w = c->world;
        struct lm_answer *a = &c->answer;
        const struct lm_model *m = c->prompt.model;
        char *scope = mem_printf("%s\n%s\n%s", c->key, m->name,
                                 json_str(c->body, "prompt_cache_key", ""));

        a->cached = c->wire->anthropic ? lm_cache_marked(w->cache, scope, &c->prompt.blocks,
                                                         m->cache_from, w->cache_ms)
                                       : lm_cache_auto(w->cache, scope, &c->prompt.blocks,
                                                       m->cache_from, w->cache_ms);
        free(scope);
        if (a->cache_read >= 0)
                a->cached.read = a->cache_read;
        if (a->cache_write >= 0)
                a->cached = (struct lm_cached){ a->cached.read, a->cache_write, 0 };
        if (a->input < 0)
                a->input = c->prompt.blocks.tokens;
}

static void note_answer(struct call *c)
{
        struct buf *b = journal_open(c->world->base.sent, "answer", 0);

        jsonw_str(b, "operation", c->operation);
        jsonw_str(b, "model", c->prompt.model->name);
        lm_answer_write(c, b);
        journal_close(c->world->base.sent);
        c->world->answer_count++;
        c->world->base.message_count++;
}

static void remember_pause(struct call *c)
{
        const json_t *text = last_of(c->answer.content, "text");
        char sum[SHA256_HEX_SIZE];

        if (strcmp(c->answer.stop, "pause_turn") != 0 || !text)
                return;
        crypto_sha256_hex(json_str(text, "text", ""), strlen(json_str(text, "text", "")), sum);
        if (c->world->paused.count >= MAX_PAUSED) {
                map_release(&c->world->paused);
                map_init(&c->world->paused);
        }
        map_put(&c->world->paused, sum, c->world);
}

static void write_out(struct call *c)
{
        struct lm_pieces *p = &c->pieces;

        c->streams = c->prompt.stream;
        if (!c->streams) {
                c->wire->write(c, &c->out);
                if (c->world->first_ms > c->base.slow_ms)
                        c->base.slow_ms = c->world->first_ms;
                return;
        }
        p->wait_ms = c->answer.piece_ms;
        p->next_wait_ms = c->world->first_ms;
        c->wire->stream(c, p);
}

void lm_answer_make(struct call *c)
{
        struct lm_answer *a = &c->answer;

        lm_scenario_answer(c->world, &c->prompt, c->wire->name, a);
        if (a->status) {
                c->retry_after = a->retry_after;
                lm_call_fail(c, a->status, a->message[0] ? a->message : NULL);
                return;
        }
        fit(c);
        apply_faults(c);
        if (a->piece_ms < 0)
                a->piece_ms = c->world->piece_ms;
        if (a->piece_bytes < 1)
                a->piece_bytes = (int64_t)c->world->piece_bytes;
        limit_output(c, c->prompt.max_tokens);
        count_input(c);
        remember_pause(c);
        write_out(c);
        note_answer(c);
        break_stream(c);
}
