/*
 * Refuses what Anthropic's Messages refuses, in its words, and reads the rest into the prompt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_messages.h"

#define MAX_MESSAGES   100000
#define MAX_MARKS      4
#define MAX_TOOL_NAME  128
#define THINKING_LEAST 1024
#define NEWER_VERSION  "2026-10-21"

struct reader {
        struct call *call;
        const json_t *messages;
        size_t marks;
        bool newer; /* the newer API version */
};

static bool is(const json_t *object, const char *key, const char *text)
{
        return strcmp(json_str(object, key, ""), text) == 0;
}

/* ---- members ---- */

/* NULL ends the known ones. */
static int check_members(struct call *c, const json_t *object, const char *where,
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

static int check_version(struct reader *r)
{
        const char *version = r->call->version;

        if (!version)
                return lm_call_refuse(r->call, "version", "anthropic-version: header is required");
        r->newer = strcmp(version, NEWER_VERSION) == 0;
        if (!r->newer && strcmp(version, "2023-06-01") != 0 && strcmp(version, "2023-01-01") != 0)
                return lm_call_refuse(r->call, "version",
                                      "anthropic-version: \"%.40s\" is not a valid version",
                                      version);
        return 0;
}

static int check_sampling(struct reader *r)
{
        static const char *const keys[] = { "temperature", "top_p", "top_k" };
        struct call *c = r->call;

        for (size_t i = 0; i < COUNT(keys); i++) {
                if (!json_object_get(c->body, keys[i]))
                        continue;
                if (r->newer)
                        return lm_call_refuse(c, "sampling", "%s: Extra inputs are not permitted",
                                              keys[i]);
                if (!(c->prompt.model->can & LM_SAMPLING))
                        return lm_call_refuse(c, "sampling", "`%s` is deprecated for this model.",
                                              keys[i]);
        }
        return 0;
}

static int check_model(struct call *c)
{
        const char *name = json_str(c->body, "model", NULL);

        if (!name)
                return lm_call_refuse(c, "model", "model: Field required");
        c->prompt.model = lm_models_find(name, true);
        if (c->prompt.model)
                return 0;
        c->status = 404;
        return lm_call_refuse(c, "model", "model: %.100s", name);
}

static int check_max_tokens(struct call *c)
{
        const json_t *value = json_object_get(c->body, "max_tokens");
        int64_t n = json_integer_value(value);

        if (strcmp(c->operation, "count_tokens") == 0)
                return value ? lm_call_refuse(c, "max_tokens",
                                              "max_tokens: Extra inputs are not permitted")
                             : 0;
        if (!value)
                return lm_call_refuse(c, "max_tokens", "max_tokens: Field required");
        if (!json_is_integer(value))
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: Input should be a valid integer");
        if (n < 0)
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: must be greater than or equal to 0");
        if (n > c->prompt.model->output)
                return lm_call_refuse(c, "max_tokens",
                                      "max_tokens: %lld > %lld, which is the maximum allowed "
                                      "number of output tokens for %s",
                                      (long long)n, (long long)c->prompt.model->output,
                                      c->prompt.model->name);
        c->prompt.max_tokens = n;
        c->prompt.warms = n == 0;
        return 0;
}

static int check_thinking(struct call *c)
{
        const json_t *thinking = json_object_get(c->body, "thinking");
        const struct lm_model *m = c->prompt.model;
        int64_t budget = json_int(thinking, "budget_tokens", 0);
        const char *type = json_str(thinking, "type", "");

        if (!thinking)
                return 0;
        if (strcmp(type, "disabled") == 0)
                return 0;
        if ((strcmp(type, "enabled") == 0 && !(m->can & LM_THINK_ENABLED)) ||
            (strcmp(type, "adaptive") == 0 && !(m->can & LM_THINK_ADAPTIVE)) ||
            (strcmp(type, "between_tools") == 0 && !(m->can & LM_THINK_BETWEEN)))
                return lm_call_refuse(c, "thinking",
                                      "\"thinking.type.%s\" is not supported for this model.",
                                      type);
        if (strcmp(type, "enabled") == 0) {
                if (budget < THINKING_LEAST)
                        return lm_call_refuse(c, "thinking",
                                              "thinking.enabled.budget_tokens: Input should be "
                                              "greater than or equal to 1024");
                if (c->prompt.max_tokens && budget >= c->prompt.max_tokens)
                        return lm_call_refuse(c, "thinking",
                                              "`max_tokens` must be greater than "
                                              "`thinking.budget_tokens`.");
        } else if (strcmp(type, "adaptive") != 0 && strcmp(type, "between_tools") != 0) {
                return lm_call_refuse(c, "thinking",
                                      "thinking: Input tag '%.40s' found using 'type' does not "
                                      "match any of the expected tags: 'adaptive', "
                                      "'between_tools', 'disabled', 'enabled'",
                                      type);
        }
        c->prompt.thinks = true;
        c->prompt.thinking_hidden = is(thinking, "display", "omitted");
        return 0;
}

/* ---- marks and texts ---- */

static int check_mark(struct reader *r, const json_t *block, const char *where)
{
        const json_t *control = json_object_get(block, "cache_control");
        const char *ttl = json_str(control, "ttl", "5m");

        if (!control || json_is_null(control))
                return 0;
        if (!is(control, "type", "ephemeral"))
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

static int check_text(struct reader *r, const json_t *block, const char *where)
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
        if (check_members(r->call, block, where, known) != 0)
                return -1;
        return check_mark(r, block, where);
}

/* ---- blocks of messages ---- */

static int check_picture(struct reader *r, const json_t *block, const char *where)
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
        if (check_members(r->call, block, where, known) != 0)
                return -1;
        return check_mark(r, block, where);
}

