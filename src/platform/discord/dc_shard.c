/*
 * One session with Discord, over as many connections as it takes.
 *
 *     waiting ──► connecting ──► greeted ──► resuming ────► up
 *        ▲                          └──────► identifying ──┘ │
 *        └───────────────── closing ◄────────────────────────┘     stopped: for good
 *
 * `enter` is the one door. Whoever wants to leave a connection says what comes next (a plan) and closes; `lost` then does it.
 *
 * Two sequence numbers: `seq` is the last one received, which a resume on another connection of this process continues, because
 * what lies between is still in our hands; `session.seq` is committed. Only that one goes to disk and into heartbeats, so that Discord keeps
 * what we could still lose.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"
#include "platform/discord/dc_rest.h"
#include "platform/discord/discord.h"

#define API_VERSION   10
#define OUR_CLOSE     4000 /* anything but 1000 and 1001, which would end the session */
#define CLOSE_MS      2000
#define RESUMES_MAX   3
#define OPEN_MAX      1000  /* uncommitted; beyond it nothing is read until half of them are */
#define PENDING_MAX   50000 /* with those that only wait for an earlier one */
#define FRAMES_MINUTE 120
#define FRAMES_SPARE  10 /* of them, for heartbeats of our own and the beginning of a session */
#define INTERVAL_MIN  10
#define INTERVAL_MAX  3600000
#define MESSAGE_MAX   ((size_t)32 << 20)

enum shard_state {
        SHARD_WAITING, /* for its turn, or after a failure */
        SHARD_CONNECTING,
        SHARD_GREETED, /* the socket is open; HELLO has not come */
        SHARD_RESUMING,
        SHARD_IDENTIFYING,
        SHARD_UP,
        SHARD_CLOSING,
        SHARD_STOPPED,
};

struct dc_shard {
        struct dc_gateway *g;
        unsigned id, shards;
        enum shard_state state;
        struct websocket *ws;
        struct dc_frames *frames;
        struct timer *timer; /* of the state */
        struct timer *beat;
        struct dc_session_file *file;

        char *session_id, *resume_url; /* of the session we are in; NULL: none */
        int64_t seq;                   /* received */
        struct dc_session session;     /* committed */
        struct dc_session next;        /* begun, but something before it is not committed yet */

        struct dc_pending pending; /* handed over and not committed */

        enum dc_plan plan;
        int64_t wait_ms; /* of the plan; -1: as the failures say */
        char why[200];
        bool fresh;        /* this attempt is to identify */
        bool sent_resume;  /* on this connection */
        bool busy, full;   /* reading is paused: parsing, uncommitted */
        bool acked;        /* the last heartbeat */
        unsigned failures; /* in a row, of connections that did not live long */
        unsigned resumes;  /* in a row, that came to nothing */
        int64_t interval_ms, beat_ms, ping_ms, up_ms;
        int64_t minute_ms; /* when the counted minute began */
        unsigned frames_sent;
};

static void enter(struct dc_shard *s, enum shard_state state)
{
        static const char *const names[] = { "waiting",     "connecting", "greeted", "resuming",
                                             "identifying", "up",         "closing", "stopped" };

        if (s->state != state)
                log_debug("discord shard", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                          LOG_S("from", names[s->state]), LOG_S("to", names[state]));
        s->state = state;
}

/* ---- sending ---- */

static bool may_send(struct dc_shard *s, unsigned spare)
{
        int64_t now = dc_gateway_now(s->g);

        if (now - s->minute_ms >= 60000) {
                s->minute_ms = now;
                s->frames_sent = 0;
        }
        return s->frames_sent + spare < FRAMES_MINUTE;
}

static void send_frame(struct dc_shard *s, const struct buf *b)
{
        struct error err = { 0 };

        if (b->len > DC_FRAME_MAX) {
                log_error("a frame for Discord is larger than it takes; it is not sent",
                          LOG_S("adapter", s->g->o.name), LOG_I("bytes", b->len));
                return;
        }
        s->frames_sent++;
        if (websocket_send(s->ws, false, b->data, b->len, &err) < 0)
                log_debug("a frame could not be sent", LOG_S("why", err.text));
}

