/* Errors that tables cannot express. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"
#include "config/config_private.h"
#include "net/address.h"

/* ---- names ---- */

bool config_check_name(const struct settings_source *src, const char *section, const char *name)
{
        size_t n = strlen(name);
        char *path;

        if ((islower((unsigned char)*name) || isdigit((unsigned char)*name)) && n <= 100 &&
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n)
                return true;
        path = mem_printf("%s.%s", section, name);
        settings_error(src, path, NULL,
                       "a name has lower-case letters, digits, '-', '_' and '.', begins with a "
                       "letter or digit, and has at most 100 characters");
        free(path);
        return false;
}

/* ---- http ---- */

static void check_listen(const struct settings_source *src, const struct http_conf *h)
{
        struct error why = { 0 };
        char *host;

        if (address_split(h->listen, &host, NULL, &why) < 0) {
                settings_error(src, "http.listen", NULL, "%s", why.text);
                return;
        }
        if (!address_is_loopback(host) && !h->tls_cert && h->trusted_proxy.count == 0)
                settings_error(src, "http.listen", NULL,
                               "can be reached from other machines: set 'tlsCert' and 'tlsKey', "
                               "or list the proxy that terminates TLS in 'trustedProxy'");
        free(host);
}

static void check_http(const struct settings_source *src, const struct http_conf *h)
{
        unsigned char bytes[sizeof(struct in6_addr)];

        if (!h->tls_cert != !h->tls_key)
                settings_error(src, h->tls_cert ? "http.tlsCert" : "http.tlsKey", NULL,
                               "'tlsCert' and 'tlsKey' must be set together");
        for (size_t i = 0; i < h->trusted_proxy.count; i++) {
                const char *proxy = h->trusted_proxy.items[i];

                if (inet_pton(AF_INET, proxy, bytes) != 1 && inet_pton(AF_INET6, proxy, bytes) != 1)
                        settings_error(src, "http.trustedProxy", NULL,
                                       "'%.60s' is not an IP address", proxy);
        }
        check_listen(src, h);
}

/* ---- store and bus ---- */

/* Keep the value out of messages: the URL may carry a password. */
static void check_driver(const struct settings_source *src, const char *key, const char *value,
                         const char *accepted, const char *later_prefix, const char *later_name)
{
        if (strcmp(value, accepted) == 0)
                return;
        if (strncmp(value, later_prefix, strlen(later_prefix)) == 0)
                settings_error(src, key, NULL, "%s is not supported yet; accepted: \"%s\"",
                               later_name, accepted);
        else
                settings_error(src, key, NULL, "unknown %s; accepted: \"%s\"", key, accepted);
}

void config_check_root(const struct settings_source *src, const struct config_root *root)
{
        check_http(src, &root->http);
        for (size_t i = 0; i < root->confinement.writable.count; i++)
                if (root->confinement.writable.items[i][0] != '/')
                        settings_error(src, "confinement.writable", NULL,
                                       "'%.200s' is not an absolute path",
                                       root->confinement.writable.items[i]);
        check_driver(src, "store", root->store, "sqlite", "postgres", "PostgreSQL");
        check_driver(src, "bus", root->bus, "local", "nats", "NATS");
        schedule_conf_check(src, &root->schedule);
        remote_conf_check(src, &root->remote);
        if (!root->cards.organization != !root->cards.organization_url)
                settings_error(src, "a2a", NULL,
                               "'organization' and 'organizationUrl' need each other");
}

/* ---- references ---- */

/*
 * The members of a section, also those with mistakes, then the defaults. NULL-terminated; free the
 * array, not the names.
 */
static const char **names_in(const struct config *c, const struct settings_source *src,
                             const char *section, bool agents)
{
        json_t *object = json_object_get(settings_source_root(src), section);
        size_t count = agents ? c->agent_count : c->adapter_count, n = 0;
        const char **names = mem_array(json_object_size(object) + count + 1, sizeof(*names));
        const char *name;
        json_t *value;

        json_object_foreach(object, name, value)
                names[n++] = name;
        for (size_t i = 0; i < count; i++) {
                name = agents ? c->agents[i]->name : c->adapters[i]->name;
                if (!json_object_get(object, name))
                        names[n++] = name;
        }
        names[n] = NULL;
        return names;
}

