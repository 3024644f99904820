/*
 * How far a shard has come in its session.
 *
 * Two sequence numbers: `seq` is the last one received, which a resume on another connection of
 * this process continues, because what lies between is still in our hands; `committed.seq` is
 * stored. Only that one goes to disk and into heartbeats, so that Discord keeps what we could still
 * lose.
 *
 * A new session may begin while something of the last one is not committed. Until that is, it is
 * `next`: on disk stands the old one, which a process that ends now could still resume.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"

#define OPEN_MAX    1000  /* uncommitted; beyond it nothing is read until half of them are */
#define PENDING_MAX 50000 /* with those that only wait for an earlier one */

void dc_progress_open(struct dc_progress *p, const struct dc_gateway_options *o, unsigned shard,
                      unsigned shards)
{
        p->file = dc_session_open(o, shard, shards, &p->committed);
        if (!p->committed.id)
                return;
        p->session_id = mem_strdup(p->committed.id);
        p->resume_url = mem_strdup(p->committed.resume_url);
        p->seq = p->committed.seq;
}

void dc_progress_release(struct dc_progress *p)
{
        dc_session_close(p->file);
        dc_session_release(&p->committed);
        dc_session_release(&p->next);
        free(p->session_id);
        free(p->resume_url);
        dc_pending_release(&p->pending);
}

void dc_progress_drop(struct dc_progress *p)
{
        free(p->session_id);
        free(p->resume_url);
        p->session_id = p->resume_url = NULL;
        p->seq = 0; /* a new session must never meet an old number */
}

/* ---- what is received ---- */

uint64_t dc_progress_received(struct dc_progress *p, const struct dc_passed *what)
{
        uint64_t number = dc_pending_add(&p->pending, what);

        p->seq = what->seq;
        if (p->pending.open >= OPEN_MAX || p->pending.count >= PENDING_MAX)
                p->full = true;
        return number;
}

int64_t dc_progress_begin(struct dc_progress *p, const char *id, const char *resume_url,
                          const json_t *ready, int64_t seq)
{
        const json_t *user = json_object_get(ready, "user"),
                     *app = json_object_get(ready, "application");
        int64_t since_ms = p->committed.missing_ms ? p->committed.missing_ms : p->committed.seen_ms;

        dc_progress_drop(p);
        p->session_id = mem_strdup(id);
        p->resume_url = mem_strdup(resume_url);
        dc_session_release(&p->next);
        p->next = (struct dc_session){ .id = mem_strdup(id),
                                       .resume_url = mem_strdup(resume_url),
                                       .seq = seq,
                                       .seen_ms = p->committed.seen_ms,
                                       .seen_message = p->committed.seen_message,
                                       .missing_ms = since_ms,
                                       .user_id = mem_strdup(json_str(user, "id", NULL)),
                                       .username = mem_strdup(json_str(user, "username", NULL)),
                                       .application_id = mem_strdup(json_str(app, "id", NULL)) };
        /* it says nothing that would have to be stored */
        dc_progress_committed(
                p, dc_progress_received(p, &(struct dc_passed){ .seq = seq, .begins = true }), 0);
        return since_ms;
}

/* ---- what is committed ---- */

static void pass(struct dc_progress *p, const struct dc_passed *what)
{
        struct dc_session *s = &p->committed;

        if (what->begins && p->next.id) {
                dc_session_release(s);
                *s = p->next;
                p->next = (struct dc_session){ 0 };
        }
        s->seq = what->seq;
        if (what->message_ms > 0 && (!s->seen_message || what->message_ms > s->seen_ms)) {
                s->seen_ms = what->message_ms;
                s->seen_message = true;
        }
}

/* Once there was a message its time is better than our clock's. */
static void see(struct dc_progress *p, int64_t wall_ms)
{
        if (wall_ms > 0 && p->pending.count == 0 && !p->committed.seen_message)
                p->committed.seen_ms = wall_ms;
}

void dc_progress_committed(struct dc_progress *p, uint64_t number, int64_t wall_ms)
{
        struct dc_passed what;
        bool moved = false;

        dc_pending_done(&p->pending, number);
        while (dc_pending_take(&p->pending, &what)) {
                pass(p, &what);
                moved = true;
        }
        if (moved) {
                see(p, wall_ms);
                dc_session_save(p->file, &p->committed);
        }
        if (p->pending.open <= OPEN_MAX / 2 && p->pending.count <= PENDING_MAX / 2)
                p->full = false;
}

void dc_progress_alive(struct dc_progress *p, int64_t wall_ms)
{
        see(p, wall_ms);
        if (p->committed.id)
                dc_session_save(p->file, &p->committed);
}

void dc_progress_caught_up(struct dc_progress *p)
{
        p->committed.missing_ms = p->next.missing_ms = 0;
        if (p->committed.id)
                dc_session_save(p->file, &p->committed);
}

/* ---- what others want to know ---- */

int64_t dc_progress_heartbeat(const struct dc_progress *p)
{
        if (!p->session_id || p->seq <= 0)
                return -1;
        return p->next.id ? p->next.seq : p->committed.seq;
}

const struct dc_session *dc_progress_session(const struct dc_progress *p)
{
        return p->next.id ? &p->next : &p->committed;
}
