/*
 * config: the configuration file as a whole.
 *
 * Each room owns the tables of its section; here they are put together, with the defaults that make
 * an empty directory work: a terminal and an API adapter, and the demo agent, or a real model when
 * its key is in the environment. The daemon never writes the file.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>

#include "agent/agent.h"
#include "base/settings.h"
#include "bus/bus.h"
#include "dispatch/dispatch.h"
#include "platform/platform.h"
#include "road/road.h"

struct http_conf {
        char *listen;
        char *public_url;
        char *tls_cert, *tls_key;
        /* addresses; naming one permits a non-loopback listen address without TLS */
        struct setting_list trusted_proxy;
        int64_t max_body_bytes, max_connections, max_stream_clients, idle_seconds, request_seconds;
};
extern const struct setting http_settings[];

struct config {
        struct settings_source *source; /* NULL when there is no file */
        char *dir;                      /* the data directory */
        struct http_conf http;
        char *store_url, *bus_url;
        int64_t retention_ms[STREAM_COUNT];
        struct road_limits limits;
        struct adapter_conf **adapters;
        size_t adapter_count;
        struct agent_conf **agents;
        size_t agent_count;
        struct rule *rules;
        size_t rule_count;
        /* answers when nothing else says so; NULL when there are several and none is named */
        char *default_agent;
        char *agent_note; /* for the banner: "demo agent (no key in the environment)" */
};

/*
 * Reads DIR/config.json (absent: defaults) and the environment. ERR_INVALID with file and line;
 * ERR_IO.
 */
int config_load(const char *dir, struct config **out, struct error *err);
/* The same with another file, which must be there. */
int config_load_file(const char *dir, const char *path, struct config **out, struct error *err);
void config_free(struct config *c);
/*
 * Tells dispatch what the adapters and rules say; the rules are dispatch's afterwards. Before the
 * adapters are given away.
 */
void config_to_dispatch(struct config *c, struct dispatch *d);
/* Warnings for the operator, one per line; "" when none. */
const char *config_warnings(const struct config *c);
/* JSON Schema of the whole file; yours to decref. */
json_t *config_schema(void);
/* docs/CONFIGURATION.md. */
void config_markdown(struct buf *out);

#endif
