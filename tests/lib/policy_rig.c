#include "policy_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "rows/schema.h"
#include "rule_list.h"
#include "scratch.h"

static struct dispatch_adapter adapter(const char *name, const char *platform, const char *dm,
                                       const char *admin)
{
        char *entry = (char *)dm, *admin_entry = (char *)admin;
        struct setting_list list = { &entry, 1, true }, admins = { &admin_entry, 1, true };
        struct access_lists lists = { .dm = &list, .admins = admin ? &admins : NULL };

        return (struct dispatch_adapter){ .name = mem_strdup(name),
                                          .platform = mem_strdup(platform),
                                          .trusted = dm == NULL,
                                          .access = dm ? access_new(&lists) : NULL,
                                          .commands = admin != NULL,
                                          .max_hops = 3 };
}

void policy_rig_reload(struct policy_rig *g, const char *rules)
{
        struct dispatch_adapter *a = mem_array(2, sizeof(*a));
        size_t n;
        struct rule *list = rule_list_read(rules ? rules : "[]", &n);

        a[0] = adapter("tg", "telegram", g->dm, g->admin);
        a[1] = adapter("dc", "discord", g->dm, g->admin);
        dispatch_set(g->dispatch, a, 2, list, n, "echo");
}

static void open_rig(struct policy_rig *g)
{
        struct store_options options = { .url = "sqlite",
                                         .dir = g->dir,
                                         .migrations = schema_steps };
        struct bus_options bus = { .url = "local" };
        struct error err;

        g->loop = loop_new();
        g->store = store_open(g->loop, &options, &err);
        if (!g->store)
                fail_msg("%s", err.text);
        g->bus = bus_open(g->loop, g->store, &bus, &err);
        assert_non_null(g->bus);
        g->policy = runtime_policy_open(g->store, g->bus, &err);
        if (!g->policy)
                fail_msg("%s", err.text);
        g->dispatch = dispatch_new();
        dispatch_set_policy(g->dispatch, g->policy);
        policy_rig_reload(g, NULL);
}

static void close_rig(struct policy_rig *g)
{
        runtime_policy_detach_bus(g->policy);
        bus_close(g->bus);
        store_close(g->store);
        dispatch_free(g->dispatch);
        runtime_policy_free(g->policy);
        loop_free(g->loop);
}

struct policy_rig *policy_rig_new(const char *dm)
{
        struct policy_rig *g = mem_zalloc(sizeof(*g));

        g->dir = scratch_new();
        g->dm = dm;
        open_rig(g);
        return g;
}

void policy_rig_free(struct policy_rig *g)
{
        close_rig(g);
        scratch_free(g->dir);
        free(g);
}

void policy_rig_restart(struct policy_rig *g)
{
        close_rig(g);
        open_rig(g);
}

void policy_rig_done(void *outcome, const struct error *err)
{
        struct policy_outcome *o = outcome;

        o->done = true;
        o->error = err ? *err : (struct error){ 0 };
}

enum error_kind policy_rig_wait(struct policy_rig *g, struct policy_outcome *o)
{
        while (!o->done)
                loop_step(g->loop, true);
        return o->error.kind;
}

void policy_rig_commit(struct policy_rig *g, struct decision *out)
{
        struct error err;

        assert_non_null(out->extra.fn);
        if (store_write_now(g->store, out->extra.fn, out->extra.arg, &err) < 0)
                fail_msg("%s", err.text);
        if (out->extra.done)
                out->extra.done(out->extra.arg, NULL);
        out->extra.fn = NULL;
}

static struct decision decide(struct policy_rig *g, struct incoming *in)
{
        struct decision out = { 0 };

        dispatch_decide(g->dispatch, in, NULL, &out);
        if (out.extra.fn)
                policy_rig_commit(g, &out);
        return out;
}

struct decision policy_rig_dm(struct policy_rig *g, const char *adapter_name, const char *sender,
                              const char *text)
{
        struct incoming in = { .adapter = adapter_name,
                               .platform = strcmp(adapter_name, "tg") == 0 ? "telegram" : "discord",
                               .channel = sender,
                               .sender_id = sender,
                               .sender_name = sender,
                               .chat = CHAT_DM,
                               .text = text };

        return decide(g, &in);
}

struct decision policy_rig_group(struct policy_rig *g, const char *adapter_name, const char *sender,
                                 const char *text)
{
        struct incoming in = { .adapter = adapter_name,
                               .platform = strcmp(adapter_name, "tg") == 0 ? "telegram" : "discord",
                               .channel = "g",
                               .sender_id = sender,
                               .sender_name = sender,
                               .chat = CHAT_GROUP,
                               .is_mention = true,
                               .text = text };

        return decide(g, &in);
}