static int check_tool_use(struct reader *r, const json_t *block, const char *where)
{
        static const char *const known[] = { "type",          "id",     "name",         "input",
                                             "cache_control", "caller", "toolset_name", NULL };
        const char *id = json_str(block, "id", ""), *name = json_str(block, "name", "");

        if (!lm_prompt_is_name(id))
                return lm_call_refuse(r->call, "call_id",
                                      "%s.tool_use.id: String should match pattern "
                                      "'^[a-zA-Z0-9_-]+$'",
                                      where);
        if (!lm_prompt_is_name(name) || strlen(name) > MAX_TOOL_NAME)
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
        if (check_members(r->call, block, where, known) != 0)
                return -1;
        return check_mark(r, block, where);
}

static int check_content(struct reader *r, const json_t *content, const char *role,
                         const char *where);

static int check_tool_result(struct reader *r, const json_t *block, const char *where)
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
        if (check_members(r->call, block, where, known) != 0 || check_mark(r, block, where) != 0)
                return -1;
        if (json_is_array(content)) {
                inner = mem_printf("%s.tool_result.content", where);
                rc = check_content(r, content, "tool_result", inner);
                free(inner);
        }
        return rc;
}

static int check_thought(struct reader *r, const json_t *block, const char *where)
{
        bool redacted = is(block, "type", "redacted_thinking");
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
        int (*check)(struct reader *r, const json_t *block, const char *where);
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

static int check_block(struct reader *r, const json_t *block, const char *role, const char *where)
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

static int check_content(struct reader *r, const json_t *content, const char *role,
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

static int check_message(struct reader *r, const json_t *m, size_t at)
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
        if (check_members(c, m, where, known) != 0)
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
        return check_content(r, content, role, where);
}

/* ---- calls and results ---- */

static bool is_result(const json_t *block)
{
        return is(block, "type", "tool_result");
}

/* Is there a result for the call among the results the message begins with? */
static bool is_answered(const json_t *message, const char *id)
{
        const json_t *content = json_object_get(message, "content"), *block;
        size_t i;

        if (!is(message, "role", "user"))
                return false;
        json_array_foreach(content, i, block) {
                if (!is_result(block))
                        return false;
                if (is(block, "tool_use_id", id))
                        return true;
        }
        return false;
}

static bool has_call(const json_t *message, const char *id)
{
        const json_t *content = json_object_get(message, "content"), *block;
        size_t i;

        json_array_foreach(content, i, block) {
                if (is(block, "type", "tool_use") && is(block, "id", id))
                        return true;
        }
        return false;
}

static int check_calls(struct reader *r, size_t at)
{
        const json_t *content = json_object_get(json_array_get(r->messages, at), "content");
        const json_t *next = json_array_get(r->messages, at + 1), *block;
        struct buf open;
        size_t i;

        buf_init(&open, 400);
        json_array_foreach(content, i, block) {
                const char *id = json_str(block, "id", "");

                if (!is(block, "type", "tool_use") || is_answered(next, id))
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

static int check_results(struct reader *r, size_t at)
{
        const json_t *content = json_object_get(json_array_get(r->messages, at), "content");
        const json_t *before = at ? json_array_get(r->messages, at - 1) : NULL, *block;
        size_t i, k;

        json_array_foreach(content, i, block) {
                const char *id = json_str(block, "tool_use_id", "");

                if (!is_result(block))
                        continue;
                if (!before || !is(before, "role", "assistant") || !has_call(before, id))
                        return lm_call_refuse(
                                r->call, "result_without_call",
                                "messages.%zu.content.%zu: unexpected `tool_use_id` found in "
                                "`tool_result` blocks: %s. Each `tool_result` block must have a "
                                "corresponding `tool_use` block in the previous message.",
                                at, i, id);
                for (k = 0; k < i; k++) {
                        if (is(json_array_get(content, k), "tool_use_id", id))
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

static int check_ids(struct reader *r)
{
        const json_t *m, *block;
        struct map seen;
        size_t i, k;
        int rc = 0;

        map_init(&seen);
        json_array_foreach(r->messages, i, m) {
                json_array_foreach(json_object_get(m, "content"), k, block) {
                        if (rc == 0 && is(block, "type", "tool_use") &&
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

static int refuse_missing_thinking(struct reader *r, size_t at)
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
static int check_latest_thinking(struct reader *r)
{
        size_t at = json_array_size(r->messages), i, count = 0, of = 0;
        const char *model = r->call->prompt.model->name;
        const json_t *content, *block;
        bool broken = false, thought = false;
        char answer[24] = "";

        while (at > 0 && !is(json_array_get(r->messages, at - 1), "role", "assistant"))
                at--;
        if (at-- == 0)
                return 0;
        content = json_object_get(json_array_get(r->messages, at), "content");
        json_array_foreach(content, i, block) {
                bool redacted = is(block, "type", "redacted_thinking");
                struct lm_signed s;

                thought = thought || (is(block, "type", "tool_use") &&
                                      lm_messages_call_thought(json_str(block, "id", ""), model));
                if ((!redacted && !is(block, "type", "thinking")) ||
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

static bool was_paused(struct reader *r, const json_t *message)
{
        char *text = lm_prompt_text(json_object_get(message, "content"));
        char sum[SHA256_HEX_SIZE];

        crypto_sha256_hex(text, strlen(text), sum);
        free(text);
        return map_get(&r->call->world->paused, sum) != NULL;
}

static int check_end(struct reader *r)
{
        const json_t *last = json_array_get(r->messages, json_array_size(r->messages) - 1);

        if (!is(last, "role", "assistant") || (r->call->prompt.model->can & LM_PREFILL) ||
            was_paused(r, last))
                return 0;
        return lm_call_refuse(r->call, "assistant_last",
                              "This model does not support assistant message prefill. The "
                              "conversation must end with a user message.");
}

static int check_messages(struct reader *r)
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
        if (is(json_array_get(r->messages, 0), "role", "assistant"))
                return lm_call_refuse(c, "role",
                                      "messages: first message must use the \"user\" role");
        json_array_foreach(r->messages, i, m) {
                if (check_calls(r, i) != 0 || check_results(r, i) != 0)
                        return -1;
        }
        return check_ids(r) != 0 || check_end(r) != 0 ? -1 : check_latest_thinking(r);
}

/* ---- system and tools ---- */

static int check_system(struct reader *r)
{
        const json_t *system = json_object_get(r->call->body, "system");

        if (!system || json_is_string(system))
                return 0;
        if (!json_is_array(system))
                return lm_call_refuse(r->call, "system", "system: Input should be a valid list");
        return check_content(r, system, "system", "system");
}

static int check_tool(struct reader *r, const json_t *tool, size_t at)
{
        static const char *const known[] = { "type",
                                             "name",
                                             "description",
                                             "input_schema",
                                             "cache_control",
                                             "strict",
                                             "defer_loading",
                                             "eager_input_streaming",
                                             "input_examples",
                                             "allowed_callers",
                                             NULL };
        const json_t *schema = json_object_get(tool, "input_schema"), *type;
        const char *name = json_str(tool, "name", "");
        char where[40];

        snprintf(where, sizeof(where), "tools.%zu", at);
        if (!lm_prompt_is_name(name) || strlen(name) > MAX_TOOL_NAME)
                return lm_call_refuse(r->call, "tool_name",
                                      "%s.custom.name: String should match pattern "
                                      "'^[a-zA-Z0-9_-]{1,128}$'",
                                      where);
        type = json_object_get(schema, "type");
        if (!json_is_object(schema))
                return lm_call_refuse(r->call, "schema", "%s.custom.input_schema: Field required",
                                      where);
        if (!type)
                return lm_call_refuse(r->call, "schema",
                                      "%s.custom.input_schema.type: Field required", where);
        if (!json_is_string(type) || strcmp(json_string_value(type), "object") != 0)
                return lm_call_refuse(r->call, "schema",
                                      "%s.custom.input_schema.type: Input should be 'object'",
                                      where);
        if (check_members(r->call, tool, where, known) != 0)
                return -1;
        return check_mark(r, tool, where);
}

static int check_tools(struct reader *r)
{
        const json_t *tools = json_object_get(r->call->body, "tools"), *tool;
        const json_t *choice = json_object_get(r->call->body, "tool_choice");
        struct map names;
        size_t i;
        int rc = 0;

        if (tools && !json_is_array(tools))
                return lm_call_refuse(r->call, "tools", "tools: Input should be a valid list");
        if (choice && json_array_size(tools) == 0)
                return lm_call_refuse(r->call, "tool_choice",
                                      "tool_choice may only be specified while providing tools");
        map_init(&names);
        json_array_foreach(tools, i, tool) {
                if (rc == 0)
                        rc = check_tool(r, tool, i);
                if (rc == 0 && map_put(&names, json_str(tool, "name", ""), r))
                        rc = lm_call_refuse(r->call, "tool_name",
                                            "tools: Tool names must be unique.");
        }
        if (rc == 0 && is(choice, "type", "tool") && !map_get(&names, json_str(choice, "name", "")))
                rc = lm_call_refuse(r->call, "tool_choice",
                                    "Tool '%.64s' not found in provided tools",
                                    json_str(choice, "name", ""));
        map_release(&names);
        if (is(choice, "type", "any"))
                snprintf(r->call->prompt.forced, sizeof(r->call->prompt.forced), "*");
        else if (is(choice, "type", "tool"))
                snprintf(r->call->prompt.forced, sizeof(r->call->prompt.forced), "%.64s",
                         json_str(choice, "name", ""));
        r->call->prompt.one_call = json_flag(choice, "disable_parallel_tool_use", false);
        return rc;
}

/* ---- the prompt ---- */

static void read_turn(struct lm_prompt *p, const json_t *m)
{
        const json_t *content = json_object_get(m, "content"), *block;
        json_t *calls = json_array();
        char *text;
        size_t i;

        json_array_foreach(content, i, block) {
                if (is(block, "type", "tool_use"))
                        json_array_append_new(calls, json_pack("{s:s,s:s}", "id",
                                                               json_str(block, "id", ""), "name",
                                                               json_str(block, "name", "")));
                if (!is_result(block))
                        continue;
                text = lm_prompt_text(json_object_get(block, "content"));
                lm_prompt_tool(p, json_str(block, "tool_use_id", ""), text);
                free(text);
        }
        text = lm_prompt_text(content);
        if (is(m, "role", "assistant"))
                lm_prompt_assistant(p, text, json_incref(calls));
        else if (is(m, "role", "user") && *text)
                lm_prompt_user(p, text);
        free(text);
        json_decref(calls);
}

/* A string is one text block; the block's place is part of what is cached. */
static void add_blocks(struct lm_blocks *b, const char *where, const json_t *content)
{
        const json_t *block;
        json_t *text;
        size_t i;

        json_array_foreach(content, i, block)
                lm_blocks_add(b, where, block);
        if (!json_is_string(content))
                return;
        text = json_pack("{s:s,s:O}", "type", "text", "text", content);
        lm_blocks_add(b, where, text);
        json_decref(text);
}

/* Thinking and tool choice are part of what messages are cached under. */
static char *message_scope(const struct call *c, const char *role)
{
        const json_t *thinking = json_object_get(c->body, "thinking");
        const json_t *choice = json_object_get(c->body, "tool_choice");
        char *a = thinking ? json_text(thinking) : mem_strdup("");
        char *b = choice ? json_text(choice) : mem_strdup("");
        char *all = mem_printf("%s %s %s", role, a, b);

        free(a);
        free(b);
        return all;
}

static void read_prompt(struct reader *r)
{
        struct call *c = r->call;
        struct lm_prompt *p = &c->prompt;
        const json_t *value, *all = json_object_get(c->body, "cache_control");
        const json_t *system = json_object_get(c->body, "system");
        char *text = lm_prompt_text(system);
        size_t i;

        buf_addstr(&p->system, text);
        free(text);
        json_array_foreach(json_object_get(c->body, "tools"), i, value) {
                lm_blocks_add(&p->blocks, "tools", value);
                lm_prompt_add_tool(p, json_str(value, "name", ""),
                                   json_object_get(value, "input_schema"));
        }
        if (is(json_object_get(c->body, "tool_choice"), "type", "none"))
                json_array_clear(p->tools);
        add_blocks(&p->blocks, "system", system);
        json_array_foreach(r->messages, i, value) {
                char *scope = message_scope(c, json_str(value, "role", ""));

                add_blocks(&p->blocks, scope, json_object_get(value, "content"));
                free(scope);
                read_turn(p, value);
        }
        if (json_is_object(all) && p->blocks.count > 0)
                p->blocks.list[p->blocks.count - 1].mark =
                        is(all, "ttl", "1h") ? LM_MARK_1H : LM_MARK_5M;
        p->stream = json_flag(c->body, "stream", false);
}

int lm_messages_check(struct call *c)
{
        static const char *const known[] = {
                "model",           "messages",       "max_tokens",
                "system",          "tools",          "tool_choice",
                "thinking",        "stream",         "cache_control",
                "metadata",        "temperature",    "top_p",
                "top_k",           "stop_sequences", "service_tier",
                "output_config",   "diagnostics",    "container",
                "inference_geo",   "speed",          "context_management",
                "user_profile_id", "workspace_id",   NULL
        };
        struct reader r = { .call = c };

        if (check_version(&r) != 0 || check_members(c, c->body, "", known) != 0 ||
            check_model(c) != 0 || check_max_tokens(c) != 0 || check_sampling(&r) != 0 ||
            check_thinking(c) != 0 || check_system(&r) != 0 || check_tools(&r) != 0 ||
            check_messages(&r) != 0 || check_mark(&r, c->body, "request") != 0)
                return -1;
        if (r.marks > MAX_MARKS)
                return lm_call_refuse(c, "too_many_marks",
                                      "A maximum of %d blocks with cache_control may be provided. "
                                      "Found %zu.",
                                      MAX_MARKS, r.marks);
        read_prompt(&r);
        return 0;
}