static void beat(struct dc_shard *s)
{
        bool told = s->session_id && s->seq > 0;
        struct buf b;

        buf_init(&b, 0);
        dc_say_heartbeat(&b, !told ? -1 : s->next.id ? s->next.seq : s->session.seq);
        s->acked = false;
        s->beat_ms = dc_gateway_now(s->g);
        send_frame(s, &b);
        buf_release(&b);
}

/* The token was in it. */
static void send_secret(struct dc_shard *s, struct buf *b)
{
        send_frame(s, b);
        explicit_bzero(b->data, b->len);
        buf_release(b);
}

static void send_identify(struct dc_shard *s)
{
        struct buf b;

        buf_init(&b, 0);
        dc_say_identify(&b, &s->g->o, s->id, s->shards);
        send_secret(s, &b);
}

static void send_resume(struct dc_shard *s)
{
        struct buf b;

        buf_init(&b, 0);
        dc_say_resume(&b, &s->g->o, s->session_id, s->seq);
        send_secret(s, &b);
}

/* ---- leaving a connection ---- */

static void drop_session(struct dc_shard *s)
{
        free(s->session_id);
        free(s->resume_url);
        s->session_id = s->resume_url = NULL;
        s->seq = 0; /* a new session must never meet an old number */
        s->resumes = 0;
}

static void drop_connection(struct dc_shard *s)
{
        timer_stop(s->timer);
        timer_stop(s->beat);
        websocket_free(s->ws);
        s->ws = NULL;
        dc_frames_free(s->frames);
        s->frames = NULL;
        s->busy = false;
        dc_gateway_turn_over(s->g, s, false);
}

static int64_t backoff_ms(const struct dc_shard *s)
{
        const struct dc_gateway_times *t = &s->g->o.times;
        int64_t most = t->backoff_ms << (s->failures < 16 ? s->failures : 16);

        if (most > t->backoff_max_ms)
                most = t->backoff_max_ms;
        return (int64_t)id_random_below((uint64_t)most + 1);
}

/* Has this connection lived long enough for the troubles before it to be forgotten? */
static bool is_stable(const struct dc_shard *s)
{
        return s->up_ms >= 0 && dc_gateway_now(s->g) - s->up_ms >= s->g->o.times.stable_ms;
}

/* At once, unless this has become a habit. */
static int64_t soon(const struct dc_shard *s)
{
        return s->failures == 0 || is_stable(s) ? 0 : -1;
}

/* The connection is gone; the plan is carried out. */
static void lost(struct dc_shard *s)
{
        struct dc_gateway *g = s->g;
        int64_t wait;

        if (is_stable(s))
                s->failures = 0;
        drop_connection(s);
        wait = s->wait_ms >= 0 ? s->wait_ms : backoff_ms(s);
        s->failures++;
        if (s->sent_resume && s->up_ms < 0 && ++s->resumes >= RESUMES_MAX)
                s->plan = DC_IDENTIFY;
        if (s->plan == DC_IDENTIFY)
                drop_session(s);
        g->counted.lost++;
        log_info("discord connection ended", LOG_S("adapter", g->o.name), LOG_I("shard", s->id),
                 LOG_S("why", s->why), LOG_S("next", s->session_id ? "resume" : "identify"),
                 LOG_I("inMs", wait));
        enter(s, SHARD_WAITING);
        timer_start(s->timer, wait);
        dc_gateway_shard_lost(g, s->why);
}

