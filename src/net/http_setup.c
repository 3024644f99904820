#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http_client_private.h"
#include "net/http_text.h"

/* Strings are curl's. */
struct origin {
        char *scheme, *host, *port;
};

static void origin_release(struct origin *o)
{
        curl_free(o->scheme);
        curl_free(o->host);
        curl_free(o->port);
}

static int origin_init(struct origin *o, CURLU *url, struct error *err)
{
        memset(o, 0, sizeof(*o));
        if (curl_url_get(url, CURLUPART_SCHEME, &o->scheme, 0) ||
            curl_url_get(url, CURLUPART_HOST, &o->host, 0) ||
            curl_url_get(url, CURLUPART_PORT, &o->port, CURLU_DEFAULT_PORT))
                return error_set(err, ERR_INVALID, "the URL has no host");
        if (strcmp(o->scheme, "http") != 0 && strcmp(o->scheme, "https") != 0)
                return error_set(err, ERR_INVALID, "'%s' is not a scheme we speak (http, https)",
                                 o->scheme);
        return 0;
}

static int set_url(struct http_setup *s, const char *text, struct error *err)
{
        CURLU *url = curl_url();
        struct origin origin = { NULL, NULL, NULL };
        CURLUcode code = curl_url_set(url, CURLUPART_URL, text ? text : "", 0);
        int rc = -1;

        if (code)
                error_set(err, ERR_INVALID, "the URL cannot be used: %s", curl_url_strerror(code));
        else
                rc = origin_init(&origin, url, err);
        if (rc == 0) {
                s->host = mem_strdup(origin.host);
                curl_easy_setopt(s->easy, CURLOPT_URL, text);
        }
        origin_release(&origin);
        curl_url_cleanup(url);
        return rc;
}

static void add_header(struct http_setup *s, const char *line)
{
        struct curl_slist *grown = curl_slist_append(s->headers, line);

        if (!grown)
                abort(); /* out of memory */
        s->headers = grown;
}

static int set_headers(struct http_setup *s, const struct http_request *r, struct error *err)
{
        bool typed = false;

        for (const char *const *h = r->headers; h && *h; h++) {
                if (!http_text_is_header(*h))
                        return error_set(err, ERR_INVALID, "a request header is malformed");
                typed = typed || http_text_header_is(*h, "Content-Type");
                add_header(s, *h);
        }
        /* else curl waits a second for "100 Continue" and declares the body a form */
        add_header(s, "Expect:");
        if (r->body && !typed)
                add_header(s, "Content-Type:");
        curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
        return 0;
}

/* ---- a file as a part ---- */

struct part_file {
        int fd;
        curl_off_t size, at;
};

/* Abort the call if the file shrank: fewer bytes than announced are left. */
static size_t read_file(char *out, size_t size, size_t count, void *arg)
{
        struct part_file *f = arg;
        curl_off_t left = f->size - f->at;
        size_t want = size * count;
        ssize_t n;

        if ((curl_off_t)want > left)
                want = (size_t)left;
        if (want == 0)
                return 0;
        do
                n = pread(f->fd, out, want, f->at);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return CURL_READFUNC_ABORT;
        f->at += n;
        return (size_t)n;
}

static int seek_file(void *arg, curl_off_t offset, int origin)
{
        struct part_file *f = arg;

        if (origin != SEEK_SET || offset < 0 || offset > f->size)
                return CURL_SEEKFUNC_FAIL;
        f->at = offset;
        return CURL_SEEKFUNC_OK;
}

static void free_file(void *arg)
{
        struct part_file *f = arg;

        close(f->fd);
        free(f);
}

static int set_file(curl_mimepart *p, const struct http_file *file, struct error *err)
{
        int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
        struct part_file *f;

        if (fd < 0)
                return error_set(err, ERR_IO, "cannot keep a file open to send it: %s",
                                 strerror(errno));
        f = mem_zalloc(sizeof(*f));
        f->fd = fd;
        f->size = file->size;
        if (curl_mime_data_cb(p, f->size, read_file, seek_file, free_file, f) == CURLE_OK)
                return 0;
        free_file(f);
        return error_set(err, ERR_INTERNAL, "libcurl cannot take a file");
}

static int add_part(struct http_setup *s, const struct http_part *part, struct error *err)
{
        curl_mimepart *p = curl_mime_addpart(s->mime);
        const char *type = part->content_type;

        curl_mime_name(p, part->name);
        if (part->file && set_file(p, part->file, err) < 0)
                return -1;
        if (!part->file)
                curl_mime_data(p, part->data ? part->data : "", part->data_n);
        if (!type && part->file)
                type = "application/octet-stream";
        curl_mime_type(p, type);
        if (part->file_name)
                curl_mime_filename(p, part->file_name);
        return 0;
}

