#include "net/ws_handshake.h"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "net/http_text.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455, section 1.3 */

/* ---- target ---- */

static char *part(CURLU *url, CURLUPart which, unsigned flags)
{
        char *text = NULL, *copy;

        if (curl_url_get(url, which, &text, flags))
                return NULL;
        copy = mem_strdup(text);
        curl_free(text);
        return copy;
}

static void split(struct ws_target *p, CURLU *url)
{
        char *scheme = part(url, CURLUPART_SCHEME, 0), *host = part(url, CURLUPART_HOST, 0),
             *port = part(url, CURLUPART_PORT, 0), *path = part(url, CURLUPART_PATH, 0),
             *query = part(url, CURLUPART_QUERY, 0);

        p->host = mem_printf("%s%s%s", host, port ? ":" : "", port ? port : "");
        p->origin = mem_printf("%s://%s/", scheme, p->host);
        p->path = mem_printf("%s%s%s", path ? path : "/", query ? "?" : "", query ? query : "");
        free(scheme);
        free(host);
        free(port);
        free(path);
        free(query);
}

int ws_target_init(struct ws_target *p, const char *url, struct error *err)
{
        char *http = NULL;
        CURLU *u;
        int rc = 0;

        memset(p, 0, sizeof(*p));
        if (url && strncasecmp(url, "wss://", 6) == 0)
                http = mem_printf("https://%s", url + 6);
        else if (url && strncasecmp(url, "ws://", 5) == 0)
                http = mem_printf("http://%s", url + 5);
        if (!http)
                return error_set(err, ERR_INVALID,
                                 "the URL of a WebSocket begins with wss:// or ws://");
        u = curl_url();
        if (strchr(http, '#') || curl_url_set(u, CURLUPART_URL, http, 0))
                rc = error_set(err, ERR_INVALID, "the URL of the WebSocket is malformed");
        else
                split(p, u);
        curl_url_cleanup(u);
        free(http);
        return rc;
}

void ws_target_release(struct ws_target *p)
{
        free(p->origin);
        free(p->host);
        free(p->path);
        memset(p, 0, sizeof(*p));
}

/* ---- the request ---- */

char *ws_handshake_key(char out[WS_KEY_SIZE])
{
        unsigned char bytes[16];

        id_random_bytes(bytes, sizeof(bytes));
        EVP_EncodeBlock((unsigned char *)out, bytes, sizeof(bytes));
        return out;
}

char *ws_handshake_accept(const char *key, char out[WS_ACCEPT_SIZE])
{
        char *text = mem_printf("%s" GUID, key);
        unsigned char digest[EVP_MAX_MD_SIZE];
        size_t n = 0;

        if (EVP_Q_digest(NULL, "SHA1", NULL, text, strlen(text), digest, &n) != 1)
                n = 0;
        free(text);
        EVP_EncodeBlock((unsigned char *)out, digest, (int)n);
        return out;
}

int ws_handshake_request(struct buf *out, const struct ws_target *target, const char *key,
                         const char *const *headers, struct error *err)
{
        buf_addf(out,
                 "GET %s HTTP/1.1\r\n"
                 "Host: %s\r\n"
                 "Upgrade: websocket\r\n"
                 "Connection: Upgrade\r\n"
                 "Sec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: %s\r\n",
                 target->path, target->host, key);
        for (const char *const *h = headers; h && *h; h++) {
                if (!http_text_is_header(*h))
                        return error_set(err, ERR_INVALID,
                                         "a header of the WebSocket request is malformed");
                buf_addf(out, "%s\r\n", *h);
        }
        return buf_addstr(out, "\r\n");
}

/* ---- the answer ---- */

/* The answer's headers that matter; each may come only once. */
enum field { UPGRADE, CONNECTION, ACCEPT, EXTENSIONS, PROTOCOL, RETRY_AFTER, FIELDS };
static const char *const field_names[FIELDS] = {
        [UPGRADE] = "Upgrade",
        [CONNECTION] = "Connection",
        [ACCEPT] = "Sec-WebSocket-Accept",
        [EXTENSIONS] = "Sec-WebSocket-Extensions",
        [PROTOCOL] = "Sec-WebSocket-Protocol",
        [RETRY_AFTER] = "Retry-After",
};

struct ws_head {
        char *values[FIELDS]; /* point into text */
        char *text;
};

