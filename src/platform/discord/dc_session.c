#include "platform/discord/dc_shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/state_file.h"

#define OPEN_MAX   1000  /* not committed; beyond it reading waits */
#define WINDOW_MAX 50000 /* including committed ones after an open one */
#define FIRST_CAP  64

struct dc_session_slot {
        struct dc_session_event event;
        bool done;
};

static void record_release(struct dc_session_record *r)
{
        free(r->id);
        free(r->resume_url);
        free(r->user_id);
        free(r->username);
        free(r->application_id);
        *r = (struct dc_session_record){ 0 };
}

/* ---- the file ---- */

static char *file_text(void *arg)
{
        const struct dc_session *s = arg;
        const struct dc_session_record *r = &s->committed;
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "token", s->token);
        jsonw_int(&b, "intents", s->intents);
        jsonw_int(&b, "shards", s->shards);
        jsonw_opt(&b, "gatewayUrl", s->gateway_url);
        jsonw_str(&b, "session", r->id);
        jsonw_str(&b, "resumeUrl", r->resume_url);
        jsonw_int(&b, "seq", r->seq);
        jsonw_int(&b, "seenMs", r->seen_ms);
        jsonw_bool(&b, "seenMessage", r->seen_message);
        jsonw_int(&b, "missingMs", r->missing_ms);
        jsonw_int(&b, "firstMs", r->first_ms);
        jsonw_opt(&b, "userId", r->user_id);
        jsonw_opt(&b, "username", r->username);
        jsonw_opt(&b, "applicationId", r->application_id);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

/* Writes a new session at once, progress later: an older sequence only replays a few events. */
static void save(struct dc_session *s)
{
        const char *id = s->committed.id;
        bool other = !s->written || !id || strcmp(s->written, id) != 0;

        if (other) {
                free(s->written);
                s->written = mem_strdup(id);
        }
        state_file_changed(s->file, other);
}

/* The times are useful even if the session cannot be resumed, or is another shard's. */
static void read_file(struct dc_session *s, const json_t *j, bool own)
{
        struct dc_session_record *r = &s->committed;
        const char *id = json_str(j, "session", NULL), *url = json_str(j, "resumeUrl", NULL),
                   *gateway_url = json_str(j, "gatewayUrl", "");

        if (strcmp(json_str(j, "token", ""), s->token) != 0)
                return;
        r->seen_ms = json_int(j, "seenMs", 0);
        r->seen_message = json_flag(j, "seenMessage", false);
        r->missing_ms = json_int(j, "missingMs", 0);
        r->first_ms = json_int(j, "firstMs", 0);
        if (strcmp(gateway_url, s->gateway_url ? s->gateway_url : "") != 0)
                return; /* a session of another gateway */
        if (!own || !id || !url || json_int(j, "intents", -1) != s->intents ||
            json_int(j, "shards", -1) != s->shards || json_int(j, "seq", -1) < 0)
                return;
        r->id = mem_strdup(id);
        r->resume_url = mem_strdup(url);
        r->seq = json_int(j, "seq", 0);
        r->user_id = mem_strdup(json_str(j, "userId", NULL));
        r->username = mem_strdup(json_str(j, "username", NULL));
        r->application_id = mem_strdup(json_str(j, "applicationId", NULL));
        s->id = mem_strdup(id);
        s->resume_url = mem_strdup(url);
        s->seq = r->seq;
}

void dc_session_open(struct dc_session *s, const struct dc_gateway_options *o, unsigned shard,
                     unsigned shards)
{
        char digest[SHA256_HEX_SIZE], *path;
        json_t *j;

        if (!o->dir)
                return;
        s->intents = o->intents;
        s->shards = shards;
        s->gateway_url = o->url;
        crypto_sha256_hex(secret_reveal(o->token), secret_length(o->token), digest);
        snprintf(s->token, sizeof(s->token), "%.16s", digest);
        path = mem_printf("%s/state/gateway-%s-%u.json", o->dir, o->name, shard);
        s->file = state_file_new(o->loop, path, o->times.save_ms, file_text, s);
        j = file_read_json(path, STATE_FILE_MAX);
        free(path);
        if (j) {
                read_file(s, j, true);
        } else { /* a new shard: others had its guilds */
                path = mem_printf("%s/state/gateway-%s-0.json", o->dir, o->name);
                j = file_read_json(path, STATE_FILE_MAX);
                free(path);
                read_file(s, j, false);
        }
        json_decref(j);
}

void dc_session_release(struct dc_session *s)
{
        state_file_close(s->file);
        record_release(&s->committed);
        record_release(&s->next);
        free(s->window.ring);
        free(s->written);
        free(s->id);
        free(s->resume_url);
}

