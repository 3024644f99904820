/*
 * URLs of strangers: requests that must not reach this machine or a private network. A name may
 * lead anywhere, and elsewhere the next time, so the address is looked at when it is connected to.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/http_client_private.h"

static bool is_private_literal(const char *host)
{
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        size_t n = strlen(host);
        char *bare = host[0] == '[' && n > 2 ? mem_strndup(host + 1, n - 2) : mem_strdup(host);
        bool is_private = false;

        if (inet_pton(AF_INET, bare, &v4.sin_addr) == 1)
                is_private = !address_is_public((const struct sockaddr *)&v4);
        else if (inet_pton(AF_INET6, bare, &v6.sin6_addr) == 1)
                is_private = !address_is_public((const struct sockaddr *)&v6);
        free(bare);
        return is_private;
}

static curl_socket_t open_public_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
        struct http_call *call = arg;

        (void)purpose;
        if (!address_is_public(&a->addr)) {
                call->met_private = true;
                return CURL_SOCKET_BAD;
        }
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* As curl chooses it. NULL: none. */
static const char *proxy_for(const struct http_client *c, const char *url)
{
        static const char *const https[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
                                             "ALL_PROXY" };
        static const char *const http[] = { "http_proxy", "all_proxy", "ALL_PROXY" };
        bool secure = strncasecmp(url, "https:", 6) == 0;
        const char *const *names = secure ? https : http;
        const char *proxy = c->proxy;

        for (size_t i = 0; !proxy && i < (secure ? COUNT(https) : COUNT(http)); i++)
                proxy = getenv(names[i]);
        return proxy && *proxy ? proxy : NULL;
}

int http_public_refused(const struct http_call *call, struct error *err)
{
        return error_set(err, ERR_REFUSED,
                         "'%s' is an address of this machine or of a private network",
                         call->setup.host);
}

/*
 * A proxy looks names up itself, and is the place for rules about them; then no host goes around
 * it.
 */
int http_public_limit(struct http_call *call, const char *url, struct error *err)
{
        const char *proxy = proxy_for(call->client, url);
        CURL *easy = call->setup.easy;

        if (is_private_literal(call->setup.host))
                return http_public_refused(call, err);
        if (proxy) {
                curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
                curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
        } else {
                curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_public_socket);
                curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
        }
        /* a connection that another call made was not looked at */
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        return 0;
}
