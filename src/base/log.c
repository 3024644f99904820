#include "base/log.h"

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

#define HIDE_AT_LEAST 6

/* One lock serves settings, secrets and the writer: a line is written whole or not at all. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum log_format log_format = LOG_TEXT;
static enum log_level log_least = LOG_INFO;
static void (*divert_sink)(const char *line, void *arg);
static void *divert_arg;

static struct hidden {
        char *bytes;
        size_t n;
        unsigned uses;
} *hidden;
static size_t hidden_count;

static const char *const level_names[] = { "debug", "info", "warn", "error" };

void log_setup(enum log_format format, enum log_level least)
{
        pthread_mutex_lock(&lock);
        log_format = format;
        log_least = least;
        pthread_mutex_unlock(&lock);
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

void log_hide(const char *secret, size_t n)
{
        struct hidden *h;

        if (n < HIDE_AT_LEAST)
                return;
        pthread_mutex_lock(&lock);
        h = find_hidden(secret, n);
        if (!h) {
                hidden = mem_realloc(hidden, (hidden_count + 1) * sizeof(*hidden));
                h = &hidden[hidden_count++];
                *h = (struct hidden){ .bytes = mem_strndup(secret, n), .n = n };
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
                explicit_bzero(h->bytes, h->n);
                free(h->bytes);
                *h = hidden[--hidden_count];
                if (hidden_count == 0) {
                        free(hidden);
                        hidden = NULL;
                }
        }
        pthread_mutex_unlock(&lock);
}

static void redact_locked(char *text)
{
        for (size_t i = 0; i < hidden_count; i++) {
                for (char *p = strstr(text, hidden[i].bytes); p; p = strstr(p, hidden[i].bytes)) {
                        memset(p, '*', hidden[i].n);
                        p += hidden[i].n;
                }
        }
}

void log_redact(char *text)
{
        pthread_mutex_lock(&lock);
        redact_locked(text);
        pthread_mutex_unlock(&lock);
}

/* A value that needs no quotes on a text line. */
static bool is_plain(const char *s)
{
        if (*s == '\0')
                return false;
        for (; *s; s++) {
                if ((unsigned char)*s <= ' ' || *s == '"' || *s == '=' || *s == 0x7f)
                        return false;
        }
        return true;
}

static void add_text_field(struct buf *b, const struct log_field *f)
{
        buf_addf(b, " %s=", f->key);
        if (!f->text)
                buf_addf(b, "%lld", (long long)f->number);
        else if (is_plain(f->text))
                buf_addstr(b, f->text);
        else
                jsonw_quote(b, f->text, strlen(f->text));
}

static void add_json_field(struct buf *b, const struct log_field *f)
{
        buf_addch(b, ',');
        jsonw_quote(b, f->key, strlen(f->key));
        buf_addch(b, ':');
        if (f->text)
                jsonw_quote(b, f->text, strlen(f->text));
        else
                buf_addf(b, "%lld", (long long)f->number);
}

void log_write(enum log_level level, const char *what, ...)
{
        char iso[CLOCK_ISO_SIZE];
        struct buf line;
        va_list ap;

        if (level < log_least)
                return;
        buf_init(&line, 0);
        clock_iso(clock_wall_ms(), iso);
        if (log_format == LOG_JSON)
                buf_addf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", iso, level_names[level]);
        else
                buf_addf(&line, "%s %-5s ", iso, level_names[level]);
        if (log_format == LOG_JSON)
                jsonw_quote(&line, what, strlen(what));
        else
                buf_addstr(&line, what);
        va_start(ap, what);
        for (;;) {
                struct log_field f = va_arg(ap, struct log_field);

                if (!f.key)
                        break;
                if (log_format == LOG_JSON)
                        add_json_field(&line, &f);
                else
                        add_text_field(&line, &f);
        }
        va_end(ap);
        if (log_format == LOG_JSON)
                buf_addch(&line, '}');

        pthread_mutex_lock(&lock);
        redact_locked(line.data);
        if (divert_sink) {
                divert_sink(line.data, divert_arg);
        } else {
                buf_addch(&line, '\n');
                if (write(STDERR_FILENO, line.data, line.len) < 0) {
                        /* nowhere left to complain */
                }
        }
        pthread_mutex_unlock(&lock);
        buf_release(&line);
}
