#include "daemon.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/trim.h"
#include "config/config.h"
#include "dispatch/desk.h"
#include "dispatch/persons.h"

#define DRAIN_MS      10000
#define FIRST_TRIM_MS 3000 /* when those who waited for the start have been served */
#define TRIM_EVERY_MS 60000

/* Which file a path named, and which contents it had. */
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
        struct desk *desk;
        struct dispatch *dispatch;
        struct road *road;
        struct api *api;
        struct file_mark tls_cert, tls_key; /* as the server read them */
        uv_signal_t term, interrupt, hangup;
        bool stopping;
        bool reloading, reload_again;
        struct timer *trim;
        uint64_t work_seen,
                work_trimmed; /* what had been done at the last look, and when memory was last given back */
};

/* ---- the road's hooks: each question goes to whoever can answer it ---- */

static void hook_decide(void *ctx, const struct incoming *in, struct decision *out)
{
        dispatch_decide(((struct daemon *)ctx)->dispatch, in, out);
}

static bool hook_admit(void *ctx, const struct incoming *in, struct decision *out)
{
        return dispatch_admit(((struct daemon *)ctx)->dispatch, in, out);
}

static unsigned hook_agent_abilities(void *ctx, const char *agent)
{
        return agents_abilities(((struct daemon *)ctx)->agents, agent);
}

static void hook_agent_start(void *ctx, struct turn_run *run)
{
        agents_start(((struct daemon *)ctx)->agents, run);
}

static void hook_agent_cancel(void *ctx, struct turn_run *run)
{
        agents_cancel(((struct daemon *)ctx)->agents, run);
}

static unsigned hook_adapter_abilities(void *ctx, const char *adapter)
{
        return adapters_abilities(((struct daemon *)ctx)->adapters, adapter);
}

static bool hook_adapter_ready(void *ctx, const char *adapter)
{
        return adapters_ready(((struct daemon *)ctx)->adapters, adapter);
}

static void hook_adapter_limits(void *ctx, const char *adapter, struct pace_limits *out)
{
        adapters_limits(((struct daemon *)ctx)->adapters, adapter, out);
}

static bool hook_channel_is_group(void *ctx, const char *adapter, const char *channel)
{
        return adapters_channel_is_group(((struct daemon *)ctx)->adapters, adapter, channel);
}

static int hook_render(void *ctx, const char *adapter, const char *text, struct rendered *out,
                       struct error *err)
{
        return adapters_render(((struct daemon *)ctx)->adapters, adapter, text, out, err);
}

static int hook_caption(void *ctx, const char *adapter, const char *text, struct rendered *out,
                        struct error *err)
{
        return adapters_caption(((struct daemon *)ctx)->adapters, adapter, text, out, err);
}

static void hook_send(void *ctx, const struct delivery *d)
{
        adapters_send(((struct daemon *)ctx)->adapters, d);
}

static void hook_reconcile(void *ctx, const struct delivery *d)
{
        adapters_reconcile(((struct daemon *)ctx)->adapters, d);
}

static void hook_recall(void *ctx, const char *adapter, const char *channel, const char *thread,
                        unsigned limit, recall_fn *done, void *arg)
{
        adapters_recall(((struct daemon *)ctx)->adapters, adapter, channel, thread, limit, done, arg);
}

static const char *hook_thread_at(void *ctx, const struct incoming *in)
{
        return adapters_thread_at(((struct daemon *)ctx)->adapters, in);
}

/* Rules and platforms have a say in it. */
static void hook_terms(void *ctx, const char *adapter, const char *rule, enum chat_kind chat,
                       struct turn_terms *out)
{
        adapters_terms(((struct daemon *)ctx)->adapters, adapter, chat, out);
        dispatch_terms(((struct daemon *)ctx)->dispatch, adapter, rule, chat, out);
}

static void hook_ending(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome,
                        struct road_also *also)
{
        dispatch_ending(((struct daemon *)ctx)->dispatch, run, outcome, also);
}

static void hook_ended(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome)
{
        dispatch_ended(((struct daemon *)ctx)->dispatch, run, outcome);
}

static void hook_live(void *ctx, const char *type, const char *adapter, const char *channel, const char *json)
{
        struct daemon *d = ctx;

        if (d->api)
                api_live(d->api, type, adapter, channel, json);
}

