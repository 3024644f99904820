/*
 * model_check: the last look at messages before they are sent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/llm/llm_transcript.h"
#include "base/json.h"
#include "base/utf8.h"

struct check {
        const json_t *messages;
        size_t at;
        json_t *ids; /* of the message's calls so far */
        struct error *err;
};

static int fault(const struct check *c, const char *what)
{
        return error_set(c->err, ERR_INVALID, "message %zu (%s): %s", c->at,
                         json_str(json_array_get(c->messages, c->at), "role", "no role"), what);
}

static int check_file(const struct check *c, const json_t *block)
{
        if (!*json_str(block, "data", ""))
                return fault(c, "an image or document has no data");
        return 0;
}

static int check_call(const struct check *c, const json_t *block)
{
        const char *id = json_str(block, "id", "");

        if (!*id || !*json_str(block, "name", ""))
                return fault(c, "a call has no id or no name");
        if (json_object_get(c->ids, id))
                return fault(c, "two calls have the same id");
        if (!json_is_object(json_object_get(block, "arguments")))
                return fault(c, "the arguments of a call are not an object");
        json_object_set_new(c->ids, id, json_true());
        return 0;
}

static int check_block(const struct check *c, const json_t *block, bool assistant)
{
        const char *type = json_str(block, "type", "");
        const json_t *text = json_object_get(block, "text");

        if (strcmp(type, "text") == 0) {
                if (!json_is_string(text) || llm_is_blank(json_string_value(text)))
                        return fault(c, "a text block is blank");
                if (!utf8_valid(json_string_value(text), json_string_length(text)))
                        return fault(c, "a text block is not valid UTF-8");
                return 0;
        }
        if (assistant && strcmp(type, "toolCall") == 0)
                return check_call(c, block);
        if (assistant && (strcmp(type, "thinking") == 0 || strcmp(type, "other") == 0))
                return 0;
        if (!assistant && (strcmp(type, "image") == 0 || strcmp(type, "document") == 0))
                return check_file(c, block);
        return fault(c, "a block has a type that does not belong there");
}

static int check_content(const struct check *c, const json_t *message, bool assistant)
{
        const json_t *content = json_object_get(message, "content");

        json_object_clear(c->ids);
        if (json_is_string(content) && !llm_is_blank(json_string_value(content)))
                return 0;
        if (!json_is_array(content) || json_array_size(content) == 0)
                return fault(c, "it has no content");
        for (size_t i = 0; i < json_array_size(content); i++) {
                if (check_block(c, json_array_get(content, i), assistant) < 0)
                        return -1;
        }
        return 0;
}

/* Each call of the message is followed by its result, in order. */
static int check_results(struct check *c, const json_t *message)
{
        const json_t *content = json_object_get(message, "content");

        for (size_t i = 0; i < json_array_size(content); i++) {
                const json_t *block = json_array_get(content, i), *result;

                if (!llm_type_is(block, "toolCall"))
                        continue;
                result = json_array_get(c->messages, ++c->at);
                if (!llm_role_is(result, "toolResult") ||
                    strcmp(json_str(result, "toolCallId", ""), json_str(block, "id", "")) != 0)
                        return fault(c, "the result of a call must be here");
                if (check_content(c, result, false) < 0)
                        return -1;
        }
        return 0;
}

static int check_message(struct check *c)
{
        const json_t *message = json_array_get(c->messages, c->at);
        const char *role = json_str(message, "role", "");

        if (strcmp(role, "user") == 0)
                return check_content(c, message, false);
        if (strcmp(role, "assistant") == 0)
                return check_content(c, message, true) < 0 ? -1 : check_results(c, message);
        if (strcmp(role, "toolResult") == 0)
                return fault(c, "a result without its call before it");
        return fault(c, "the role is user, assistant or toolResult");
}

int model_check(const json_t *messages, struct error *err)
{
        struct check c = { .messages = messages, .ids = json_object(), .err = err };
        size_t n = json_array_size(messages);
        const json_t *last = json_array_get(messages, n - 1);
        int rc = 0;

        if (n == 0)
                rc = error_set(err, ERR_INVALID, "there are no messages");
        for (; c.at < n && rc == 0; c.at++)
                rc = check_message(&c);
        c.at = n - 1;
        if (rc == 0 && llm_role_is(last, "assistant") &&
            strcmp(json_str(last, "stopReason", ""), "pause") != 0)
                rc = fault(&c, "the last message must not be the model's");
        json_decref(c.ids);
        return rc;
}
