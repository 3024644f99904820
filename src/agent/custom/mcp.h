/*
 * mcp: tools of MCP servers, by stdio or streamable HTTP.
 *
 * Speaks both eras of the protocol: 2024-11-05 to 2025-11-25 (initialize, sessions) and 2026-07-28
 * (stateless). A server is started, or connected to, when one of its tools is first called, or at
 * once while its tools are not known yet; what it listed last is kept in DIR/state/mcp. When it
 * ends, the next use starts it again, and its tools stay listed meanwhile.
 */
#ifndef AGENT_CUSTOM_MCP_H
#define AGENT_CUSTOM_MCP_H

#include "base/settings.h"

struct custom_tools;

/* One server of the agent's setting `mcp`. */
struct mcp_conf {
        char *command; /* this or url */
        struct setting_list args;
        struct setting_pairs env;
        char *cwd;
        char *url;
        struct setting_pairs headers;
        struct secret *token;
        struct setting_list tools; /* only these, by the server's names; not set: all */
        int64_t timeout_seconds;
        bool trust;
};
/* For a row { "mcp", SETTING_MAP, "{}", 0, sizeof(struct mcp_conf), .group = mcp_settings, ... } */
extern const struct setting mcp_settings[];

/* For agent_ops.check; path: of the setting. */
int mcp_check(const struct settings_source *src, const char *path,
              const struct setting_map *servers, struct error *err);
/* Borrows conf. */
void mcp_add(struct custom_tools *all, const char *name, const struct mcp_conf *conf);

#endif
