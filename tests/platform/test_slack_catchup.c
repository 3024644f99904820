/* Catch-up on Slack: what arrived while the link was down is read back, once and in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "base/json.h"
#include "fake_road.h"
#include "platform/slack/sl_catchup.h"
#include "platform/slack/sl_ts.h"
#include "rows/conversation_row.h"
#include "rows/journal_row.h"
#include "rows/schema.h"

#define STEPS 200000

struct fake_call {
        struct rig *g;
        char *method;
        json_t *args;
        sl_answer_fn *done;
        void *arg;
        struct fake_call *next;
};

struct rig {
        char *dir;
        struct loop *loop;
        struct adapter adapter;
        struct intake window;
        struct store *store; /* NULL: none */
        struct sl_catchup *catchup;
        struct sl_catchup_options o;
        int64_t now_ms;
        /* Slack: messages of "C1", oldest first, replies of "C1:TS" */
        json_t *history, *members; /* members: kind → ids */
        unsigned page;             /* the most a page has */
        const char *failing;       /* a method that fails with this error */
        const char *error;
        int64_t retry_after_ms;
        unsigned failures; /* so many more */
        bool silent;       /* answers come with answer_all */
        struct fake_call *calls;
        char asked[4000]; /* "METHOD CHANNEL[/THREAD] " of each call */
        unsigned call_count;
        /* the intake */
        char missed[4000]; /* "CHANNEL:TS " of each */
        unsigned missed_count;
};

/* The ts of `seconds` before now, with a number to tell messages apart. */
static const char *ts_at(const struct rig *g, int64_t seconds, unsigned n)
{
        static char texts[8][SL_TS_SIZE];
        static unsigned next;

        return sl_ts_write((g->now_ms - seconds * 1000) * 1000 + n, texts[next++ % 8]);
}

/* ---- Slack ---- */

static json_t *list_of(struct rig *g, const char *key)
{
        json_t *list = json_object_get(g->history, key);

        if (!list) {
                list = json_array();
                json_object_set_new(g->history, key, list);
        }
        return list;
}

static json_t *say(struct rig *g, const char *channel, const char *ts, const char *text)
{
        json_t *m = json_pack("{s:s, s:s, s:s, s:s}", "type", "message", "user", "U5", "ts", ts,
                              "text", text);

        json_array_append_new(list_of(g, channel), m);
        return m;
}

static void reply(struct rig *g, const char *channel, json_t *root, const char *ts)
{
        char *key = mem_printf("%s:%s", channel, json_str(root, "ts", ""));
        json_t *m = say(g, key, ts, "a reply");

        json_object_set_new(m, "thread_ts", json_string(json_str(root, "ts", "")));
        json_object_set_new(root, "latest_reply", json_string(ts));
        json_object_set_new(root, "reply_count", json_integer(1));
        free(key);
}

static void joins(struct rig *g, const char *kind, const char *id)
{
        json_t *list = json_object_get(g->members, kind);

        if (!list)
                json_object_set_new(g->members, kind, list = json_array());
        json_array_append_new(list, json_pack("{s:s}", "id", id));
}

static unsigned page_of(const struct rig *g, const json_t *args)
{
        unsigned limit = (unsigned)json_int(args, "limit", 100);

        return limit < g->page ? limit : g->page;
}

/* Newest first, before `latest`. */
static json_t *history_page(struct rig *g, const json_t *args)
{
        const json_t *list = json_object_get(g->history, json_str(args, "channel", ""));
        int64_t latest = sl_ts_us(json_str(args, "latest", NULL));
        json_t *out = json_array();
        size_t i = json_array_size(list);

        while (i > 0 && latest > 0 &&
               sl_ts_us(json_str(json_array_get(list, i - 1), "ts", "")) >= latest)
                i--;
        while (i > 0 && json_array_size(out) < page_of(g, args))
                json_array_append(out, json_array_get(list, --i));
        return json_pack("{s:b, s:o, s:b}", "ok", 1, "messages", out, "has_more", i > 0);
}