/* Closes with a plan for afterwards. */
static void leave(struct dc_shard *s, enum dc_plan plan, int64_t wait_ms, const char *why)
{
        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED || s->state == SHARD_WAITING)
                return;
        s->plan = plan;
        s->wait_ms = wait_ms;
        snprintf(s->why, sizeof(s->why), "%.199s", why);
        timer_stop(s->beat);
        timer_stop(s->timer);
        enter(s, SHARD_CLOSING);
        websocket_close(s->ws, OUR_CLOSE, NULL);
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct dc_shard *s = arg;
        const struct dc_close_rule *rule = dc_close_rule(end->sent ? 0 : end->code);
        char why[300];

        if (rule->ours) {
                s->g->counted.our_mistakes++;
                log_warn("Discord objects to what we sent", LOG_S("adapter", s->g->o.name),
                         LOG_I("shard", s->id), LOG_S("what", rule->what), LOG_I("code", end->code));
        }
        if (s->state == SHARD_CLOSING) { /* our own plan holds */
                lost(s);
                return;
        }
        if (rule->plan == DC_STOP) {
                dc_close_sentence(&s->g->o, end->code, why, sizeof(why));
                dc_gateway_stop(s->g, end->code == 4004, why);
                return;
        }
        s->plan = rule->plan;
        s->wait_ms = end->retry_after_ms;
        snprintf(s->why, sizeof(s->why), "%s", rule->code ? rule->what : end->why);
        lost(s);
}

/* ---- what is not committed ---- */

static void set_pause(struct dc_shard *s)
{
        if (s->ws)
                websocket_pause(s->ws, s->busy || s->full);
}

static uint64_t pending_add(struct dc_shard *s, struct dc_passed what)
{
        uint64_t number = dc_pending_add(&s->pending, &what);

        if ((s->pending.open >= OPEN_MAX || s->pending.count >= PENDING_MAX) && !s->full) {
                s->full = true;
                set_pause(s);
        }
        return number;
}

/* Nothing is missing up to now, when nothing waits to be committed. Once there was a message its time is better than our clock's. */
static void note_seen(struct dc_shard *s)
{
        if (s->pending.count == 0 && s->state == SHARD_UP && !s->session.seen_message)
                s->session.seen_ms = s->g->o.wall_ms();
}

static void note_passed(struct dc_shard *s, const struct dc_passed *what)
{
        if (what->begins && s->next.id) {
                dc_session_release(&s->session);
                s->session = s->next;
                s->next = (struct dc_session){ 0 };
        }
        s->session.seq = what->seq;
        if (what->message_ms > 0 && (!s->session.seen_message || what->message_ms > s->session.seen_ms)) {
                s->session.seen_ms = what->message_ms;
                s->session.seen_message = true;
        }
}

void dc_shard_committed(struct dc_shard *s, uint64_t number)
{
        struct dc_passed what;
        bool moved = false;

        dc_pending_done(&s->pending, number);
        while (dc_pending_take(&s->pending, &what)) {
                note_passed(s, &what);
                moved = true;
        }
        if (moved) {
                note_seen(s);
                dc_session_save(s->file, &s->session);
        }
        if (s->full && s->pending.open <= OPEN_MAX / 2 && s->pending.count <= PENDING_MAX / 2) {
                s->full = false;
                set_pause(s);
        }
}

void dc_shard_caught_up(struct dc_shard *s)
{
        s->session.missing_ms = s->next.missing_ms = 0;
        if (s->session.id)
                dc_session_save(s->file, &s->session);
}

/* ---- dispatches ---- */

static void up(struct dc_shard *s, bool resumed, int64_t since_ms)
{
        const struct dc_session *who = s->next.id ? &s->next : &s->session;
        const struct dc_gateway_ready ready = { .shard = s->id,
                                                .resumed = resumed,
                                                .user_id = who->user_id,
                                                .username = who->username,
                                                .application_id = who->application_id };

        timer_stop(s->timer);
        s->up_ms = dc_gateway_now(s->g);
        s->resumes = 0;
        enter(s, SHARD_UP);
        log_info("discord session", LOG_S("adapter", s->g->o.name), LOG_I("shard", s->id),
                 LOG_S("state", resumed ? "resumed" : "new"));
        dc_gateway_shard_up(s->g, &ready, since_ms);
}