static int set_method(struct http_setup *s, const struct http_request *r, struct error *err)
{
        bool has_body = r->body || r->part_count > 0;
        const char *method = r->method ? r->method : has_body ? "POST" : "GET";
        bool sends = has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
                     strcmp(method, "PATCH") == 0;

        if (!http_text_is_method(method))
                return error_set(err, ERR_INVALID, "the request method is malformed");
        if (r->part_count > 0) {
                s->mime = curl_mime_init(s->easy);
                for (size_t i = 0; i < r->part_count; i++)
                        if (add_part(s, &r->parts[i], err))
                                return -1;
                curl_easy_setopt(s->easy, CURLOPT_MIMEPOST, s->mime);
        } else if (sends) {
                curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                 r->body ? (curl_off_t)r->body_n : 0);
                curl_easy_setopt(s->easy, CURLOPT_COPYPOSTFIELDS, r->body ? r->body : "");
        } else if (strcmp(method, "HEAD") == 0) {
                curl_easy_setopt(s->easy, CURLOPT_NOBODY, 1L);
        }
        curl_easy_setopt(s->easy, CURLOPT_CUSTOMREQUEST, method);
        return 0;
}

int http_setup_init(struct http_setup *s, const struct http_request *request, struct error *err)
{
        bool pinned = request->pinned_key != NULL;

        memset(s, 0, sizeof(*s));
        s->easy = curl_easy_init();
        if (!s->easy)
                return error_set(err, ERR_INTERNAL, "libcurl cannot make a handle");
        curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS_STR, "http,https");
        /* a pinned key replaces the checks of signature and name */
        curl_easy_setopt(s->easy, CURLOPT_SSL_VERIFYPEER, pinned ? 0L : 1L);
        curl_easy_setopt(s->easy, CURLOPT_SSL_VERIFYHOST, pinned ? 0L : 2L);
        if (pinned)
                curl_easy_setopt(s->easy, CURLOPT_PINNEDPUBLICKEY, request->pinned_key);
        curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
        /* an abort during a slow name lookup must not wait for the lookup's thread */
        curl_easy_setopt(s->easy, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(s->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl_easy_setopt(s->easy, CURLOPT_TCP_KEEPALIVE, 1L);
        if (set_url(s, request->url, err) || set_headers(s, request, err))
                return -1;
        return set_method(s, request, err);
}

void http_setup_release(struct http_setup *s)
{
        if (s->easy)
                curl_easy_cleanup(s->easy);
        curl_mime_free(s->mime);
        curl_slist_free_all(s->headers);
        free(s->host);
        memset(s, 0, sizeof(*s));
}

/* Keeps only headers that cannot identify the caller. */
static void drop_credentials(struct http_setup *s, CURLU *url)
{
        static const char *const kept[] = { "Accept", "Accept-Language", "Range", "Expect" };
        struct curl_slist *old = s->headers;

        s->headers = NULL;
        for (const struct curl_slist *h = old; h; h = h->next)
                for (size_t i = 0; i < COUNT(kept); i++)
                        if (http_text_header_is(h->data, kept[i]))
                                add_header(s, h->data);
        curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
        curl_slist_free_all(old);
        curl_url_set(url, CURLUPART_USER, NULL, 0);
        curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
}

int http_setup_redirect(struct http_setup *s, const char *location, struct error *err)
{
        struct origin here = { NULL, NULL, NULL }, there = { NULL, NULL, NULL };
        CURLU *url = curl_url(); /* of the redirecting answer, then its target */
        char *from = NULL, *text = NULL;
        int rc = -1;

        curl_easy_getinfo(s->easy, CURLINFO_EFFECTIVE_URL, &from);
        if (curl_url_set(url, CURLUPART_URL, from ? from : "", 0)) {
                error_set(err, ERR_INTERNAL, "the redirecting URL is lost");
                goto out;
        }
        if (origin_init(&here, url, err))
                goto out;
        if (curl_url_set(url, CURLUPART_URL, location, 0) || origin_init(&there, url, NULL)) {
                error_set(err, ERR_PROTOCOL, "'%s' redirects to a place that makes no sense",
                          s->host);
                goto out;
        }
        if (strcmp(here.scheme, "https") == 0 && strcmp(there.scheme, "http") == 0) {
                error_set(err, ERR_PROTOCOL, "'%s' redirects from https to http", s->host);
                goto out;
        }
        if (strcmp(here.scheme, there.scheme) != 0 || strcasecmp(here.host, there.host) != 0 ||
            strcmp(here.port, there.port) != 0)
                drop_credentials(s, url);
        if (curl_url_get(url, CURLUPART_URL, &text, 0)) {
                error_set(err, ERR_PROTOCOL, "'%s' redirects to a place that makes no sense",
                          s->host);
                goto out;
        }
        curl_easy_setopt(s->easy, CURLOPT_URL, text);
        free(s->host);
        s->host = mem_strdup(there.host);
        rc = 0;
out:
        curl_free(text);
        origin_release(&here);
        origin_release(&there);
        curl_url_cleanup(url);
        return rc;
}
