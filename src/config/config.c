/*
 * Reads the file by tables, then adds defaults and checks references.
 */
#include "config/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/trust.h"
#include "config/config_private.h"

#define FILE_MAX      ((size_t)4 * 1024 * 1024)
#define DAY_MS        86400000.0
#define HTTP(field)   offsetof(struct http_conf, field)
#define ROOT(field)   offsetof(struct config_root, field)
#define DEFAULT_STORE "sqlite"

const struct setting http_settings[] = {
        { "listen", SETTING_STRING, "\"127.0.0.1:8420\"", 1, 300, .at = HTTP(listen),
          .help = "Address and port of the HTTP API, such as `127.0.0.1:8420` or `[::1]:8420`; "
                  "port 0 picks a free one." },
        { "publicUrl", SETTING_URL, "null", .at = HTTP(public_url),
          .help = "The URL of the API as seen from outside, for webhooks and links. If set, "
                  "`/metrics` and the reasons in `/readyz` need a key." },
        { "tlsCert", SETTING_FILE, "null", 1, 4096, .at = HTTP(tls_cert),
          .help = "PEM file with the certificate chain, relative to the data directory; with "
                  "`tlsKey` the API speaks HTTPS." },
        { "tlsKey", SETTING_FILE, "null", 1, 4096, .at = HTTP(tls_key),
          .help = "PEM file with the private key, relative to the data directory." },
        { "trustedProxy", SETTING_STRINGS, "[]", .at = HTTP(trusted_proxy),
          .help = "IP addresses of proxies that terminate TLS; permits a non-loopback `listen` "
                  "without TLS." },
        { "maxBodyBytes", SETTING_INT, "1048576", 1024, 1073741824, .at = HTTP(max_body_bytes),
          .help = "Largest request body." },
        { "maxBodiesBytes", SETTING_INT, "67108864", 1048576, 1099511627776,
          .at = HTTP(max_bodies_bytes),
          .help = "Largest total size of all request bodies in memory; above it requests get 503. "
                  "At least `maxBodyBytes`." },
        { "maxConnections", SETTING_INT, "20000", 1, 1000000, .at = HTTP(max_connections),
          .help = "Maximum number of open connections. Lowered when the open-file limit of the "
                  "process is too small: 512 files stay reserved for platforms, agents and the "
                  "database." },
        { "maxStreamClients", SETTING_INT, "12000", 0, 1000000, .at = HTTP(max_stream_clients),
          .help = "Maximum number of event stream clients." },
        { "idleSeconds", SETTING_INT, "75", 1, 86400, .at = HTTP(idle_seconds),
          .help = "Close an idle connection after this time." },
        { "requestSeconds", SETTING_INT, "30", 1, 86400, .at = HTTP(request_seconds),
          .help = "Longest time from the first byte of a request to its last." },
        SETTING_END,
};

#define CONFINEMENT(field) offsetof(struct confinement_conf, field)

static const struct setting confinement_settings[] = {
        { "enabled", SETTING_BOOL, "true", .at = CONFINEMENT(enabled),
          .help = "Limit where the daemon writes (Landlock) and which system calls it makes "
                  "(seccomp), as far as the kernel supports it. Programs that it starts are "
                  "exempt." },
        { "writable", SETTING_STRINGS, "[]", .at = CONFINEMENT(writable),
          .help = "Files and directories that the daemon may write besides the data directory, "
                  "such as one for backups. Absolute paths; they must exist." },
        { "coreDumps", SETTING_BOOL, "false", .at = CONFINEMENT(core_dumps),
          .help = "Permit core dumps and debuggers, which can read every secret." },
        SETTING_END,
};

#define CARDS(field) offsetof(struct cards_conf, field)

static const struct setting cards_settings[] = {
        { "publish", SETTING_STRINGS, "[]", .at = CARDS(publish),
          .help = "Agents whose cards anyone may read, without a key; `dragoman` is the card of "
                  "the server itself, where the rules choose the agent. Asking an agent always "
                  "needs a key." },
        { "name", SETTING_STRING, "\"Dragoman\"", 1, 100, .at = CARDS(name),
          .help = "The name in the card of the server." },
        { "description", SETTING_STRING, "null", 1, 1000, .at = CARDS(description),
          .help = "What it is good at. Cards of agents have their own `description`." },
        { "organization", SETTING_STRING, "null", 1, 200, .at = CARDS(organization),
          .help = "Who runs it, in all cards; needs `organizationUrl`." },
        { "organizationUrl", SETTING_URL, "null", .at = CARDS(organization_url),
          .help = "Their web site." },
        { "documentationUrl", SETTING_URL, "null", .at = CARDS(documentation_url),
          .help = "A page about it, in all cards." },
        SETTING_END,
};