/* Not from TLS to none. */
static char *resume_url_of(const struct dc_shard *s, const json_t *d)
{
        const char *url = json_str(d, "resume_gateway_url", NULL);

        if (!url || (strncmp(s->g->url, "wss:", 4) == 0 && strncmp(url, "wss:", 4) != 0))
                url = s->g->url;
        return mem_strdup(url);
}

static void on_ready(struct dc_shard *s, const json_t *d, int64_t seq)
{
        const json_t *user = json_object_get(d, "user"), *app = json_object_get(d, "application");
        const char *id = json_str(d, "session_id", NULL);
        int64_t since_ms = s->session.missing_ms ? s->session.missing_ms : s->session.seen_ms;

        if (!id || s->state != SHARD_IDENTIFYING) {
                leave(s, DC_IDENTIFY, -1, "Discord's READY came unasked, or names no session");
                return;
        }
        drop_session(s);
        s->session_id = mem_strdup(id);
        s->resume_url = resume_url_of(s, d);
        s->seq = seq;
        dc_session_release(&s->next);
        s->next = (struct dc_session){ .id = mem_strdup(id),
                                       .resume_url = mem_strdup(s->resume_url),
                                       .seq = seq,
                                       .seen_ms = s->session.seen_ms,
                                       .seen_message = s->session.seen_message,
                                       .missing_ms = since_ms,
                                       .user_id = mem_strdup(json_str(user, "id", NULL)),
                                       .username = mem_strdup(json_str(user, "username", NULL)),
                                       .application_id = mem_strdup(json_str(app, "id", NULL)) };
        /* it says nothing that would have to be stored */
        dc_shard_committed(s, pending_add(s, (struct dc_passed){ .seq = seq, .begins = true }));
        up(s, false, since_ms);
}

static void on_resumed(struct dc_shard *s, int64_t seq)
{
        if (s->state != SHARD_RESUMING)
                return;
        if (seq > s->seq) {
                s->seq = seq;
                dc_shard_committed(s, pending_add(s, (struct dc_passed){ .seq = seq }));
        }
        up(s, true, s->session.missing_ms);
}

static void hand_over(struct dc_shard *s, const char *type, json_t *d)
{
        bool message = strcmp(type, "MESSAGE_CREATE") == 0;
        struct dc_passed what = { .seq = s->seq,
                                  .message_ms = message ? dc_id_time_ms(json_str(d, "id", NULL)) : 0 };
        uint64_t number = pending_add(s, what);
        const struct dc_dispatch e = { .ticket = (uint64_t)s->id << DC_TICKET_SHARD | number,
                                       .shard = s->id,
                                       .type = type,
                                       .d = d,
                                       .session = s->session_id,
                                       .seq = s->seq };

        s->g->counted.events++;
        s->g->on.event(s->g->arg, &e);
}

static void on_dispatch(struct dc_shard *s, const json_t *payload, json_t *d)
{
        const char *type = json_str(payload, "t", "");
        int64_t seq = json_int(payload, "s", 0);

        if (strcmp(type, "READY") == 0) {
                on_ready(s, d, seq);
                return;
        }
        if (!s->session_id || (s->state != SHARD_RESUMING && s->state != SHARD_UP))
                return;
        if (strcmp(type, "RESUMED") == 0) {
                on_resumed(s, seq);
                return;
        }
        if (seq <= s->seq) /* told again: it is in our hands already */
                return;
        s->seq = seq;
        if (s->state == SHARD_RESUMING) /* replaying: it is alive */
                timer_start(s->timer, s->g->o.times.ready_ms);
        hand_over(s, type, d);
}

/* ---- heartbeats ---- */

static void on_beat(void *arg)
{
        struct dc_shard *s = arg;

        if (!s->acked && !s->busy && !s->full) {
                s->g->counted.zombies++;
                leave(s, DC_RESUME, soon(s), "Discord did not answer a heartbeat");
                return;
        }
        beat(s);
        timer_start(s->beat, s->interval_ms);
}

