/*
 * Sessions in files, one for each shard. Behind the truth by save_ms at most: a session that is resumed from too early a place is told
 * a few things again, which is harmless.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"

#define FILE_MAX 8192

struct dc_session_file {
        struct loop *loop;
        char *path;
        char token[17]; /* the beginning of its digest */
        unsigned intents, shards;
        int64_t save_ms;
        struct timer *timer;
        const struct dc_session *session; /* what is to be in the file; NULL: nothing yet */
        bool dirty;                       /* since the last writing began */
        char *last;                       /* id of the session that was to be written last */
        uint64_t version;                 /* grows with each writing */
        pthread_mutex_t lock;             /* guards the file and `written` */
        uint64_t written;                 /* version in the file */
        unsigned refs;                    /* the owner, a write under way */
};

void dc_session_forget(struct dc_session *s)
{
        struct dc_session rest = { .seen_ms = s->seen_ms,
                                   .seen_message = s->seen_message,
                                   .missing_ms = s->missing_ms };

        dc_session_release(s);
        *s = rest;
}

void dc_session_release(struct dc_session *s)
{
        free(s->id);
        free(s->resume_url);
        free(s->user_id);
        free(s->username);
        free(s->application_id);
        *s = (struct dc_session){ 0 };
}

static void unref(struct dc_session_file *f)
{
        if (--f->refs > 0)
                return;
        pthread_mutex_destroy(&f->lock);
        free(f->path);
        free(f->last);
        free(f);
}

/* ---- writing ---- */

static int write_whole(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        size_t n = strlen(text);
        bool ok;

        if (fd < 0)
                return -1;
        ok = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
        return close(fd) == 0 && ok ? 0 : -1;
}

static int replace(const char *path, const char *text)
{
        char *fresh = mem_printf("%s.new", path);
        int rc = write_whole(fresh, text);

        if (rc == 0)
                rc = rename(fresh, path);
        free(fresh);
        return rc;
}

/* Any thread. An older version never replaces a newer one. */
static void put(struct dc_session_file *f, const char *text, uint64_t version)
{
        pthread_mutex_lock(&f->lock);
        if (version > f->written) {
                if (replace(f->path, text) < 0)
                        log_warn("cannot keep a session of Discord; after a restart a new one begins",
                                 LOG_S("file", f->path), LOG_S("why", strerror(errno)));
                f->written = version;
        }
        pthread_mutex_unlock(&f->lock);
}

struct saving {
        struct dc_session_file *file;
        char *text;
        uint64_t version;
};

static void save(void *arg)
{
        struct saving *s = arg;

        put(s->file, s->text, s->version);
}

static void on_saved(void *arg)
{
        struct saving *s = arg;

        unref(s->file);
        free(s->text);
        free(s);
}

static char *text_of(const struct dc_session_file *f, const struct dc_session *s)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "token", f->token);
        jsonw_int(&b, "intents", f->intents);
        jsonw_int(&b, "shards", f->shards);
        jsonw_str(&b, "session", s->id);
        jsonw_str(&b, "resumeUrl", s->resume_url);
        jsonw_int(&b, "seq", s->seq);
        jsonw_int(&b, "seenMs", s->seen_ms);
        jsonw_bool(&b, "seenMessage", s->seen_message);
        jsonw_int(&b, "missingMs", s->missing_ms);
        jsonw_opt(&b, "userId", s->user_id);
        jsonw_opt(&b, "username", s->username);
        jsonw_opt(&b, "applicationId", s->application_id);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static void on_timer(void *arg)
{
        struct dc_session_file *f = arg;
        struct saving *s = mem_zalloc(sizeof(*s));

        s->file = f;
        s->text = text_of(f, f->session);
        s->version = ++f->version;
        f->dirty = false;
        f->refs++;
        loop_work(f->loop, save, on_saved, s);
}

