#include "daemon.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/heap_trim.h"
#include "base/mem.h"
#include "base/spawn_thread.h"
#include "base/trust.h"
#include "config/config.h"
#include "dispatch/people/persons.h"
#include "dispatch/runtime_policy.h"
#include "net/orphans.h"
#include "net/sd_notify.h"
#include "platform/platform_tool.h"
#include "road/channel_folder.h"
#include "rows/schema.h"

#define DRAIN_MS      10000
#define FIRST_TRIM_MS 3000 /* after requests that waited for the start */
#define TRIM_EVERY_MS 60000

/* Identifies a file and its contents. */
struct file_mark {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec changed;
};

struct daemon {
        const struct daemon_options *options;
        int64_t started_ms;
        struct config *config;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct http_client *http;
        struct agents *agents;
        struct adapters *adapters;
        struct runtime_policy *policy;
        struct dispatch *dispatch;
        struct road *road;
        struct schedule *schedule;
        struct remote *remote;
        struct records *records;
        struct api *api;
        struct confine_report confinement;
        char **writable;                    /* besides the data directory, as it was at the start */
        struct file_mark tls_cert, tls_key; /* as read by the server */
        uv_signal_t term, interrupt, hangup;
        struct orphans *orphans;
        bool stopping;
        bool reloading, reload_again;
        struct timer *trim;
        struct timer *watchdog; /* NULL: systemd expects none */
        uint64_t work_seen;     /* at the last check */
        uint64_t work_trimmed;  /* when memory was last trimmed */
};

/* ---- configuration, at start and on SIGHUP ---- */

/* The public URL, else a local one. */
static void set_reply_base(struct daemon *d, const struct http_conf *http)
{
        const char *address = api_address(d->api), *port = strrchr(address, ':');
        bool everywhere = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
        char *url =
                http->public_url
                        ? mem_strdup(http->public_url)
                        : mem_printf("%s://%s%s", api_is_tls(d->api) ? "https" : "http",
                                     everywhere ? "127.0.0.1" : "", everywhere ? port : address);

        agents_set_reply_base(d->agents, url);
        free(url);
}

static bool has_builtin(const struct config *c)
{
        for (size_t i = 0; i < c->agent_count; i++)
                if (strcmp(c->agents[i]->ops->type, "builtin") == 0)
                        return true;
        return false;
}

static int apply_config(struct daemon *d, struct config *c, struct error *err)
{
        bool keeps_records = has_builtin(c); /* the registry takes the agents */
        struct buf access;

        if (agents_apply(d->agents, c->agents, c->agent_count, err) < 0)
                return -1;
        free(c->agents); /* the registry owns its members */
        c->agents = NULL;
        c->agent_count = 0;
        config_dispatch_apply(c, d->dispatch);
        buf_init(&access, 0);
        for (size_t i = 0; i < c->adapter_count; i++) {
                buf_clear(&access);
                if (c->adapters[i]->common.enabled &&
                    dispatch_describe(d->dispatch, c->adapters[i]->name, &access))
                        log_info(access.data);
        }
        buf_release(&access);
        adapters_set_public_url(d->adapters, c->http.public_url);
        adapters_set_attachment_limits(d->adapters, &c->attachments);
        if (d->api) {
                set_reply_base(d, &c->http);
                api_set_cards(d->api, &c->cards);
        }
        if (adapters_apply(d->adapters, c->adapters, c->adapter_count, err) < 0)
                return -1;
        free(c->adapters);
        c->adapters = NULL;
        c->adapter_count = 0;
        road_set_limits(d->road, &c->limits);
        agents_set_transcript_days(d->agents, c->limits.transcript_days);
        agents_set_timezone(d->agents, c->schedule.timezone);
        bus_set_retention(d->bus, c->retention_ms);
        records_apply(d->records, &c->workspace, keeps_records);
        schedule_set_conf(d->schedule, &c->schedule);
        remote_set_conf(d->remote, &c->remote);
        return 0;
}

static void log_warnings(const struct config *c)
{
        char *lines = mem_strdup(config_warnings(c)), *rest = lines, *line;

        while ((line = strsep(&rest, "\n"))) {
                if (*line)
                        log_warn(line);
        }
        free(lines);
}