static void on_ack(struct dc_shard *s)
{
        s->acked = true;
        if (s->beat_ms >= 0)
                s->ping_ms = dc_gateway_now(s->g) - s->beat_ms;
        note_seen(s);
        if (s->session.id)
                dc_session_save(s->file, &s->session);
}

static void on_hello(struct dc_shard *s, const json_t *d)
{
        int64_t interval = json_int(d, "heartbeat_interval", 0);

        if (s->state != SHARD_GREETED || interval <= 0) {
                leave(s, DC_RESUME, -1, "Discord's HELLO makes no sense");
                return;
        }
        s->interval_ms = interval < INTERVAL_MIN   ? INTERVAL_MIN
                         : interval > INTERVAL_MAX ? INTERVAL_MAX
                                                   : interval;
        s->acked = true; /* there is nothing to be answered yet on this connection */
        timer_start(s->beat, (int64_t)id_random_below((uint64_t)s->interval_ms));
        timer_start(s->timer, s->g->o.times.ready_ms);
        if (s->fresh) {
                enter(s, SHARD_IDENTIFYING);
                s->g->counted.identifies++;
                send_identify(s);
                dc_gateway_turn_over(s->g, s, true);
        } else {
                enter(s, SHARD_RESUMING);
                s->g->counted.resumes++;
                s->sent_resume = true;
                if (s->session.missing_ms > 0)
                        s->g->on.behind(s->g->arg, s->id);
                send_resume(s);
        }
        set_pause(s); /* when what came over the last connection still waits */
}

/* ---- frames ---- */

static void on_invalid(struct dc_shard *s, bool resumable)
{
        int64_t most = s->g->o.times.invalid_ms,
                wait = most / 5 + (int64_t)id_random_below((uint64_t)(most - most / 5) + 1);

        if (resumable && s->session_id)
                leave(s, DC_RESUME, wait, "Discord has invalidated the connection");
        else
                leave(s, DC_IDENTIFY, wait, "Discord has invalidated the session");
}

static void on_payload(void *arg, json_t *payload)
{
        struct dc_shard *s = arg;
        json_t *d = json_object_get(payload, "d");

        if (s->state == SHARD_CLOSING || s->state == SHARD_STOPPED)
                return;
        switch (json_int(payload, "op", -1)) {
        case DC_OP_DISPATCH:
                on_dispatch(s, payload, d);
                break;
        case DC_OP_HEARTBEAT:
                if (may_send(s, FRAMES_SPARE))
                        beat(s);
                break;
        case DC_OP_RECONNECT:
                leave(s, DC_RESUME, soon(s), "Discord asked for a new connection");
                break;
        case DC_OP_INVALID:
                on_invalid(s, json_is_true(d));
                break;
        case DC_OP_HELLO:
                on_hello(s, d);
                break;
        case DC_OP_ACK:
                on_ack(s);
                break;
        default:
                break; /* news for others */
        }
}

static void on_busy(void *arg, bool busy)
{
        struct dc_shard *s = arg;

        s->busy = busy;
        set_pause(s);
        if (!busy)
                dc_gateway_was_large(s->g);
}

static void on_unreadable(void *arg, const char *why)
{
        struct dc_shard *s = arg;

        s->sent_resume = s->sent_resume || s->state == SHARD_UP; /* the same again may not be endless */
        s->up_ms = -1;
        leave(s, DC_RESUME, -1, why);
}

static void on_open(void *arg)
{
        struct dc_shard *s = arg;

        enter(s, SHARD_GREETED);
        timer_start(s->timer, s->g->o.times.hello_ms);
}

static void on_message(void *arg, bool binary, const char *bytes, size_t n)
{
        struct dc_shard *s = arg;

        dc_frames_feed(s->frames, binary, bytes, n);
}

/* ---- connecting ---- */

static char *full_url(const struct dc_shard *s, const char *base)
{
        const char *compress = s->g->o.compress;
        bool squeezed = compress && strcmp(compress, "none") != 0;
        size_t n = strlen(base);

        return mem_printf("%s%s?v=%d&encoding=json%s%s", base, n > 0 && base[n - 1] == '/' ? "" : "/",
                          API_VERSION, squeezed ? "&compress=" : "", squeezed ? compress : "");
}

