/*
 * config_private: what the files of this room share.
 */
#ifndef CONFIG_CONFIG_PRIVATE_H
#define CONFIG_CONFIG_PRIVATE_H

#include "config/config.h"

#define CONFIG_NAME_PATTERN "^[a-z0-9][a-z0-9._-]*$" /* of adapters and agents; see is_name */

/*
 * The members of the file that tables can express; adapters, agents and rules are read by their
 * rooms.
 */
struct config_root {
        struct http_conf http;
        char *store, *bus, *default_agent;
        double retention_days[STREAM_COUNT];
        struct road_limits limits;
};
extern const struct setting config_root_settings[];

/* ---- config_check.c: what tables cannot express ---- */

int config_check_name(const struct settings_source *src, const char *section, const char *name,
                      struct error *err);
int config_check_root(const struct settings_source *src, const struct config_root *root,
                      struct error *err);
/* Do the agents exist that adapters, rules and defaultAgent name? */
int config_check_references(const struct config *c, const struct settings_source *src,
                            struct error *err);
/* No two enabled adapters are the same bot. */
int config_check_bots(const struct config *c, const struct settings_source *src, struct error *err);
/* Are the lists of who is answered understood? */
int config_check_access(const struct config *c, const struct settings_source *src,
                        struct error *err);
/* Adds warnings about what is permitted but hardly meant. */
void config_add_warnings(const struct config *c, struct settings_source *src);

/* ---- config_defaults.c: what makes an empty directory work ---- */

/* Adds a terminal and an API adapter unless the file has said something about them. */
int config_default_adapters(struct config *c, struct error *err);
/*
 * The agent when the file names none: what the environment has an address or a key of, else the
 * demo. An agent-chat service comes with rules that read along in DISCORD_CHANNEL_IDS, when the
 * file has none.
 */
int config_default_agent(struct config *c, struct error *err);

void config_add_adapter(struct config *c, struct adapter_conf *a);
void config_add_agent(struct config *c, struct agent_conf *a);
/* The list `rules` of a source; there must be no rules yet. */
int config_read_rules(struct config *c, struct settings_source *src, struct error *err);

#endif
