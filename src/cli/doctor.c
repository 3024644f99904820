/*
 * Checks for common problems and gives advice. A check is a function and a row in `checks`.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/trust.h"
#include "cli/client.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "rows/totals.h"

#define DISK_WARN_MB 1024
#define DISK_FAIL_MB 100
#define BUILT_MS     1735689600000 /* 2025-01-01, before this program was built */
#define DAY_MS       86400000

enum doctor_verdict { FINE, WARN, FAIL };

struct doctor {
        struct args *args;
        json_t *found;
        unsigned warnings, failures;
        bool config_failed;
};

static const char *const verdict_names[] = { "ok", "warn", "fail" };

/* advice: what to do; NULL for FINE. */
static void report(struct doctor *d, enum doctor_verdict v, const char *advice, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));

static void report(struct doctor *d, enum doctor_verdict v, const char *advice, const char *fmt,
                   ...)
{
        static const enum style styles[] = { STYLE_GOOD, STYLE_WARN, STYLE_BAD };
        char what[1000];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        d->warnings += v == WARN;
        d->failures += v == FAIL;
        json_array_append_new(d->found, json_pack("{s:s, s:s, s:s?}", "verdict", verdict_names[v],
                                                  "what", what, "advice", advice));
        if (d->args->json)
                return;
        printf("%s%-4s%s  ", print_style(stdout, styles[v]), verdict_names[v],
               print_style(stdout, STYLE_PLAIN));
        print_line(stdout, what, 0);
        putchar('\n');
        if (advice)
                printf("      %s\n", advice);
}

/* ---- configuration ---- */

static void report_lines(struct doctor *d, enum doctor_verdict v, const char *advice,
                         const char *lines)
{
        while (*lines) {
                size_t n = strcspn(lines, "\n");

                if (n > 0)
                        report(d, v, advice, "configuration: %.*s", (int)n, lines);
                lines += n + (lines[n] == '\n');
        }
}

static void report_config(struct doctor *d, const struct config *c)
{
        if (c->has_file)
                report(d, FINE, NULL, "configuration: %zu %s, %zu %s, %zu %s", c->adapter_count,
                       print_plural((int64_t)c->adapter_count, "adapter", "adapters"),
                       c->agent_count, print_plural((int64_t)c->agent_count, "agent", "agents"),
                       c->rule_count, print_plural((int64_t)c->rule_count, "rule", "rules"));
        else
                report(d, FINE, NULL, "configuration: no config.json, defaults apply");
}

static void check_config(struct doctor *d)
{
        struct buf mistakes, warnings;
        struct config *c = NULL;
        struct error err = { 0 };
        int rc;

        buf_init(&mistakes, 0);
        buf_init(&warnings, 0);
        rc = config_load_reporting(d->args->dir, &c, &mistakes, &warnings, &err);
        d->config_failed = rc < 0;
        report_lines(d, FAIL, "correct the line; see: dragoman config doc", mistakes.data);
        if (rc == 0)
                report_config(d, c);
        report_lines(d, WARN, "see: dragoman config doc", warnings.data);
        config_free(c);
        buf_release(&mistakes);
        buf_release(&warnings);
}

/* ---- files ---- */

/* Only the owner may have access. */
static void check_private(struct doctor *d, const char *name, const char *advice)
{
        char *path = mem_printf("%s/%s", d->args->dir, name);
        struct error err = { 0 };
        struct stat st;

        if (trust_check(path, TRUST_NO_LINKS, &err) < 0) {
                report(d, FAIL, "the daemon does not start on it", "%s", err.text);
        } else if (stat(path, &st) == 0) {
                if (st.st_mode & 077)
                        report(d, WARN, advice, "%s is accessible to others (mode %o)", path,
                               (unsigned)(st.st_mode & 0777));
                else
                        report(d, FINE, NULL, "%s is private", path);
        }
        free(path);
}

static void check_directory(struct doctor *d)
{
        const char *dir = d->args->dir;
        struct stat st;

        if (stat(dir, &st) < 0 && errno == ENOENT) {
                report(d, WARN, "the first start creates it: dragoman run",
                       "there is no directory %s yet", dir);
                return;
        }
        if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
                report(d, FAIL, "give another directory", "%s is not a readable directory", dir);
                return;
        }
        if (access(dir, R_OK | W_OK | X_OK) < 0)
                report(d, FAIL, "change its owner or mode, or run as its owner", "%s: %s", dir,
                       strerror(errno));
        else
                report(d, FINE, NULL, "%s is writable", dir);
        check_private(d, "state", "chmod 700 the directory");
        check_private(d, "state/operator.key",
                      "chmod 600 it, delete it, and restart for a new key");
}

