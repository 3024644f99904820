/*
 * model_stub: model_check and model_estimate, until the model's own part has them.
 */
#ifndef TESTS_AGENT_MODEL_STUB_H
#define TESTS_AGENT_MODEL_STUB_H

#include "agent/llm/model.h"
#include "base/json.h"

int64_t model_estimate(const json_t *messages)
{
        char *text = json_text(messages);
        int64_t n = (int64_t)strlen(text) * 2 / 7;

        free(text);
        return n;
}

/* Every call has its result next, in order; texts are not blank; the end is not the model's. */
int model_check(const json_t *messages, struct error *err)
{
        const json_t *m, *block;
        const char *waiting[64];
        size_t i, k, left = 0, next = 0;

        json_array_foreach(messages, i, m) {
                const char *role = json_str(m, "role", "");

                if (i == 0 && strcmp(role, "user") != 0)
                        return error_set(err, ERR_INVALID, "message 0 is not the user's");
                if (strcmp(role, "toolResult") == 0) {
                        if (next >= left ||
                            strcmp(waiting[next], json_str(m, "toolCallId", "")) != 0)
                                return error_set(err, ERR_INVALID, "message %zu: no such call", i);
                        next++;
                } else if (next < left) {
                        return error_set(err, ERR_INVALID, "message %zu: a result is missing", i);
                }
                if (json_array_size(json_object_get(m, "content")) == 0)
                        return error_set(err, ERR_INVALID, "message %zu is empty", i);
                if (strcmp(role, "assistant") == 0) {
                        left = next = 0;
                        json_array_foreach(json_object_get(m, "content"), k, block)
                                if (strcmp(json_str(block, "type", ""), "toolCall") == 0)
                                        waiting[left++] = json_str(block, "id", "");
                }
        }
        return next < left ? error_set(err, ERR_INVALID, "the last result is missing") : 0;
}

#endif