/* The first message, then replies after `oldest`; the cursor is their number. */
static json_t *replies_page(struct rig *g, const json_t *args)
{
        const char *channel = json_str(args, "channel", ""), *ts = json_str(args, "ts", "");
        char *key = mem_printf("%s:%s", channel, ts);
        const json_t *list = json_object_get(g->history, key);
        size_t i = strtoul(json_str(args, "cursor", "0"), NULL, 10);
        char next[24] = "";
        json_t *out = json_array();

        if (i == 0)
                json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "ts", ts, "user", "U5",
                                                     "text", "the first"));
        while (i < json_array_size(list) && sl_ts_us(json_str(json_array_get(list, i), "ts", "")) <=
                                                    sl_ts_us(json_str(args, "oldest", NULL)))
                i++;
        while (i < json_array_size(list) && json_array_size(out) < page_of(g, args))
                json_array_append(out, json_array_get(list, i++));
        if (i < json_array_size(list))
                snprintf(next, sizeof(next), "%zu", i);
        free(key);
        return json_pack("{s:b, s:o, s:b, s:{s:s}}", "ok", 1, "messages", out, "has_more",
                         next[0] != '\0', "response_metadata", "next_cursor", next);
}

static json_t *members_page(struct rig *g, const json_t *args)
{
        const json_t *list = json_object_get(g->members, json_str(args, "types", ""));
        size_t i = strtoul(json_str(args, "cursor", "0"), NULL, 10);
        char next[24] = "";
        json_t *out = json_array();

        while (i < json_array_size(list) && json_array_size(out) < page_of(g, args))
                json_array_append(out, json_array_get(list, i++));
        if (i < json_array_size(list))
                snprintf(next, sizeof(next), "%zu", i);
        return json_pack("{s:b, s:o, s:{s:s}}", "ok", 1, "channels", out, "response_metadata",
                         "next_cursor", next);
}

static void answer(struct fake_call *call)
{
        struct rig *g = call->g;
        struct sl_answer a = { .ok = true,
                               .status = 200,
                               .reach = HTTP_ANSWERED,
                               .why = "as scripted",
                               .retry_after_ms = -1 };
        json_t *result = NULL;

        if (g->failing && strcmp(g->failing, call->method) == 0 && g->failures > 0) {
                g->failures--;
                a.ok = false;
                a.error = g->error;
                a.retry_after_ms = g->retry_after_ms;
                a.status = strcmp(g->error, "ratelimited") == 0 ? 429 : 200;
        } else if (strcmp(call->method, "users.conversations") == 0) {
                result = members_page(g, call->args);
        } else if (strcmp(call->method, "conversations.history") == 0) {
                result = history_page(g, call->args);
        } else {
                result = replies_page(g, call->args);
        }
        a.result = result;
        if (g->catchup)
                call->done(call->arg, &a);
        json_decref(result);
        json_decref(call->args);
        free(call->method);
        free(call);
}

static void answer_deferred(void *arg)
{
        answer(arg);
}

static void answer_all(struct rig *g)
{
        struct fake_call *call;

        while ((call = g->calls)) {
                g->calls = call->next;
                answer(call);
        }
}

/* ---- hooks ---- */

static void on_ask(void *ctx, const struct sl_request *q, sl_answer_fn *done, void *arg)
{
        struct rig *g = ctx;
        struct fake_call *call = mem_zalloc(sizeof(*call)), **at = &g->calls;
        size_t n = strlen(g->asked);

        call->g = g;
        call->method = mem_strdup(q->method);
        call->args = json_deep_copy(q->args);
        call->done = done;
        call->arg = arg;
        g->call_count++;
        snprintf(g->asked + n, sizeof(g->asked) - n, "%s %s%s%s ", strchr(q->method, '.') + 1,
                 json_str(q->args, "channel", json_str(q->args, "types", "")),
                 json_str(q->args, "ts", NULL) ? "/" : "", json_str(q->args, "ts", ""));
        if (!g->silent) {
                loop_defer(g->loop, answer_deferred, call);
                return;
        }
        while (*at)
                at = &(*at)->next;
        *at = call;
}

static int64_t on_now(void *ctx)
{
        return ((struct rig *)ctx)->now_ms;
}

