/*
 * Reading the file. The root's simple members come by one table; adapters, agents and rules by
 * those of their rooms; then the defaults are added and the references between them checked.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/config_private.h"

#define FILE_MAX    ((size_t)4 * 1024 * 1024)
#define DAY_MS      86400000.0
#define HTTP(field) offsetof(struct http_conf, field)
#define ROOT(field) offsetof(struct config_root, field)
#define DAYS(s)     ((s) * sizeof(double))

/* clang-format off */
const struct setting http_settings[] = {
        { "listen", SETTING_STRING, "\"127.0.0.1:8420\"", 1, 300, .at = HTTP(listen),
          .help = "Address and port of the HTTP API, such as `127.0.0.1:8420` or `[::1]:8420`; port 0 takes a free one." },
        { "publicUrl", SETTING_URL, "null", .at = HTTP(public_url),
          .help = "How the API is reached from outside, for webhooks and links." },
        { "tlsCert", SETTING_STRING, "null", 1, 4096, .at = HTTP(tls_cert),
          .help = "A PEM file with the certificate chain; together with `tlsKey` the API speaks HTTPS." },
        { "tlsKey", SETTING_STRING, "null", 1, 4096, .at = HTTP(tls_key), .help = "A PEM file with the private key." },
        { "trustedProxy", SETTING_STRINGS, "[]", .at = HTTP(trusted_proxy),
          .help = "Addresses of proxies that do TLS for us; naming one permits a non-loopback `listen` without TLS." },
        { "maxBodyBytes", SETTING_INT, "1048576", 1024, 1073741824, .at = HTTP(max_body_bytes),
          .help = "The largest body of one request." },
        { "maxConnections", SETTING_INT, "20000", 1, 1000000, .at = HTTP(max_connections),
          .help = "Connections open at the same time. Where the system lets the process open fewer files than that and 512 more, as many as leave those 512 for platforms, agents and the database." },
        { "maxStreamClients", SETTING_INT, "12000", 0, 1000000, .at = HTTP(max_stream_clients),
          .help = "Clients of the event stream at the same time." },
        { "idleSeconds", SETTING_INT, "75", 1, 86400, .at = HTTP(idle_seconds),
          .help = "A connection with nothing in flight is closed after this time." },
        { "requestSeconds", SETTING_INT, "30", 1, 86400, .at = HTTP(request_seconds),
          .help = "From the first byte of a request to its last." },
        SETTING_END,
};

static const struct setting retention_settings[] = {
        { "message", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_MESSAGE), .help = "Messages, received and sent." },
        { "reaction", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_REACTION), .help = "Reactions." },
        { "turn", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_TURN), .help = "What agents did." },
        { "delivery", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_DELIVERY), .help = "What was sent, and how." },
        { "session", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_SESSION), .help = "Watched coding sessions." },
        { "adapter", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_ADAPTER), .help = "Connections made and lost." },
        { "schedule", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_SCHEDULE), .help = "Scheduled events." },
        { "custom", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_CUSTOM), .help = "Events of other software." },
        { "identity", SETTING_NUMBER, "7", -1, 36500, .at = DAYS(STREAM_IDENTITY), .help = "Who was found to be the same person." },
        SETTING_END,
};

const struct setting config_root_settings[] = {
        { "http", SETTING_GROUP, "{}", .group = http_settings, .at = ROOT(http), .help = "The HTTP API." },
        { "store", SETTING_STRING, "\"sqlite\"", 1, 2000, .at = ROOT(store),
          .help = "Where everything is kept: `sqlite` is a file in the data directory." },
        { "bus", SETTING_STRING, "\"local\"", 1, 2000, .at = ROOT(bus),
          .help = "How events reach their readers: `local` is inside the process." },
        { "defaultAgent", SETTING_STRING, "null", 1, 100, .at = ROOT(default_agent),
          .help = "Who answers where neither a rule nor the adapter names an agent; not needed with a single agent." },
        { "retention", SETTING_GROUP, "{}", .group = retention_settings, .at = ROOT(retention_days),
          .help = "For how many days the journal keeps events, by stream; fractions are fine, -1: for ever. Of what a platform may tell again the id stays for two days, without its contents. A durable reader that stays away is waited for as long, see `dragoman events consumers`." },
        { "limits", SETTING_GROUP, "{}", .group = road_settings, .at = ROOT(limits),
          .help = "How much may be open, how long it may take, how often it is tried." },
        SETTING_END,
};
/* clang-format on */

