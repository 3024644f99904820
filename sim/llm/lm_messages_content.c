/*
 * Refuses messages that Anthropic refuses, in its words: wrong blocks, calls and results that do
 * not belong together, changed thinking.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_messages.h"

#define MAX_MESSAGES 100000

int lm_messages_check_members(struct call *c, const json_t *object, const char *where,
                              const char *const *known)
{
        const char *key;
        json_t *value;

        if (!c->world->base.strict)
                return 0;
        json_object_foreach((json_t *)object, key, value) {
                const char *const *k = known;

                while (*k && strcmp(*k, key) != 0)
                        k++;
                if (!*k)
                        return lm_call_refuse(c, "unknown_member",
                                              "%s%s%s: Extra inputs are not permitted", where,
                                              *where ? "." : "", key);
        }
        return 0;
}

/* ---- marks and texts ---- */

int lm_messages_check_mark(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        const json_t *control = json_object_get(block, "cache_control");
        const char *ttl = json_str(control, "ttl", "5m");

        if (!control || json_is_null(control))
                return 0;
        if (!lm_prompt_is(control, "type", "ephemeral"))
                return lm_call_refuse(r->call, "cache_control",
                                      "%s.cache_control.type: Input should be 'ephemeral'", where);
        if (strcmp(ttl, "5m") != 0 && strcmp(ttl, "1h") != 0)
                return lm_call_refuse(r->call, "cache_control",
                                      "%s.cache_control.ephemeral.ttl: Input should be '5m' or "
                                      "'1h'",
                                      where);
        r->marks++;
        return 0;
}

static int check_text(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        static const char *const known[] = { "type", "text", "cache_control", "citations", NULL };
        const char *text = json_str(block, "text", NULL);
        const char *in = strncmp(where, "system", 6) == 0 ? "system" : "messages";

        if (!text)
                return lm_call_refuse(r->call, "text", "%s.text.text: Field required", where);
        if (!*text && json_is_object(json_object_get(block, "cache_control")))
                return lm_call_refuse(r->call, "mark_on_empty",
                                      "%s.text: cache_control cannot be set for empty text blocks",
                                      where);
        if (!*text)
                return lm_call_refuse(r->call, "empty_text",
                                      "%s: text content blocks must be non-empty", in);
        if (lm_prompt_is_blank(text))
                return lm_call_refuse(r->call, "blank_text",
                                      "%s: text content blocks must contain non-whitespace text",
                                      in);
        if (lm_messages_check_members(r->call, block, where, known) != 0)
                return -1;
        return lm_messages_check_mark(r, block, where);
}

/* ---- blocks of messages ---- */

static int check_picture(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        static const char *const known[] = { "type",    "source",    "cache_control",   "title",
                                             "context", "citations", "transformations", NULL };
        const json_t *source = json_object_get(block, "source");
        const char *type = json_str(source, "type", ""),
                   *media = json_str(source, "media_type", "");
        const char *kind = json_str(block, "type", "");

        if (!json_is_object(source))
                return lm_call_refuse(r->call, "source", "%s.%s.source: Field required", where,
                                      kind);
        if (strcmp(type, "base64") == 0 && !*json_str(source, "data", ""))
                return lm_call_refuse(r->call, "source", "%s.%s.source.base64.data: Field required",
                                      where, kind);
        if (strcmp(kind, "image") == 0 && strcmp(type, "base64") == 0 &&
            strcmp(media, "image/jpeg") != 0 && strcmp(media, "image/png") != 0 &&
            strcmp(media, "image/gif") != 0 && strcmp(media, "image/webp") != 0)
                return lm_call_refuse(r->call, "source",
                                      "%s.image.source.base64.media_type: Input should be "
                                      "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
                                      where);
        if (lm_messages_check_members(r->call, block, where, known) != 0)
                return -1;
        return lm_messages_check_mark(r, block, where);
}

static int check_tool_use(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        static const char *const known[] = { "type",          "id",     "name",         "input",
                                             "cache_control", "caller", "toolset_name", NULL };
        const char *id = json_str(block, "id", ""), *name = json_str(block, "name", "");

        if (!lm_prompt_is_name(id))
                return lm_call_refuse(r->call, "call_id",
                                      "%s.tool_use.id: String should match pattern "
                                      "'^[a-zA-Z0-9_-]+$'",
                                      where);
        if (!lm_prompt_is_name(name) || strlen(name) > LM_TOOL_NAME_MAX)
                return lm_call_refuse(r->call, "tool_name",
                                      "%s.tool_use.name: String should match pattern "
                                      "'^[a-zA-Z0-9_-]{1,128}$'",
                                      where);
        if (!json_is_object(json_object_get(block, "input")))
                return lm_call_refuse(r->call, "call_input",
                                      json_object_get(block, "input")
                                              ? "%s.tool_use.input: Input should be a valid "
                                                "dictionary"
                                              : "%s.tool_use.input: Field required",
                                      where);
        if (lm_messages_check_members(r->call, block, where, known) != 0)
                return -1;
        return lm_messages_check_mark(r, block, where);
}

