#include "platform/slack/sl_catchup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/readback.h"
#include "platform/recent_chats.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_intake.h"
#include "platform/slack/sl_ts.h"
#include "platform/state_file.h"

/* An event that Slack could not deliver is repeated so long, while newer ones are stored. */
#define MARGIN_MS    420000
#define DONE_MS      3000
#define HELD_TICKS   10 /* of DONE_MS */
#define AGAIN_MS     300000
#define SAVE_MS      1000
#define FUTURE_MS    86400000 /* a ts further ahead is wrong */
#define LIST_PAGE    200
#define CALL_WAIT_MS 30000
#define CURSOR_MAX   500

/* Each needs a scope of its own, so each is listed on its own. DMs first: there are no others. */
static const char *const kinds[] = { "im", "mpim", "private_channel", "public_channel" };

struct sl_catchup {
        struct sl_catchup_options o;
        struct sl_catchup_hooks hooks;
        struct state_file *file; /* NULL: none */
        /* by Slack's clock; 0: none */
        int64_t seen_ms;    /* the newest message that is committed */
        int64_t missing_ms; /* catch-up has not finished since then */
        int64_t first_ms;   /* the first link of this data directory */
        uint64_t since;     /* of the gap, in microseconds */
        bool open, failed, again;
        bool holds_all;
        unsigned held_ticks; /* of the timer, until it holds no longer */
        struct readback *readback;
        struct recent_chats *recent; /* NULL: none is being read */
        int64_t recent_before;       /* the next page; 0: none */
        struct {
                size_t kind; /* of kinds; their number: over */
                char *cursor;
                bool asking, waiting; /* waiting: for room */
                bool stale;           /* the answer is of an earlier gap */
                unsigned tries;
                struct timer *retry;
        } scan;
        struct timer *timer;
};

/* ---- the file ---- */

static char *file_text(void *arg)
{
        const struct sl_catchup *c = arg;
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "team", c->o.team);
        jsonw_int(&b, "seenMs", c->seen_ms);
        jsonw_int(&b, "missingMs", c->missing_ms);
        jsonw_int(&b, "firstMs", c->first_ms);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static void open_file(struct sl_catchup *c)
{
        const struct adapter *a = c->o.adapter;
        char *path;
        json_t *j;

        if (!a->dir)
                return;
        path = mem_printf("%s/state/catchup-%s.json", a->dir, a->name);
        j = file_read_json(path, STATE_FILE_MAX);
        if (strcmp(json_str(j, "team", ""), c->o.team) == 0) {
                c->seen_ms = json_int(j, "seenMs", 0);
                c->missing_ms = json_int(j, "missingMs", 0);
                c->first_ms = json_int(j, "firstMs", 0);
        }
        json_decref(j);
        c->file = state_file_new(a->loop, path, c->o.times.save_ms, file_text, c);
        free(path);
}

void sl_catchup_note(struct sl_catchup *c, const char *ts)
{
        int64_t ms = sl_ts_us(ts) / 1000;

        if (ms <= c->seen_ms || ms > c->hooks.now_ms(c->hooks.ctx) + FUTURE_MS)
                return;
        c->seen_ms = ms;
        state_file_changed(c->file, false);
}

/* ---- how a channel or thread is read ---- */

/* Threads with news have a first message that says so. */
static void want_threads(struct sl_catchup *c, const char *channel, const json_t *messages)
{
        const json_t *m;
        size_t i;

        json_array_foreach(messages, i, m) {
                const char *ts = json_str(m, "ts", NULL);

                if (sl_ts_valid(ts) &&
                    (uint64_t)sl_ts_us(json_str(m, "latest_reply", NULL)) > c->since)
                        readback_want(c->readback, channel, ts, true, c->since);
        }
}

static const char *next_cursor(const json_t *result)
{
        const char *cursor =
                json_str(json_object_get(result, "response_metadata"), "next_cursor", "");

        return *cursor && strlen(cursor) <= CURSOR_MAX ? cursor : NULL;
}

static void on_page(void *arg, const struct sl_answer *a)
{
        struct readback_job *j = arg;
        const json_t *messages = a->ok ? json_object_get(a->result, "messages") : NULL;

        if (messages && !j->thread)
                want_threads(j->ctx, j->chat, messages);
        readback_page(j, &(struct readback_page){ .messages = messages,
                                                  .cursor = next_cursor(a->result),
                                                  .last = !json_flag(a->result, "has_more", false),
                                                  .unavailable = sl_api_is_unavailable(a),
                                                  .retry_after_ms = a->retry_after_ms,
                                                  .why = a->why });
}