void dc_session_save(struct dc_session_file *f, const struct dc_session *s)
{
        bool other;

        if (!f)
                return;
        other = !f->last || !s->id || strcmp(f->last, s->id) != 0;
        if (other) {
                free(f->last);
                f->last = mem_strdup(s->id);
        }
        f->session = s;
        f->dirty = true;
        if (other || !timer_active(f->timer))
                timer_start(f->timer, other ? 0 : f->save_ms);
}

void dc_session_close(struct dc_session_file *f)
{
        char *text;

        if (!f)
                return;
        timer_free(f->timer);
        if (f->dirty || f->refs > 1) { /* a writing under way comes too late for whoever reads next */
                text = text_of(f, f->session);
                put(f, text, ++f->version);
                free(text);
        }
        unref(f);
}

/* ---- reading ---- */

static json_t *read_file(const char *path)
{
        FILE *f = fopen(path, "re");
        char text[FILE_MAX];
        size_t n;

        if (!f)
                return NULL;
        n = fread(text, 1, sizeof(text), f);
        fclose(f);
        return n < sizeof(text) ? json_read(text, n, NULL) : NULL;
}

static bool is_ours(const struct dc_session_file *f, const json_t *j)
{
        return strcmp(json_str(j, "token", ""), f->token) == 0;
}

/* Of use also when the session itself is of none. */
static void take_times(const struct dc_session_file *f, const json_t *j, struct dc_session *out)
{
        if (!is_ours(f, j))
                return;
        out->seen_ms = json_int(j, "seenMs", 0);
        out->seen_message = json_flag(j, "seenMessage", false);
        out->missing_ms = json_int(j, "missingMs", 0);
}

static void take_session(const struct dc_session_file *f, const json_t *j, struct dc_session *out)
{
        if (!is_ours(f, j) || json_int(j, "intents", -1) != f->intents ||
            json_int(j, "shards", -1) != f->shards || json_int(j, "seq", -1) < 0)
                return;
        out->id = mem_strdup(json_str(j, "session", NULL));
        out->resume_url = mem_strdup(json_str(j, "resumeUrl", NULL));
        out->seq = json_int(j, "seq", 0);
        out->user_id = mem_strdup(json_str(j, "userId", NULL));
        out->username = mem_strdup(json_str(j, "username", NULL));
        out->application_id = mem_strdup(json_str(j, "applicationId", NULL));
        if (!out->id || !out->resume_url)
                dc_session_forget(out);
}

static char *path_of(const struct dc_gateway_options *o, unsigned shard)
{
        return mem_printf("%s/state/gateway-%s-%u.json", o->dir, o->name, shard);
}

static json_t *read_first(const struct dc_gateway_options *o)
{
        char *path = path_of(o, 0);
        json_t *j = read_file(path);

        free(path);
        return j;
}

struct dc_session_file *dc_session_open(const struct dc_gateway_options *o, unsigned shard, unsigned shards,
                                        struct dc_session *out)
{
        struct dc_session_file *f;
        char digest[SHA256_HEX_SIZE];
        json_t *j;

        *out = (struct dc_session){ 0 };
        if (!o->dir)
                return NULL;
        f = mem_zalloc(sizeof(*f));
        f->loop = o->loop;
        f->path = path_of(o, shard);
        f->intents = o->intents;
        f->shards = shards;
        f->save_ms = o->times.save_ms;
        f->timer = timer_new(o->loop, on_timer, f);
        f->refs = 1;
        pthread_mutex_init(&f->lock, NULL);
        crypto_sha256_hex(secret_reveal(o->token), secret_length(o->token), digest);
        snprintf(f->token, sizeof(f->token), "%.16s", digest);
        j = read_file(f->path);
        take_session(f, j, out);
        if (!j) /* the guilds of a new shard were another one's: what that has seen is what is known of them */
                j = read_first(o);
        take_times(f, j, out);
        json_decref(j);
        return f;
}
