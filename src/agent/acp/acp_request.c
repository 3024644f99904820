/*
 * acp_request: what the agent requests of us. Every request is answered: one without an answer
 * blocks the agent.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "base/mem.h"

static void decline_form(struct acp *a, const json_t *id, const json_t *params)
{
        (void)params;
        acp_answer(a, id, json_pack("{s:s}", "action", "decline"));
}

static const struct {
        const char *method;
        void (*take)(struct acp *a, const json_t *id, const json_t *params);
} requests[] = {
        { "session/request_permission", acp_permission_ask },
        { "elicitation/create", decline_form },
        { "fs/read_text_file", acp_file_read },
        { "fs/write_text_file", acp_file_write },
        { "terminal/create", acp_terminal_create },
        { "terminal/output", acp_terminal_output },
        { "terminal/wait_for_exit", acp_terminal_wait },
        { "terminal/kill", acp_terminal_kill },
        { "terminal/release", acp_terminal_release },
};

void acp_requested(struct acp *a, const char *method, const json_t *id, const json_t *params)
{
        char *text;

        for (size_t i = 0; i < COUNT(requests); i++)
                if (strcmp(requests[i].method, method) == 0) {
                        requests[i].take(a, id, params);
                        return;
                }
        text = mem_printf("there is no method '%.100s'", method);
        acp_answer_error(a, id, ACP_METHOD_NOT_FOUND, text);
        free(text);
}