static void on_missed(void *ctx, const char *channel, json_t *message)
{
        struct rig *g = ctx;
        size_t n = strlen(g->missed);

        g->missed_count++;
        snprintf(g->missed + n, sizeof(g->missed) - n, "%s:%s ", channel,
                 json_str(message, "text", ""));
        sl_catchup_note(g->catchup, json_str(message, "ts", ""));
}

static void on_done(struct intake_update *u, bool stored)
{
        (void)u, (void)stored;
}

static void on_free(struct intake_update *u)
{
        free(u);
}

static const struct intake_handlers intake_rows = { .done = on_done, .free = on_free };

/* ---- the rig ---- */

static void open_it(struct rig *g)
{
        g->catchup = sl_catchup_new(
                &g->o, &(struct sl_catchup_hooks){
                               .ctx = g, .ask = on_ask, .now_ms = on_now, .missed = on_missed });
}

static void close_it(struct rig *g)
{
        sl_catchup_free(g->catchup);
        g->catchup = NULL;
        answer_all(g);
        for (int i = 0; i < 20; i++) /* what was deferred */
                loop_step(g->loop, false);
}

static int set_up(void **state)
{
        static const struct platform_ops ops = { .name = "slack" };
        struct rig *g = mem_zalloc(sizeof(*g));
        char *folder;

        fake_road_reset();
        g->dir = scratch_new();
        folder = scratch_path(g->dir, "state");
        assert_int_equal(mkdir(folder, 0700), 0);
        free(folder);
        g->loop = loop_new();
        g->adapter = (struct adapter){
                .ops = &ops, .name = "sl", .loop = g->loop, .road = FAKE_ROAD, .dir = g->dir
        };
        intake_open(&g->window, &g->adapter, &intake_rows);
        g->now_ms = clock_wall_ms();
        g->page = 100;
        g->retry_after_ms = -1;
        g->history = json_object();
        g->members = json_object();
        g->o = (struct sl_catchup_options){
                .adapter = &g->adapter,
                .window = &g->window,
                .team = "T1",
                .user = "U1",
                .bot = "B1",
                .messages = 100,
                .seconds = 3600,
                .times = { .wait_ms = 1, .done_ms = 5, .again_ms = 5, .save_ms = 1 }
        };
        open_it(g);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        close_it(g);
        intake_close(&g->window);
        if (g->store)
                store_close(g->store);
        loop_free(g->loop);
        json_decref(g->history);
        json_decref(g->members);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static void run(struct rig *g)
{
        for (int i = 0; i < STEPS && !sl_catchup_is_over(g->catchup); i++)
                loop_step(g->loop, true);
        assert_true(sl_catchup_is_over(g->catchup));
}

/* The first link, an hour and a half ago, with a message half an hour ago. */
static void linked_before(struct rig *g)
{
        int64_t now = g->now_ms;

        g->now_ms = now - 5400000;
        sl_catchup_begin(g->catchup);
        g->now_ms = now;
        sl_catchup_note(g->catchup, ts_at(g, 1800, 0));
}

static void begin_silently(struct rig *g)
{
        g->silent = true;
        sl_catchup_begin(g->catchup);
}

/* ---- tests ---- */

static void the_first_link_reads_nothing(void **state)
{
        struct rig *g = *state;

        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 10, 0), "before");
        sl_catchup_begin(g->catchup);
        assert_true(sl_catchup_is_over(g->catchup));
        assert_int_equal(g->call_count, 0);
}

static void missed_messages_of_all_channels_come_oldest_first(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        joins(g, "mpim", "G1");
        joins(g, "private_channel", "C1");
        joins(g, "public_channel", "C2");
        say(g, "D1", ts_at(g, 2500, 0), "old");
        say(g, "D1", ts_at(g, 1000, 1), "one");
        say(g, "D1", ts_at(g, 900, 2), "two");
        say(g, "G1", ts_at(g, 800, 3), "three");
        say(g, "C1", ts_at(g, 700, 4), "four");
        say(g, "C2", ts_at(g, 600, 5), "five");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_int_equal(g->missed_count, 5);
        assert_true(strstr(g->missed, "D1:one ") < strstr(g->missed, "D1:two "));
        assert_non_null(strstr(g->missed, "D1:one "));
        assert_non_null(strstr(g->missed, "G1:three "));
        assert_non_null(strstr(g->missed, "C1:four "));
        assert_non_null(strstr(g->missed, "C2:five "));
}