static const struct setting *const root_tables[] = { config_root_settings, NULL };
static const char *const read_by_rooms[] = { "adapters", "agents", "rules", "$schema", NULL };

/* ---- the file ---- */

/* 1: read, 0: there is none, -1. */
static int read_file(const char *path, struct buf *out, struct error *err)
{
        FILE *f = fopen(path, "re");
        char *at;

        if (!f && errno == ENOENT)
                return 0;
        if (!f)
                return error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        while (!feof(f) && !ferror(f) && (at = buf_reserve(out, 16384)))
                buf_grew(out, fread(at, 1, 16384, f));
        if (ferror(f))
                error_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        else if (!feof(f))
                error_set(err, ERR_INVALID, "'%s' is larger than %zu bytes", path, FILE_MAX);
        else {
                fclose(f);
                return 1;
        }
        fclose(f);
        return -1;
}

/* *found tells whether there is a file; without one the source is an empty object. */
static struct settings_source *open_source(const char *dir, const char *path, bool *found,
                                           struct error *err)
{
        const char *slash = strrchr(path, '/');
        struct settings_source *src = NULL;
        struct buf text;
        int rc;

        buf_init(&text, FILE_MAX);
        rc = read_file(path, &text, err);
        *found = rc > 0;
        if (rc == 0)
                buf_addstr(&text, "{}");
        if (rc >= 0)
                src = settings_source_new(slash ? slash + 1 : path, dir, text.data, text.len, err);
        explicit_bzero(text.data, text.len); /* secrets may be written in it */
        buf_release(&text);
        return src;
}

/* ---- its members ---- */

static int64_t retention_ms(double days)
{
        if (days < 0)
                return -1;
        /* 0 would mean the default to the bus */
        return days * DAY_MS < 1 ? 1 : (int64_t)(days * DAY_MS);
}

/* Moves what the table has read to where the others look for it. */
static void take_root(struct config *c, struct config_root *root)
{
        c->http = root->http;
        c->store_url = root->store;
        c->bus_url = root->bus;
        c->default_agent = root->default_agent;
        c->limits = root->limits;
        for (size_t i = 0; i < STREAM_COUNT; i++)
                c->retention_ms[i] = retention_ms(root->retention_days[i]);
}

static int read_root(struct config *c, struct settings_source *src, struct error *err)
{
        struct config_root root = { 0 };

        if (settings_read(src, "", settings_source_root(src), root_tables, read_by_rooms, &root,
                          err) < 0)
                return -1;
        take_root(c, &root);
        return config_check_root(src, &root, err);
}

void config_add_adapter(struct config *c, struct adapter_conf *a)
{
        c->adapters =
                mem_realloc(c->adapters, (c->adapter_count + 1) * sizeof(struct adapter_conf *));
        c->adapters[c->adapter_count++] = a;
}

void config_add_agent(struct config *c, struct agent_conf *a)
{
        c->agents = mem_realloc(c->agents, (c->agent_count + 1) * sizeof(struct agent_conf *));
        c->agents[c->agent_count++] = a;
}

static int read_adapter(struct config *c, struct settings_source *src, const char *name,
                        const json_t *value, struct error *err)
{
        struct adapter_conf *a = adapter_conf_read(src, name, value, err);

        if (a)
                config_add_adapter(c, a);
        return a ? 0 : -1;
}

static int read_agent(struct config *c, struct settings_source *src, const char *name,
                      const json_t *value, struct error *err)
{
        struct agent_conf *a = agent_conf_read(src, name, value, err);

        if (a)
                config_add_agent(c, a);
        return a ? 0 : -1;
}

/* The members of an object, each read by `read`. */
static int read_named(struct config *c, struct settings_source *src, const char *section,
                      int (*read)(struct config *, struct settings_source *, const char *,
                                  const json_t *, struct error *),
                      struct error *err)
{
        json_t *object = json_object_get(settings_source_root(src), section);
        const char *name;
        json_t *value;