static char *trimmed(char *value)
{
        char *end;

        value += strspn(value, " \t");
        end = value + strlen(value);
        while (end > value && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
                *--end = '\0';
        return value;
}

static int take_line(struct ws_head *h, char *line, struct error *err)
{
        char *colon = strchr(line, ':');

        if (!colon || colon == line)
                return error_set(err, ERR_PROTOCOL,
                                 "a header of the WebSocket answer is malformed");
        *colon = '\0';
        for (int i = 0; i < FIELDS; i++) {
                if (strcasecmp(line, field_names[i]) != 0)
                        continue;
                if (h->values[i])
                        return error_set(err, ERR_PROTOCOL,
                                         "the WebSocket answer has two headers '%s'",
                                         field_names[i]);
                h->values[i] = trimmed(colon + 1);
        }
        return 0;
}

/* text: the lines after the status line, without the last, empty one. */
static int head_init(struct ws_head *h, const char *text, size_t n, struct error *err)
{
        char *rest, *line;
        int rc = 0;

        memset(h, 0, sizeof(*h));
        h->text = mem_strndup(text, n);
        rest = h->text;
        while (rc == 0 && (line = strsep(&rest, "\n")))
                if (*trimmed(line) || rest)
                        rc = take_line(h, line, err);
        return rc;
}

/* Is `word` one of the comma-separated values? */
static bool names(const char *values, const char *word)
{
        size_t n = strlen(word);

        for (const char *p = values; p && *p; p += strcspn(p, ",")) {
                p += strspn(p, ", \t");
                if (strncasecmp(p, word, n) == 0 &&
                    (p[n + strspn(p + n, " \t")] == '\0' || p[n + strspn(p + n, " \t")] == ','))
                        return true;
        }
        return false;
}

static int check(const struct ws_head *h, const char *key, struct error *err)
{
        char accept[WS_ACCEPT_SIZE];

        if (!h->values[UPGRADE] || strcasecmp(h->values[UPGRADE], "websocket") != 0 ||
            !names(h->values[CONNECTION], "upgrade"))
                return error_set(err, ERR_PROTOCOL, "the server did not switch to WebSocket");
        if (!h->values[ACCEPT] || strcmp(h->values[ACCEPT], ws_handshake_accept(key, accept)) != 0)
                return error_set(err, ERR_PROTOCOL,
                                 "Sec-WebSocket-Accept is not the answer to our key");
        if (h->values[EXTENSIONS] || h->values[PROTOCOL])
                return error_set(err, ERR_PROTOCOL,
                                 "the server chose an extension or protocol we did not offer");
        return 1;
}

int ws_handshake_read(struct ws_handshake_answer *out, const char *bytes, size_t n, const char *key,
                      struct error *err)
{
        const char *end = memmem(bytes, n, "\r\n\r\n", 4), *line = memchr(bytes, '\n', n);
        struct ws_head head;
        int rc;

        *out = (struct ws_handshake_answer){ .retry_after_ms = -1 };
        if (!end && n > WS_HEAD_MAX)
                return error_set(err, ERR_LIMIT,
                                 "the answer to the WebSocket request is larger than %zu bytes",
                                 WS_HEAD_MAX);
        if (!end)
                return 0;
        out->length = (size_t)(end + 4 - bytes);
        if (out->length > WS_HEAD_MAX || memchr(bytes, '\0', out->length))
                return error_set(err, ERR_PROTOCOL,
                                 "the answer to the WebSocket request is malformed");
        out->status = http_text_status(bytes, (size_t)(line + 1 - bytes));
        if (out->status == 0)
                return error_set(err, ERR_PROTOCOL,
                                 "the answer to the WebSocket request is not HTTP");
        rc = line < end ? head_init(&head, line + 1, (size_t)(end - line - 1), err)
                        : head_init(&head, "", 0, err);
        if (head.values[RETRY_AFTER])
                out->retry_after_ms =
                        http_text_retry_after_ms(head.values[RETRY_AFTER], clock_wall_ms());
        if (out->status != 101)
                rc = error_set(err, out->status == 429 ? ERR_LIMIT : ERR_REFUSED,
                               "the server answered the WebSocket request with %d", out->status);
        else if (rc == 0)
                rc = check(&head, key, err);
        free(head.text);
        return rc;
}
