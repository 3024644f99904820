/*
 * The blocks of an answer. They arrive in pieces, possibly mixed; arguments of a call are parsed
 * once, at the end, and strictly: a lenient parser makes valid but smaller arguments out of cut
 * ones.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "agent/llm/llm_transcript.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

struct llm_block *llm_block_open(struct llm_reader *r, enum llm_block_type type, int64_t index)
{
        struct llm_block *b;

        if (r->block_count == LLM_BLOCKS_MAX) {
                r->too_large = true;
                return NULL;
        }
        r->blocks = mem_realloc(r->blocks, (r->block_count + 1) * sizeof(*r->blocks));
        b = &r->blocks[r->block_count++];
        *b = (struct llm_block){ .type = type, .index = index };
        buf_init(&b->text, 0);
        buf_init(&b->signature, 0);
        return b;
}

struct llm_block *llm_block_find(struct llm_reader *r, int64_t index)
{
        for (size_t i = r->block_count; i > 0; i--) {
                if (r->blocks[i - 1].index == index)
                        return &r->blocks[i - 1];
        }
        return NULL;
}

void llm_blocks_release(struct llm_reader *r)
{
        for (size_t i = 0; i < r->block_count; i++) {
                struct llm_block *b = &r->blocks[i];

                buf_release(&b->text);
                buf_release(&b->signature);
                free(b->id);
                free(b->name);
                json_decref(b->raw);
        }
        free(r->blocks);
        r->blocks = NULL;
        r->block_count = 0;
}

static bool fits(struct llm_reader *r, size_t n)
{
        if (r->rest_n + n > LLM_REST_MAX)
                r->too_large = true;
        else
                r->rest_n += n;
        return !r->too_large;
}

void llm_block_add(struct llm_reader *r, struct llm_block *b, const char *text)
{
        size_t n = text ? strlen(text) : 0;

        if (!b || n == 0 || r->too_large)
                return;
        if (b->type != LLM_TEXT) {
                if (!fits(r, n))
                        return;
                buf_add(&b->text, text, n);
                if (b->type == LLM_THINKING && r->on_thinking)
                        r->on_thinking(r->arg, text, n);
                return;
        }
        if (buf_add(&r->text, text, n) < 0) {
                r->too_large = true;
                n = utf8_prefix(text, n, UTF8_BYTES, LLM_ANSWER_MAX - r->text.len);
                buf_add(&r->text, text, n);
        }
        buf_add(&b->text, text, n);
        if (r->on_text && n)
                r->on_text(r->arg, text, n);
}

void llm_block_sign(struct llm_reader *r, struct llm_block *b, const char *signature)
{
        if (!b || !signature || r->too_large || !fits(r, strlen(signature)))
                return;
        buf_clear(&b->signature);
        buf_addstr(&b->signature, signature);
}

void llm_block_call(struct llm_reader *r, struct llm_block *b, const char *id, const char *name)
{
        if (!b || r->too_large || !fits(r, (id ? strlen(id) : 0) + (name ? strlen(name) : 0)))
                return;
        if (id && *id && !b->id)
                b->id = mem_strdup(id);
        if (name && *name && !b->name) {
                b->name = mem_strdup(name);
                if (r->on_call)
                        r->on_call(r->arg, name);
        }
}

bool llm_reader_has_call(const struct llm_reader *r)
{
        for (size_t i = 0; i < r->block_count; i++) {
                if (r->blocks[i].type == LLM_TOOL_CALL)
                        return true;
        }
        return false;
}

void llm_reader_text(struct llm_reader *r, const char *text)
{
        struct llm_block *b = r->block_count ? &r->blocks[r->block_count - 1] : NULL;

        if (!text || !*text || r->too_large)
                return;
        if (!b || b->type != LLM_TEXT)
                b = llm_block_open(r, LLM_TEXT, -1);
        llm_block_add(r, b, text);
}

/* ---- as a message ---- */

/* May the calls of this answer run? One cut by a limit may have lost later ones, or half of one. */
static bool may_run(const struct llm_reader *r)
{
        return llm_reader_is_complete(r) && r->failure.kind == ERR_NONE && !r->too_large &&
               r->stop != LLM_LENGTH && r->stop != LLM_FULL && r->stop != LLM_FILTERED;
}

static json_t *call_of(const struct llm_reader *r, const struct llm_block *b, const json_t *tools)
{
        char made[ID_TRACE_SIZE];
        const char *name = b->name ? llm_tool_name(tools, b->name) : LLM_NAMELESS;
        bool complete = may_run(r) && b->name;
        json_t *arguments =
                b->text.len ? json_read(b->text.data, b->text.len, NULL) : json_object();
        json_t *call;

        if (!complete || !json_is_object(arguments)) {
                json_decref(arguments);
                arguments = json_object();
                complete = false;
        }
        call = json_pack("{ss, ss, ss, so}", "type", "toolCall", "id",
                         b->id ? b->id : id_trace(made), "name", name, "arguments", arguments);
        if (!complete)
                json_object_set_new(call, "incomplete", json_true());
        return call;
}

static json_t *text_of(const struct llm_block *b)
{
        json_t *text;

        if (llm_is_blank(b->text.data))
                return NULL;
        text = json_pack("{ss, ss}", "type", "text", "text", b->text.data);
        if (b->signature.len)
                json_object_set_new(text, "textSignature", json_string(b->signature.data));
        return text;
}

/* details: what stands for the signature; NULL: none. */
static json_t *thinking_of(const struct llm_block *b, const json_t *details)
{
        json_t *thinking;
        char *text;

        if (b->text.len == 0 && b->signature.len == 0 && !details)
                return NULL;
        thinking = json_pack("{ss, ss}", "type", "thinking", "thinking", b->text.data);
        if (details) {
                text = json_text(details);
                json_object_set_new(thinking, "thinkingSignature", json_string(text));
                free(text);
        } else if (b->signature.len)
                json_object_set_new(thinking, "thinkingSignature", json_string(b->signature.data));
        if (b->type == LLM_REDACTED)
                json_object_set_new(thinking, "redacted", json_true());
        return thinking;
}

json_t *llm_reader_content(const struct llm_reader *r, const json_t *tools)
{
        json_t *content = json_array(), *block;
        const json_t *details = r->details;

        for (size_t i = 0; i < r->block_count; i++) {
                const struct llm_block *b = &r->blocks[i];

                if (b->type == LLM_TOOL_CALL)
                        block = call_of(r, b, tools);
                else if (b->type == LLM_TEXT)
                        block = text_of(b);
                else if (b->type == LLM_OTHER)
                        block = json_pack("{ss, sO}", "type", "other", "raw", b->raw);
                else {
                        block = thinking_of(b, details);
                        details = NULL; /* of all thinking, with the first */
                }
                if (block)
                        json_array_append_new(content, block);
        }
        return content;
}