/* clang-format off */
#define DAYS(key, stream, text) \
        { key, SETTING_NUMBER, "7", -1, 36500, .at = (stream) * sizeof(double), .help = (text) }

static const struct setting retention_settings[] = {
        DAYS("message",  STREAM_MESSAGE,  "Messages, received and sent."),
        DAYS("reaction", STREAM_REACTION, "Reactions."),
        DAYS("turn",     STREAM_TURN,     "Turns of agents."),
        DAYS("delivery", STREAM_DELIVERY, "Deliveries and their outcome."),
        DAYS("session",  STREAM_SESSION,  "Watched coding sessions."),
        DAYS("adapter",  STREAM_ADAPTER,  "Connections made and lost."),
        DAYS("schedule", STREAM_SCHEDULE, "Scheduled events."),
        DAYS("custom",   STREAM_CUSTOM,   "Events of other software."),
        DAYS("identity", STREAM_IDENTITY, "Accounts linked to persons."),
        SETTING_END,
};
/* clang-format on */

const struct setting config_root_settings[] = {
        { "http", SETTING_GROUP, "{}", .group = http_settings, .at = ROOT(http),
          .help = "The HTTP API." },
        { "confinement", SETTING_GROUP, "{}", .group = confinement_settings,
          .at = ROOT(confinement),
          .help = "Rights that the daemon drops at its start; see SECURITY.md." },
        { "store", SETTING_STRING, "\"" DEFAULT_STORE "\"", 1, 2000, .at = ROOT(store),
          .help = "The database: `sqlite` is a file in the data directory." },
        { "bus", SETTING_STRING, "\"local\"", 1, 2000, .at = ROOT(bus),
          .help = "The event bus: `local` is inside the process." },
        { "defaultAgent", SETTING_STRING, "null", 1, 100, .at = ROOT(default_agent),
          .help = "The agent where neither a rule nor the adapter names one; not needed with a "
                  "single agent." },
        { "retention", SETTING_GROUP, "{}", .group = retention_settings, .at = ROOT(retention_days),
          .help = "Days the journal keeps events, by stream; fractions are fine, -1 means forever. "
                  "Dedup ids are kept for at least two days. A stalled consumer holds events no "
                  "longer than this; see `dragoman events consumers`." },
        { "limits", SETTING_GROUP, "{}", .group = road_settings, .at = ROOT(limits),
          .help = "Limits of queues, times and attempts." },
        { "attachments", SETTING_GROUP, "{}", .group = attachment_settings, .at = ROOT(attachments),
          .help = "Files that people send. They are downloaded into the workspace for the turn "
                  "that answers them." },
        { "workspace", SETTING_GROUP, "{}", .group = workspace_settings, .at = ROOT(workspace),
          .help = "The files that built-in agents see." },
        { "schedule", SETTING_GROUP, "{}", .group = schedule_settings, .at = ROOT(schedule),
          .help = "What the daemon does at a time: event files, reminders, messages to people "
                  "who did not just write." },
        { "sessions", SETTING_GROUP, "{}", .group = remote_settings, .at = ROOT(remote),
          .help = "Coding agents that run elsewhere, are watched in a chat and steered from it." },
        { "a2a", SETTING_GROUP, "{}", .group = cards_settings, .at = ROOT(cards),
          .help = "The agent cards that other agents read, which speak A2A; see `docs/A2A.md`." },
        SETTING_END,
};

static const struct setting *const root_tables[] = { config_root_settings, NULL };
static const char *const read_by_rooms[] = { "adapters", "agents", "rules", "$schema", NULL };

/* Reads and closes fd; -1: there is no file, and the source is an empty object. */
static struct settings_source *read_source(const char *dir, const char *path, int fd,
                                           struct error *err)
{
        const char *slash = strrchr(path, '/');
        struct settings_source *src = NULL;
        struct buf text;
        int rc = 0;

