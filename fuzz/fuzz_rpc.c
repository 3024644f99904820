/*
 * Any lines from pi or omp, in any phase of a turn: the first byte picks the program, and lines
 * that begin with '!' are what people do meanwhile. Every question is answered at most once, and a
 * turn ends at most once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/agent/fake_child.h"
#include "base/log.h"

static void quiet(const char *line, void *arg)
{
        (void)line;
        (void)arg;
}

static void answer_question(struct child *c)
{
        child_answer_fn *answer = c->answer;

        c->answer = NULL;
        if (answer)
                answer(c->answer_arg, c->run.id % 2, NULL);
}

/* What people do. */
static void act(struct child *c, char what)
{
        bool ready = c->state.phase != RPC_GREETING;

        if (what == 'p' && ready && !c->works && c->state.phase != RPC_ABORTING)
                fake_child_prompt(c);
        else if (what == 's' && c->works)
                rpc_child_dialect.steer(c, "more", c->state.phase == RPC_IDLE);
        else if (what == 'c' && c->works)
                fake_child_cancel(c);
        else if (what == 'a')
                answer_question(c);
        else if (what == 'h')
                c->holds_files = !c->holds_files;
        else if (what == 'f')
                fake_child_files(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static struct loop *loop;
        struct child *c;
        unsigned prompts = 0;

        if (!loop) {
                loop = loop_new();
                log_divert(quiet, NULL);
        }
        if (n == 0)
                return 0;
        c = fake_child_new(loop, data[0] % 2 ? "omp" : "pi");
        for (const char *at = (const char *)data + 1, *end = (const char *)data + n; at < end;) {
                const char *stop = memchr(at, '\n', (size_t)(end - at));
                size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
                bool worked = c->works;

                if (length == 2 && at[0] == '!')
                        act(c, at[1]);
                else
                        fake_child_line(c, at, length);
                prompts += !worked && c->works;
                if (c->sent.len > 1 << 20)
                        buf_clear(&c->sent);
                at += length + 1;
        }
        /* an end confirms a stopped turn, too */
        if (c->overs > 2 * prompts)
                abort();
        fake_child_free(c);
        loop_step(loop, false);
        return 0;
}