/*
 * A page of a channel has no lower end: older messages on it show which threads have news. A thread
 * can only be read forward.
 */
static void read_page(void *catchup, struct readback_job *j)
{
        struct sl_catchup *c = catchup;
        json_t *args = json_pack("{s:s, s:i}", "channel", j->chat, "limit", READBACK_PAGE);
        char ts[SL_TS_SIZE];

        if (j->thread) {
                json_object_set_new(args, "ts", json_string(j->thread));
                json_object_set_new(args, "oldest",
                                    json_string(sl_ts_write((int64_t)j->since, ts)));
        } else if (j->before > 0) {
                json_object_set_new(args, "latest",
                                    json_string(sl_ts_write((int64_t)j->before, ts)));
        }
        if (j->cursor)
                json_object_set_new(args, "cursor", json_string(j->cursor));
        c->hooks.ask(c->hooks.ctx,
                     &(struct sl_request){ .method = j->thread ? "conversations.replies"
                                                               : "conversations.history",
                                           .args = args,
                                           .priority = SL_IDLE,
                                           .drop_on_cancel = true,
                                           .wait_ms = CALL_WAIT_MS },
                     on_page, j);
        json_decref(args);
}

static uint64_t message_order(const json_t *message)
{
        return (uint64_t)sl_ts_us(json_str(message, "ts", NULL));
}

/* Our own messages are in the journal; the first of a thread comes with its channel. */
static bool message_key(void *catchup, const struct readback_job *j, const json_t *message,
                        char out[READBACK_KEY_SIZE])
{
        const struct sl_catchup *c = catchup;
        const char *ts = json_str(message, "ts", "");

        if (strcmp(json_str(message, "user", ""), c->o.user) == 0 ||
            (c->o.bot && strcmp(json_str(message, "bot_id", ""), c->o.bot) == 0) ||
            (j->thread && strcmp(j->thread, ts) == 0))
                return false;
        snprintf(out, READBACK_KEY_SIZE, "%s:%s", j->chat, ts);
        return true;
}

static bool is_to_us(void *catchup, const struct readback_job *j, const json_t *message)
{
        const struct sl_catchup *c = catchup;

        return j->chat[0] == 'D' || sl_text_mentions(json_str(message, "text", NULL), c->o.user);
}

static void on_missed(void *catchup, const struct readback_job *j, json_t *message)
{
        struct sl_catchup *c = catchup;

        c->hooks.missed(c->hooks.ctx, j->chat, message);
}

/* ---- channels of recent conversations ---- */

static bool is_channel(const char *id)
{
        return sl_id_valid(id) && strchr("CDG", id[0]);
}

static void hold_all(struct sl_catchup *c, bool hold)
{
        if (c->holds_all == hold)
                return;
        c->holds_all = hold;
        if (hold)
                intake_hold(c->o.window, INTAKE_EVERYWHERE);
        else
                intake_release(c->o.window, INTAKE_EVERYWHERE);
}

static void read_recent(struct sl_catchup *c);
static void list_channels(void *catchup);

static void on_recent(void *arg, const struct recent_chat *chats, size_t count, int64_t before,
                      const struct error *err)
{
        struct sl_catchup *c = arg;

        c->recent = NULL;
        c->recent_before = before;
        c->failed = c->failed || err;
        for (size_t i = 0; i < count; i++) {
                if (!is_channel(chats[i].channel))
                        continue;
                readback_want(c->readback, chats[i].channel, NULL, false, c->since);
                if (sl_ts_valid(chats[i].thread))
                        readback_want(c->readback, chats[i].channel, chats[i].thread, true,
                                      c->since);
        }
        read_recent(c);
        list_channels(c);
}

static void read_recent(struct sl_catchup *c)
{
        if (!c->recent && c->recent_before != 0 && readback_load(c->readback) < READBACK_CROWDED)
                c->recent = recent_chats_read(c->o.adapter, c->recent_before, on_recent, c);
}

/* ---- then those that the app is a member of ---- */

static void on_listed(void *arg, const struct sl_answer *a);