/* An event that Slack repeats may be older than the newest one that is stored. */
static void reading_begins_before_the_newest_stored_message(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 1900, 0), "undelivered");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:undelivered ");
}

static void messages_beyond_the_age_limit_are_skipped(void **state)
{
        struct rig *g = *state;

        g->o.seconds = 600;
        close_it(g);
        open_it(g);
        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 700, 0), "old");
        say(g, "D1", ts_at(g, 500, 1), "young");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:young ");
}

static void nothing_is_read_from_before_the_first_link(void **state)
{
        struct rig *g = *state;
        int64_t now = g->now_ms;

        g->now_ms = now - 600000;
        sl_catchup_begin(g->catchup);
        g->now_ms = now;
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 700, 0), "old");
        say(g, "D1", ts_at(g, 500, 1), "missed");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:missed ");
}

static void catch_up_can_be_switched_off(void **state)
{
        struct rig *g = *state;

        g->o.seconds = 0;
        close_it(g);
        open_it(g);
        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 500, 1), "missed");
        sl_catchup_begin(g->catchup);
        assert_true(sl_catchup_is_over(g->catchup));
        assert_int_equal(g->call_count, 0);
}

static void a_channel_is_read_page_by_page_and_its_oldest_are_skipped(void **state)
{
        struct rig *g = *state;

        g->o.messages = 20;
        close_it(g);
        open_it(g);
        linked_before(g);
        g->page = 15; /* as for some apps */
        joins(g, "public_channel", "C1");
        say(g, "C1", ts_at(g, 1700, 0), "<@U1> help");
        say(g, "C1", ts_at(g, 1600, 0), "lost");
        for (unsigned i = 0; i < 20; i++) {
                char text[20];

                snprintf(text, sizeof(text), "n%u", i);
                say(g, "C1", ts_at(g, 1000 - (int64_t)i, i), text);
        }
        sl_catchup_begin(g->catchup);
        run(g);
        assert_int_equal(g->missed_count, 21); /* the mention beyond the limit, too */
        assert_int_equal(strncmp(g->missed, "C1:<@U1> help C1:n0 C1:n1 ", 26), 0);
        assert_non_null(strstr(g->missed, "C1:n19 "));
        assert_null(strstr(g->missed, "lost"));
}

static void own_messages_are_left_out(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        json_object_set_new(say(g, "D1", ts_at(g, 900, 0), "mine"), "user", json_string("U1"));
        json_object_set_new(say(g, "D1", ts_at(g, 800, 0), "too"), "bot_id", json_string("B1"));
        say(g, "D1", ts_at(g, 700, 0), "theirs");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:theirs ");
}

static void missed_replies_of_old_and_new_threads_are_read(void **state)
{
        struct rig *g = *state;
        json_t *old, *new, *quiet;

        linked_before(g);
        joins(g, "public_channel", "C1");
        quiet = say(g, "C1", ts_at(g, 90000, 0), "quiet");
        reply(g, "C1", quiet, ts_at(g, 80000, 0));
        old = say(g, "C1", ts_at(g, 50000, 0), "root");
        reply(g, "C1", old, ts_at(g, 40000, 0));
        reply(g, "C1", old, ts_at(g, 900, 0));
        new = say(g, "C1", ts_at(g, 800, 0), "new");
        reply(g, "C1", new, ts_at(g, 700, 0));
        sl_catchup_begin(g->catchup);
        run(g);
        assert_int_equal(g->missed_count, 3); /* the new root once, and one reply of each */
        assert_non_null(strstr(g->missed, "C1:new "));
        assert_null(strstr(g->missed, "C1:root "));
        assert_null(strstr(g->asked, json_str(quiet, "ts", "")));
}

