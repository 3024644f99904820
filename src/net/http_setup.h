/*
 * http_setup: a request becomes a configured curl handle. For http_client.c and tls_connection.c.
 */
#ifndef NET_HTTP_SETUP_H
#define NET_HTTP_SETUP_H

#include <curl/curl.h>

#include "base/error.h"
#include "net/http_client.h"

struct http_setup {
        CURL *easy;
        struct curl_slist *headers;
        curl_mime *mime;
        char *host; /* for sentences; never the whole URL, which may hold a token */
};

/* Copies everything out of the request. On error the setup still has to be released. */
int http_setup_init(struct http_setup *s, const struct http_request *request, struct error *err);
/* The handle must not be in a multi handle any more. */
void http_setup_release(struct http_setup *s);
/*
 * Points the handle at the place a redirect names. At another origin, only headers that identify
 * nobody are sent; from https to http is refused.
 */
int http_setup_redirect(struct http_setup *s, const char *location, struct error *err);
/*
 * What every connection of the client has in common: the proxy, whom to trust, not to be inherited
 * by children. In http_client.c.
 */
void http_client_configure(struct http_client *c, CURL *easy);

#endif