static void list_channels(void *catchup)
{
        struct sl_catchup *c = catchup;
        json_t *args;

        if (c->scan.asking || c->scan.kind == COUNT(kinds) || c->recent || c->recent_before != 0)
                return;
        c->scan.waiting = readback_load(c->readback) >= READBACK_CROWDED;
        if (c->scan.waiting)
                return; /* on_room follows */
        args = json_pack("{s:s, s:b, s:i}", "types", kinds[c->scan.kind], "exclude_archived", 1,
                         "limit", LIST_PAGE);
        if (c->scan.cursor)
                json_object_set_new(args, "cursor", json_string(c->scan.cursor));
        c->scan.asking = true;
        c->hooks.ask(c->hooks.ctx,
                     &(struct sl_request){ .method = "users.conversations",
                                           .args = args,
                                           .priority = SL_IDLE,
                                           .drop_on_cancel = true,
                                           .wait_ms = CALL_WAIT_MS },
                     on_listed, c);
        json_decref(args);
}

static void on_listed(void *arg, const struct sl_answer *a)
{
        struct sl_catchup *c = arg;
        bool unavailable = sl_api_is_unavailable(a);
        const char *cursor = a->ok ? next_cursor(a->result) : NULL;
        int64_t wait = !unavailable ? -1
                                    : readback_retry_ms(c->o.times.wait_ms, a->retry_after_ms,
                                                        &c->scan.tries);
        const json_t *channel;
        size_t i;

        c->scan.asking = false;
        if (c->scan.stale) {
                c->scan.stale = false;
                list_channels(c);
                return;
        }
        if (wait >= 0) {
                timer_start(c->scan.retry, wait);
                return;
        }
        if (!a->ok) {
                c->failed = c->failed || unavailable;
                log_info("cannot list channels for catch-up", LOG_S("adapter", c->o.adapter->name),
                         LOG_S("kind", kinds[c->scan.kind]), LOG_S("why", a->why));
        }
        json_array_foreach(json_object_get(a->result, "channels"), i, channel) {
                const char *id = json_str(channel, "id", NULL);

                if (is_channel(id))
                        readback_want(c->readback, id, NULL, false, c->since);
        }
        c->scan.tries = 0;
        free(c->scan.cursor);
        c->scan.cursor = mem_strdup(cursor);
        if (!cursor)
                c->scan.kind++;
        if (c->scan.kind == COUNT(kinds))
                hold_all(c, false);
        list_channels(c);
}

static void on_room(void *catchup)
{
        struct sl_catchup *c = catchup;

        read_recent(c);
        if (c->scan.waiting)
                list_channels(c);
}

/* ---- gaps ---- */

static void read_all(struct sl_catchup *c)
{
        readback_restart(c->readback);
        recent_chats_drop(c->recent); /* of an earlier gap */
        c->recent = NULL;
        /* until it is known which channels to hold: all that are listed, so also new ones */
        hold_all(c, true);
        c->held_ticks = HELD_TICKS;
        if (c->o.adapter->store) {
                c->recent_before = INT64_MAX;
                read_recent(c);
        }
        c->scan.kind = 0;
        c->scan.tries = 0;
        free(c->scan.cursor);
        c->scan.cursor = NULL;
        c->scan.stale = c->scan.asking;
        timer_stop(c->scan.retry);
        list_channels(c);
        timer_start(c->timer, c->o.times.done_ms);
}

void sl_catchup_begin(struct sl_catchup *c)
{
        int64_t now = c->hooks.now_ms(c->hooks.ctx), from;

        if (c->first_ms == 0) { /* nothing can be missing */
                c->first_ms = now;
                state_file_changed(c->file, true);
                return;
        }
        from = c->missing_ms ? c->missing_ms : c->seen_ms ? c->seen_ms : c->first_ms;
        if (c->o.seconds == 0 || c->o.messages == 0)
                return;
        c->missing_ms = from;
        state_file_changed(c->file, true);
        from -= MARGIN_MS;
        if (from < now - c->o.seconds * 1000)
                from = now - c->o.seconds * 1000;
        if (from < c->first_ms) /* there was no link to miss it */
                from = c->first_ms;
        c->since = (uint64_t)(from > 0 ? from : 0) * 1000;
        c->open = true;
        c->again = c->failed = false;
        log_info("slack link was down; reading back missed messages",
                 LOG_S("adapter", c->o.adapter->name), LOG_I("seconds", (now - from) / 1000));
        read_all(c);
}

