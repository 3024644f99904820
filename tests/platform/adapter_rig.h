/*
 * adapter_rig: an adapter against a scripted HTTP server and a road that records.
 *
 * The rigs of the platforms include it; each test program includes one of them, in one file.
 */
#ifndef TESTS_ADAPTER_RIG_H
#define TESTS_ADAPTER_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "fake_road.h"
#include "platform/platform.h"

struct rig {
        const char *platform, *name; /* of the adapter */
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct adapters *adapters;
        struct fake_server *server;
        struct fake_answer script[64];
        char *bytes[64];
        size_t count;
        unsigned greetings; /* requests before the first that matters */
};

/* Adds an answer to the script; json NULL: the server stays silent. */
static inline void says_with(struct rig *g, int status, const char *headers, const char *json)
{
        if (json)
                g->bytes[g->count] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n%s",
                                                status, strlen(json), headers, json);
        g->script[g->count] = (struct fake_answer){ .bytes = g->bytes[g->count] };
        g->count++;
}

static inline void says(struct rig *g, int status, const char *json)
{
        says_with(g, status, "", json);
}

/* Puts answers before those of the script. */
static inline void says_first(struct rig *g, const char *const *jsons, size_t n)
{
        size_t wanted = g->count;

        memmove(g->script + n, g->script, sizeof(g->script[0]) * wanted);
        memmove(g->bytes + n, g->bytes, sizeof(g->bytes[0]) * wanted);
        memset(g->bytes, 0, sizeof(g->bytes[0]) * n);
        g->count = 0;
        for (size_t i = 0; i < n; i++)
                says(g, 200, jsons[i]);
        g->count = wanted + n;
}

static inline struct rig *adapter_rig_new(const char *platform, const char *name)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        char *state;

        fake_road_reset();
        g->platform = platform;
        g->name = name;
        g->dir = scratch_new();
        state = scratch_path(g->dir, "state");
        assert_int_equal(mkdir(state, 0700), 0);
        free(state);
        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        g->adapters = adapters_new(g->loop, g->http, g->dir);
        adapters_set_road(g->adapters, FAKE_ROAD);
        return g;
}

static inline void rig_free(struct rig *g)
{
        adapters_free(g->adapters);
        /* late receipts are ignored */
        for (unsigned i = 0; i < COUNT(fake_road.arrivals); i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE);
        http_client_free(g->http);
        if (g->server)
                fake_server_free(g->server);
        loop_free(g->loop);
        for (size_t i = 0; i < g->count; i++)
                free(g->bytes[i]);
        scratch_free(g->dir);
        free(g);
}

static inline int rig_end(void **state)
{
        rig_free(*state);
        return 0;
}

/* Configures the adapter; `more` are further settings and begin with a comma. */
static inline void rig_apply(struct rig *g, const char *token, const char *more)
{
        struct error err = { 0 };
        struct adapter_conf *c;
        char *json = mem_printf("{\"botToken\":\"%s\",\"apiBase\":\"http://127.0.0.1:%d\"%s}",
                                token, fake_server_port(g->server), more);

        c = adapter_conf_make(g->name, g->platform, json, &err);
        free(json);
        if (!c)
                fail_msg("%s", err.text);
        assert_int_equal(adapters_apply(g->adapters, &c, 1, &err), 0);
}

static inline struct adapter *rig_adapter(struct rig *g)
{
        return adapters_find(g->adapters, g->name);
}

static inline void rig_until_state(struct rig *g, enum adapter_state state)
{
        for (int i = 0; i < 100000 && rig_adapter(g)->state != state; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, state);
}

/* Runs the loop until the server has had n requests after the greeting. */
static inline void rig_requests(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && fake_server_requests(g->server) < g->greetings + n; i++)
                loop_step(g->loop, true);
        assert_true(fake_server_requests(g->server) >= g->greetings + n);
}

/* The body of the i-th request after the greeting; borrowed. */
static inline const char *rig_body(struct rig *g, unsigned i)
{
        return strstr(fake_server_request(g->server, g->greetings + i), "\r\n\r\n") + 4;
}

/* Puts a file into the workspace, which need not exist. */
static inline void rig_put_file(struct rig *g, const char *name, const char *text)
{
        char *folder = scratch_path(g->dir, "workspace"), *path = scratch_path(folder, name);
        FILE *f;

        mkdir(folder, 0755);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        free(path);
        free(folder);
}

/* What an agent could do to a name of the workspace: each leads out of it, or nowhere. */
static inline void rig_put_traps(struct rig *g)
{
        char *key = scratch_path(g->dir, "state/operator.key"),
             *pipe = scratch_path(g->dir, "workspace/pipe"),
             *link = scratch_path(g->dir, "workspace/link"),
             *twice = scratch_path(g->dir, "workspace/twice"),
             *huge = scratch_path(g->dir, "workspace/huge");

        rig_put_file(g, "../state/operator.key", "secret");
        rig_put_file(g, "huge", "");
        assert_int_equal(truncate(huge, 2000000001), 0); /* without using space */
        free(huge);
        assert_int_equal(mkfifo(pipe, 0600), 0);
        assert_int_equal(symlink(key, link), 0);
        assert_int_equal(linkat(AT_FDCWD, key, AT_FDCWD, twice, 0), 0);
        free(key);
        free(pipe);
        free(link);
        free(twice);
}

/* Exchanges a file of the workspace for a link to a file outside. */
static inline void rig_swap_for_link(struct rig *g, const char *name)
{
        char *folder = scratch_path(g->dir, "workspace"), *path = scratch_path(folder, name),
             *key = scratch_path(g->dir, "state/operator.key");

        rig_put_file(g, "../state/operator.key", "secret");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink(key, path), 0);
        free(folder);
        free(path);
        free(key);
}

static inline void rig_on_held(void *arg)
{
        *(bool *)arg = true;
}

/* Holds the only file of message 1 in chat 7 as a turn does, and awaits it. Release it. */
static inline struct held_files *rig_hold(struct rig *g, const char *source, const char *name)
{
        const struct attachment file = { .kind = "image", .name = name, .source = source };
        const struct incoming in = { .adapter = g->name,
                                     .channel = "7",
                                     .id = "1",
                                     .sender_id = "5",
                                     .attachments = &file,
                                     .attachment_count = 1 };
        bool done = false;
        struct held_files *held = adapters_hold_files(g->adapters, &in, rig_on_held, &done);

        assert_non_null(held);
        for (int i = 0; i < 100000 && !held->ready; i++)
                loop_step(g->loop, true);
        assert_true(held->ready);
        return held;
}

/* Sends a delivery; rig_sent awaits its outcome. */
static inline void rig_send(struct rig *g, struct delivery d)
{
        d.id = 42;
        d.fence = 5;
        d.attempt = d.attempt ? d.attempt : 1;
        d.created_ms = d.created_ms ? d.created_ms : 1700000000000;
        d.adapter = g->name;
        adapters_send(g->adapters, &d);
        assert_int_equal(fake_road.count, 0); /* never before send has returned */
}

static inline const struct fake_sent *rig_sent(struct rig *g)
{
        for (int i = 0; i < 100000 && fake_road.count == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].delivery, 42);
        assert_int_equal(fake_road.sent[0].fence, 5);
        return &fake_road.sent[0];
}

#endif
