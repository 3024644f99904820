/*
 * Looks at everything that commonly goes wrong, and says what to do about it. A check is a function
 * and a row.
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
#include "cli/client.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"

#define DISK_WARN_MB 1024
#define DISK_FAIL_MB 100
#define BUILT_MS     1735689600000 /* 2025-01-01: this program is younger */
#define DAY_MS       86400000

enum verdict { FINE, WARN, FAIL };

struct doctor {
        struct args *args;
        json_t *found;
        unsigned warnings, failures;
        bool config_failed;
};

static const char *const verdict_names[] = { "ok", "warn", "fail" };

/* advice: what to do; NULL when all is well. */
static void report(struct doctor *d, enum verdict v, const char *advice, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

static void report(struct doctor *d, enum verdict v, const char *advice, const char *fmt, ...)
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

static void report_warnings(struct doctor *d, const char *warnings)
{
        while (*warnings) {
                size_t n = strcspn(warnings, "\n");

                if (n > 0)
                        report(d, WARN, "see: dragoman config doc", "%.*s", (int)n, warnings);
                warnings += n + (warnings[n] == '\n');
        }
}

static void check_config(struct doctor *d)
{
        struct config *c = NULL;
        struct error err = { 0 };

        if (config_load(d->args->dir, &c, &err) < 0) {
                d->config_failed = true;
                report(d, FAIL, "correct the line; see: dragoman config doc", "configuration: %s",
                       err.text);
                return;
        }
        if (c->source)
                report(d, FINE, NULL, "configuration: %zu %s, %zu %s, %zu %s", c->adapter_count,
                       print_plural((int64_t)c->adapter_count, "adapter", "adapters"),
                       c->agent_count, print_plural((int64_t)c->agent_count, "agent", "agents"),
                       c->rule_count, print_plural((int64_t)c->rule_count, "rule", "rules"));
        else
                report(d, FINE, NULL, "configuration: no config.json, the defaults apply");
        report_warnings(d, config_warnings(c));
        config_free(c);
}

/* ---- files ---- */

/* Nobody but the owner may look. */
static void check_private(struct doctor *d, const char *name, const char *advice)
{
        char *path = mem_printf("%s/%s", d->args->dir, name);
        struct stat st;

        if (stat(path, &st) == 0) {
                if (st.st_mode & 077)
                        report(d, WARN, advice, "%s can be read by others (mode %o)", path,
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
                report(d, WARN, "it is made at the first start: dragoman run",
                       "there is no directory %s yet", dir);
                return;
        }
        if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
                report(d, FAIL, "give another directory", "%s is no directory that can be read",
                       dir);
                return;
        }
        if (access(dir, R_OK | W_OK | X_OK) < 0)
                report(d, FAIL, "change its owner or mode, or run as the user it belongs to",
                       "%s: %s", dir, strerror(errno));
        else
                report(d, FINE, NULL, "%s can be written", dir);
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
                report(d, FAIL, "free some space: a full disk means that no message is taken",
                       "only %llu MB of disk free", mb);
        else if (mb < DISK_WARN_MB)
                report(d, WARN, "free some space soon", "%llu MB of disk free", mb);
        else
                report(d, FINE, NULL, "%llu MB of disk free", mb);
}

/* ---- daemon ---- */

/* The bot's name shows whether it is the right one. */
static void report_connected(struct doctor *d, const char *name, const char *profile)
{
        if (profile)
                report(d, FINE, NULL, "adapter %s is connected as %s", name, profile);
        else
                report(d, FINE, NULL, "adapter %s is connected", name);
}

static void check_readiness(struct doctor *d, struct client *c)
{
        struct error err = { 0 };
        const char *name;
        json_t *page = NULL, *item;
        size_t i;

        if (client_get(c, "/api/v2/instances", &page, &err) < 0) {
                report(d, FAIL, "look at its log", "the daemon does not tell its adapters: %s",
                       err.text);
                return;
        }
        json_array_foreach(json_object_get(page, "items"), i, item) {
                name = json_str(item, "name", "?");
                if (strcmp(json_str(item, "state", ""), "connected") == 0)
                        report_connected(d, name, json_str(item, "profileName", NULL));
                else if (strcmp(json_str(item, "connection", ""), "off") == 0)
                        report(d, FINE, NULL, "adapter %s is switched off", name);
                else
                        report(d, WARN, "see: dragoman status", "adapter %s is %s: %s", name,
                               json_str(item, "state", "?"),
                               json_str(item, "why", "no reason is known"));
        }
        json_decref(page);
}

static void check_daemon(struct doctor *d)
{
        struct loop *l = loop_new();
        struct error err = { 0 };
        struct client *c = client_new(l, d->args->dir, &err);
        json_t *json = NULL;

        if (c && client_get(c, "/api/v2/status", &json, &err) == 0) {
                report(d, FINE, NULL, "a daemon runs at %s", client_base(c));
                check_readiness(d, c);
        } else if (err.kind == ERR_NET) {
                report(d, WARN, "start it with: dragoman run", "no daemon runs on %s",
                       d->args->dir);
        } else {
                report(d, FAIL, "is another daemon on the same port? look at DIR/state/http.addr",
                       "daemon: %s", err.text);
        }
        json_decref(json);
        client_free(c);
        loop_free(l);
}

/* ---- database ---- */

struct integrity {
        char said[300];
        int64_t newest_ms;
};

static int read_integrity(struct store_tx *tx, void *arg, struct error *err)
{
        struct integrity *i = arg;
        struct store_stmt *s = store_prepare(tx, "PRAGMA quick_check(1)");
        int rc = store_step(s, err);

        if (rc == 1) {
                snprintf(i->said, sizeof(i->said), "%s", store_col_text(s, 0));
                store_reset(s);
                s = store_prepare(
                        tx,
                        "SELECT coalesce(max(time_ms), 0) FROM (SELECT time_ms FROM journal ORDER BY "
                        "seq DESC LIMIT 100) AS latest");
                rc = store_step(s, err);
        }
        if (rc == 1) {
                i->newest_ms = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static void check_database(struct doctor *d)
{
        struct integrity i = { 0 };
        struct error err = { 0 };

        if (local_store_read(d->args->dir, read_integrity, &i, &err) < 0) {
                if (err.kind == ERR_MISSING)
                        report(d, FINE, NULL, "there is no database yet");
                else
                        report(d, FAIL,
                               "if it is damaged, restore a copy made with: dragoman backup",
                               "database: %s", err.text);
                return;
        }
        if (strcmp(i.said, "ok") == 0)
                report(d, FINE, NULL, "the database is whole");
        else
                report(d, FAIL, "restore a copy made with: dragoman backup",
                       "the database is damaged: %s", i.said);
        if (i.newest_ms > clock_wall_ms() + DAY_MS)
                report(d, WARN, "was the clock wrong when they were stored?",
                       "the newest events lie in the future");
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
                       "install the package ca-certificates; without it no platform or model can be reached",
                       "there are no certificates at %s", path);
}

static void check_clock(struct doctor *d)
{
        char iso[CLOCK_ISO_SIZE];
        int64_t now = clock_wall_ms();

        if (now < BUILT_MS)
                report(d, FAIL, "set the clock; certificates and signatures depend on it",
                       "the clock says %s", clock_iso(now, iso));
        else
                report(d, FINE, NULL, "the clock says %s", clock_iso(now, iso));
}

/* ---- the whole ---- */

static void (*const checks[])(struct doctor *d) = { check_config,   check_directory,
                                                    check_disk,     check_daemon,
                                                    check_database, check_certificates,
                                                    check_clock };

static int summarize(const struct doctor *d)
{
        json_t *all;

        if (d->args->json) {
                all = json_pack("{s:b, s:O}", "ok", d->failures == 0, "checks", d->found);
                print_json(all);
                json_decref(all);
        } else if (d->failures + d->warnings == 0) {
                puts("everything is fine");
        } else {
                printf("%u to correct, %u to look at\n", d->failures, d->warnings);
        }
        if (d->config_failed)
                return CLI_CONFIG;
        return d->failures > 0 ? CLI_FAILED : CLI_OK;
}

int doctor_command(struct args *a)
{
        struct doctor d = { .args = a };
        int rc;

        if (args_end(a) < 0)
                return CLI_USAGE;
        d.found = json_array();
        for (size_t i = 0; i < COUNT(checks); i++)
                checks[i](&d);
        rc = summarize(&d);
        json_decref(d.found);
        return rc;
}