static int64_t hook_person(void *ctx, const char *platform, const char *user)
{
        return persons_of(((struct daemon *)ctx)->desk->persons, platform, user);
}

static const struct road_hooks hooks = {
        .decide = hook_decide,
        .admit = hook_admit,
        .agent_abilities = hook_agent_abilities,
        .agent_start = hook_agent_start,
        .agent_cancel = hook_agent_cancel,
        .adapter_abilities = hook_adapter_abilities,
        .adapter_ready = hook_adapter_ready,
        .adapter_limits = hook_adapter_limits,
        .channel_is_group = hook_channel_is_group,
        .render = hook_render,
        .caption = hook_caption,
        .send = hook_send,
        .reconcile = hook_reconcile,
        .live = hook_live,
        .recall = hook_recall,
        .thread_at = hook_thread_at,
        .terms = hook_terms,
        .ending = hook_ending,
        .ended = hook_ended,
};

/* ---- configuration ---- */

/* Who is answered must not be a surprise: said at every start and reload. */
static void log_access(const struct daemon *d, const struct config *c)
{
        struct buf line;

        buf_init(&line, 0);
        for (size_t i = 0; i < c->adapter_count; i++) {
                buf_clear(&line);
                if (c->adapters[i]->common.enabled &&
                    dispatch_describe(d->dispatch, c->adapters[i]->name, &line))
                        log_info(line.data);
        }
        buf_release(&line);
}

static void free_agent_confs(struct config *c)
{
        free(c->agents);
        c->agents = NULL;
        c->agent_count = 0;
}

static void free_adapter_confs(struct config *c)
{
        free(c->adapters);
        c->adapters = NULL;
        c->adapter_count = 0;
}

/* Where agents find the API: by its public name, or else on this machine. */
static void set_reply_base(struct daemon *d, const struct http_conf *http)
{
        const char *address = api_address(d->api), *port = strrchr(address, ':');
        bool everywhere = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
        char *url = http->public_url ? mem_strdup(http->public_url)
                                     : mem_printf("%s://%s%s", api_is_tls(d->api) ? "https" : "http",
                                                  everywhere ? "127.0.0.1" : "", everywhere ? port : address);

        agents_set_reply_base(d->agents, url);
        free(url);
}