static int check_tool_result(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        static const char *const known[] = { "type",     "tool_use_id",   "content",
                                             "is_error", "cache_control", NULL };
        const json_t *content = json_object_get(block, "content");
        char *inner;
        int rc = 0;

        if (!lm_prompt_is_name(json_str(block, "tool_use_id", "")))
                return lm_call_refuse(r->call, "call_id",
                                      "%s.tool_result.tool_use_id: String should match pattern "
                                      "'^[a-zA-Z0-9_-]+$'",
                                      where);
        if (lm_messages_check_members(r->call, block, where, known) != 0 ||
            lm_messages_check_mark(r, block, where) != 0)
                return -1;
        if (json_is_array(content)) {
                inner = mem_printf("%s.tool_result.content", where);
                rc = lm_messages_check_content(r, content, "tool_result", inner);
                free(inner);
        }
        return rc;
}

static int check_thought(struct lm_messages_reader *r, const json_t *block, const char *where)
{
        bool redacted = lm_prompt_is(block, "type", "redacted_thinking");
        const char *sign = json_str(block, redacted ? "data" : "signature", NULL);
        struct lm_signed whose;

        if (json_object_get(block, "cache_control"))
                return lm_call_refuse(r->call, "cache_control",
                                      "%s.thinking.cache_control: Extra inputs are not permitted",
                                      where);
        if (!sign)
                return lm_call_refuse(r->call, "signature", "%s.%s: Field required", where,
                                      redacted ? "redacted_thinking.data" : "thinking.signature");
        if (!lm_sign_check(sign, r->call->prompt.model->name,
                           redacted ? "" : json_str(block, "thinking", ""), &whose))
                return lm_call_refuse(r->call, "signature",
                                      redacted ? "%s: Invalid `data` in `redacted_thinking` block"
                                               : "%s: Invalid `signature` in `thinking` block",
                                      where);
        return 0;
}

/* clang-format off */
static const struct {
        const char *type, *roles;
        int (*check)(struct lm_messages_reader *r, const json_t *block, const char *where);
} kinds[] = {
        { "text",              "user assistant system tool_result", check_text },
        { "image",             "user tool_result",                  check_picture },
        { "document",          "user tool_result",                  check_picture },
        { "tool_use",          "assistant",                         check_tool_use },
        { "tool_result",       "user",                              check_tool_result },
        { "thinking",          "assistant",                         check_thought },
        { "redacted_thinking", "assistant",                         check_thought },
};
/* clang-format on */

static int check_block(struct lm_messages_reader *r, const json_t *block, const char *role,
                       const char *where)
{
        const char *type = json_str(block, "type", NULL);

        if (!json_is_object(block))
                return lm_call_refuse(r->call, "block", "%s: Input should be a valid dictionary",
                                      where);
        if (!type)
                return lm_call_refuse(r->call, "block", "%s.type: Field required", where);
        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (strcmp(type, kinds[i].type) != 0)
                        continue;
                if (!strstr(kinds[i].roles, role))
                        return lm_call_refuse(r->call, "block",
                                              "%s: `%s` blocks can not be in `%s` messages", where,
                                              type, role);
                return kinds[i].check(r, block, where);
        }
        return lm_call_refuse(r->call, "block",
                              "%s: Input tag '%.40s' found using 'type' does not match any of the "
                              "expected tags: 'document', 'image', 'redacted_thinking', 'text', "
                              "'thinking', 'tool_result', 'tool_use'",
                              where, type);
}

int lm_messages_check_content(struct lm_messages_reader *r, const json_t *content, const char *role,
                              const char *where)
{
        const json_t *block;
        size_t i;

        json_array_foreach(content, i, block) {
                char *at = mem_printf("%s.%zu", where, i);
                int rc = check_block(r, block, role, at);

                free(at);
                if (rc != 0)
                        return -1;
        }
        return 0;
}

