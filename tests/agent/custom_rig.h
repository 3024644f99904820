/*
 * custom_rig: a registry of custom tools in a folder of its own, and calls of its tools.
 */
#ifndef TESTS_CUSTOM_RIG_H
#define TESTS_CUSTOM_RIG_H

#include <sys/stat.h>

#include "../lib/patience.h"
#include "../lib/scratch.h"
#include "agent/custom/custom.h"
#include "agent/custom/mcp.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct rig {
        struct loop *loop;
        char *dir;
        struct custom_tools *all;
        struct custom_call *call;
        struct workspace_view *view;
        bool ready, done, late;
        struct tool_result result;
        struct buf progress;
        struct timer *deadline;
        struct http_client *http;
        struct setting_map mcp;
        struct mcp_conf *servers[4];
        char *names[4];
};

static inline void on_deadline(void *arg)
{
        ((struct rig *)arg)->late = true;
}

static inline void on_ready(void *arg)
{
        ((struct rig *)arg)->ready = true;
}

static inline void await(struct rig *r, const bool *flag)
{
        timer_start(r->deadline, PATIENCE_MS);
        while (!*flag && !r->late)
                loop_step(r->loop, true);
        timer_stop(r->deadline);
        assert_true(*flag);
}

static inline void rig_open(struct rig *r)
{
        struct error err;

        memset(r, 0, sizeof(*r));
        r->loop = loop_new();
        r->dir = scratch_new();
        r->deadline = timer_new(r->loop, on_deadline, r);
        r->http = http_client_new(r->loop, &(struct http_client_options){ 0 }, NULL);
        r->mcp = (struct setting_map){ r->names, (void **)r->servers, 0 };
        buf_init(&r->progress, 0);
        if (workspace_view_open(r->dir, "tg", "42", &r->view, &err) < 0)
                fail_msg("%s", err.text);
}

static inline void rig_start(struct rig *r)
{
        struct custom_options o = { .loop = r->loop,
                                    .http = r->http,
                                    .dir = r->dir,
                                    .agent = "assistant",
                                    .mcp = &r->mcp };

        r->ready = false;
        r->all = custom_new(&o);
        custom_wait_start(r->all, on_ready, r);
        await(r, &r->ready);
}

static inline void rig_close(struct rig *r)
{
        json_decref(r->result.content);
        json_decref(r->result.details);
        custom_free(r->all);
        http_client_free(r->http);
        for (size_t i = 0; i < r->mcp.count; i++) {
                settings_release((const struct setting *const[]){ mcp_settings, NULL },
                                 r->servers[i]);
                free(r->servers[i]);
                free(r->names[i]);
        }
        timer_free(r->deadline);
        workspace_view_free(r->view);
        while (loop_step(r->loop, false))
                ;
        loop_free(r->loop);
        buf_release(&r->progress);
        scratch_free(r->dir);
}

/* Adds an MCP server; settings as in the configuration. */
static inline void rig_server(struct rig *r, const char *name, const char *settings)
{
        const struct setting *const tables[] = { mcp_settings, NULL };
        struct settings_source *src;
        struct error err = { 0 };
        size_t i = r->mcp.count++;

        r->names[i] = mem_strdup(name);
        r->servers[i] = mem_zalloc(sizeof(struct mcp_conf));
        src = settings_source_new("config.json", NULL, settings, strlen(settings), &err);
        if (!src || settings_read(src, "", settings_source_root(src), tables, NULL, r->servers[i],
                                  &err) < 0)
                fail_msg("%s", err.text);
        settings_source_free(src);
}

/* A row of the status, as text. */
static inline char *rig_status(struct rig *r)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '[');
        custom_status(r->all, &b);
        jsonw_close(&b, ']');
        return buf_take(&b);
}

static inline void on_progress(void *arg, const char *text)
{
        struct rig *r = arg;

        buf_addf(&r->progress, "%s|", text);
}

static inline void on_done(void *arg, struct tool_result *result)
{
        struct rig *r = arg;

        assert_false(r->done);
        r->result = *result;
        r->done = true;
}

static inline void start(struct rig *r, const char *key, const char *args)
{
        static const struct custom_handlers h = { on_progress, on_done };
        json_t *value = json_loads(args, 0, NULL);
        struct custom_request q = { .key = key, .args = value, .id = "call_1", .view = r->view };

        json_decref(r->result.content);
        json_decref(r->result.details);
        r->result = (struct tool_result){ 0 };
        r->done = false;
        r->call = custom_call_start(r->all, &q, &h, r);
        assert_false(r->done);
        json_decref(value);
}

/* The text of the first block. */
static inline const char *run(struct rig *r, const char *key, const char *args)
{
        start(r, key, args);
        await(r, &r->done);
        return json_str(json_array_get(r->result.content, 0), "text", "");
}

static inline void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/* A file below DIR/tools. */
static inline void put(struct rig *r, const char *name, const char *text, mode_t mode)
{
        char *path = mem_printf("%s/tools/%s", r->dir, name), *slash = strrchr(path, '/');

        *slash = '\0';
        assert_int_equal(file_make_dirs(path, NULL), 0);
        *slash = '/';
        assert_int_equal(file_replace(path, text), 0);
        assert_int_equal(chmod(path, mode), 0);
        free(path);
}

static inline bool has(const struct rig *r, const char *key)
{
        return custom_find(r->all, key) != NULL;
}

static inline void await_tool(struct rig *r, const char *key, bool there)
{
        timer_start(r->deadline, PATIENCE_MS);
        while (has(r, key) != there && !r->late)
                loop_step(r->loop, true);
        timer_stop(r->deadline);
        assert_int_equal(has(r, key), there);
}

#endif
