#include "agent/custom/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/custom/mcp_private.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

/* The file becomes part of the program, with a NUL at its end. */
__asm__(".pushsection .rodata\n"
        ".global dragoman_node_host\n"
        "dragoman_node_host:\n"
        ".incbin \"src/agent/custom/node_host.mjs\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char dragoman_node_host[];

struct module_flags {
        char *folder;
        unsigned flags;
        int64_t timeout_ms;
};

struct module_host {
        struct mcp_variant variant;
        struct mcp_conf conf;
        struct module_flags *modules;
        size_t count;
        struct secret **secrets; /* of all modules: kept, so that they stay hidden */
        size_t secret_count;
};

static char *host_path(const char *dir)
{
        return mem_printf("%s/state/node_host.mjs", dir);
}

int module_host_write(const char *dir, struct error *err)
{
        char *folder = mem_printf("%s/state", dir), *path = host_path(dir);
        struct buf now;
        int rc = file_make_dirs(folder, err);

        buf_init(&now, 0);
        if (rc == 0 &&
            (file_read(path, 1 << 20, &now, NULL) < 0 ||
             strcmp(now.data, dragoman_node_host) != 0) &&
            file_replace(path, dragoman_node_host) < 0)
                rc = error_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        buf_release(&now);
        free(folder);
        free(path);
        return rc;
}

/* What the manifest beside the module says. */
static void on_tool(struct mcp_server *s, const json_t *described, struct custom_tool *t)
{
        const struct module_host *h = (const struct module_host *)s->variant;
        const char *folder = json_str(json_object_get(described, "_meta"), "folder", "");

        for (size_t i = 0; i < h->count; i++) {
                if (strcmp(h->modules[i].folder, folder) != 0)
                        continue;
                t->flags = h->modules[i].flags;
                t->timeout_ms = h->modules[i].timeout_ms;
        }
}

static void on_listed(struct mcp_server *s, const json_t *result)
{
        const json_t *problems = json_object_get(json_object_get(result, "_meta"), "problems");
        size_t i;
        json_t *one;

        json_array_foreach(problems, i, one)
                custom_source_problem(&s->base, "%.60s: %.300s", json_str(one, "folder", ""),
                                      json_str(one, "why", ""));
}

static void host_free(struct custom_source *source)
{
        struct module_host *h =
                (struct module_host *)(uintptr_t)((struct mcp_server *)source)->variant;

        mcp_server_free(source);
        for (size_t i = 0; i < h->count; i++)
                free(h->modules[i].folder);
        free(h->modules);
        for (size_t i = 0; i < h->secret_count; i++)
                secret_free(h->secrets[i]);
        free(h->secrets);
        json_decref(h->variant.meta);
        settings_release((const struct setting *const[]){ mcp_settings, NULL }, &h->conf);
        free(h);
}

static const struct custom_source_ops ops = {
        .kind = "module",
        .call = mcp_call,
        .cancel = mcp_cancel,
        .state = mcp_state_name,
        .free = host_free,
};

static json_t *describe(struct module_host *h, const struct module_spec *m)
{
        const struct setting_pairs *given = &m->manifest->env;
        json_t *env = json_object();

        h->secrets =
                mem_realloc(h->secrets, (h->secret_count + given->count + 1) * sizeof(*h->secrets));
        for (size_t i = 0; i < given->count; i++) {
                h->secrets[h->secret_count++] = secret_dup(given->values[i]);
                json_object_set_new(env, given->names[i],
                                    json_string(secret_reveal(given->values[i])));
        }
        return json_pack("{s:s, s:s, s:o}", "folder", m->folder, "file", m->file, "env", env);
}

struct custom_source *module_host_new(struct custom_tools *all, const struct module_spec *specs,
                                      size_t count)
{
        const char *dir = custom_options(all)->dir;
        struct module_host *h = mem_zalloc(sizeof(*h));
        json_t *list = json_array();

        h->count = count;
        h->modules = mem_array(count, sizeof(*h->modules));
        for (size_t i = 0; i < count; i++) {
                h->modules[i] = (struct module_flags){ mem_strdup(specs[i].folder),
                                                       manifest_flags(specs[i].manifest),
                                                       specs[i].manifest->timeout_seconds * 1000 };
                json_array_append_new(list, describe(h, &specs[i]));
        }
        h->variant = (struct mcp_variant){
                .ops = &ops,
                .meta = json_pack("{s:{s:s, s:o}}", "dragoman", "dataDir", dir, "modules", list),
                .own = true,
                .tool = on_tool,
                .listed = on_listed,
        };
        h->conf.command = mem_strdup("node");
        h->conf.args.items = mem_array(1, sizeof(char *));
        h->conf.args.items[h->conf.args.count++] = host_path(dir);
        h->conf.cwd = mem_printf("%s/tools", dir);
        h->conf.timeout_seconds = CUSTOM_TIMEOUT_MS / 1000;
        return &mcp_server_new(all, "node", &h->conf, &h->variant)->base;
}