static void open_connection(struct dc_shard *s, const char *base)
{
        static const struct websocket_handlers handlers = { .on_open = on_open,
                                                            .on_message = on_message,
                                                            .on_closed = on_closed };
        static const struct dc_frames_handlers frame_handlers = { .payload = on_payload,
                                                                  .busy = on_busy,
                                                                  .failed = on_unreadable };
        static const char *const headers[] = { DC_AGENT, NULL };
        char *url = full_url(s, base);

        enter(s, SHARD_CONNECTING);
        s->sent_resume = false;
        s->up_ms = s->beat_ms = s->ping_ms = -1;
        s->frames = dc_frames_new(s->g->o.loop, s->g->o.compress, &frame_handlers, s);
        s->ws = websocket_open(
                s->g->o.loop, s->g->o.http,
                &(struct websocket_options){
                        .url = url, .headers = headers, .close_ms = CLOSE_MS, .max_message = MESSAGE_MAX },
                &handlers, s);
        free(url);
}

void dc_shard_start(struct dc_shard *s)
{
        if (s->state != SHARD_WAITING)
                return;
        s->fresh = s->session_id == NULL;
        if (s->fresh)
                dc_gateway_want_turn(s->g, s);
        else /* where the session is; should nobody be there any more, the main door now and then */
                open_connection(s, s->failures % 4 == 3 ? s->g->url : s->resume_url);
}

void dc_shard_identify(struct dc_shard *s)
{
        open_connection(s, s->g->url);
}

/* Nothing came where something was due: HELLO, READY; or the wait is over. */
static void on_timer(void *arg)
{
        struct dc_shard *s = arg;

        if (s->state == SHARD_WAITING)
                dc_shard_start(s);
        else if (s->full) /* we are not even listening */
                timer_start(s->timer, s->g->o.times.ready_ms);
        else
                leave(s, DC_RESUME, -1,
                      s->state == SHARD_GREETED ? "Discord did not say hello"
                                                : "Discord did not answer our greeting");
}

/* ---- life ---- */

struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards)
{
        struct dc_shard *s = mem_zalloc(sizeof(*s));

        s->g = g;
        s->id = id;
        s->shards = shards;
        s->up_ms = s->beat_ms = s->ping_ms = -1;
        s->timer = timer_new(g->o.loop, on_timer, s);
        s->beat = timer_new(g->o.loop, on_beat, s);
        s->file = dc_session_open(&g->o, id, shards, &s->session);
        if (s->session.id) {
                s->session_id = mem_strdup(s->session.id);
                s->resume_url = mem_strdup(s->session.resume_url);
                s->seq = s->session.seq;
        }
        return s;
}

void dc_shard_stop(struct dc_shard *s)
{
        drop_connection(s);
        enter(s, SHARD_STOPPED);
}

void dc_shard_free(struct dc_shard *s)
{
        if (!s)
                return;
        dc_shard_stop(s);
        timer_free(s->timer);
        timer_free(s->beat);
        dc_session_close(s->file);
        dc_session_release(&s->session);
        dc_session_release(&s->next);
        free(s->session_id);
        free(s->resume_url);
        dc_pending_release(&s->pending);
        free(s);
}

void dc_shard_renew(struct dc_shard *s, const char *why)
{
        leave(s, DC_RESUME, soon(s), why);
}

bool dc_shard_is_up(const struct dc_shard *s)
{
        return s->state == SHARD_UP;
}

unsigned dc_shard_id(const struct dc_shard *s)
{
        return s->id;
}

void dc_shard_stats(const struct dc_shard *s, struct dc_gateway_stats *out)
{
        out->uncommitted += s->pending.open;
        if (s->state == SHARD_UP)
                out->ready++;
        if (s->ping_ms > out->ping_ms)
                out->ping_ms = s->ping_ms;
}