const char **config_check_adapters(const struct config *c, const struct settings_source *src)
{
        return names_in(c, src, "adapters", false);
}

/* what: "agent". Frees the path. */
static void check_name(const struct settings_source *src, const char *what,
                       const char *const *names, char *path, const char *name)
{
        const char *near;
        struct buf text;
        size_t i = 0;

        while (name && names[i] && strcmp(names[i], name) != 0)
                i++;
        if (name && !names[i]) {
                buf_init(&text, 0);
                near = settings_nearest(name, names);
                buf_addf(&text, "there is no %s '%.60s'", what, name);
                if (near)
                        buf_addf(&text, " (did you mean '%s'?)", near);
                for (i = 0; names[i]; i++)
                        buf_addf(&text, "%s'%s'", i > 0 ? ", " : "; there is ", names[i]);
                settings_error(src, path, NULL, "%s", text.data);
                buf_release(&text);
        }
        free(path);
}

void config_check_references(const struct config *c, const struct settings_source *src)
{
        const char **names = names_in(c, src, "agents", true);
        const char **adapters = config_check_adapters(c, src);

        for (size_t i = 0; i < c->adapter_count; i++)
                check_name(src, "agent", names,
                           mem_printf("adapters.%s.agent", c->adapters[i]->name),
                           c->adapters[i]->common.agent);
        for (size_t i = 0; i < c->rule_count; i++)
                check_name(src, "agent", names, mem_printf("rules[%zu].agent", i),
                           c->rules[i].agent);
        for (size_t i = 0; i < c->agent_count; i++) {
                const struct setting_list *others = &c->agents[i]->common.failover;

                for (size_t j = 0; j < others->count; j++)
                        check_name(src, "agent", names,
                                   mem_printf("agents.%s.failover", c->agents[i]->name),
                                   others->items[j]);
        }
        check_name(src, "agent", names, mem_strdup("defaultAgent"), c->default_agent);
        check_name(src, "adapter", adapters, mem_strdup("sessions.adapter"), c->remote.adapter);
        for (size_t i = 0; i < c->cards.publish.count; i++)
                if (strcmp(c->cards.publish.items[i], CARD_OF_THE_RULES) != 0)
                        check_name(src, "agent", names, mem_strdup("a2a.publish"),
                                   c->cards.publish.items[i]);
        free(adapters);
        free(names);
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

/* No two enabled adapters are the same bot. */
static void check_token(const struct config *c, const struct settings_source *src, size_t at)
{
        const struct adapter_conf *a = c->adapters[at];
        const struct secret *mine = bot_token(a);

        for (size_t i = 0; i < at && mine; i++) {
                const struct adapter_conf *b = c->adapters[i];
                const struct secret *other = bot_token(b);
                char *path;

                if (a->ops != b->ops || !b->common.enabled || !other ||
                    !secret_equals(mine, secret_reveal(other), secret_length(other)))
                        continue;
                path = mem_printf("adapters.%s.botToken", a->name);
                settings_error(src, path, NULL,
                               "adapter '%s' has the same token; a bot can connect once", b->name);
                free(path);
        }
}

void config_check_bots(const struct config *c, const struct settings_source *src)
{
        for (size_t i = 0; i < c->adapter_count; i++) {
                const struct adapter_conf *a = c->adapters[i];
                char *path;

                if (!a->common.enabled)
                        continue;
                check_token(c, src, i);
                if (c->http.public_url || !a->ops->needs_public_url ||
                    !a->ops->needs_public_url(a->conf))
                        continue;
                path = mem_printf("adapters.%s.mode", a->name);
                settings_error(src, path, NULL,
                               "'webhook' needs http.publicUrl, the https address under which %s "
                               "reaches the daemon; or set 'polling'",
                               a->ops->title);
                free(path);
        }
}