void dc_session_drop(struct dc_session *s)
{
        free(s->id);
        free(s->resume_url);
        s->id = s->resume_url = NULL;
        s->seq = 0; /* must not be used with a new session */
}

uint64_t dc_session_received(struct dc_session *s, const struct dc_session_event *e)
{
        uint64_t number = s->window.first + s->window.count;

        if (s->window.count == s->window.cap) {
                size_t cap = s->window.cap ? s->window.cap * 2 : FIRST_CAP;
                struct dc_session_slot *ring = mem_array(cap, sizeof(*ring));

                for (uint64_t n = s->window.first; n < number; n++)
                        ring[n % cap] = s->window.ring[n % s->window.cap];
                free(s->window.ring);
                s->window.ring = ring;
                s->window.cap = cap;
        }
        s->window.ring[number % s->window.cap] = (struct dc_session_slot){ .event = *e };
        s->window.count++;
        s->window.open++;
        s->seq = e->seq;
        if (s->window.open >= OPEN_MAX || s->window.count >= WINDOW_MAX)
                s->full = true;
        return number;
}

int64_t dc_session_begin(struct dc_session *s, const char *resume_url, const json_t *ready,
                         int64_t seq, int64_t now_ms)
{
        const char *id = json_str(ready, "session_id", "");
        const json_t *user = json_object_get(ready, "user"),
                     *app = json_object_get(ready, "application");
        int64_t since_ms = s->committed.missing_ms ? s->committed.missing_ms : s->committed.seen_ms;

        dc_session_drop(s);
        s->id = mem_strdup(id);
        s->resume_url = mem_strdup(resume_url);
        record_release(&s->next);
        s->next = (struct dc_session_record){
                .id = mem_strdup(id),
                .resume_url = mem_strdup(resume_url),
                .seq = seq,
                .seen_ms = since_ms ? s->committed.seen_ms : now_ms,
                .seen_message = s->committed.seen_message,
                .missing_ms = since_ms,
                .first_ms = since_ms ? s->committed.first_ms : now_ms,
                .user_id = mem_strdup(json_str(user, "id", NULL)),
                .username = mem_strdup(json_str(user, "username", NULL)),
                .application_id = mem_strdup(json_str(app, "id", NULL)),
        };
        /* READY itself has nothing to store */
        dc_session_committed(
                s, dc_session_received(s, &(struct dc_session_event){ .seq = seq, .begins = true }),
                0);
        return since_ms;
}

/* ---- committed ---- */

/* A message's time is better than our clock. */
static void set_complete(struct dc_session *s, int64_t complete_ms)
{
        if (complete_ms > 0 && s->window.count == 0 && !s->committed.seen_message)
                s->committed.seen_ms = complete_ms;
}

void dc_session_committed(struct dc_session *s, uint64_t number, int64_t complete_ms)
{
        struct dc_session_record *r = &s->committed;
        struct dc_session_slot *slot;
        bool moved = false;

        if (number >= s->window.first && number - s->window.first < s->window.count) {
                slot = &s->window.ring[number % s->window.cap];
                if (!slot->done)
                        s->window.open--;
                slot->done = true;
        }
        while (s->window.count > 0 &&
               (slot = &s->window.ring[s->window.first % s->window.cap])->done) {
                const struct dc_session_event *e = &slot->event;

                if (e->begins && s->next.id) {
                        record_release(r);
                        *r = s->next;
                        s->next = (struct dc_session_record){ 0 };
                }
                r->seq = e->seq;
                if (e->message_ms > 0 && (!r->seen_message || e->message_ms > r->seen_ms)) {
                        r->seen_ms = e->message_ms;
                        r->seen_message = true;
                }
                if (e->message_ms > 0 && e->message_ms < r->first_ms)
                        r->first_ms = e->message_ms; /* our clock was ahead of Discord's */
                s->window.first++;
                s->window.count--;
                moved = true;
        }
        if (moved) {
                set_complete(s, complete_ms);
                save(s);
        }
        if (s->window.open <= OPEN_MAX / 2 && s->window.count <= WINDOW_MAX / 2)
                s->full = false;
}

void dc_session_alive(struct dc_session *s, int64_t complete_ms)
{
        set_complete(s, complete_ms);
        if (s->committed.id)
                save(s);
}

void dc_session_caught_up(struct dc_session *s)
{
        s->committed.missing_ms = s->next.missing_ms = 0;
        if (s->committed.id)
                save(s);
}

int64_t dc_session_heartbeat(const struct dc_session *s)
{
        if (!s->id || s->seq <= 0)
                return -1;
        return s->next.id ? s->next.seq : s->committed.seq;
}