struct reload_job {
        struct daemon *daemon;
        struct config *config;
        struct error err;
        int rc;
};

/* On a pool thread, because a secret may come from a command. */
static void load_config(void *arg)
{
        struct reload_job *l = arg;

        l->rc = config_load(l->daemon->options->dir, &l->config, &l->err);
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_list(const struct setting_list *a, const struct setting_list *b)
{
        bool equal = a->count == b->count;

        for (size_t i = 0; equal && i < a->count; i++)
                equal = same(a->items[i], b->items[i]);
        return equal;
}

/* Without `listen`, which a flag may override. */
static bool same_http(const struct http_conf *a, const struct http_conf *b)
{
        return same_list(&a->trusted_proxy, &b->trusted_proxy) &&
               same(a->public_url, b->public_url) && same(a->tls_cert, b->tls_cert) &&
               same(a->tls_key, b->tls_key) && a->max_body_bytes == b->max_body_bytes &&
               a->max_bodies_bytes == b->max_bodies_bytes &&
               a->max_connections == b->max_connections &&
               a->max_stream_clients == b->max_stream_clients &&
               a->idle_seconds == b->idle_seconds && a->request_seconds == b->request_seconds;
}

static struct file_mark mark_of(const char *path)
{
        struct file_mark m = { 0 };
        struct stat st;

        if (path && stat(path, &st) == 0)
                m = (struct file_mark){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
        return m;
}

static bool same_file(const struct file_mark *a, const struct file_mark *b)
{
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
               a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void warn_of_restart(const struct daemon *d, const struct config *new)
{
        const struct config *old = d->config;
        struct file_mark cert = mark_of(old->http.tls_cert), key = mark_of(old->http.tls_key);

        if ((!d->options->listen && !same(old->http.listen, new->http.listen)) ||
            !same_http(&old->http, &new->http) || !same(old->store_url, new->store_url) ||
            !same(old->bus_url, new->bus_url) ||
            old->confinement.enabled != new->confinement.enabled ||
            old->confinement.core_dumps != new->confinement.core_dumps ||
            !same_list(&old->confinement.writable, &new->confinement.writable))
                log_warn("changes to http, store, bus and confinement take effect after a restart");
        else if (!same_file(&cert, &d->tls_cert) || !same_file(&key, &d->tls_key))
                /* the server reads the file only at start */
                log_warn("TLS certificate or key changed; takes effect after a restart",
                         LOG_S("file", old->http.tls_cert));
}

static void reload(struct daemon *d);

static void on_config(void *arg)
{
        struct reload_job *l = arg;
        struct daemon *d = l->daemon;
        bool again = d->reload_again;

        d->reloading = d->reload_again = false;
        if (d->stopping) {
                config_free(l->config);
                free(l);
                return;
        }
        /* a config file removed by mistake must not take every bot offline */
        if (l->rc == 0 && d->config->has_file && !l->config->has_file)
                l->rc = error_set(&l->err, ERR_MISSING,
                                  "there is no config.json in '%s'; for the defaults write an "
                                  "empty one ({})",
                                  d->options->dir);
        if (l->rc == 0) {
                log_warnings(l->config);
                warn_of_restart(d, l->config);
                l->rc = apply_config(d, l->config, &l->err);
        }
        if (l->rc < 0) {
                log_error("configuration rejected; the old one stays in force",
                          LOG_S("why", l->err.text));
                config_free(l->config);
        } else {
                log_info("configuration reloaded");
                config_free(d->config);
                d->config = l->config;
        }
        free(l);
        if (again)
                reload(d);
}

static void reload(struct daemon *d)
{
        struct reload_job *l;

        if (d->reloading || d->stopping) {
                d->reload_again = true;
                return;
        }
        d->reloading = true;
        l = mem_zalloc(sizeof(*l));
        l->daemon = d;
        loop_work(d->loop, load_config, on_config, l);
}

/* ---- signals ---- */

static void on_drained(void *arg)
{
        loop_stop(((struct daemon *)arg)->loop);
}

static void stop(struct daemon *d, const char *why)
{
        if (d->stopping) {
                loop_stop(d->loop); /* second signal: do not wait for turns */
                return;
        }
        d->stopping = true;
        log_info("stopping", LOG_S("why", why));
        sd_notify_send("STOPPING=1");
        api_quiesce(d->api);
        schedule_quiesce(d->schedule);
        remote_quiesce(d->remote);
        road_drain(d->road, DRAIN_MS, on_drained, d);
}

static void on_signal(uv_signal_t *s, int number)
{
        struct daemon *d = s->data;

        if (number == SIGHUP)
                reload(d);
        else
                stop(d, strsignal(number));
}

static void watch_signal(struct daemon *d, uv_signal_t *s, int number)
{
        uv_signal_init(loop_uv(d->loop), s);
        s->data = d;
        uv_signal_start(s, on_signal, number);
}

/* ---- idle memory ---- */

static void on_store_trimmed(void *arg, const struct error *err)
{
        (void)arg;
        (void)err;
        heap_trim_idle();
}

/* Trims memory once after the start, then after work followed by an idle minute. */
static void on_trim(void *arg)
{
        struct daemon *d = arg;
        struct road_stats s;
        uint64_t work;

        road_stats(d->road, &s);
        work = 1 + s.received + s.turns_done + s.turns_failed + s.sent + s.retried;
        if (d->work_trimmed == 0 || (work == d->work_seen && work != d->work_trimmed)) {
                store_trim(d->store, on_store_trimmed, d);
                d->work_trimmed = work;
        }
        d->work_seen = work;
        timer_start(d->trim, TRIM_EVERY_MS);
}

/* ---- starting ---- */

/* Many open files, one per stream client; few threads, little memory. */
static void tune_process(bool exit_with_parent)
{
        pid_t parent = getppid();
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        setenv("UV_THREADPOOL_SIZE", "2", 0);
        mallopt(M_ARENA_MAX, 4); /* with fewer, the loop and the writer wait for each other */
        signal(SIGPIPE, SIG_IGN);
        if (exit_with_parent) {
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (getppid() != parent || parent == 1)
                        raise(SIGTERM);
        }
}

/* The state directory holds keys and messages; a restored copy may have the wrong mode. */
static int make_private(const char *path, struct error *err)
{
        char mode[16];
        struct stat st;

        if (trust_check(path, TRUST_NO_LINKS, err) < 0)
                return -1;
        if (stat(path, &st) < 0 || ((st.st_mode & 077) && chmod(path, 0700) < 0))
                return error_set(err, ERR_IO, "cannot make '%s' private: %s", path,
                                 strerror(errno));
        if (st.st_mode & 077) {
                snprintf(mode, sizeof(mode), "%o", (unsigned)(st.st_mode & 0777));
                log_warn("directory was accessible to others; it is private now",
                         LOG_S("path", path), LOG_S("was", mode));
        }
        return 0;
}

static int make_dirs(const char *dir, struct error *err)
{
        static const struct {
                const char *name;
                mode_t mode;
        } rows[] = { { "", 0755 }, { "/workspace", 0755 }, { "/state", 0700 } };
        int rc = 0;

        for (size_t i = 0; i < COUNT(rows) && rc == 0; i++) {
                char *path = mem_printf("%s%s", dir, rows[i].name);

                if (mkdir(path, rows[i].mode) < 0 && errno != EEXIST)
                        rc = error_set(err, ERR_IO, "cannot make directory '%s': %s", path,
                                       strerror(errno));
                else if (rows[i].mode == 0700)
                        rc = make_private(path, err);
                else
                        rc = trust_check(path, TRUST_OWN_LINKS, err);
                free(path);
        }
        return rc;
}

/*
 * Commands send the operator key to the address in the file once the lock is held. The address of
 * an earlier run may belong to another program now, and opening the store takes long.
 */
static void forget_address(const char *state_dir)
{
        char *path = mem_printf("%s/http.addr", state_dir);

        unlink(path);
        free(path);
}

static int open_store(struct daemon *d, struct error *err)
{
        char *dir = mem_printf("%s/state", d->options->dir);
        struct store_options store = { .url = d->config->store_url,
                                       .dir = dir,
                                       .migrations = schema_steps,
                                       .locked = forget_address };
        struct bus_options bus = { .url = d->config->bus_url };

        memcpy(bus.retention_ms, d->config->retention_ms, sizeof(bus.retention_ms));
        d->store = store_open(d->loop, &store, err);
        free(dir);
        if (!d->store)
                return -1;
        d->bus = bus_open(d->loop, d->store, &bus, err);
        return d->bus ? 0 : -1;
}

/* The parties the road calls: dispatch, agents and platforms. */
static int open_parties(struct daemon *d, struct error *err)
{
        struct http_client_options options = { 0 };

        d->http = http_client_new(d->loop, &options, err);
        if (!d->http)
                return -1;
        d->agents = agents_new(d->loop, d->http, d->options->dir);
        d->adapters = adapters_new(d->loop, d->http, d->options->dir);
        adapters_set_journal(d->adapters, d->store, d->bus);
        d->policy = runtime_policy_open(d->store, d->bus, err);
        if (!d->policy)
                return -1;
        d->dispatch = dispatch_new();
        dispatch_set_policy(d->dispatch, d->policy);
        d->records = records_new(d->loop, d->store, d->bus, d->options->dir);
        return 0;
}

static int open_road(struct daemon *d, struct error *err)
{
        struct road_env env = {
                .loop = d->loop,
                .store = d->store,
                .bus = d->bus,
                .dispatch = { .dispatch = d->dispatch,
                              .decide = dispatch_decide,
                              .ending = dispatch_ending,
                              .ended = dispatch_ended },
                .agents = { .agents = d->agents,
                            .abilities = agents_abilities,
                            .start = agent_runs_start,
                            .cancel = agent_runs_cancel,
                            .waiting = agent_runs_waiting,
                            .answer = agent_runs_answer,
                            .describe = agents_describe,
                            .late_replies = agents_late_replies },
                .platforms = { .adapters = d->adapters,
                               .abilities = adapters_abilities,
                               .ready = adapters_ready,
                               .limits = adapters_limits,
                               .channel_is_group = adapters_channel_is_group,
                               .render = adapters_render,
                               .render_card = adapters_render_card,
                               .threads = adapters_threads,
                               .send = adapters_send,
                               .reconcile = adapters_reconcile,
                               .when_unsure = adapters_when_unsure,
                               .read_from = adapters_read_from,
                               .channel_history = adapters_channel_history,
                               .message = adapters_message,
                               .hold_files = adapters_hold_files,
                               .stop_files = adapters_stop_files,
                               .release_files = adapters_release_files,
                               .thread_at = adapters_thread_at,
                               .tool_at = adapters_tool_at,
                               .call_tool = platform_tool_call,
                               .upload_max = adapters_upload_max,
                               .draft_ms = adapters_draft_ms,
                               .command_prefix = adapters_command_prefix,
                               .user_link = adapters_user_link,
                               .shows_typing = adapters_shows_typing },
        };

        d->road = road_open(&env, &d->config->limits, err);
        return d->road ? 0 : -1;
}

static int64_t person_of(void *daemon, const char *platform, const char *user)
{
        return persons_lookup(((struct daemon *)daemon)->policy->persons, platform, user);
}

static bool adapter_at(void *daemon, size_t i, const char **name, const char **platform)
{
        const struct adapter *a = adapters_at(((struct daemon *)daemon)->adapters, i);

        if (!a)
                return false;
        *name = a->name;
        *platform = a->ops->name;
        return true;
}

static bool has_agent(void *daemon, const char *name)
{
        return agents_has(((struct daemon *)daemon)->agents, name);
}

/* In the sandbox of an agent that may answer there. */
static int run_check(void *daemon, const struct schedule_check *c, schedule_check_fn *done,
                     void *arg, struct error *err)
{
        struct daemon *d = daemon;
        const char *agent = c->agent ? c->agent : dispatch_default_agent(d->dispatch, c->adapter);
        struct agent_check check = { c->adapter, c->channel, c->command, c->seconds };

        if (!agent)
                return error_set(err, ERR_INVALID,
                                 "adapter '%s' has no agent of its own; the event must name the "
                                 "agent whose sandbox its check runs in",
                                 c->adapter);
        if (!dispatch_may_choose(d->dispatch, c->adapter, agent))
                return error_set(err, ERR_REFUSED,
                                 "neither adapter '%s' nor a rule about it has the agent '%s'",
                                 c->adapter, agent);
        return agents_run_check(d->agents, agent, &check, done, arg, err);
}

static int open_schedule(struct daemon *d, struct error *err)
{
        struct schedule_env env = { .loop = d->loop,
                                    .store = d->store,
                                    .bus = d->bus,
                                    .road = d->road,
                                    .dir = d->options->dir,
                                    .person_of = person_of,
                                    .run_check = run_check,
                                    .adapter_at = adapter_at,
                                    .has_agent = has_agent,
                                    .arg = d };
        struct road_schedule contract;

        d->schedule = schedule_open(&env, &d->config->schedule, err);
        if (!d->schedule)
                return -1;
        schedule_contract(d->schedule, &contract);
        road_set_schedule(d->road, &contract);
        dispatch_set_schedule(d->dispatch, &contract);
        return 0;
}

static int open_remote(struct daemon *d, struct error *err)
{
        struct remote_env env = { .loop = d->loop,
                                  .store = d->store,
                                  .bus = d->bus,
                                  .road = d->road,
                                  .person_of = person_of,
                                  .adapter_at = adapter_at,
                                  .arg = d };

        struct road_remote contract;

        d->remote = remote_open(&env, &d->config->remote, err);
        if (!d->remote)
                return -1;
        remote_contract(d->remote, &contract);
        dispatch_set_remote(d->dispatch, &contract);
        return 0;
}

/* Connects the parties to the road, and starts them by applying the configuration. */
static int connect_parties(struct daemon *d, struct error *err)
{
        adapters_set_road(d->adapters, d->road);
        if (agents_connect(d->agents, &(struct agents_env){ d->store, d->bus, d->road }, err) < 0)
                return -1;
        agents_set_persons(d->agents, person_of, d);
        if (open_schedule(d, err) < 0 || open_remote(d, err) < 0)
                return -1;
        if (apply_config(d, d->config, err) < 0) {
                err->kind = ERR_INVALID; /* exit code of a wrong configuration */
                return -1;
        }
        if (dispatch_restore(d->dispatch, d->store, err) < 0)
                return -1;
        schedule_start(d->schedule);
        remote_start(d->remote);
        return 0;
}

static int open_api(struct daemon *d, struct error *err)
{
        struct api_env env = {
                .confinement = &d->confinement,
                .writable = (const char *const *)d->writable,
                .loop = d->loop,
                .store = d->store,
                .bus = d->bus,
                .road = d->road,
                .agents = d->agents,
                .adapters = d->adapters,
                .dispatch = d->dispatch,
                .schedule = d->schedule,
                .remote = d->remote,
                .dir = d->options->dir,
                .started_ms = d->started_ms,
        };

        if (d->options->listen) {
                free(d->config->http.listen);
                d->config->http.listen = mem_strdup(d->options->listen);
        }
        d->tls_cert = mark_of(d->config->http.tls_cert);
        d->tls_key = mark_of(d->config->http.tls_key);
        d->api = api_open(&env, &d->config->http, err);
        if (!d->api)
                return -1;
        set_reply_base(d, &d->config->http);
        api_set_cards(d->api, &d->config->cards);
        return 0;
}

/* Before there are other threads, which would be exempt. */
static int confine(struct daemon *d, struct error *err)
{
        const struct confinement_conf *conf = &d->config->confinement;
        struct confine_report *r = &d->confinement;
        const char **paths;
        size_t n = 0;
        int rc;

        confine_memory(conf->core_dumps, true, r);
        if (spawn_thread_start(err) < 0)
                return -1;
        if (!conf->enabled) {
                snprintf(r->writes_why, sizeof(r->writes_why), "confinement.enabled is false");
                snprintf(r->calls_why, sizeof(r->calls_why), "confinement.enabled is false");
                log_warn("not confined", LOG_S("why", r->calls_why));
                return 0;
        }
        d->writable = mem_array(conf->writable.count + 1, sizeof(*d->writable));
        for (size_t i = 0; i < conf->writable.count; i++)
                d->writable[i] = mem_strdup(conf->writable.items[i]);
        d->writable[conf->writable.count] = NULL;
        paths = mem_array(conf->writable.count + 3, sizeof(*paths));
        paths[n++] = d->options->dir;
        paths[n++] = "/dev/null";
        for (size_t i = 0; i < conf->writable.count; i++)
                paths[n++] = conf->writable.items[i];
        paths[n] = NULL;
        rc = confine_self(paths, r, err);
        free(paths);
        if (rc < 0)
                error_prefix(err, "confinement");
        else if (!r->writes || !r->calls)
                log_warn("not fully confined", LOG_S("writes", r->writes ? "on" : r->writes_why),
                         LOG_S("calls", r->calls ? "on" : r->calls_why));
        return rc;
}

static int start(struct daemon *d, struct error *err)
{
        channel_folder_set_user(d->config->workspace.user);
        if (make_dirs(d->options->dir, err) < 0 || confine(d, err) < 0)
                return -1;
        d->loop = loop_new();
        d->orphans = orphans_adopt(d->loop);
        if (open_store(d, err) < 0 || open_parties(d, err) < 0 || open_road(d, err) < 0 ||
            connect_parties(d, err) < 0 || open_api(d, err) < 0)
                return -1;
        watch_signal(d, &d->term, SIGTERM);
        watch_signal(d, &d->interrupt, SIGINT);
        watch_signal(d, &d->hangup, SIGHUP);
        d->trim = timer_new(d->loop, on_trim, d);
        timer_start(d->trim, FIRST_TRIM_MS);
        return 0;
}

static void finish(struct daemon *d)
{
        timer_free(d->trim);
        timer_free(d->watchdog);
        api_close(d->api);
        d->api = NULL;
        road_settle(d->road);
        if (d->schedule) {
                road_set_schedule(d->road, NULL);
                dispatch_set_schedule(d->dispatch, NULL);
                dispatch_set_remote(d->dispatch, NULL);
        }
        schedule_close(d->schedule);
        remote_close(d->remote);
        road_close(d->road);
        records_free(d->records);
        adapters_free(d->adapters);
        agents_free(d->agents);
        http_client_free(d->http);
        runtime_policy_detach_bus(d->policy);
        bus_close(d->bus);
        store_close(d->store);
        dispatch_free(d->dispatch);
        runtime_policy_free(d->policy);
        if (d->term.data) {
                uv_close((uv_handle_t *)&d->term, NULL);
                uv_close((uv_handle_t *)&d->interrupt, NULL);
                uv_close((uv_handle_t *)&d->hangup, NULL);
        }
        orphans_free(d->orphans);
        loop_free(d->loop);
        spawn_thread_stop();
        for (size_t i = 0; d->writable && d->writable[i]; i++)
                free(d->writable[i]);
        free(d->writable);
        config_free(d->config);
}

int daemon_run(const struct daemon_options *options)
{
        struct daemon d = { .options = options, .started_ms = clock_wall_ms() };
        struct error err = { 0 };
        uint64_t began = clock_mono_ns();
        int rc;

        log_setup(options->log_format, options->log_level);
        confine_memory(false, false, &d.confinement); /* before there are secrets */
        if (config_load(options->dir, &d.config, &err) < 0) {
                fprintf(stderr, "dragoman: %s\n", err.text);
                return CLI_CONFIG;
        }
        tune_process(options->parent_watch);
        log_warnings(d.config);
        rc = start(&d, &err);
        if (rc < 0) {
                fprintf(stderr, "dragoman: %s\n", err.text);
                finish(&d);
                return err.kind == ERR_INVALID || err.kind == ERR_REFUSED ? CLI_CONFIG : CLI_FAILED;
        }
        log_info("ready", LOG_S("address", api_address(d.api)), LOG_S("data", options->dir),
                 LOG_S("agent", d.config->agent_note),
                 LOG_I("micros", (clock_mono_ns() - began) / 1000));
        sd_notify_send("READY=1");
        d.watchdog = sd_notify_watchdog(d.loop);
        loop_run(d.loop);
        finish(&d);
        log_info("stopped");
        return CLI_OK;
}