static void check_disk(struct doctor *d)
{
        struct statvfs v;
        unsigned long long mb;

        if (statvfs(d->args->dir, &v) < 0 && statvfs(".", &v) < 0)
                return;
        mb = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
        if (mb < DISK_FAIL_MB)
                report(d, FAIL, "free some space: with a full disk no message is accepted",
                       "only %llu MB of disk free", mb);
        else if (mb < DISK_WARN_MB)
                report(d, WARN, "free some space soon", "%llu MB of disk free", mb);
        else
                report(d, FINE, NULL, "%llu MB of disk free", mb);
}

/* ---- daemon ---- */

static void check_adapters(struct doctor *d, struct client *c)
{
        struct error err = { 0 };
        const char *name;
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(c, "/api/v2/instances", &page, &err) < 0) {
                report(d, FAIL, "see its log", "the daemon does not list its adapters: %s",
                       err.text);
                return;
        }
        json_array_foreach(json_object_get(page, "items"), i, item) {
                name = json_str(item, "name", "?");
                if (strcmp(json_str(item, "state", ""), "connected") == 0)
                        report(d, FINE, NULL, "adapter %s is connected%s%s", name,
                               json_str(item, "profileName", NULL) ? " as " : "",
                               json_str(item, "profileName", ""));
                else if (strcmp(json_str(item, "connection", ""), "off") == 0)
                        report(d, FINE, NULL, "adapter %s is disabled", name);
                else
                        report(d, json_flag(item, "isDown", false) ? FAIL : WARN,
                               "see: dragoman status", "adapter %s is %s: %s", name,
                               json_str(item, "state", "?"),
                               json_str(item, "why", "no reason given"));
        }
        json_decref(page);
}

static void check_sandbox(struct doctor *d, const char *agent, const json_t *sandbox)
{
        const char *kind = json_str(sandbox, "kind", NULL);

        if (!kind || strcmp(kind, "none") == 0)
                return;
        if (!json_is_true(json_object_get(sandbox, "works")))
                report(d, FAIL, "see the section Sandbox of docs/AGENT.md",
                       "agent %s refuses commands: %s", agent,
                       json_str(sandbox, "problem", "no reason given"));
        else if (strcmp(kind, "host") == 0)
                report(d, WARN, "set sandbox.kind to \"bwrap\" if that was not meant",
                       "commands of agent %s run on this machine without a sandbox", agent);
        else
                report(d, FINE, NULL, "commands of agent %s run in %s", agent, kind);
}

/* Only what turns and health checks have shown: asking costs money. */
static void check_agents(struct doctor *d, struct client *c)
{
        struct error err = { 0 };
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(c, "/api/v2/agents", &page, &err) < 0) {
                report(d, FAIL, "see its log", "the daemon does not list its agents: %s", err.text);
                return;
        }
        json_array_foreach(json_object_get(page, "items"), i, item) {
                const char *name = json_str(item, "name", "?");
                const char *health = json_str(item, "health", "?");

                if (strcmp(health, "unhealthy") == 0)
                        report(d, WARN, "see: dragoman status", "agent %s is unhealthy: %s", name,
                               json_str(item, "why", "no reason given"));
                else
                        report(d, FINE, NULL, "agent %s is %s", name,
                               strcmp(health, "unknown") == 0 ? "not asked yet" : health);
                check_sandbox(d, name, json_object_get(item, "sandbox"));
        }
        json_decref(page);
}

static void check_confinement(struct doctor *d, const json_t *c)
{
        static const struct {
                const char *key, *why, *what, *advice;
        } rows[] = {
                { "writes", "writesWhy", "where the daemon writes is not limited (Landlock)",
                  "needs Linux 5.19 with Landlock, and confinement.enabled" },
                { "calls", "callsWhy",
                  "which system calls the daemon makes is not limited "
                  "(seccomp)",
                  "needs seccomp filters, and confinement.enabled" },
        };
        bool all = json_is_object(c);

        for (size_t i = 0; i < COUNT(rows) && json_is_object(c); i++) {
                if (strcmp(json_str(c, rows[i].key, ""), "on") == 0)
                        continue;
                all = false;
                report(d, WARN, rows[i].advice, "%s: %s", rows[i].what,
                       json_str(c, rows[i].why, "no reason given"));
        }
        if (strcmp(json_str(c, "coreDumps", "off"), "off") != 0)
                report(d, WARN, "set confinement.coreDumps to false",
                       "core dumps and debuggers can read the daemon's secrets");
        if (all)
                report(d, FINE, NULL, "the daemon is confined (Landlock, seccomp)");
}

