/*
 * Sessions of other programs. Whatever the file holds, what is read is a list that services accept:
 * no empty message, and each call is followed by its results before anything else.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/context_entry.h"
#include "agent/workspace/log_record.h"
#include "base/json.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const json_t *messages)
{
        json_t *open = json_object();
        const json_t *m, *block;
        size_t i, k;

        json_array_foreach(messages, i, m) {
                const char *role = json_str(m, "role", "");
                const json_t *content = json_object_get(m, "content");

                if (json_array_size(content) == 0)
                        abort();
                if (strcmp(role, "toolResult") == 0) {
                        if (json_object_del(open, json_str(m, "toolCallId", "")) < 0)
                                abort();
                        continue;
                }
                if (json_object_size(open) > 0)
                        abort();
                json_array_foreach(content, k, block)
                        if (strcmp(role, "assistant") == 0 &&
                            strcmp(json_str(block, "type", ""), "toolCall") == 0)
                                json_object_set_new(open, json_str(block, "id", ""), json_null());
        }
        if (json_object_size(open) > 0)
                abort();
        json_decref(open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = mem_dup(data, size);
        struct log_record record;
        size_t skipped;
        json_t *json = context_read(text, size, &skipped, NULL);

        if (json)
                check(json);
        json_decref(json);
        context_line_step(text, size);
        if (log_record_read(&record, text, size, "C1", &json, NULL) == 0) {
                struct buf out;

                buf_init(&out, 0);
                log_record_write(&record, &out);
                buf_release(&out);
                json_decref(json);
        }
        free(text);
        return 0;
}
