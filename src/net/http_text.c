#include "net/http_text.h"

#include <ctype.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

/* Longer waits are reported as this one, which keeps the arithmetic safe. */
#define RETRY_AFTER_MAX_S (366LL * 86400)

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* "12" or "0.25"; -1: something else. */
static int64_t seconds_as_ms(const char *value)
{
        int64_t seconds = 0, ms = 0, scale = 100;

        if (!is_digit(*value))
                return -1;
        for (; is_digit(*value); value++) {
                if (seconds < RETRY_AFTER_MAX_S)
                        seconds = seconds * 10 + (*value - '0');
        }
        if (*value == '.')
                value++;
        for (; is_digit(*value); value++, scale /= 10)
                ms += (*value - '0') * scale;
        while (*value == ' ' || *value == '\t')
                value++;
        if (*value)
                return -1;
        return (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000 + ms;
}

int64_t http_text_date_ms(const char *value)
{
        time_t date = value && isalpha((unsigned char)*value) ? curl_getdate(value, NULL) : -1;

        return date < 0 ? -1 : (int64_t)date * 1000;
}

int64_t http_text_retry_after_ms(const char *value, int64_t wall_now_ms)
{
        int64_t ms, date;

        if (!value)
                return -1;
        while (*value == ' ' || *value == '\t')
                value++;
        ms = seconds_as_ms(value);
        if (ms >= 0)
                return ms;
        date = http_text_date_ms(value);
        if (date < 0)
                return -1;
        ms = date - wall_now_ms;
        if (ms < 0)
                return 0;
        return ms < RETRY_AFTER_MAX_S * 1000 ? ms : RETRY_AFTER_MAX_S * 1000;
}

int http_text_status(const char *line, size_t n)
{
        const char *space;
        size_t left;

        if (n < 5 || memcmp(line, "HTTP/", 5) != 0)
                return 0;
        space = memchr(line, ' ', n);
        if (!space)
                return 0;
        left = n - (size_t)(space + 1 - line);
        if (left < 3 || !is_digit(space[1]) || !is_digit(space[2]) || !is_digit(space[3]))
                return 0;
        return (space[1] - '0') * 100 + (space[2] - '0') * 10 + (space[3] - '0');
}

bool http_text_is_method(const char *method)
{
        size_t n = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

        return n > 0 && n <= 32 && method[n] == '\0';
}

bool http_text_is_header(const char *header)
{
        const char *colon = strchr(header, ':');

        if (!colon || colon == header)
                return false;
        for (const char *p = header; p < colon; p++) {
                if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p))
                        return false;
        }
        for (const char *p = colon + 1; *p; p++) {
                if ((unsigned char)*p < ' ' && *p != '\t')
                        return false;
        }
        return true;
}

bool http_text_header_is(const char *header, const char *name)
{
        size_t n = strlen(name);

        return strncasecmp(header, name, n) == 0 && header[n] == ':';
}

char *http_text_escape(const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;

                if (c < 128 && (isalnum(c) || strchr("-._~", c)))
                        buf_addch(&b, *text);
                else
                        buf_addf(&b, "%%%02X", c);
        }
        return buf_take(&b);
}

/* Scheme, host and port as "https://host:443"; false: not such a URL. */
static bool origin_of(const char *text, struct buf *out, bool *has_user)
{
        CURLU *url = curl_url();
        char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL;
        bool ok = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                  curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                  curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                  curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;

        *has_user = curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
        if (ok)
                buf_addf(out, "%s://%s:%s", scheme, host, port);
        curl_free(scheme);
        curl_free(host);
        curl_free(port);
        curl_free(user);
        curl_url_cleanup(url);
        return ok;
}

bool http_text_same_origin(const char *url, const char *other)
{
        struct buf a, b;
        bool user, ignored, same;

        buf_init(&a, 0);
        buf_init(&b, 0);
        same = origin_of(url, &a, &user) && origin_of(other, &b, &ignored) && !user &&
               strcasecmp(a.data, b.data) == 0;
        buf_release(&a);
        buf_release(&b);
        return same;
}

bool http_text_is_https_of(const char *url, const char *host)
{
        struct buf origin, wanted;
        bool user, is;

        buf_init(&origin, 0);
        buf_init(&wanted, 0);
        buf_addf(&wanted, "https://%s:443", host);
        is = origin_of(url, &origin, &user) && !user && strcasecmp(origin.data, wanted.data) == 0;
        buf_release(&origin);
        buf_release(&wanted);
        return is;
}

enum error_kind http_text_status_kind(int status)
{
        switch (status) {
        case 401:
        case 403:
                return ERR_REFUSED;
        case 404:
        case 410:
                return ERR_MISSING;
        case 408:
        case 504:
                return ERR_TIMEOUT;
        case 429:
        case 503:
        case 529: /* not registered; model services mean "overloaded" */
                return ERR_LIMIT;
        }
        if (status >= 500)
                return ERR_NET;
        return status >= 400 ? ERR_INVALID : ERR_PROTOCOL;
}