/* Makes the running program equal to the configuration. The registries take their parts over. */
static int apply(struct daemon *d, struct config *c, struct error *err)
{
        if (agents_apply(d->agents, c->agents, c->agent_count, err) < 0)
                return -1;
        free_agent_confs(c);
        config_to_dispatch(c, d->dispatch);
        log_access(d, c);
        adapters_set_public_url(d->adapters, c->http.public_url);
        if (d->api)
                set_reply_base(d, &c->http);
        if (adapters_apply(d->adapters, c->adapters, c->adapter_count, err) < 0)
                return -1;
        free_adapter_confs(c);
        road_set_limits(d->road, &c->limits);
        bus_set_retention(d->bus, c->retention_ms);
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

/* ---- reload ---- */

struct reload {
        struct daemon *daemon;
        struct config *config;
        struct error err;
        int rc;
};

static void reload(struct daemon *d);

/* On a pool thread: a secret may come from a command. */
static void load_config(void *arg)
{
        struct reload *l = arg;

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

/* The server is opened once; of its settings only publicUrl is also somebody else's. */
static bool same_http(const struct http_conf *a, const struct http_conf *b)
{
        return same(a->public_url, b->public_url) && same(a->tls_cert, b->tls_cert) &&
               same(a->tls_key, b->tls_key) && same_list(&a->trusted_proxy, &b->trusted_proxy) &&
               a->max_body_bytes == b->max_body_bytes && a->max_connections == b->max_connections &&
               a->max_stream_clients == b->max_stream_clients && a->idle_seconds == b->idle_seconds &&
               a->request_seconds == b->request_seconds;
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

/* A renewed certificate has the same path; the server reads it only when it is opened. */
static void warn_of_certificate(const struct daemon *d)
{
        struct file_mark cert = mark_of(d->config->http.tls_cert), key = mark_of(d->config->http.tls_key);

        if (!same_file(&cert, &d->tls_cert) || !same_file(&key, &d->tls_key))
                log_warn("the certificate or its key was renewed; it is used after a restart",
                         LOG_S("file", d->config->http.tls_cert));
}

static void warn_of_restart(const struct daemon *d, const struct config *new)
{
        const struct config *old = d->config;

        if ((!d->options->listen && !same(old->http.listen, new->http.listen)) ||
            !same_http(&old->http, &new->http) || !same(old->store_url, new->store_url) ||
            !same(old->bus_url, new->bus_url))
                log_warn("changes of http, store and bus take effect after a restart");
        else
                warn_of_certificate(d);
}

static void on_config(void *arg)
{
        struct reload *l = arg;
        struct daemon *d = l->daemon;
        bool again = d->reload_again;

        d->reloading = d->reload_again = false;
        if (d->stopping) {
                config_free(l->config);
                free(l);
                return;
        }
        if (l->rc == 0) {
                log_warnings(l->config);
                warn_of_restart(d, l->config);
                l->rc = apply(d, l->config, &l->err);
        }
        if (l->rc < 0) {
                log_error("the new configuration is not used; the old one stays in force",
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
        struct reload *l;

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
                loop_stop(d->loop); /* asked twice: do not wait for the slow ones */
                return;
        }
        d->stopping = true;
        log_info("stopping", LOG_S("why", why));
        api_quiesce(d->api);
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

static uint64_t work_done(const struct daemon *d)
{
        struct road_stats s;

        road_stats(d->road, &s);
        return 1 + s.received + s.turns_done + s.turns_failed + s.sent + s.retried;
}

/* Gives memory back once after the start, and then after each spell of work, when a whole minute has passed without any. */
static void on_trim(void *arg)
{
        struct daemon *d = arg;
        uint64_t work = work_done(d);

        if (d->work_trimmed == 0 || (work == d->work_seen && work != d->work_trimmed)) {
                trim_idle_memory();
                d->work_trimmed = work;
        }
        d->work_seen = work;
        timer_start(d->trim, TRIM_EVERY_MS);
}

/* ---- systemd ---- */

/* The notification protocol is one datagram; a library for it would cost more memory than the daemon's own state. */
static void notify_systemd(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd;

        if (!path || strlen(path) >= sizeof(to.sun_path))
                return;
        memcpy(to.sun_path, path, strlen(path));
        if (to.sun_path[0] == '@')
                to.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
        close(fd);
}

/* ---- start ---- */

static int make_dir(const char *base, const char *name, mode_t mode, struct error *err)
{
        char *path = name ? mem_printf("%s/%s", base, name) : mem_strdup(base);
        int rc = 0;

        if (mkdir(path, mode) < 0 && errno != EEXIST)
                rc = error_set(err, ERR_IO, "cannot make directory '%s': %s", path, strerror(errno));
        free(path);
        return rc;
}

/* Keys and messages are in there: a folder that came from a copy or another hand is made private. */
static int tighten(const char *base, const char *name, struct error *err)
{
        char *path = mem_printf("%s/%s", base, name);
        char mode[16];
        struct stat st;
        int rc = 0;

        if (stat(path, &st) < 0 || ((st.st_mode & 077) && chmod(path, 0700) < 0)) {
                rc = error_set(err, ERR_IO, "cannot make '%s' private: %s", path, strerror(errno));
        } else if (st.st_mode & 077) {
                snprintf(mode, sizeof(mode), "%o", (unsigned)(st.st_mode & 0777));
                log_warn("others could look into this folder; it is private now", LOG_S("path", path),
                         LOG_S("was", mode));
        }
        free(path);
        return rc;
}

static int make_dirs(const char *dir, struct error *err)
{
        if (make_dir(dir, NULL, 0755, err) < 0 || make_dir(dir, "workspace", 0755, err) < 0 ||
            make_dir(dir, "state", 0700, err) < 0)
                return -1;
        return tighten(dir, "state", err);
}

static int open_store(struct daemon *d, struct error *err)
{
        char *dir = mem_printf("%s/state", d->options->dir);
        struct store_options store = { .url = d->config->store_url, .dir = dir, .migrations = store_schema };
        struct bus_options bus = { .url = d->config->bus_url };

        memcpy(bus.retention_ms, d->config->retention_ms, sizeof(bus.retention_ms));
        d->store = store_open(d->loop, &store, err);
        free(dir);
        if (!d->store)
                return -1;
        d->bus = bus_open(d->loop, d->store, &bus, err);
        return d->bus ? 0 : -1;
}

static int open_road(struct daemon *d, struct error *err)
{
        struct http_client_options options = { 0 };
        struct road_hooks mine = hooks;

        mine.ctx = d;
        d->http = http_client_new(d->loop, &options, err);
        if (!d->http)
                return -1;
        d->agents = agents_new(d->loop, d->http, d->options->dir);
        d->adapters = adapters_new(d->loop, d->http, d->options->dir);
        adapters_set_journal(d->adapters, d->store, d->bus);
        d->desk = desk_open(d->store, d->bus, err);
        if (!d->desk)
                return -1;
        d->dispatch = dispatch_new();
        dispatch_set_desk(d->dispatch, d->desk);
        d->road = road_open(d->loop, d->store, d->bus, &d->config->limits, &mine, err);
        if (!d->road)
                return -1;
        adapters_set_road(d->adapters, d->road);
        if (agents_set_outlet(d->agents, &(struct agents_outlet){ d->store, d->bus, d->road, outbox_put },
                              err) < 0)
                return -1;
        agents_set_persons(d->agents, hook_person, d);
        if (apply(d, d->config, err) < 0) {
                err->kind = ERR_INVALID; /* what the configuration asks for cannot be had */
                return -1;
        }
        return dispatch_restore(d->dispatch, d->store, err);
}

static int open_api(struct daemon *d, struct error *err)
{
        struct api_env env = {
                .loop = d->loop,
                .store = d->store,
                .bus = d->bus,
                .road = d->road,
                .agents = d->agents,
                .adapters = d->adapters,
                .dispatch = d->dispatch,
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
        return 0;
}

static int start(struct daemon *d, struct error *err)
{
        if (make_dirs(d->options->dir, err) < 0)
                return -1;
        d->loop = loop_new();
        if (open_store(d, err) < 0 || open_road(d, err) < 0 || open_api(d, err) < 0)
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
        api_close(d->api);
        d->api = NULL;
        road_close(d->road);
        adapters_free(d->adapters);
        agents_free(d->agents);
        http_client_free(d->http);
        desk_leave_bus(d->desk);
        bus_close(d->bus);
        store_close(d->store);
        dispatch_free(d->dispatch);
        desk_free(d->desk);
        if (d->term.data) {
                uv_close((uv_handle_t *)&d->term, NULL);
                uv_close((uv_handle_t *)&d->interrupt, NULL);
                uv_close((uv_handle_t *)&d->hangup, NULL);
        }
        loop_free(d->loop);
        config_free(d->config);
}

/* Few threads, little memory, and as many open files as the system lets us have: each watcher of the event stream is one. */
static void tune_process(void)
{
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files);
        }
        setenv("UV_THREADPOOL_SIZE", "2", 0);
        mallopt(M_ARENA_MAX, 2);
        signal(SIGPIPE, SIG_IGN);
}

static void follow_parent(void)
{
        pid_t parent = getppid();

        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || parent == 1)
                raise(SIGTERM);
}

static int exit_code(const struct error *err)
{
        return err->kind == ERR_INVALID || err->kind == ERR_REFUSED ? CLI_CONFIG : CLI_FAILED;
}

int daemon_run(const struct daemon_options *options)
{
        struct daemon d = { .options = options, .started_ms = clock_wall_ms() };
        struct error err = { 0 };
        uint64_t began = clock_mono_ns();
        int rc;

        log_setup(options->log_format, options->log_level);
        if (config_load(options->dir, &d.config, &err) < 0) {
                fprintf(stderr, "dragoman: %s\n", err.text);
                return CLI_CONFIG;
        }
        if (options->check_only) {
                fputs(config_warnings(d.config), stderr);
                config_free(d.config);
                return CLI_OK;
        }
        tune_process();
        if (options->parent_watch)
                follow_parent();
        log_warnings(d.config);
        rc = start(&d, &err);
        if (rc < 0) {
                fprintf(stderr, "dragoman: %s\n", err.text);
                finish(&d);
                return exit_code(&err);
        }
        log_info("ready", LOG_S("address", api_address(d.api)), LOG_S("data", options->dir),
                 LOG_S("agent", d.config->agent_note), LOG_I("micros", (clock_mono_ns() - began) / 1000));
        notify_systemd("READY=1");
        loop_run(d.loop);
        notify_systemd("STOPPING=1");
        finish(&d);
        log_info("stopped");
        return CLI_OK;
}
