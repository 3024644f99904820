#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"

/* guards the secrets and the writer */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic enum log_format log_format = LOG_TEXT;
static _Atomic enum log_level log_least = LOG_INFO;
static void (*divert_sink)(const char *line, void *arg);
static void *divert_arg;

static struct hidden {
        char *bytes;
        char *quoted; /* inside a JSON string; NULL when equal */
        size_t n;
        unsigned uses;
} * hidden;
static size_t hidden_count;

static const char *const level_names[] = { "debug", "info", "warn", "error" };

void log_setup(enum log_format format, enum log_level least)
{
        log_format = format;
        log_least = least;
}

void log_divert(void (*sink)(const char *line, void *arg), void *arg)
{
        pthread_mutex_lock(&lock);
        divert_sink = sink;
        divert_arg = arg;
        pthread_mutex_unlock(&lock);
}

static struct hidden *find_hidden(const char *secret, size_t n)
{
        for (size_t i = 0; i < hidden_count; i++) {
                if (hidden[i].n == n && memcmp(hidden[i].bytes, secret, n) == 0)
                        return &hidden[i];
        }
        return NULL;
}

static void wipe(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* As jsonw_quote writes it, without the quotes; NULL when equal. */
static char *quoted_form(const char *secret, size_t n)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_quote(&b, secret, n);
        buf_truncate(&b, b.len - 1);
        buf_consume(&b, 1);
        if (b.len != n || memcmp(b.data, secret, n) != 0)
                return buf_take(&b);
        wipe(buf_take(&b));
        return NULL;
}

void log_hide(const char *secret, size_t n)
{
        struct hidden *h;

        if (n < LOG_HIDE_SHORTEST)
                return;
        pthread_mutex_lock(&lock);
        h = find_hidden(secret, n);
        if (!h) {
                hidden = mem_realloc(hidden, (hidden_count + 1) * sizeof(*hidden));
                h = &hidden[hidden_count++];
                *h = (struct hidden){ .bytes = mem_strndup(secret, n),
                                      .quoted = quoted_form(secret, n),
                                      .n = n };
        }
        h->uses++;
        pthread_mutex_unlock(&lock);
}

void log_unhide(const char *secret, size_t n)
{
        struct hidden *h;

        pthread_mutex_lock(&lock);
        h = find_hidden(secret, n);
        if (h && --h->uses == 0) {
                wipe(h->bytes);
                wipe(h->quoted);
                *h = hidden[--hidden_count];
                if (hidden_count == 0) {
                        free(hidden);
                        hidden = NULL;
                }
        }
        pthread_mutex_unlock(&lock);
}

static void star_out(char *text, const char *original, const char *secret)
{
        size_t n = strlen(secret);

        for (const char *p = strstr(original, secret); p; p = strstr(p + 1, secret))
                memset(text + (p - original), '*', n);
}

static void redact_locked(char *text)
{
        char *original;

        if (hidden_count == 0)
                return;
        /* search a copy, because secrets may overlap or contain each other */
        original = mem_strdup(text);
        for (size_t i = 0; i < hidden_count; i++) {
                star_out(text, original, hidden[i].bytes);
                if (hidden[i].quoted)
                        star_out(text, original, hidden[i].quoted);
        }
        wipe(original);
}

void log_redact(char *text)
{
        pthread_mutex_lock(&lock);
        redact_locked(text);
        pthread_mutex_unlock(&lock);
}

/* May it stand on a text line without quotes? */
static bool is_plain(const char *s)
{
        if (*s == '\0')
                return false;
        for (; *s; s++) {
                if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || *s == '"' || *s == '=')
                        return false;
        }
        return true;
}

static void add_field(struct buf *line, enum log_format format, const struct log_field *f)
{
        if (format == LOG_JSON) {
                buf_addch(line, ',');
                jsonw_quote(line, f->key, strlen(f->key));
                buf_addch(line, ':');
        } else {
                buf_addf(line, " %s=", f->key);
        }
        if (!f->text)
                buf_addint(line, f->number);
        else if (format == LOG_TEXT && is_plain(f->text))
                buf_addstr(line, f->text);
        else
                jsonw_quote(line, f->text, strlen(f->text));
}

static void begin_line(struct buf *line, enum log_format format, enum log_level level,
                       const char *what)
{
        char iso[CLOCK_ISO_SIZE];

        clock_iso(clock_wall_ms(), iso);
        if (format == LOG_TEXT) {
                buf_addf(line, "%s %-5s %s", iso, level_names[level], what);
                return;
        }
        buf_addf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", iso, level_names[level]);
        jsonw_quote(line, what, strlen(what));
}

/*
 * The reader of standard error may stall (a pager, a paused terminal). A line waits PATIENCE_MS
 * for room; after that lines are counted, not written, until there is room. PIPE_BUF bytes never
 * block once poll reports room.
 */
#define PATIENCE_MS 100

static struct {
        bool stalled;  /* do not wait for it again */
        bool torn;     /* a line was written in part */
        uint64_t lost; /* lines since then */
} reader;              /* under the lock */

/* False when there is no room. A closed standard error counts as written. */
static bool write_all(const char *text, size_t n)
{
        while (n > 0) {
                struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
                ssize_t written;
                int rc;

                do {
                        rc = poll(&p, 1, reader.stalled ? 0 : PATIENCE_MS);
                } while (rc < 0 && errno == EINTR);
                reader.stalled = rc == 0;
                if (rc == 0)
                        return false;
                written = write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0 && errno == EAGAIN)
                        return false;
                if (written <= 0)
                        return true;
                reader.torn = (size_t)written < n;
                text += written;
                n -= (size_t)written;
        }
        return true;
}

/* Reports the number of lost lines in their place. */
static bool write_loss(void)
{
        enum log_format format = log_format;
        struct buf note;
        bool written;

        if (reader.lost == 0)
                return true;
        buf_init(&note, 0);
        if (reader.torn)
                buf_addch(&note, '\n');
        begin_line(&note, format, LOG_WARN, "log lines lost: the reader stalled");
        add_field(&note, format, &LOG_I("lines", reader.lost));
        buf_addstr(&note, format == LOG_JSON ? "}\n" : "\n");
        written = write_all(note.data, note.len);
        buf_release(&note);
        if (written)
                reader.lost = 0;
        return written;
}

void log_write(enum log_level level, const char *what, ...)
{
        enum log_format format = log_format;
        struct buf line;
        va_list ap;

        if (level < log_least)
                return;
        buf_init(&line, 0);
        begin_line(&line, format, level, what);
        va_start(ap, what);
        for (;;) {
                struct log_field f = va_arg(ap, struct log_field);

                if (!f.key)
                        break;
                add_field(&line, format, &f);
        }
        va_end(ap);
        if (format == LOG_JSON)
                buf_addch(&line, '}');
        pthread_mutex_lock(&lock);
        redact_locked(line.data);
        if (divert_sink) {
                divert_sink(line.data, divert_arg);
        } else {
                buf_addch(&line, '\n');
                if (!write_loss() || !write_all(line.data, line.len))
                        reader.lost++;
        }
        pthread_mutex_unlock(&lock);
        buf_release(&line);
}