        if (object && !json_is_object(object))
                return settings_error(src, section, err, "expected an object of named %s", section);
        json_object_foreach(object, name, value) {
                if (config_check_name(src, section, name, err) < 0 ||
                    read(c, src, name, value, err) < 0)
                        return -1;
        }
        return 0;
}

int config_read_rules(struct config *c, struct settings_source *src, struct error *err)
{
        const json_t *list = json_object_get(settings_source_root(src), "rules");
        size_t n = json_array_size(list);

        if (list && !json_is_array(list))
                return settings_error(src, "rules", err, "expected a list of rules");
        free(c->rules);
        c->rules = mem_array(n, sizeof(*c->rules));
        for (; c->rule_count < n; c->rule_count++) {
                if (rule_read(src, c->rule_count, json_array_get(list, c->rule_count),
                              &c->rules[c->rule_count], err) < 0)
                        return -1;
        }
        return 0;
}

static void choose_default(struct config *c)
{
        if (!c->default_agent && c->agent_count == 1)
                c->default_agent = mem_strdup(c->agents[0]->name);
}

static void note_agents(struct config *c)
{
        struct buf note;

        if (c->agent_note)
                return;
        buf_init(&note, 0);
        for (size_t i = 0; i < c->agent_count; i++)
                buf_addf(&note, "%s%s (%s)", i > 0 ? ", " : "", c->agents[i]->name,
                         c->agents[i]->ops->type);
        c->agent_note = buf_take(&note);
}

static int read_all(struct config *c, struct settings_source *src, struct error *err)
{
        if (read_root(c, src, err) < 0 || read_named(c, src, "adapters", read_adapter, err) < 0 ||
            read_named(c, src, "agents", read_agent, err) < 0 || config_read_rules(c, src, err) < 0)
                return -1;
        if (config_default_adapters(c, err) < 0)
                return -1;
        if (c->agent_count == 0 && config_default_agent(c, err) < 0)
                return -1;
        if (config_check_references(c, src, err) < 0 || config_check_access(c, src, err) < 0 ||
            config_check_bots(c, src, err) < 0)
                return -1;
        choose_default(c);
        note_agents(c);
        config_add_warnings(c, src);
        return 0;
}

static int load(const char *dir, const char *path, bool must, struct config **out,
                struct error *err)
{
        struct config *c = mem_zalloc(sizeof(*c));
        struct settings_source *src;
        bool found;
        int rc;

        c->dir = mem_strdup(dir);
        src = open_source(dir, path, &found, err);
        rc = src ? 0 : -1;
        if (rc == 0 && must && !found)
                rc = error_set(err, ERR_MISSING, "there is no file '%s'", path);
        if (rc == 0)
                rc = read_all(c, src, err);
        if (found)
                c->source = src;
        else
                settings_source_free(src);
        if (rc == 0) {
                *out = c;
                c = NULL; /* the caller owns it now */
        }
        config_free(c);
        return rc;
}

int config_load(const char *dir, struct config **out, struct error *err)
{
        char *path = mem_printf("%s/config.json", dir);
        int rc = load(dir, path, false, out, err);

        free(path);
        return rc;
}

int config_load_file(const char *dir, const char *path, struct config **out, struct error *err)
{
        return load(dir, path, true, out, err);
}

static void release_root(struct config *c)
{
        struct config_root root = { .http = c->http,
                                    .store = c->store_url,
                                    .bus = c->bus_url,
                                    .default_agent = c->default_agent };

        settings_release(root_tables, &root);
}

void config_free(struct config *c)
{
        if (!c)
                return;
        release_root(c);
        for (size_t i = 0; i < c->adapter_count; i++)
                adapter_conf_free(c->adapters[i]);
        for (size_t i = 0; i < c->agent_count; i++)
                agent_conf_free(c->agents[i]);
        for (size_t i = 0; i < c->rule_count; i++)
                rule_release(&c->rules[i]);
        free(c->adapters);
        free(c->agents);
        free(c->rules);
        free(c->agent_note);
        free(c->dir);
        settings_source_free(c->source);
        free(c);
}

const char *config_warnings(const struct config *c)
{
        return c->source ? settings_source_warnings(c->source) : "";
}
