/*
 * module: tools that are modules for Node, index.ts or index.js.
 *
 * One Node process runs them all (node_host.mjs, which is part of the program); it is an MCP server
 * of our own, so starting, restarting, deadlines and cancelling are those of mcp.c.
 */
#ifndef AGENT_CUSTOM_MODULE_H
#define AGENT_CUSTOM_MODULE_H

#include "agent/custom/manifest.h"

struct custom_tools;
struct custom_source;

struct module_spec {
        const char *folder; /* its name */
        const char *file;
        const struct manifest *manifest;
};

/* Copies the specs. */
struct custom_source *module_host_new(struct custom_tools *all, const struct module_spec *specs,
                                      size_t count);
/* Puts node_host.mjs into the data directory, for module_host_new. Blocks. */
int module_host_write(const char *dir, struct error *err);

#endif