static void check_daemon(struct doctor *d)
{
        struct loop *l = loop_new();
        struct error err = { 0 };
        struct client *c = client_new(l, d->args->dir, &err);
        json_t *json = NULL;

        if (c && client_get(c, "/api/v2/status", &json, &err) == 0) {
                report(d, FINE, NULL, "a daemon runs at %s", client_base(c));
                check_adapters(d, c);
                check_agents(d, c);
                check_confinement(d, json_object_get(json_object_get(json, "data"), "confinement"));
        } else if (err.kind == ERR_NET) {
                report(d, WARN, "start it with: dragoman run", "%s", err.text);
        } else {
                report(d, FAIL, "another daemon may use the same port; see DIR/state/http.addr",
                       "daemon: %s", err.text);
        }
        json_decref(json);
        client_free(c);
        loop_free(l);
}

/* ---- database ---- */

static int read_newest(struct store_tx *tx, void *arg, struct error *err)
{
        return totals_newest_event_ms(tx, arg, err);
}

static void check_database(struct doctor *d)
{
        struct error err = { 0 };
        struct store *s = local_store_open(d->args->dir, &err);
        int64_t newest_ms = 0;

        if (!s && err.kind == ERR_MISSING)
                report(d, FINE, NULL, "there is no database yet");
        else if (!s || store_check(s, &err) < 0 ||
                 store_read_now(s, read_newest, &newest_ms, &err) < 0)
                report(d, FAIL,
                       err.kind == ERR_CORRUPT
                               ? "restore a copy made with: dragoman backup"
                               : "if it is damaged, restore a copy made with: dragoman backup",
                       "database: %s", err.text);
        else
                report(d, FINE, NULL, "the database is intact");
        if (newest_ms > clock_wall_ms() + DAY_MS)
                report(d, WARN, "the clock may have been wrong when they were stored",
                       "the newest events lie in the future");
        store_close(s);
}

/* ---- system ---- */

static void check_certificates(struct doctor *d)
{
        const char *given = getenv("SSL_CERT_FILE");
        const char *path = given && *given ? given : "/etc/ssl/certs/ca-certificates.crt";
        struct stat st;

        if (stat(path, &st) == 0 && st.st_size > 0)
                report(d, FINE, NULL, "certificates: %s", path);
        else
                report(d, FAIL,
                       "install the package ca-certificates; platforms and models cannot be "
                       "reached without it",
                       "there are no certificates at %s", path);
}

static void check_clock(struct doctor *d)
{
        char iso[CLOCK_ISO_SIZE];
        int64_t now = clock_wall_ms();

        if (now < BUILT_MS)
                report(d, FAIL, "set the clock; certificates and signatures depend on it",
                       "the clock shows %s", clock_iso(now, iso));
        else
                report(d, FINE, NULL, "the clock shows %s", clock_iso(now, iso));
}

/* ---- all checks ---- */

static void (*const checks[])(struct doctor *d) = { check_config,   check_directory,
                                                    check_disk,     check_daemon,
                                                    check_database, check_certificates,
                                                    check_clock };

int doctor_command(struct args *a)
{
        struct doctor d = { .args = a };
        json_t *all;

        if (args_end(a) < 0)
                return CLI_USAGE;
        d.found = json_array();
        for (size_t i = 0; i < COUNT(checks); i++)
                checks[i](&d);
        if (a->json) {
                all = json_pack("{s:b, s:O}", "ok", d.failures == 0, "checks", d.found);
                print_json(all);
                json_decref(all);
        } else if (d.failures + d.warnings == 0) {
                puts("no problems found");
        } else {
                printf("%u %s, %u %s\n", d.failures,
                       print_plural(d.failures, "failure", "failures"), d.warnings,
                       print_plural(d.warnings, "warning", "warnings"));
        }
        json_decref(d.found);
        if (d.config_failed)
                return CLI_CONFIG;
        return d.failures > 0 ? CLI_FAILED : CLI_OK;
}
