/*
 * config_private: shared by the files of this folder.
 */
#ifndef CONFIG_CONFIG_PRIVATE_H
#define CONFIG_CONFIG_PRIVATE_H

#include "config/config.h"

/* config_check_name checks the same. */
#define CONFIG_NAME_PATTERN "^[a-z0-9][a-z0-9._-]*$"

/* The members of the file except adapters, agents and rules. */
struct config_root {
        struct http_conf http;
        struct confinement_conf confinement;
        char *store, *bus, *default_agent;
        double retention_days[STREAM_COUNT];
        struct road_limits limits;
        struct attachment_limits attachments;
        struct workspace_conf workspace;
        struct schedule_conf schedule;
        struct remote_conf remote;
        struct cards_conf cards;
};
extern const struct setting config_root_settings[];

/* ---- config_check.c: mistakes that tables cannot express; the source collects them ---- */

bool config_check_name(const struct settings_source *src, const char *section, const char *name);
void config_check_root(const struct settings_source *src, const struct config_root *root);
/* Agents that adapters, rules, failover lists and defaultAgent name exist, and sessions.adapter. */
void config_check_references(const struct config *c, const struct settings_source *src);
/* No two enabled adapters are the same bot; a webhook has an address. */
void config_check_bots(const struct config *c, const struct settings_source *src);
/* Names of all adapters, NULL-terminated; free the array, not the names. */
const char **config_check_adapters(const struct config *c, const struct settings_source *src);

/* ---- config_lint.c ---- */

/* Warns of settings that are permitted but probably mistakes. */
void config_lint(const struct config *c, struct settings_source *src);

/* ---- config_dispatch.c ---- */

/* Checks the access lists of all adapters. */
void config_dispatch_check(const struct config *c, const struct settings_source *src);

/* ---- config_defaults.c: defaults that make an empty directory work ---- */

/* Bots whose tokens are in the environment, a terminal and an API, unless the file has them. */
int config_default_adapters(struct config *c, struct error *err);
/*
 * The agent whose address or key is in the environment, else the demo. An agent-chat service gets
 * ambient rules for DISCORD_CHANNEL_IDS when the file has no rules.
 */
int config_default_agent(struct config *c, struct error *err);

void config_add_adapter(struct config *c, struct adapter_conf *a);
void config_add_agent(struct config *c, struct agent_conf *a);
/* There must be no rules yet. */
int config_read_rules(struct config *c, struct settings_source *src, struct error *err);

#endif