bool sl_catchup_is_over(const struct sl_catchup *c)
{
        return !c->open;
}

static void on_timer(void *arg)
{
        struct sl_catchup *c = arg;

        if (c->holds_all && --c->held_ticks == 0)
                hold_all(c, false);
        if (c->again) { /* retry what was given up */
                c->again = false;
                read_all(c);
                return;
        }
        if (readback_load(c->readback) != READBACK_IDLE || c->recent || c->recent_before != 0 ||
            c->scan.kind < COUNT(kinds)) {
                timer_start(c->timer, c->o.times.done_ms);
                return;
        }
        if (readback_take_failed(c->readback) || c->failed) {
                log_info("catch-up incomplete; retrying", LOG_S("adapter", c->o.adapter->name),
                         LOG_I("inMs", c->o.times.again_ms));
                c->failed = false;
                c->again = true;
                timer_start(c->timer, c->o.times.again_ms);
                return;
        }
        c->open = false;
        c->missing_ms = 0;
        state_file_changed(c->file, true);
}

struct sl_catchup *sl_catchup_new(const struct sl_catchup_options *o,
                                  const struct sl_catchup_hooks *hooks)
{
        static const struct readback_ops ops = { .read = read_page,
                                                 .order = message_order,
                                                 .key = message_key,
                                                 .is_to_us = is_to_us,
                                                 .missed = on_missed,
                                                 .room = on_room };
        struct sl_catchup *c = mem_zalloc(sizeof(*c));

        c->o = *o;
        c->hooks = *hooks;
        if (c->o.times.done_ms <= 0)
                c->o.times.done_ms = DONE_MS;
        if (c->o.times.again_ms <= 0)
                c->o.times.again_ms = AGAIN_MS;
        if (c->o.times.save_ms <= 0)
                c->o.times.save_ms = SAVE_MS;
        c->scan.kind = COUNT(kinds);
        c->scan.retry = timer_new(o->adapter->loop, list_channels, c);
        c->timer = timer_new(o->adapter->loop, on_timer, c);
        c->readback = readback_new(&(struct readback_options){ .window = o->window,
                                                               .ops = &ops,
                                                               .ctx = c,
                                                               .messages = o->messages,
                                                               .wait_ms = o->times.wait_ms,
                                                               .hold_ms = o->times.hold_ms });
        open_file(c);
        return c;
}

/* Releases nothing: held events come again after the restart. */
void sl_catchup_free(struct sl_catchup *c)
{
        if (!c)
                return;
        recent_chats_drop(c->recent);
        readback_free(c->readback);
        timer_free(c->scan.retry);
        timer_free(c->timer);
        state_file_close(c->file);
        free(c->scan.cursor);
        free(c);
}

/* ---- the adapter ---- */

static void ask(void *slack, const struct sl_request *q, sl_answer_fn *done, void *arg)
{
        sl_api_ask(((struct slack *)slack)->api, q, done, arg);
}

static int64_t now_ms(void *slack)
{
        return sl_api_now_ms(((struct slack *)slack)->api);
}

static void missed(void *slack, const char *channel, json_t *message)
{
        sl_intake_missed(slack, channel, message);
}

void sl_catchup_open(struct slack *sl)
{
        sl->catchup = sl_catchup_new(
                &(struct sl_catchup_options){ .adapter = sl->adapter,
                                              .window = &sl->intake->window,
                                              .team = sl->self.team,
                                              .user = sl->self.user,
                                              .bot = sl->self.bot,
                                              .messages = sl->conf->catch_up_messages,
                                              .seconds = sl->conf->catch_up_seconds },
                &(struct sl_catchup_hooks){
                        .ctx = sl, .ask = ask, .now_ms = now_ms, .missed = missed });
}

void sl_catchup_close(struct slack *sl)
{
        sl_catchup_free(sl->catchup);
        sl->catchup = NULL;
}

void sl_catchup_start(struct slack *sl)
{
        if (sl->catchup)
                sl_catchup_begin(sl->catchup);
}

void sl_catchup_seen(struct slack *sl, const char *ts)
{
        if (sl->catchup)
                sl_catchup_note(sl->catchup, ts);
}
