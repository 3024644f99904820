/* Errors that tables cannot express, and warnings about settings that are probably mistakes. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"
#include "config/config_private.h"
#include "dispatch/rules/pattern.h"

/* ---- names ---- */

int config_check_name(const struct settings_source *src, const char *section, const char *name,
                      struct error *err)
{
        size_t n = strlen(name);
        char *path;

        if ((islower((unsigned char)*name) || isdigit((unsigned char)*name)) && n <= 100 &&
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n)
                return 0;
        path = mem_printf("%s.%s", section, name);
        settings_error(src, path, err,
                       "a name has lower-case letters, digits, '-', '_' and '.', begins with a "
                       "letter or digit, and has at most 100 characters");
        free(path);
        return -1;
}

/* ---- http ---- */

/* The host of "host:port" or "[address]:port", yours to free; NULL: malformed. */
static char *listen_host(const char *listen)
{
        const char *colon = strrchr(listen, ':');
        char *host, *end;
        long port;

        if (!colon || colon == listen || !isdigit((unsigned char)colon[1]))
                return NULL;
        port = strtol(colon + 1, &end, 10);
        if (*end || port > 65535)
                return NULL;
        if (*listen == '[')
                return colon > listen + 2 && colon[-1] == ']'
                               ? mem_strndup(listen + 1, (size_t)(colon - listen) - 2)
                               : NULL;
        host = mem_strndup(listen, (size_t)(colon - listen));
        if (!strchr(host, ':'))
                return host;
        free(host); /* an IPv6 address without brackets is ambiguous */
        return NULL;
}

static bool is_loopback(const char *host)
{
        struct in_addr four;
        struct in6_addr six;

        if (inet_pton(AF_INET, host, &four) == 1)
                return ntohl(four.s_addr) >> 24 == 127;
        if (inet_pton(AF_INET6, host, &six) == 1)
                return IN6_IS_ADDR_LOOPBACK(&six);
        return strcmp(host, "localhost") == 0;
}

static int check_listen(const struct settings_source *src, const struct http_conf *h,
                        struct error *err)
{
        char *host = listen_host(h->listen);
        bool valid = host != NULL, loopback = host && is_loopback(host);

        free(host);
        if (!valid)
                return settings_error(src, "http.listen", err,
                                      "expected address and port such as \"127.0.0.1:8420\" or "
                                      "\"[::1]:8420\"");
        if (!loopback && !h->tls_cert && h->trusted_proxy.count == 0)
                return settings_error(src, "http.listen", err,
                                      "can be reached from other machines: set 'tlsCert' and "
                                      "'tlsKey', or list the proxy that terminates TLS in "
                                      "'trustedProxy'");
        return 0;
}

static int check_http(const struct settings_source *src, const struct http_conf *h,
                      struct error *err)
{
        unsigned char bytes[sizeof(struct in6_addr)];

        if (!h->tls_cert != !h->tls_key)
                return settings_error(src, h->tls_cert ? "http.tlsCert" : "http.tlsKey", err,
                                      "'tlsCert' and 'tlsKey' must be set together");
        for (size_t i = 0; i < h->trusted_proxy.count; i++) {
                const char *proxy = h->trusted_proxy.items[i];

                if (inet_pton(AF_INET, proxy, bytes) != 1 && inet_pton(AF_INET6, proxy, bytes) != 1)
                        return settings_error(src, "http.trustedProxy", err,
                                              "'%.60s' is not an IP address", proxy);
        }
        return check_listen(src, h, err);
}

/* ---- store and bus ---- */

/* Keep the value out of messages: the URL may carry a password. */
static int check_driver(const struct settings_source *src, const char *key, const char *value,
                        const char *accepted, const char *later_prefix, const char *later_name,
                        struct error *err)
{
        if (strcmp(value, accepted) == 0)
                return 0;
        if (strncmp(value, later_prefix, strlen(later_prefix)) == 0)
                return settings_error(src, key, err, "%s is not supported yet; accepted: \"%s\"",
                                      later_name, accepted);
        return settings_error(src, key, err, "unknown %s; accepted: \"%s\"", key, accepted);
}

int config_check_root(const struct settings_source *src, const struct config_root *root,
                      struct error *err)
{
        if (check_http(src, &root->http, err) < 0 ||
            check_driver(src, "store", root->store, "sqlite", "postgres", "PostgreSQL", err) < 0)
                return -1;
        return check_driver(src, "bus", root->bus, "local", "nats", "NATS", err);
}

/* ---- references ---- */

