/*
 * config: the whole configuration file.
 *
 * Combines the tables that each module owns for its section, and adds defaults that make an empty
 * directory work: a terminal and an API adapter, and the demo agent or the model whose key is in
 * the environment. The daemon never writes the file.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>

#include "agent/agents.h"
#include "agent/workspace/records.h"
#include "base/settings.h"
#include "bus/bus.h"
#include "dispatch/dispatch.h"
#include "platform/attachment_files.h"
#include "platform/platform.h"
#include "remote/remote.h"
#include "road/road.h"
#include "schedule/schedule.h"

struct http_conf {
        char *listen;
        char *public_url;
        char *tls_cert, *tls_key;
        struct setting_list trusted_proxy; /* IP addresses */
        int64_t max_body_bytes, max_bodies_bytes;
        int64_t max_connections, max_stream_clients, idle_seconds, request_seconds;
};
extern const struct setting http_settings[];

/* What our agent cards tell software that speaks A2A; see api/compat/a2a.h. */
#define CARD_OF_THE_RULES "dragoman" /* stands for an agent: the rules choose */
struct cards_conf {
        struct setting_list publish; /* agents */
        char *name, *description, *organization, *organization_url, *documentation_url;
};

/* What the daemon can no longer do after its start; see base/confine.h. */
struct confinement_conf {
        bool enabled;
        struct setting_list writable; /* besides the data directory */
        bool core_dumps;
};

struct config {
        struct settings_source *source;
        bool has_file;
        char *dir; /* the data directory */
        struct http_conf http;
        struct confinement_conf confinement;
        char *store_url, *bus_url;
        int64_t retention_ms[STREAM_COUNT];
        struct road_limits limits;
        struct attachment_limits attachments;
        struct workspace_conf workspace;
        struct schedule_conf schedule;
        struct remote_conf remote;
        struct cards_conf cards;
        struct adapter_conf **adapters;
        size_t adapter_count;
        struct agent_conf **agents;
        size_t agent_count;
        struct rule *rules;
        size_t rule_count;
        char *default_agent; /* NULL when there are several agents and none is named */
        char *agent_note;    /* for the banner: "demo agent (no key in the environment)" */
};

/*
 * DIR/config.json (absent: defaults) and the environment. ERR_INVALID with the first mistake, its
 * file and line, and the number of others; ERR_REFUSED if others could have written it
 * (base/trust.h); or ERR_IO.
 */
int config_load(const char *dir, struct config **out, struct error *err);
/*
 * The same, and appends all mistakes and all warnings, one per line. On an error that prevents
 * reading, such as a syntax error, that is the only mistake.
 */
int config_load_reporting(const char *dir, struct config **out, struct buf *mistakes,
                          struct buf *warnings, struct error *err);
/* Reads another file, which must exist. */
int config_load_file(const char *dir, const char *path, struct config **out, struct error *err);
void config_free(struct config *c);
/*
 * The `store` setting alone, yours to free; the default when the file is missing or malformed.
 * Resolves no secrets.
 */
char *config_store_url(const char *dir);
/* Dispatch takes over the rules. */
void config_dispatch_apply(struct config *c, struct dispatch *d);
/* False: neither a file nor the environment has settings, only defaults apply. */
bool config_is_given(const struct config *c);
/* One warning per line; "" when none. */
const char *config_warnings(const struct config *c);
/* Yours to decref. */
json_t *config_doc_schema(void);
/* Writes docs/CONFIGURATION.md. */
void config_doc_markdown(struct buf *out);

#endif