static void a_long_thread_is_read_by_its_cursor(void **state)
{
        struct rig *g = *state;
        json_t *root;

        g->o.messages = 20;
        close_it(g);
        open_it(g);
        linked_before(g);
        g->page = 15;
        joins(g, "public_channel", "C1");
        root = say(g, "C1", ts_at(g, 50000, 0), "root");
        for (unsigned i = 0; i < 40; i++) {
                char text[20], *key = mem_printf("C1:%s", json_str(root, "ts", ""));

                reply(g, "C1", root, ts_at(g, 1000 - (int64_t)i, i));
                snprintf(text, sizeof(text), "r%u", i);
                json_object_set_new(json_array_get(list_of(g, key), i), "text", json_string(text));
                free(key);
        }
        sl_catchup_begin(g->catchup);
        run(g);
        assert_int_equal(g->missed_count, 20);
        assert_int_equal(strncmp(g->missed, "C1:r20 C1:r21 ", 14), 0); /* the newest, in order */
        assert_non_null(strstr(g->missed, "C1:r39 "));
}

static int fill_store(struct store_tx *tx, void *arg, struct error *err)
{
        const struct rig *g = arg;
        const struct conversation_key in_thread = {
                .lane = "a",
                .chat = { .adapter = "sl", .channel = "C9", .thread = ts_at(g, 90000, 7) },
                .agent = "demo"
        };
        char *key = mem_printf("C9:%s", ts_at(g, 800, 1));
        int64_t id, reset, seq;
        int rc = conversation_row_touch(tx, &in_thread, clock_wall_ms(), &id, &reset, err) < 0 ||
                                 journal_row_insert(
                                         tx,
                                         &(struct journal_row){ .type = "message.received",
                                                                .adapter = "sl",
                                                                .channel = "C9",
                                                                .key = key,
                                                                .payload = "{}" },
                                         &seq, err) < 0
                         ? -1
                         : 0;

        free(key);
        return rc;
}

/* Also where the thread is too old to be seen, or the app is not listed as a member. */
static void channels_and_threads_of_recent_conversations_are_read_first(void **state)
{
        struct rig *g = *state;
        struct error err = { 0 };
        char *key;

        g->store = store_open(g->loop,
                              &(struct store_options){
                                      .url = "sqlite", .dir = g->dir, .migrations = schema_steps },
                              &err);
        assert_non_null(g->store);
        assert_int_equal(store_write_now(g->store, fill_store, g, &err), 0);
        g->adapter.store = g->store;
        linked_before(g);
        joins(g, "im", "D1");
        say(g, "C9", ts_at(g, 800, 1), "known");
        say(g, "C9", ts_at(g, 700, 1), "missed");
        key = mem_printf("C9:%s", ts_at(g, 90000, 7));
        say(g, key, ts_at(g, 600, 1), "reply");
        free(key);
        say(g, "D1", ts_at(g, 500, 1), "dm");
        sl_catchup_begin(g->catchup);
        run(g);
        assert_int_equal(g->missed_count, 3); /* not what the journal has */
        assert_non_null(strstr(g->missed, "C9:missed "));
        assert_non_null(strstr(g->missed, "C9:reply "));
        assert_non_null(strstr(g->missed, "D1:dm "));
        assert_null(strstr(g->missed, "known"));
        assert_true(strstr(g->asked, "history C9") < strstr(g->asked, "history D1"));
        close_it(g);
}

static void a_rate_limit_is_obeyed_and_is_no_failure(void **state)
{
        struct rig *g = *state;
        int64_t begun = clock_mono_ms();

        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "missed");
        g->failing = "conversations.history";
        g->error = "ratelimited";
        g->retry_after_ms = 15;
        g->failures = 12; /* more than attempts at an unavailable Slack */
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:missed ");
        assert_true(clock_mono_ms() - begun >= 12 * 14);
}

static void live_events_wait_for_a_limited_time(void **state)
{
        struct rig *g = *state;

        g->o.times.hold_ms = 30;
        close_it(g);
        open_it(g);
        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "missed");
        g->silent = true;
        sl_catchup_begin(g->catchup);
        g->silent = false;
        answer_all(g); /* the list of DMs */
        for (int i = 0; i < STEPS && !map_get(&g->window.held, "D1"); i++)
                loop_step(g->loop, true);
        g->failing = "conversations.history";
        g->error = "ratelimited";
        g->retry_after_ms = 60000;
        g->failures = 1;
        for (int i = 0; i < STEPS && map_get(&g->window.held, "D1"); i++)
                loop_step(g->loop, true);
        assert_null(map_get(&g->window.held, "D1"));
        assert_false(sl_catchup_is_over(g->catchup));
}

