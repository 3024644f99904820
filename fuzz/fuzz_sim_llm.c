/*
 * What the simulated model services read from outside: requests of three wires, and scenarios. The
 * first byte chooses. An answer of theirs must be JSON, or a refusal.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "net/loop.h"
#include "sim/llm/lm_call.h"
#include "sim/llm/lm_scenario.h"
#include "sim/llm/lm_world.h"

#define WORLD_INPUTS 500

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A world serves many inputs, so that what one of them leaves behind meets the next. */
static struct world *the_world(void)
{
        static struct world *w;
        static struct loop *l;
        static unsigned used;

        if (w && used++ % WORLD_INPUTS == 0) {
                lm_world_free(w);
                loop_step(l, false); /* timers go in a round of their loop */
                w = NULL;
        }
        if (!l)
                l = loop_new();
        if (!w) {
                w = lm_world_new(l);
                w->base.quiet = true;
        }
        return w;
}

static void request(struct world *w, const struct lm_wire *wire, const char *text, size_t n)
{
        struct buf out;
        json_t *value;

        buf_init(&out, 0);
        if (lm_call_try(w, wire, text, n, &out) == 200 && out.data[0] == '{') {
                value = json_read(out.data, out.len, NULL);
                if (!value)
                        abort();
                json_decref(value);
        }
        buf_release(&out);
}

static void scenario(struct world *w, const char *text, size_t n)
{
        json_t *value = json_read(text, n, NULL);
        struct error err = { 0 };
        struct buf out;

        buf_init(&out, 0);
        jsonw_open(&out, '{');
        if (value && lm_scenario_set(w, value, &out, &err) != 0)
                lm_scenario_next(w, value, &out, &err);
        buf_release(&out);
        json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const struct lm_wire *const wires[] = { &lm_messages, &lm_chat, &lm_responses };
        struct world *w = the_world();

        if (n == 0)
                return 0;
        if (data[0] % 4 == 3)
                scenario(w, (const char *)data + 1, n - 1);
        else
                request(w, wires[data[0] % 4], (const char *)data + 1, n - 1);
        return 0;
}