static int check_message(struct lm_messages_reader *r, const json_t *m, size_t at)
{
        static const char *const known[] = { "role", "content", NULL };
        const json_t *content = json_object_get(m, "content");
        const char *role = json_str(m, "role", "");
        struct call *c = r->call;
        char where[48];

        snprintf(where, sizeof(where), "messages.%zu", at);
        if (strcmp(role, "system") == 0 && !r->newer)
                return lm_call_refuse(c, "role",
                                      "messages: Unexpected role \"system\". The Messages API "
                                      "accepts a top-level `system` parameter, not \"system\" as "
                                      "an input message role.");
        if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 &&
            strcmp(role, "system") != 0)
                return lm_call_refuse(c, "role", "%s.role: Input should be 'user' or 'assistant'",
                                      where);
        if (lm_messages_check_members(c, m, where, known) != 0)
                return -1;
        if (json_is_string(content) && lm_prompt_is_blank(json_string_value(content)))
                return lm_call_refuse(c, "blank_text", "messages: text content blocks must %s",
                                      *json_string_value(content) ? "contain non-whitespace text"
                                                                  : "be non-empty");
        if (json_is_string(content))
                return 0;
        if (!json_is_array(content))
                return lm_call_refuse(c, "content", "%s.content: Field required", where);
        if (json_array_size(content) == 0 && at + 1 < json_array_size(r->messages))
                return lm_call_refuse(c, "empty_message",
                                      "%s: all messages must have non-empty content except for "
                                      "the optional final assistant message",
                                      where);
        snprintf(where, sizeof(where), "messages.%zu.content", at);
        return lm_messages_check_content(r, content, role, where);
}

/* ---- calls and results ---- */

static bool is_result(const json_t *block)
{
        return lm_prompt_is(block, "type", "tool_result");
}

/* Is there a result for the call among the results the message begins with? */
static bool is_answered(const json_t *message, const char *id)
{
        const json_t *content = json_object_get(message, "content"), *block;
        size_t i;

        if (!lm_prompt_is(message, "role", "user"))
                return false;
        json_array_foreach(content, i, block) {
                if (!is_result(block))
                        return false;
                if (lm_prompt_is(block, "tool_use_id", id))
                        return true;
        }
        return false;
}

static bool has_call(const json_t *message, const char *id)
{
        const json_t *content = json_object_get(message, "content"), *block;
        size_t i;

        json_array_foreach(content, i, block) {
                if (lm_prompt_is(block, "type", "tool_use") && lm_prompt_is(block, "id", id))
                        return true;
        }
        return false;
}

static int check_calls(struct lm_messages_reader *r, size_t at)
{
        const json_t *content = json_object_get(json_array_get(r->messages, at), "content");
        const json_t *next = json_array_get(r->messages, at + 1), *block;
        struct buf open;
        size_t i;

        buf_init(&open, 400);
        json_array_foreach(content, i, block) {
                const char *id = json_str(block, "id", "");

                if (!lm_prompt_is(block, "type", "tool_use") || is_answered(next, id))
                        continue;
                buf_addf(&open, "%s%s", open.len ? ", " : "", id);
        }
        if (open.len > 0)
                lm_call_refuse(r->call, "call_without_result",
                               "messages.%zu: `tool_use` ids were found without `tool_result` "
                               "blocks immediately after: %s. Each `tool_use` block must have a "
                               "corresponding `tool_result` block in the next message.",
                               at, open.data);
        buf_release(&open);
        return r->call->status == 200 ? 0 : -1;
}

static int check_results(struct lm_messages_reader *r, size_t at)
{
        const json_t *content = json_object_get(json_array_get(r->messages, at), "content");
        const json_t *before = at ? json_array_get(r->messages, at - 1) : NULL, *block;
        size_t i, k;

        json_array_foreach(content, i, block) {
                const char *id = json_str(block, "tool_use_id", "");

                if (!is_result(block))
                        continue;
                if (!before || !lm_prompt_is(before, "role", "assistant") || !has_call(before, id))
                        return lm_call_refuse(
                                r->call, "result_without_call",
                                "messages.%zu.content.%zu: unexpected `tool_use_id` found in "
                                "`tool_result` blocks: %s. Each `tool_result` block must have a "
                                "corresponding `tool_use` block in the previous message.",
                                at, i, id);
                for (k = 0; k < i; k++) {
                        if (lm_prompt_is(json_array_get(content, k), "tool_use_id", id))
                                return lm_call_refuse(
                                        r->call, "result_twice",
                                        "messages.%zu.content.%zu: each tool_use must have a "
                                        "single result. Found multiple `tool_result` blocks with "
                                        "id: %s",
                                        at, i, id);
                }
        }
        return 0;
}

static int check_ids(struct lm_messages_reader *r)
{
        const json_t *m, *block;
        struct map seen;
        size_t i, k;
        int rc = 0;

        map_init(&seen);
        json_array_foreach(r->messages, i, m) {
                json_array_foreach(json_object_get(m, "content"), k, block) {
                        if (rc == 0 && lm_prompt_is(block, "type", "tool_use") &&
                            map_put(&seen, json_str(block, "id", ""), r))
                                rc = lm_call_refuse(r->call, "call_id_twice",
                                                    "messages.%zu.content.%zu: `tool_use` ids "
                                                    "must be unique",
                                                    i, k);
                }
        }
        map_release(&seen);
        return rc;
}