        buf_init(&text, 0);
        if (fd >= 0) {
                rc = file_read_fd(fd, path, FILE_MAX, &text, err);
                close(fd);
        } else {
                buf_addstr(&text, "{}");
        }
        if (rc == 0)
                src = settings_source_new(fd < 0  ? NULL
                                          : slash ? slash + 1
                                                  : path,
                                          dir, text.data, text.len, err);
        explicit_bzero(text.data, text.len); /* it may contain secrets */
        buf_release(&text);
        return src;
}

static void read_root(struct config *c, struct settings_source *src)
{
        struct config_root root = { 0 };

        if (settings_read(src, "", settings_source_root(src), root_tables, read_by_rooms, &root,
                          NULL) < 0)
                return;
        c->http = root.http;
        c->confinement = root.confinement;
        c->store_url = root.store;
        c->bus_url = root.bus;
        c->default_agent = root.default_agent;
        c->limits = root.limits;
        c->attachments = root.attachments;
        c->workspace = root.workspace;
        c->schedule = root.schedule;
        c->remote = root.remote;
        c->cards = root.cards;
        for (size_t i = 0; i < STREAM_COUNT; i++) {
                double ms = root.retention_days[i] * DAY_MS;

                /* not 0, which the bus takes for its default */
                c->retention_ms[i] = ms < 0 ? -1 : ms < 1 ? 1 : (int64_t)ms;
        }
        config_check_root(src, &root);
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

static void read_adapter(struct config *c, struct settings_source *src, const char *name,
                         const json_t *value)
{
        struct adapter_conf *a = adapter_conf_read(src, name, value, NULL);

        if (a)
                config_add_adapter(c, a);
}

static void read_agent(struct config *c, struct settings_source *src, const char *name,
                       const json_t *value)
{
        struct agent_conf *a = agent_conf_read(src, name, value, NULL);

        if (a)
                config_add_agent(c, a);
}

/* Reads each member of an object. */
static void read_named(struct config *c, struct settings_source *src, const char *section,
                       void (*read)(struct config *, struct settings_source *, const char *,
                                    const json_t *))
{
        json_t *object = json_object_get(settings_source_root(src), section);
        const char *name;
        json_t *value;

        if (object && !json_is_object(object))
                settings_error(src, section, NULL, "expected an object of named %s", section);
        json_object_foreach(object, name, value) {
                if (config_check_name(src, section, name))
                        read(c, src, name, value);
        }
}

int config_read_rules(struct config *c, struct settings_source *src, struct error *err)
{
        const json_t *list = json_object_get(settings_source_root(src), "rules");
        size_t n = json_array_size(list);
        int rc = 0;

        if (list && !json_is_array(list))
                return settings_error(src, "rules", err, "expected a list of rules");
        free(c->rules);
        c->rules = mem_array(n, sizeof(*c->rules));
        /* a rule with a mistake keeps its place, for the indexes of the others */
        for (; c->rule_count < n; c->rule_count++) {
                if (rule_conf_read(src, c->rule_count, json_array_get(list, c->rule_count),
                                   &c->rules[c->rule_count], rc < 0 ? NULL : err) < 0)
                        rc = -1;
        }
        return rc;
}

/* Defaults for what the file leaves out. */
static void add_defaults(struct config *c, const struct settings_source *src)
{
        /* those with mistakes count */
        bool has_agents =
                json_object_size(json_object_get(settings_source_root(src), "agents")) > 0;
        struct error err = { 0 };

        if (config_default_adapters(c, &err) < 0)
                settings_source_add_mistake(src, err.text);
        if (!has_agents && config_default_agent(c, &err) < 0)
                settings_source_add_mistake(src, err.text);
}

static void describe_agents(struct config *c)
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

/* Reads on after a mistake, so that the source collects all. -1: it has some; *err is the first. */
static int read_all(struct config *c, struct settings_source *src, struct error *err)
{
        struct buf mistakes;
        size_t count;

        read_root(c, src);
        read_named(c, src, "adapters", read_adapter);
        read_named(c, src, "agents", read_agent);
        config_read_rules(c, src, NULL);
        add_defaults(c, src);
        config_check_references(c, src);
        config_dispatch_check(c, src);
        config_check_bots(c, src);
        if (!c->default_agent && c->agent_count == 1)
                c->default_agent = mem_strdup(c->agents[0]->name);
        describe_agents(c);
        config_lint(c, src);
        buf_init(&mistakes, 0);
        count = settings_source_mistakes(src, &mistakes);
        if (count == 1)
                error_set(err, ERR_INVALID, "%.*s", (int)strcspn(mistakes.data, "\n"),
                          mistakes.data);
        else if (count > 1)
                error_set(err, ERR_INVALID,
                          "%.*s (and %zu more %s; `dragoman config check` lists all)",
                          (int)strcspn(mistakes.data, "\n"), mistakes.data, count - 1,
                          count > 2 ? "mistakes" : "mistake");
        buf_release(&mistakes);
        return count > 0 ? -1 : 0;
}

static int load(const char *dir, const char *path, bool must_exist, struct config **out,
                struct buf *mistakes, struct buf *warnings, struct error *err)
{
        struct config *c = mem_zalloc(sizeof(*c));
        int found = 0, fd = -1, rc;

        c->dir = mem_strdup(dir);
        /* commands in the file run as us, in the directory */
        rc = trust_check(dir, TRUST_OWN_LINKS, err);
        if (rc == 0)
                found = trust_open(path, TRUST_OWN_LINKS, &fd, err);
        c->has_file = found > 0;
        if (found < 0)
                rc = -1;
        if (rc == 0 && must_exist && !found)
                rc = error_set(err, ERR_MISSING, "there is no file '%s'", path);
        if (rc == 0) {
                c->source = read_source(dir, path, fd, err);
                rc = c->source ? 0 : -1;
        }
        if (rc == 0) {
                rc = read_all(c, c->source, err);
                if (mistakes)
                        settings_source_mistakes(c->source, mistakes);
                if (warnings)
                        buf_addstr(warnings, config_warnings(c));
        }
        if (rc < 0 && mistakes && mistakes->len == 0)
                buf_addf(mistakes, "%s\n", err->text);
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
        int rc = load(dir, path, false, out, NULL, NULL, err);

        free(path);
        return rc;
}

int config_load_reporting(const char *dir, struct config **out, struct buf *mistakes,
                          struct buf *warnings, struct error *err)
{
        char *path = mem_printf("%s/config.json", dir);
        int rc = load(dir, path, false, out, mistakes, warnings, err);

        free(path);
        return rc;
}

int config_load_file(const char *dir, const char *path, struct config **out, struct error *err)
{
        return load(dir, path, true, out, NULL, NULL, err);
}

void config_free(struct config *c)
{
        struct config_root root;

        if (!c)
                return;
        root = (struct config_root){ .http = c->http,
                                     .confinement = c->confinement,
                                     .store = c->store_url,
                                     .bus = c->bus_url,
                                     .default_agent = c->default_agent,
                                     .workspace = c->workspace,
                                     .schedule = c->schedule,
                                     .remote = c->remote,
                                     .cards = c->cards };
        settings_release(root_tables, &root);
        for (size_t i = 0; i < c->adapter_count; i++)
                adapter_conf_free(c->adapters[i]);
        for (size_t i = 0; i < c->agent_count; i++)
                agent_conf_free(c->agents[i]);
        for (size_t i = 0; i < c->rule_count; i++)
                rule_conf_release(&c->rules[i]);
        free(c->adapters);
        free(c->agents);
        free(c->rules);
        free(c->agent_note);
        free(c->dir);
        settings_source_free(c->source);
        free(c);
}

char *config_store_url(const char *dir)
{
        char *path = mem_printf("%s/config.json", dir);
        struct settings_source *src =
                read_source(dir, path, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), NULL);
        const char *url = src ? json_str(settings_source_root(src), "store", NULL) : NULL;
        char *copy = mem_strdup(url ? url : DEFAULT_STORE);

        settings_source_free(src);
        free(path);
        return copy;
}

const char *config_warnings(const struct config *c)
{
        return settings_source_warnings(c->source);
}

bool config_is_given(const struct config *c)
{
        /* without any settings: a terminal, an API and the demo agent */
        return c->has_file || c->adapter_count > 2 ||
               (c->agent_count > 0 && strcmp(c->agents[0]->ops->type, "demo") != 0);
}
