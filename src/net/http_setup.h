/*
 * http_setup: turns a request into a configured curl handle. For http_call.c and tls_connection.c.
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
        char *host; /* for error texts; never the whole URL, which may hold a token */
};

/* Copies everything from the request. Release the setup after an error, too. */
int http_setup_init(struct http_setup *s, const struct http_request *request, struct error *err);
/* The handle must have left its multi handle. */
void http_setup_release(struct http_setup *s);
/*
 * Points the handle at the target of a redirect. Sends no credentials to another origin; refuses to
 * go from https to http.
 */
int http_setup_redirect(struct http_setup *s, const char *location, struct error *err);
/* Sets the client's proxy and certificates, and close-on-exec. In http_client.c. */
void http_client_configure(struct http_client *c, CURL *easy);

#endif
