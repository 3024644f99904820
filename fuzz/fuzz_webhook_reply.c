/*
 * Arbitrary bytes as the reply of a webhook, of agent-chat, and to a reply URL. The first byte
 * chooses the content type.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http/http_agent.h"
#include "base/mem.h"
#include "base/utf8.h"

static void check(const struct http_agent_reply *a)
{
        size_t n = strlen(a->text);

        if (n > HTTP_AGENT_TEXT_MAX || !utf8_valid(a->text, n) ||
            a->part_count > HTTP_AGENT_PARTS_MAX || usage_tokens_in(&a->usage) < 0 ||
            a->usage.out < 0 || a->usage.cost_microusd < 0)
                abort();
        for (unsigned i = 0; i < a->part_count; i++) {
                if (!*a->parts[i] || !utf8_valid(a->parts[i], strlen(a->parts[i])))
                        abort();
        }
        if (a->part_count > 0 && !a->given)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const types[] = { "",
                                             "application/json",
                                             "text/plain",
                                             "text/html",
                                             "application/problem+json; x=y",
                                             "text/json;charset=utf-8",
                                             "image/png",
                                             "+json" };
        static http_agent_members_fn *readers[2];
        struct http_agent_reply a;
        struct error err;
        char *body;

        readers[0] = http_agent_reply_members;
        readers[1] = agent_chat_wire.read;
        if (size == 0)
                return 0;
        body = mem_dup(data + 1, size - 1); /* no NUL after it, so reading on is found */
        for (size_t i = 0; i < COUNT(readers); i++) {
                err = (struct error){ 0 };
                if (http_agent_reply_read(&a, readers[i], types[data[0] % COUNT(types)], body,
                                          size - 1, &err) == 0) {
                        check(&a);
                        http_agent_reply_release(&a);
                } else if (err.kind == ERR_NONE || !utf8_valid(err.text, strlen(err.text))) {
                        abort();
                }
        }
        free(body);
        return 0;
}
