#include "api/core/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trust.h"
#include "net/address.h"

#define OPERATOR_PREFIX   "dgm_"
#define OPERATOR_RANDOM   40
#define OPERATOR_SHORTEST 20 /* if written by hand */
#define OPERATOR_LONGEST  200
#define KEY_LONGEST       256 /* of a presented key */
#define MAX_PER_ADDRESS   256 /* connections, unless only this machine can connect */

/* ---- hosts and addresses ---- */

/* "host", "host:port" or "[v6]:port", without brackets. */
static bool host_part(const char *text, char *out, size_t size)
{
        const char *end;
        size_t n;

        if (text[0] == '[') {
                text++;
                end = strchr(text, ']');
                if (!end || (end[1] != '\0' && end[1] != ':'))
                        return false;
        } else {
                end = text + strcspn(text, ":");
        }
        n = (size_t)(end - text);
        if (n == 0 || n >= size)
                return false;
        memcpy(out, text, n);
        out[n] = '\0';
        return true;
}

bool auth_is_loopback(const char *listen)
{
        char host[256];

        return host_part(listen, host, sizeof(host)) && address_is_loopback(host);
}

/* IPv4 is mapped to 16 bytes, for comparison. */
static bool parse_address(const char *text, unsigned char out[16])
{
        static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

        memcpy(out, mapped, sizeof(mapped));
        return inet_pton(AF_INET, text, out + 12) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

/* "10.0.0.7" or "10.0.0.0/8" */
static bool network_has(const char *network, const char *peer)
{
        unsigned char net[16], address[16];
        const char *slash = strchr(network, '/');
        char *base = slash ? mem_strndup(network, (size_t)(slash - network)) : mem_strdup(network);
        bool ok = parse_address(base, net) && parse_address(peer, address);
        unsigned long bits = 128, whole;
        char *end = NULL;

        if (slash) {
                bits = strtoul(slash + 1, &end, 10) + (strchr(base, ':') ? 0 : 96);
                ok = ok && end != slash + 1 && *end == '\0' && bits <= 128;
        }
        free(base);
        whole = bits / 8;
        return ok && memcmp(net, address, whole) == 0 &&
               (bits % 8 == 0 || (net[whole] ^ address[whole]) >> (8 - bits % 8) == 0);
}

int auth_init(struct auth *a, const struct http_conf *conf, struct error *err)
{
        const char *public_host;
        char host[256];

        *a = (struct auth){ .loopback = auth_is_loopback(conf->listen),
                            .tls = conf->tls_cert && conf->tls_key };
        if (!a->loopback && !a->tls && conf->trusted_proxy.count == 0)
                return error_set(
                        err, ERR_REFUSED,
                        "refusing to listen on '%s': others could read the operator key in "
                        "transit; set http.tlsCert and http.tlsKey, or name the proxy in front "
                        "of us in http.trustedProxy, or listen on 127.0.0.1",
                        conf->listen);
        public_host = conf->public_url ? strstr(conf->public_url, "://") : NULL;
        if (public_host)
                a->public_host = mem_strndup(public_host + 3, strcspn(public_host + 3, "/?#"));
        if (host_part(conf->listen, host, sizeof(host)))
                a->own_host = mem_strdup(host);
        a->proxy_count = conf->trusted_proxy.count;
        a->proxies = mem_array(a->proxy_count, sizeof(*a->proxies));
        for (size_t i = 0; i < a->proxy_count; i++)
                a->proxies[i] = mem_strdup(conf->trusted_proxy.items[i]);
        return 0;
}

void auth_release(struct auth *a)
{
        for (size_t i = 0; i < a->proxy_count; i++)
                free(a->proxies[i]);
        free(a->proxies);
        free(a->public_host);
        free(a->own_host);
        key_unref(a->operator);
        *a = (struct auth){ 0 };
}

bool auth_is_local(const struct auth *a)
{
        return a->loopback && a->proxy_count == 0 &&
               (!a->public_host || auth_is_loopback(a->public_host));
}

unsigned auth_max_per_address(const struct auth *a)
{
        /* clients of a proxy share its address */
        return a->loopback || a->proxy_count > 0 ? 0 : MAX_PER_ADDRESS;
}

/* ---- the operator key ---- */

/* 1; 0: none; -1. */
static int read_key(const char *path, char *key, size_t size, struct error *err)
{
        struct stat st;
        int fd, rc;
        ssize_t n;

        rc = trust_open(path, TRUST_NO_LINKS, &fd, err);
        if (rc <= 0)
                return rc;
        if (fstat(fd, &st) == 0 && (st.st_mode & 077) != 0) { /* it may be compromised */
                log_warn("operator key was readable by others; access removed. Delete the file "
                         "for a new key",
                         LOG_S("file", path));
                if (fchmod(fd, 0600) < 0)
                        log_warn("cannot change the mode of the operator key", LOG_S("file", path));
        }
        n = read(fd, key, size - 1);
        close(fd);
        if (n < 0)
                return error_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        key[n] = '\0';
        key[strcspn(key, "\r\n")] = '\0';
        n = (ssize_t)strlen(key);
        if (n < OPERATOR_SHORTEST || n > OPERATOR_LONGEST)
                return error_set(
                        err, ERR_INVALID,
                        "'%s' must hold a key of %d to %d characters; delete it for a new one",
                        path, OPERATOR_SHORTEST, OPERATOR_LONGEST);
        for (const char *p = key; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return error_set(
                                err, ERR_INVALID,
                                "'%s' must hold a key of printable characters without spaces",
                                path);
        return 1;
}

int auth_load_operator_key(struct auth *a, const char *state_dir, struct error *err)
{
        char key[OPERATOR_LONGEST + 8];
        char *path = mem_printf("%s/operator.key", state_dir);
        int rc = read_key(path, key, sizeof(key), err);

        if (rc == 0) {
                char random[OPERATOR_RANDOM + 1];

                snprintf(key, sizeof(key), OPERATOR_PREFIX "%s",
                         id_random_text(random, OPERATOR_RANDOM));
                explicit_bzero(random, sizeof(random));
                rc = file_write_line(path, key, err);
                if (rc < 0)
                        error_prefix(err, "cannot store the operator key");
                else
                        log_info("operator key created", LOG_S("file", path));
        }
        if (rc >= 0) {
                log_hide(key, strlen(key));
                crypto_sha256(key, strlen(key), a->key_hash);
                key_unref(a->operator);
                a->operator= key_new("operator", "*", NULL);
        }
        explicit_bzero(key, sizeof(key));
        free(path);
        return rc < 0 ? -1 : 0;
}

/* ---- keys ---- */

static struct key *find(const struct auth *a, const char *text)
{
        unsigned char hash[SHA256_SIZE];
        size_t n = strnlen(text, KEY_LONGEST + 1);

        if (n == 0 || n > KEY_LONGEST)
                return NULL;
        crypto_sha256(text, n, hash);
        if (crypto_equal(hash, sizeof(hash), a->key_hash, sizeof(a->key_hash)))
                return a->operator;
        return a->ring ? keyring_find(a->ring, text, hash) : NULL;
}

enum auth_verdict auth_check(const struct auth *a, const char *authorization, const char *x_api_key,
                             struct key **caller)
{
        const char *bearer = NULL;
        struct key *k;

        if (authorization) {
                if (strncasecmp(authorization, "Bearer ", 7) != 0)
                        return AUTH_WRONG;
                bearer = authorization + 7;
                bearer += strspn(bearer, " ");
        }
        if (!bearer && !x_api_key)
                return AUTH_NO_KEY;
        k = find(a, bearer ? bearer : x_api_key);
        /* two headers must name the same key */
        if (!k || (bearer && x_api_key && find(a, x_api_key) != k))
                return AUTH_WRONG;
        if (k->revoked_ms > 0)
                return AUTH_REVOKED;
        if (!key_is_live(k, clock_wall_ms()))
                return AUTH_EXPIRED;
        *caller = k;
        return AUTH_OK;
}

/* ---- peers, hosts, origins ---- */

bool auth_peer_ok(const struct auth *a, const char *peer)
{
        if (a->tls || a->loopback || !peer || address_is_loopback(peer))
                return true;
        for (size_t i = 0; i < a->proxy_count; i++)
                if (network_has(a->proxies[i], peer))
                        return true;
        /* with one outward address, our own commands do not come from 127.0.0.1 */
        return a->own_host && network_has(a->own_host, peer);
}

bool auth_host_ok(const struct auth *a, const char *host)
{
        char name[256], public_name[256];

        if (!a->loopback || a->proxy_count > 0)
                return true;
        if (!host || !host_part(host, name, sizeof(name)))
                return false;
        if (address_is_loopback(name))
                return true;
        return a->public_host && host_part(a->public_host, public_name, sizeof(public_name)) &&
               strcasecmp(name, public_name) == 0;
}

bool auth_origin_ok(const struct auth *a, const char *origin, const char *host)
{
        const char *at;

        if (!origin)
                return true;
        if (strncasecmp(origin, "http://", 7) != 0 && strncasecmp(origin, "https://", 8) != 0)
                return false;
        at = strstr(origin, "://") + 3;
        return (host && strcasecmp(at, host) == 0) ||
               (a->public_host && strcasecmp(at, a->public_host) == 0);
}
