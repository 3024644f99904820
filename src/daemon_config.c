/*
 * Applies the configuration at start, and again at every SIGHUP.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon_private.h"

/* ---- applying ---- */

/* The public URL, else a local one. */
void daemon_config_set_reply_base(struct daemon *d, const struct http_conf *http)
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

int daemon_config_apply(struct daemon *d, struct config *c, struct error *err)
{
        struct buf access;

        if (agents_apply(d->agents, c->agents, c->agent_count, err) < 0)
                return -1;
        free(c->agents); /* its members belong to the registry now */
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
        if (d->api)
                daemon_config_set_reply_base(d, &c->http);
        if (adapters_apply(d->adapters, c->adapters, c->adapter_count, err) < 0)
                return -1;
        free(c->adapters);
        c->adapters = NULL;
        c->adapter_count = 0;
        road_set_limits(d->road, &c->limits);
        bus_set_retention(d->bus, c->retention_ms);
        return 0;
}

void daemon_config_log_warnings(const struct config *c)
{
        char *lines = mem_strdup(config_warnings(c)), *rest = lines, *line;

        while ((line = strsep(&rest, "\n"))) {
                if (*line)
                        log_warn(line);
        }
        free(lines);
}

/* ---- reload ---- */

struct reload_job {
        struct daemon *daemon;
        struct config *config;
        struct error err;
        int rc;
};

/* Runs on a pool thread, because a secret may come from a command. */
static void load_config(void *arg)
{
        struct reload_job *l = arg;

        l->rc = config_load(l->daemon->options->dir, &l->config, &l->err);
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Without `listen`, which a flag may override. */
static bool same_http(const struct http_conf *a, const struct http_conf *b)
{
        bool proxies = a->trusted_proxy.count == b->trusted_proxy.count;

        for (size_t i = 0; proxies && i < a->trusted_proxy.count; i++)
                proxies = same(a->trusted_proxy.items[i], b->trusted_proxy.items[i]);
        return proxies && same(a->public_url, b->public_url) && same(a->tls_cert, b->tls_cert) &&
               same(a->tls_key, b->tls_key) && a->max_body_bytes == b->max_body_bytes &&
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

void daemon_config_mark_certificate(struct daemon *d)
{
        d->tls_cert = mark_of(d->config->http.tls_cert);
        d->tls_key = mark_of(d->config->http.tls_key);
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
            !same(old->bus_url, new->bus_url))
                log_warn("changes of http, store and bus take effect after a restart");
        else if (!same_file(&cert, &d->tls_cert) || !same_file(&key, &d->tls_key))
                /* it may have the same path, but the server reads it only at start */
                log_warn("the certificate or its key was renewed; it is used after a restart",
                         LOG_S("file", old->http.tls_cert));
}

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
        /* a file removed by mistake must not take every bot offline */
        if (l->rc == 0 && d->config->source && !l->config->source)
                l->rc = error_set(&l->err, ERR_MISSING,
                                  "there is no config.json in '%s'; for the defaults write an "
                                  "empty one ({})",
                                  d->options->dir);
        if (l->rc == 0) {
                daemon_config_log_warnings(l->config);
                warn_of_restart(d, l->config);
                l->rc = daemon_config_apply(d, l->config, &l->err);
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
                daemon_config_reload(d);
}

void daemon_config_reload(struct daemon *d)
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
