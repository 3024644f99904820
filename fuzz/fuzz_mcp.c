/*
 * Any lines from an MCP server, at each stage: handshake, list, call. Nothing is sent anywhere, and
 * every call ends once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/mcp_private.h"
#include "base/log.h"

static char link_mark;

static int wire_open(struct mcp_server *s, struct error *err)
{
        (void)err;
        s->link = &link_mark;
        return 0;
}

static int wire_send(struct mcp_server *s, const struct mcp_message *m, struct error *err)
{
        (void)s;
        (void)err;
        if (m->n != strlen(m->text))
                abort();
        return 0;
}

static void wire_close(struct mcp_server *s, bool lost)
{
        (void)lost;
        s->link = NULL;
}

static const struct mcp_wire nowhere = {
        .name = "nowhere", .open = wire_open, .send = wire_send, .close = wire_close
};

/* Without a list kept from the last input. */
static const struct custom_source_ops ops = { .kind = "fuzz",
                                              .call = mcp_call,
                                              .cancel = mcp_cancel,
                                              .state = mcp_state_name,
                                              .free = mcp_server_free };
static const struct mcp_variant variant = { .ops = &ops, .own = true };

static void on_done(void *arg, struct tool_result *r)
{
        bool *done = arg;

        if (*done || json_array_size(r->content) == 0)
                abort();
        *done = true;
        json_decref(r->content);
        json_decref(r->details);
}

static void quiet(const char *line, void *arg)
{
        (void)line;
        (void)arg;
}

static struct custom_tools *registry(struct loop **loop)
{
        static struct custom_tools *all;
        static struct loop *l;

        if (!all) {
                l = loop_new();
                log_divert(quiet, NULL);
                all = custom_new(&(struct custom_options){
                        .loop = l, .dir = "/proc/none", .agent = "fuzz" });
        }
        *loop = l;
        return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static char no_url[] = "";
        static const struct mcp_conf conf = { .timeout_seconds = 1, .url = no_url };
        static const struct custom_handlers h = { .on_done = on_done };
        struct mcp_server *s;
        struct custom_call *call = NULL;
        struct loop *loop;
        struct custom_tools *all = registry(&loop);
        bool done = false;

        s = mcp_server_new(all, "fuzz", &conf, &variant);
        s->wire = &nowhere;
        custom_source_add(&s->base);
        for (int i = 0; i < 5 && s->state == MCP_IDLE; i++)
                loop_step(loop, true);
        for (const char *at = (const char *)data, *end = at + n; at < end && s->link;) {
                const char *stop = memchr(at, '\n', (size_t)(end - at));
                size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);

                mcp_received(s, at, length);
                at += length + 1;
                if (!call && !done && custom_count(all) > 0)
                        call = custom_call_start(
                                all, &(struct custom_request){ .key = custom_at(all, 0)->key }, &h,
                                &done);
                loop_step(loop, false);
        }
        if (call && !done)
                custom_call_cancel(call);
        custom_source_retire(&s->base);
        custom_changed(all);
        loop_step(loop, false);
        return 0;
}