/* A first direct message may be missing in a channel that only the list names. */
static void all_live_events_wait_until_the_channels_are_listed(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        begin_silently(g);
        assert_non_null(map_get(&g->window.held, INTAKE_EVERYWHERE));
        g->silent = false;
        answer_all(g);
        run(g);
        assert_null(map_get(&g->window.held, INTAKE_EVERYWHERE));
}

static void an_unavailable_slack_is_asked_again_later(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "missed");
        g->o.times.wait_ms = 1;
        g->failing = "users.conversations";
        g->error = "internal_error";
        g->failures = 25;
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:missed ");
}

static void a_kind_that_may_not_be_listed_does_not_stop_the_others(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        joins(g, "public_channel", "C1");
        say(g, "D1", ts_at(g, 900, 0), "hidden");
        say(g, "C1", ts_at(g, 900, 0), "missed");
        g->failing = "users.conversations";
        g->error = "missing_scope";
        g->failures = 1;
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "C1:missed ");
}

static void a_channel_that_cannot_be_read_does_not_stop_the_others(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        joins(g, "im", "D2");
        say(g, "D1", ts_at(g, 900, 0), "hidden");
        say(g, "D2", ts_at(g, 900, 0), "missed");
        g->failing = "conversations.history";
        g->error = "channel_not_found";
        g->failures = 1;
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D2:missed ");
}

static void a_gap_that_was_not_read_is_read_after_a_restart(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "missed");
        begin_silently(g);
        sl_catchup_note(g->catchup, ts_at(g, 1, 0)); /* a live event */
        close_it(g);
        g->silent = false;
        g->now_ms += 1000;
        open_it(g);
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "D1:missed ");
        close_it(g); /* now it is read: the next link begins with the live event */
        g->now_ms += 1800000;
        g->missed[0] = '\0';
        open_it(g);
        sl_catchup_begin(g->catchup);
        run(g);
        assert_string_equal(g->missed, "");
}

static void a_second_gap_reads_every_channel_again(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "one");
        sl_catchup_begin(g->catchup);
        run(g);
        say(g, "D1", ts_at(g, 5, 0), "two");
        begin_silently(g);
        sl_catchup_begin(g->catchup); /* while the first is being asked about */
        g->silent = false;
        answer_all(g);
        run(g);
        assert_non_null(strstr(g->missed, "D1:two "));
}

static void another_workspace_has_its_own_gap(void **state)
{
        struct rig *g = *state;

        linked_before(g);
        close_it(g);
        g->o.team = "T2";
        open_it(g);
        joins(g, "im", "D1");
        say(g, "D1", ts_at(g, 900, 0), "theirs");
        sl_catchup_begin(g->catchup);
        assert_true(sl_catchup_is_over(g->catchup));
        assert_int_equal(g->call_count, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(the_first_link_reads_nothing),
                T(missed_messages_of_all_channels_come_oldest_first),
                T(reading_begins_before_the_newest_stored_message),
                T(messages_beyond_the_age_limit_are_skipped),
                T(nothing_is_read_from_before_the_first_link),
                T(catch_up_can_be_switched_off),
                T(a_channel_is_read_page_by_page_and_its_oldest_are_skipped),
                T(own_messages_are_left_out),
                T(missed_replies_of_old_and_new_threads_are_read),
                T(a_long_thread_is_read_by_its_cursor),
                T(channels_and_threads_of_recent_conversations_are_read_first),
                T(a_rate_limit_is_obeyed_and_is_no_failure),
                T(live_events_wait_for_a_limited_time),
                T(all_live_events_wait_until_the_channels_are_listed),
                T(an_unavailable_slack_is_asked_again_later),
                T(a_kind_that_may_not_be_listed_does_not_stop_the_others),
                T(a_channel_that_cannot_be_read_does_not_stop_the_others),
                T(a_gap_that_was_not_read_is_read_after_a_restart),
                T(a_second_gap_reads_every_channel_again),
                T(another_workspace_has_its_own_gap),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
