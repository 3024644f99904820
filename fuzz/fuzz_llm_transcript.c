/*
 * Any JSON as the messages of a conversation: every wire writes a request of valid JSON, and what
 * it is built from passes the check before sending, unless nothing is left.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm_transcript.h"
#include "base/json.h"

static void write_request(const struct llm_wire *wire, json_t *messages)
{
        static const struct llm_conf conf = { .temperature = -1, .prices = { -1, -1, -1, -1, -1 } };
        const struct llm m = {
                .conf = &conf, .wire = wire, .model = "m", .base = (char *)wire->base
        };
        const struct model_request q = { .messages = messages, .tools = messages, .system = "s" };
        struct llm_request r;
        struct error err = { 0 };
        struct buf out;
        json_t *body;

        buf_init(&out, 0);
        llm_request_init(&r, &m, &q);
        if (json_array_size(r.messages) > 0 && model_check(r.messages, &err) < 0)
                abort();
        wire->write(&m, &r, &out);
        body = json_loadb(out.data, out.len, 0, NULL);
        if (!body)
                abort();
        json_decref(body);
        llm_request_release(&r);
        buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *messages = json_read((const char *)data, size, NULL);

        if (json_is_array(messages)) {
                write_request(&anthropic_wire, messages);
                write_request(&openai_wire, messages);
                write_request(&responses_wire, messages);
        }
        json_decref(messages);
        return 0;
}