static int unknown_agent(const struct config *c, const struct settings_source *src,
                         const char *path, const char *agent, struct error *err)
{
        const char **names = mem_array(c->agent_count + 1, sizeof(*names));
        const char *near;
        struct buf text;

        buf_init(&text, 0);
        for (size_t i = 0; i < c->agent_count; i++)
                names[i] = c->agents[i]->name;
        near = settings_nearest(agent, names);
        buf_addf(&text, "there is no agent '%.60s'", agent);
        if (near)
                buf_addf(&text, " (did you mean '%s'?)", near);
        buf_addstr(&text, "; there is ");
        for (size_t i = 0; i < c->agent_count; i++)
                buf_addf(&text, "%s'%s'", i > 0 ? ", " : "", names[i]);
        settings_error(src, path, err, "%s", text.data);
        buf_release(&text);
        free(names);
        return -1;
}

/* Frees the path. */
static int check_agent(const struct config *c, const struct settings_source *src, char *path,
                       const char *agent, struct error *err)
{
        bool known = !agent;
        int rc = 0;

        for (size_t i = 0; i < c->agent_count && !known; i++)
                known = strcmp(c->agents[i]->name, agent) == 0;
        if (!known)
                rc = unknown_agent(c, src, path, agent, err);
        free(path);
        return rc;
}

int config_check_references(const struct config *c, const struct settings_source *src,
                            struct error *err)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                const struct adapter_conf *a = c->adapters[i];

                if (check_agent(c, src, mem_printf("adapters.%s.agent", a->name), a->common.agent,
                                err) < 0)
                        return -1;
        }
        for (size_t i = 0; i < c->rule_count; i++) {
                if (check_agent(c, src, mem_printf("rules[%zu].agent", i), c->rules[i].agent, err) <
                    0)
                        return -1;
        }
        for (size_t i = 0; i < c->agent_count; i++) {
                const struct setting_list *others = &c->agents[i]->common.failover;

                for (size_t j = 0; j < others->count; j++) {
                        if (check_agent(c, src,
                                        mem_printf("agents.%s.failover", c->agents[i]->name),
                                        others->items[j], err) < 0)
                                return -1;
                }
        }
        return check_agent(c, src, mem_strdup("defaultAgent"), c->default_agent, err);
}

/* ---- bots ---- */

/* NULL: none. */
static const struct secret *bot_token(const struct adapter_conf *a)
{
        const struct setting *s = a->ops->settings;

        while (s && s->key && strcmp(s->key, "botToken") != 0)
                s++;
        if (!s || !s->key || s->type != SETTING_SECRET)
                return NULL;
        return *(struct secret *const *)((const char *)a->conf + s->at);
}

int config_check_bots(const struct config *c, const struct settings_source *src, struct error *err)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                for (size_t j = 0; j < i; j++) {
                        const struct adapter_conf *a = c->adapters[i], *b = c->adapters[j];
                        const struct secret *mine = bot_token(a), *other = bot_token(b);
                        char *path;

                        if (a->ops != b->ops || !a->common.enabled || !b->common.enabled || !mine ||
                            !other ||
                            !secret_equals(mine, secret_reveal(other), secret_length(other)))
                                continue;
                        path = mem_printf("adapters.%s.botToken", a->name);
                        settings_error(src, path, err,
                                       "adapter '%s' has the same token; a bot can connect once",
                                       b->name);
                        free(path);
                        return -1;
                }
        }
        return 0;
}

/* ---- warnings ---- */

static bool is_adapter_pattern(const struct config *c, const char *pattern)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                if (pattern_glob(pattern, c->adapters[i]->name))
                        return true;
        }
        return false;
}

static bool admits_anyone(const struct adapter_common *a)
{
        return a->admins.count + a->allow.count + a->channels.count > 0 ||
               (a->dm.count > 0 && strcmp(a->dm.items[0], "none") != 0);
}

void config_check_warnings(const struct config *c, struct settings_source *src)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                const struct adapter_conf *a = c->adapters[i];
                char *path;

                if (!a->common.enabled || a->ops->trusted || admits_anyone(&a->common))
                        continue;
                path = mem_printf("adapters.%s", a->name);
                settings_warn(src, path,
                              "answers no one: list people or channels in 'admins', 'dm', "
                              "'channels' or 'allow'");
                free(path);
        }
        for (size_t i = 0; i < c->rule_count; i++) {
                const struct setting_list *list = &c->rules[i].adapter;
                char *path = mem_printf("rules[%zu].when.adapter", i);

                for (size_t j = 0; j < list->count; j++) {
                        if (!is_adapter_pattern(c, list->items[j]))
                                settings_warn(src, path, "there is no adapter '%.60s'",
                                              list->items[j]);
                }
                free(path);
        }
        for (size_t i = 0; i < c->adapter_count && !c->default_agent && c->rule_count == 0; i++) {
                const struct adapter_conf *a = c->adapters[i];

                if (a->common.enabled && !a->common.agent)
                        settings_warn(src, "agents",
                                      "adapter '%s' has no agent: set its 'agent', a "
                                      "'defaultAgent', or rules",
                                      a->name);
        }
}
