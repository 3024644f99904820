/*
 * Sessions in files, one for each shard. Behind the truth by save_ms at most: a session that is
 * resumed from too early a place is told a few things again, which is harmless.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"
#include "platform/state_file.h"

struct dc_session_file {
        struct dc_file *file;
        char token[17]; /* the beginning of its digest */
        unsigned intents, shards;
        const struct dc_session *session; /* what is to be in the file; NULL: nothing yet */
        char *last;                       /* id of the session that was to be written last */
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

/* ---- writing ---- */

static char *text_of(void *arg)
{
        const struct dc_session_file *f = arg;
        const struct dc_session *s = f->session;
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
        dc_file_changed(f->file, other);
}

void dc_session_close(struct dc_session_file *f)
{
        if (!f)
                return;
        dc_file_close(f->file);
        free(f->last);
        free(f);
}

/* ---- reading ---- */

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
        json_t *j = dc_file_read(path);

        free(path);
        return j;
}

struct dc_session_file *dc_session_open(const struct dc_gateway_options *o, unsigned shard,
                                        unsigned shards, struct dc_session *out)
{
        struct dc_session_file *f;
        char digest[SHA256_HEX_SIZE], *path;
        json_t *j;

        *out = (struct dc_session){ 0 };
        if (!o->dir)
                return NULL;
        f = mem_zalloc(sizeof(*f));
        f->intents = o->intents;
        f->shards = shards;
        path = path_of(o, shard);
        f->file = dc_file_new(o->loop, path, o->times.save_ms, text_of, f);
        crypto_sha256_hex(secret_reveal(o->token), secret_length(o->token), digest);
        snprintf(f->token, sizeof(f->token), "%.16s", digest);
        j = dc_file_read(path);
        free(path);
        take_session(f, j, out);
        /*
         * the guilds of a new shard were another one's: what that has seen is what is known of them
         */
        if (!j)
                j = read_first(o);
        take_times(f, j, out);
        json_decref(j);
        return f;
}
