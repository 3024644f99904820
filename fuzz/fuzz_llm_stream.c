/*
 * Arbitrary bytes as the stream, and as the whole answer, of each service. The first byte is the
 * size of the pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/utf8.h"

static void gather(void *arg, const char *text, size_t n)
{
        buf_add(arg, text, n);
}

/* The message has no blank text, and calls have an object or are marked. */
static void check_content(const struct llm_reader *r)
{
        json_t *content = llm_reader_content(r, NULL), *block;
        size_t i;

        json_array_foreach(content, i, block) {
                const char *type = json_string_value(json_object_get(block, "type"));
                const char *text = json_string_value(json_object_get(block, "text"));
                bool call = strcmp(type, "toolCall") == 0;

                if (strcmp(type, "text") == 0 && text[strspn(text, " \t\r\n\v\f")] == '\0')
                        abort();
                if (call && !json_is_object(json_object_get(block, "arguments")))
                        abort();
                if (call && !llm_reader_is_complete(r) && !json_object_get(block, "incomplete"))
                        abort();
        }
        json_decref(content);
}

static void check(struct llm_reader *r, const struct buf *streamed)
{
        check_content(r);
        if (!utf8_valid(r->text.data, r->text.len) ||
            !utf8_valid(r->failure.text, strlen(r->failure.text)) || streamed->len != r->text.len ||
            memcmp(streamed->data, r->text.data, streamed->len) != 0)
                abort();
}

static void read_stream(const struct llm_wire *wire, const char *bytes, size_t n, size_t piece)
{
        struct llm_reader r;
        struct buf streamed;
        int rc = 0;

        buf_init(&streamed, 0);
        llm_reader_init(&r, wire, gather, &streamed);
        for (size_t at = 0; at < n && rc == 0; at += piece)
                rc = llm_reader_stream(&r, bytes + at, n - at < piece ? n - at : piece);
        check(&r, &streamed);
        llm_reader_release(&r);
        buf_release(&streamed);
}

static void read_whole(const struct llm_wire *wire, const char *bytes, size_t n)
{
        struct llm_reader r;
        struct buf streamed;

        buf_init(&streamed, 0);
        llm_reader_init(&r, wire, gather, &streamed);
        llm_reader_body(&r, bytes, n);
        llm_reader_body_end(&r);
        check(&r, &streamed);
        llm_reader_release(&r);
        buf_release(&streamed);
}

static void read_failure(const char *bytes, size_t n)
{
        struct llm_failure f = { 0 };

        llm_reader_read_failure(&f, ERR_NET, bytes, n);
        if (!utf8_valid(f.text, strlen(f.text)))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct llm_wire *const wires[] = { &openai_wire,    &anthropic_wire,
                                                        &responses_wire, &agno_agent_wire,
                                                        &agno_team_wire, &agno_workflow_wire };
        const char *bytes = (const char *)data + 1;
        size_t n = size - 1;

        if (size == 0)
                return 0;
        for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
                read_stream(wires[i], bytes, n, (size_t)data[0] + 1);
                read_whole(wires[i], bytes, n);
        }
        read_failure(bytes, n);
        return 0;
}