static int refuse_missing_thinking(struct lm_messages_reader *r, size_t at)
{
        return lm_call_refuse(r->call, "thinking_missing",
                              "messages.%zu.content.0.type: Expected `thinking` or "
                              "`redacted_thinking`, but found `tool_use`. When `thinking` is "
                              "enabled, a final `assistant` message must start with a thinking "
                              "block (preceeding the lastmost set of `tool_use` and `tool_result` "
                              "blocks).",
                              at);
}

/*
 * The thinking of the latest assistant message must be whole and in its order; in a tool loop it
 * must not be missing while thinking is on.
 */
static int check_latest_thinking(struct lm_messages_reader *r)
{
        size_t at = json_array_size(r->messages), i, count = 0, of = 0;
        const char *model = r->call->prompt.model->name;
        const json_t *content, *block;
        bool broken = false, thought = false;
        char answer[24] = "";

        while (at > 0 && !lm_prompt_is(json_array_get(r->messages, at - 1), "role", "assistant"))
                at--;
        if (at-- == 0)
                return 0;
        content = json_object_get(json_array_get(r->messages, at), "content");
        json_array_foreach(content, i, block) {
                bool redacted = lm_prompt_is(block, "type", "redacted_thinking");
                struct lm_signed s;

                thought = thought || (lm_prompt_is(block, "type", "tool_use") &&
                                      lm_messages_call_thought(json_str(block, "id", ""), model));
                if ((!redacted && !lm_prompt_is(block, "type", "thinking")) ||
                    !lm_sign_check(json_str(block, redacted ? "data" : "signature", ""), model,
                                   redacted ? "" : json_str(block, "thinking", ""), &s))
                        continue;
                broken = broken || s.at != count || (count > 0 && strcmp(answer, s.answer) != 0);
                snprintf(answer, sizeof(answer), "%s", s.answer);
                of = s.count;
                count++;
        }
        if (count == 0 && thought && r->call->prompt.thinks)
                return refuse_missing_thinking(r, at);
        if (count == of && !broken)
                return 0;
        return lm_call_refuse(r->call, "thinking_changed",
                              "messages.%zu.content.0: `thinking` or `redacted_thinking` blocks in "
                              "the latest assistant message cannot be modified. These blocks must "
                              "remain as they were in the original response.",
                              at);
}

static bool was_paused(struct lm_messages_reader *r, const json_t *message)
{
        char *text = lm_prompt_text(json_object_get(message, "content"));
        char sum[SHA256_HEX_SIZE];

        crypto_sha256_hex(text, strlen(text), sum);
        free(text);
        return map_get(&r->call->world->paused, sum) != NULL;
}

static int check_end(struct lm_messages_reader *r)
{
        const json_t *last = json_array_get(r->messages, json_array_size(r->messages) - 1);

        if (!lm_prompt_is(last, "role", "assistant") || (r->call->prompt.model->can & LM_PREFILL) ||
            was_paused(r, last))
                return 0;
        return lm_call_refuse(r->call, "assistant_last",
                              "This model does not support assistant message prefill. The "
                              "conversation must end with a user message.");
}

int lm_messages_check_list(struct lm_messages_reader *r)
{
        struct call *c = r->call;
        const json_t *m;
        size_t i;

        r->messages = json_object_get(c->body, "messages");
        if (!json_is_array(r->messages))
                return lm_call_refuse(c, "messages",
                                      r->messages ? "messages: Input should be a valid list"
                                                  : "messages: Field required");
        if (json_array_size(r->messages) == 0)
                return lm_call_refuse(c, "messages", "messages: at least one message is required");
        if (json_array_size(r->messages) > MAX_MESSAGES)
                return lm_call_refuse(c, "messages", "messages: at most %d messages are allowed",
                                      MAX_MESSAGES);
        json_array_foreach(r->messages, i, m) {
                if (check_message(r, m, i) != 0)
                        return -1;
        }
        if (lm_prompt_is(json_array_get(r->messages, 0), "role", "assistant"))
                return lm_call_refuse(c, "role",
                                      "messages: first message must use the \"user\" role");
        json_array_foreach(r->messages, i, m) {
                if (check_calls(r, i) != 0 || check_results(r, i) != 0)
                        return -1;
        }
        return check_ids(r) != 0 || check_end(r) != 0 ? -1 : check_latest_thinking(r);
}
