/* What people see of a session in its chat: messages, edits, a thread, whatever happens meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/gate.h"
#include "../lib/patience.h"
#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "remote/session_intake.h"
#include "remote/session_link.h"
#include "remote/session_view.h"
#include "rows/person_row.h"
#include "rows/session_view_row.h"

#define ADAPTER "cards"
#define LATE_MS 20000 /* a platform that takes so long is slow */

struct world {
        struct rig *g;
        struct remote *r;
        struct remote_conf conf;
        unsigned stored, known; /* answers of the intake */
        unsigned told;          /* of g->sent that a test has looked at */
};

/* ---- a daemon with sessions ---- */

static bool adapter_at(void *arg, size_t i, const char **name, const char **platform)
{
        (void)arg;
        *name = ADAPTER;
        *platform = "discord";
        return i == 0;
}

static void open_remote(struct world *w)
{
        struct remote_env env = { .loop = w->g->loop,
                                  .store = w->g->store,
                                  .bus = w->g->bus,
                                  .road = w->g->road,
                                  .adapter_at = adapter_at };
        struct error err = { 0 };

        w->r = remote_open(&env, &w->conf, &err);
        assert_non_null(w->r);
        remote_start(w->r);
}

static int set_up(void **state)
{
        static char adapter[] = ADAPTER, channel[] = "c";
        struct world *w = mem_zalloc(sizeof(*w));

        w->g = rig_new();
        w->g->auto_send = true;
        w->g->threads = CHAT_THREADS_AT_MESSAGE;
        w->conf = (struct remote_conf){ .command_seconds = 3600,
                                        .archive_seconds = 86400,
                                        .active = 1000,
                                        .queued = 50,
                                        .adapter = adapter,
                                        .channel = channel,
                                        .threads = true,
                                        .update_ms = 20 };
        open_remote(w);
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        remote_quiesce(w->r);
        remote_close(w->r);
        rig_free(w->g);
        free(w);
        return 0;
}

/* As after a kill: what was under way is forgotten. */
static void restart(struct world *w)
{
        remote_quiesce(w->r);
        remote_close(w->r);
        rig_restart(w->g);
        open_remote(w);
}

/* ---- programs ---- */

static void on_stored(void *arg, const struct session_receipt *receipt, const struct error *err)
{
        struct world *w = arg;

        if (err)
                fail_msg("not stored: %s", err->text);
        w->stored += (unsigned)receipt->accepted;
        w->known += (unsigned)receipt->duplicates;
}

/* Events as JSON, a list or one; returns at once. */
static void post(struct world *w, const char *events)
{
        const struct session_caller by = { .owner = 0, .all = true };
        json_t *body = json_loads(events, 0, NULL);
        struct session_events read;
        struct error err;

        assert_non_null(body);
        if (session_events_read(body, &read, &err) < 0)
                fail_msg("%s", err.text);
        json_decref(body);
        session_intake(w->r, &by, &read, on_stored, w);
}

static void report(struct world *w, const char *session, const char *type, const char *members)
{
        char *event = mem_printf("{\"session_id\":\"%s\",\"event_type\":\"%s\"%s%s}", session, type,
                                 *members ? "," : "", members);

        post(w, event);
        free(event);
}

#define START "\"metadata\":{\"program\":\"pi\",\"title\":\"fix it\"}"
#define CALL(n) \
        "\"tool_name\":\"bash\",\"content\":\"make\",\"metadata\":{\"toolCallId\":\"" n "\"}"
#define DONE(n) "\"tool_name\":\"bash\",\"metadata\":{\"toolCallId\":\"" n "\"}"
#define ASK(id)                                                                           \
        "\"tool_name\":\"bash\",\"content\":\"rm x\",\"metadata\":{\"approval_id\":\"" id \
        "\",\"timeoutMs\":300000}"
#define ANSWER(id) \
        "\"metadata\":{\"approval_id\":\"" id "\",\"decision\":\"allow\",\"by\":\"desk\"}"

/* Of a response: tokens, and what else its metadata has. */
#define USAGE(n, more) "\"metadata\":{\"usage\":{\"totalTokens\":" n ",\"cost\":0.25}" more "}"

/* In a list of events. */
#define EVENT(type, members) "{\"session_id\":\"s\",\"event_type\":\"" type "\"," members "}"

/* ---- what is seen ---- */

/* Everything was shown: nothing is under way or waits. */
static void settle(struct world *w)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        struct remote_stats shown;
        struct road_stats s;

        do {
                if (clock_mono_ms() > deadline)
                        fail_msg("views are not done: %zu", shown.views);
                rig_run_for(w->g, 5);
                remote_get_stats(w->r, &shown);
                road_stats(w->g->road, &s);
        } while (shown.views > 0 || w->r->writes > 0 || s.deliveries_open > 0);
}

static size_t behind(const struct world *w)
{
        struct remote_stats s;

        remote_get_stats(w->r, &s);
        return s.views;
}

/* What was sent since the last call, a line for each: "send[t1] 🛠️ Tool Execution: bash". */
static const char *seen(struct world *w)
{
        static char text[20000];

        settle(w);
        text[0] = '\0';
        for (; w->told < w->g->sent_count; w->told++) {
                const struct rig_sent *s = &w->g->sent[w->told % RIG_MAX];

                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s%s %s%s%s\n",
                         s->kind, *s->thread ? "[" : "", s->thread, *s->thread ? "]" : "", s->text,
                         *s->text ? " " : "", *s->title ? s->title : s->name);
        }
        return text;
}

#define ASSERT_SEEN(w, expected) assert_string_equal(seen(w), expected)
#define ASSERT_HAS(text, part)                                            \
        do {                                                              \
                if (!strstr((text), (part)))                              \
                        fail_msg("expected '%s' in: %s", (part), (text)); \
        } while (0)

static const struct rig_sent *last(const struct world *w)
{
        return &w->g->sent[(w->g->sent_count - 1) % RIG_MAX];
}

/* What the first message says. */
static const char *root_payload(struct world *w)
{
        return rig_text(w->g, "payload FROM deliveries WHERE payload LIKE '%💻%'"
                              " ORDER BY id DESC LIMIT 1");
}

static void a_chat_is_behind_from_the_answer_to_the_program_on(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        rig_until(w->g, &w->stored, 1);
        assert_int_equal(behind(w), 1);
        restart(w);
        assert_int_equal(behind(w), 1);
        rig_until_count(w->g, "deliveries WHERE state = 'sent'", 3);
        settle(w);
        assert_int_equal(behind(w), 0);
}

/* What the newest message says. */
static const char *newest_payload(struct world *w)
{
        return rig_text(w->g, "payload FROM deliveries WHERE kind = 'send' ORDER BY id DESC");
}

static struct session_view *the_view(struct world *w)
{
        const char *key;
        void *value = NULL;
        size_t i = 0;

        return map_each(&w->r->views, &i, &key, &value) ? value : NULL;
}

/* ---- threads ---- */

static void a_session_gets_a_thread_at_its_first_message(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_SEEN(w, "send 💻 fix it\n"
                       "thread fix it (ses-1)\n"
                       "send[p2] 🛠️ Tool Execution: bash\n");
        assert_string_equal(rig_text(w->g, "adapter || channel || thread FROM sessions"),
                            "cardscp2");
        assert_int_equal(
                session_index_find(w->r, &(struct chat_key){ ADAPTER, "c", "p2" }, NULL, NULL), 1);
        assert_int_equal(
                session_index_find(w->r, &(struct chat_key){ ADAPTER, "c", NULL }, NULL, NULL), 0);
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'session.chat.linked'"), 1);
}

static void a_forum_gets_a_topic_first(void **state)
{
        struct world *w = *state;

        w->g->threads = CHAT_THREADS_BY_NAME;
        report(w, "s", "session_start", START);
        ASSERT_SEEN(w, "thread fix it (ses-1)\nsend[p1] 💻 fix it\n");
        report(w, "s", "turn_end", "\"content\":\"done\"");
        ASSERT_HAS(seen(w), "send[p1] ✅ Turn Completed\n");
}

static void without_threads_a_reply_says_which_session_is_meant(void **state)
{
        struct world *w = *state;
        struct chat_key chat = { ADAPTER, "c", NULL };

        w->g->threads = CHAT_NO_THREADS;
        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_SEEN(w, "send 💻 fix it\nsend 🛠️ Tool Execution: bash\n");
        report(w, "t", "session_start", START);
        ASSERT_SEEN(w, "send 💻 fix it\n");
        /* the chat itself belongs to nobody */
        assert_int_equal(session_index_find(w->r, &chat, NULL, NULL), 0);
        assert_int_equal(session_index_find(w->r, &chat, "p1", NULL), 1);
        assert_int_equal(session_index_find(w->r, &chat, "p2", NULL), 1);
        assert_int_equal(session_index_find(w->r, &chat, "p3", NULL), 2);
        restart(w);
        assert_int_equal(session_index_find(w->r, &chat, "p2", NULL), 1);
        for (int i = 0; i < 2; i++) { /* it goes on, at once and after a restart */
                report(w, "s", "session_end", "");
                settle(w);
                assert_int_equal(session_index_find(w->r, &chat, "p2", NULL), 0);
                if (i == 1)
                        restart(w);
                report(w, "s", "session_start", START);
                settle(w);
                assert_int_equal(session_index_find(w->r, &chat, "p2", NULL), 1);
                assert_int_equal(session_index_find(w->r, &chat, "p1", NULL), 1);
        }
        assert_string_equal(rig_list(w->g, "message FROM session_messages WHERE root = 1"),
                            "p1, p3");
}

static void a_kill_before_the_messages_are_known_forgets_none(void **state)
{
        struct world *w = *state;
        struct chat_key chat = { ADAPTER, "c", NULL };
        const char *owner;
        char id[32];

        w->g->threads = CHAT_NO_THREADS;
        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        settle(w);
        post(w, "[" EVENT("error", "\"content\":\"x\"") "," EVENT(
                        "turn_end", "\"content\":\"x\"") "," EVENT("tool_call", CALL("1")) "]");
        ASSERT_SEEN(w, "send 💻 fix it\nsend ✋ Approval needed: bash\nedit 💻 fix it\n"
                       "send ❌ Error\nsend ✅ Turn Completed\n"
                       "send 🛠️ Tool Execution: bash\n");
        rig_update(w->g, "session_messages SET message = 'x' || id, created_ms = ?1", 1, 0);
        restart(w);
        settle(w);
        for (unsigned i = 0; i < w->g->sent_count; i++) {
                snprintf(id, sizeof(id), "p%lld", (long long)w->g->sent[i].delivery);
                if (strcmp(w->g->sent[i].kind, "send") == 0 &&
                    session_index_find(w->r, &chat, id, &owner) != 1)
                        fail_msg("'%s' is not known", w->g->sent[i].title);
        }
        ASSERT_SEEN(w, "");
}

static void threads_may_be_turned_off(void **state)
{
        struct world *w = *state;

        w->r->conf.threads = false;
        report(w, "s", "session_start", START);
        ASSERT_SEEN(w, "send 💻 fix it\n");
}

static void a_thread_that_cannot_begin_leaves_the_channel(void **state)
{
        struct world *w = *state;

        w->g->auto_send = false;
        report(w, "s", "session_start", START);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(w->g, &w->g->sent_count, 2);
        w->g->auto_send = true;
        rig_result(w->g, 1, SEND_REJECTED, ERR_REFUSED, -1);
        settle(w);
        seen(w);
        report(w, "s", "turn_end", "\"content\":\"x\"");
        ASSERT_HAS(seen(w), "send ✅ Turn Completed\n");
}

static void a_topic_that_is_refused_leaves_the_channel(void **state)
{
        struct world *w = *state;

        w->g->auto_send = false;
        w->g->threads = CHAT_THREADS_BY_NAME;
        report(w, "s", "session_start", START);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until(w->g, &w->g->sent_count, 2);
        w->g->auto_send = true;
        rig_result(w->g, 1, SEND_DONE, ERR_NONE, -1);
        ASSERT_SEEN(w, "thread fix it (ses-1)\nsend 💻 fix it\n");
        ASSERT_HAS(root_payload(w), "Reply to its messages");
        restart(w);
        report(w, "s", "turn_end", "\"content\":\"x\"");
        ASSERT_HAS(seen(w), "send ✅ Turn Completed\n");
        assert_int_equal(rig_count(w->g, "deliveries WHERE kind = 'thread'"), 1);
}

static int link_elsewhere(struct store_tx *tx, void *arg, struct error *err)
{
        struct session_row *row;
        int rc = session_row_get(tx, 1, &row, err);

        if (rc == 1)
                rc = session_link_write(tx, NULL, row, arg, NULL, clock_wall_ms(), err);
        free(row);
        return rc;
}

/* As the API does it. */
static void link_to(struct world *w, const char *channel, const char *thread)
{
        struct chat_key chat = { ADAPTER, channel, thread };
        struct session_row row = { .id = 1,
                                   .adapter = ADAPTER,
                                   .channel = channel,
                                   .thread = thread,
                                   .trace = mem_strdup(
                                           rig_text(w->g, "trace FROM sessions WHERE id = 1")) };

        assert_int_equal(store_write_now(w->g->store, link_elsewhere, &chat, NULL), 0);
        remote_linked(w->r, &row);
        free((char *)(uintptr_t)row.trace);
}

static void a_session_that_is_linked_elsewhere_moves(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        seen(w);
        link_to(w, "d", "9");
        ASSERT_SEEN(w, "send[9] 💻 fix it\n");
        report(w, "s", "tool_call", CALL("2"));
        ASSERT_SEEN(w, "send[9] 🛠️ Tool Execution: bash\n");
        /* a channel is no thread: the session gets one there */
        link_to(w, "d", NULL);
        ASSERT_HAS(seen(w), "thread fix it (ses-1)\n");
}

static void what_was_before_its_link_is_not_shown(void **state)
{
        static const enum chat_threads kinds[] = { CHAT_THREADS_AT_MESSAGE, CHAT_THREADS_BY_NAME,
                                                   CHAT_NO_THREADS };

        for (size_t i = 0; i < COUNT(kinds); i++) {
                struct world *w;
                const char *text;

                if (i > 0) {
                        tear_down(state);
                        set_up(state);
                }
                w = *state;
                w->g->threads = kinds[i];
                free(w->r->conf.channel);
                w->r->conf.channel = NULL;
                report(w, "s", "session_start", START);
                report(w, "s", "turn_end", USAGE("10", ",\"final\":false"));
                report(w, "s", "tool_call", CALL("1"));
                report(w, "s", "error", "\"content\":\"x\"");
                rig_until(w->g, &w->stored, 4);
                link_to(w, "d", NULL);
                text = seen(w);
                if (strstr(text, "🛠️") || strstr(text, "❌"))
                        fail_msg("%d: %s", (int)kinds[i], text);
                report(w, "s", "turn_end", USAGE("3", ""));
                ASSERT_HAS(seen(w), "Turn Completed");
                ASSERT_HAS(newest_payload(w), "\"Tokens Used\",\"value\":\"13\"");
        }
}

static void a_channel_is_its_sessions_only_if_no_thread_begins_there(void **state)
{
        static const struct {
                enum chat_threads threads;
                bool refused;
                int64_t is_at;
        } rows[] = { { CHAT_THREADS_AT_MESSAGE, false, 0 },
                     { CHAT_THREADS_BY_NAME, false, 0 },
                     { CHAT_THREADS_AT_MESSAGE, true, 1 },
                     { CHAT_NO_THREADS, false, 1 } };
        const struct chat_key channel = { ADAPTER, "d", NULL };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct world *w;

                if (i > 0) {
                        tear_down(state);
                        set_up(state);
                }
                w = *state;
                w->g->threads = rows[i].threads;
                free(w->r->conf.channel);
                w->r->conf.channel = NULL;
                report(w, "s", "session_start", START);
                rig_until(w->g, &w->stored, 1);
                w->g->auto_send = !rows[i].refused;
                link_to(w, "d", NULL);
                assert_int_equal(session_index_find(w->r, &channel, NULL, NULL), 0);
                if (rows[i].refused) {
                        rig_until(w->g, &w->g->sent_count, 1);
                        rig_result(w->g, 0, SEND_DONE, ERR_NONE, -1);
                        rig_until(w->g, &w->g->sent_count, 2);
                        w->g->auto_send = true;
                        rig_result(w->g, 1, SEND_REJECTED, ERR_REFUSED, -1);
                }
                settle(w);
                assert_int_equal(session_index_find(w->r, &channel, NULL, NULL), rows[i].is_at);
                /* the same when it is linked there again */
                link_to(w, "d", rows[i].is_at ? NULL : "p2");
                assert_int_equal(session_index_find(w->r, &channel, NULL, NULL), rows[i].is_at);
                settle(w);
                report(w, "s", "session_end", "");
                settle(w);
                assert_int_equal(session_index_find(w->r, &channel, NULL, NULL), 0);
        }
}

static struct gate gate;

/* The session ends after its view has looked, and before that has stored what it learned. */
static void on_thread_sent(void *arg, const struct bus_event *e)
{
        struct world *w = arg;

        if (strcmp(e->type, EVENT_DELIVERY_SENT) != 0 || gate.entered)
                return;
        gate_close(&gate, w->g->store);
        report(w, "s", "session_end", "");
}

static void a_session_that_ended_meanwhile_keeps_no_thread(void **state)
{
        struct world *w = *state;
        struct bus_listener *listener =
                bus_listen(w->g->bus, 1u << STREAM_DELIVERY, on_thread_sent, w);

        gate = (struct gate){ 0 };
        report(w, "s", "session_start", START);
        while (!gate.entered || the_view(w)->state != VIEW_STORING)
                rig_run_for(w->g, 1);
        gate_open(&gate);
        settle(w);
        bus_unlisten(w->g->bus, listener);
        assert_int_equal(rig_count(w->g, "sessions WHERE state = 'ended' AND thread = 'p2'"), 1);
        assert_int_equal(
                session_index_find(w->r, &(struct chat_key){ ADAPTER, "c", "p2" }, NULL, NULL), 0);
}

static void the_first_message_says_where_people_write(void **state)
{
        static const struct {
                enum chat_threads threads;
                bool linked;
                const char *says;
        } rows[] = {
                { CHAT_THREADS_AT_MESSAGE, false, "Write in its thread to steer it" },
                { CHAT_THREADS_AT_MESSAGE, true, "Write in its thread to steer it" },
                { CHAT_THREADS_BY_NAME, false, "Write here to steer it" },
                { CHAT_NO_THREADS, false, "Reply to its messages to steer it" },
                { CHAT_NO_THREADS, true, "Write here to steer it" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *text;
                struct world *w;

                if (i > 0) {
                        tear_down(state);
                        set_up(state);
                }
                w = *state;
                w->g->threads = rows[i].threads;
                report(w, "s", "session_start", START);
                settle(w);
                if (rows[i].linked)
                        link_to(w, "d", NULL);
                settle(w);
                ASSERT_HAS(root_payload(w), rows[i].says);
                ASSERT_HAS(root_payload(w), "`/followup ses-1 …`");
                ASSERT_HAS(root_payload(w), "say:/abort ses-1");
                seen(w);
                /* it does not change its mind when it is edited */
                report(w, "s", "session_update", "\"metadata\":{\"model\":\"m2\"}");
                text = seen(w);
                ASSERT_HAS(text, "💻 fix it\n");
                ASSERT_HAS(root_payload(w), rows[i].says);
                report(w, "s", "session_end", "");
                settle(w);
                ASSERT_HAS(root_payload(w), "\"buttons\":[]");
        }
}

#define UNTITLED "\"metadata\":{\"cwd\":\"/home/ada/project\"}"
#define TITLED   "\"metadata\":{\"title\":\"fix it\"}"

static void a_thread_gets_the_title_once_that_is_known(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", UNTITLED);
        ASSERT_SEEN(w, "send 💻 project\nthread project (ses-1)\n");
        report(w, "s", "session_update", TITLED);
        ASSERT_HAS(seen(w), "change_thread[p2] fix it (ses-1)\n");
        restart(w);
        ASSERT_SEEN(w, "");
        /* Discord permits two names in ten minutes */
        report(w, "s", "session_update", "\"metadata\":{\"title\":\"fix all\"}");
        ASSERT_SEEN(w, "edit 💻 fix all\n");
        rig_update(w->g, "session_views SET renamed_ms = ?1", 1000, 0);
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_HAS(seen(w), "change_thread[p2] fix all (ses-1)\n");
}

static void a_name_that_has_to_wait_holds_up_nothing(void **state)
{
        struct world *w = *state;
        unsigned at;

        report(w, "s", "session_start", UNTITLED);
        seen(w);
        w->g->auto_send = false;
        at = w->g->sent_count;
        report(w, "s", "session_update", TITLED);
        rig_until(w->g, &w->g->sent_count, at + 2);
        w->g->auto_send = true;
        for (; at < w->told + 2; at++) {
                bool name = strcmp(w->g->sent[at].kind, "change_thread") == 0;

                rig_result(w->g, at, name ? SEND_RETRY : SEND_DONE, name ? ERR_NET : ERR_NONE,
                           name ? 600000 : -1);
        }
        report(w, "s", "approval_request", ASK("x"));
        rig_until(w->g, &w->g->sent_count, at + 1);
        assert_string_equal(last(w)->title, "✋ Approval needed: bash");
        report(w, "s", "turn_end", "\"content\":\"x\"");
        rig_until_count(w->g, "deliveries WHERE state = 'sent' AND payload LIKE '%✅%'", 1);
        assert_int_equal(rig_count(w->g, "deliveries WHERE kind = 'change_thread'"
                                         " AND state = 'queued'"),
                         1);
}

static void a_thread_of_others_keeps_its_name(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", UNTITLED);
        settle(w);
        link_to(w, "d", "9");
        seen(w);
        report(w, "s", "session_update", TITLED);
        ASSERT_SEEN(w, "edit[9] 💻 fix it\n");
}

/* ---- pages ---- */

static void work_is_one_message_that_grows(void **state)
{
        struct world *w = *state;
        const char *text;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        seen(w);
        report(w, "s", "tool_result", DONE("1"));
        ASSERT_SEEN(w, "edit[p2] 🛠️ Tool Execution: bash\n");
        assert_string_equal(last(w)->target, "p3");
        report(w, "s", "tool_call", CALL("2"));
        ASSERT_SEEN(w, "edit[p2] 🛠️ 2 tool calls\n");
        report(w, "s", "turn_end", "\"content\":\"done\"");
        report(w, "s", "tool_call", CALL("3"));
        text = seen(w);
        ASSERT_HAS(text, "send[p2] ✅ Turn Completed\n");
        ASSERT_HAS(strstr(text, "Completed"), "send[p2] 🛠️ Tool Execution: bash\n");
        ASSERT_HAS(text, "edit 💻 fix it\n");
        restart(w);
        report(w, "s", "tool_call", CALL("4"));
        ASSERT_SEEN(w, "edit[p2] 🛠️ 2 tool calls\n");
}

static void what_is_shown_already_is_not_sent_again(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        report(w, "s", "error", "\"content\":\"broke\"");
        seen(w);
        restart(w);
        ASSERT_SEEN(w, "");
        report(w, "s", "session_update", "\"metadata\":{\"model\":\"m2\"}");
        ASSERT_SEEN(w, "edit 💻 fix it\n"); /* it names the model now */
        report(w, "s", "approval_resolved", ANSWER("unknown"));
        ASSERT_SEEN(w, "");
}

static void a_platform_without_edits_gets_messages_only(void **state)
{
        static char journaled[] = "j";
        struct world *w = *state;

        free(w->r->conf.adapter);
        w->r->conf.adapter = mem_strdup(journaled);
        w->g->threads = CHAT_NO_THREADS;
        report(w, "s", "session_start", START);
        settle(w);
        for (int i = 0; i < 3; i++) {
                report(w, "s", "tool_call", CALL("1"));
                settle(w);
        }
        assert_int_equal(rig_count(w->g, "deliveries WHERE kind = 'send'"), 4);
        assert_int_equal(rig_count(w->g, "deliveries"), 4);
}

static void a_turn_counts_its_responses_however_they_were_shown(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "turn_end", USAGE("100", ""));
        report(w, "s", "tool_call", CALL("1"));
        report(w, "s", "turn_end", USAGE("10", ",\"final\":false"));
        report(w, "s", "error", "\"content\":\"broke\""); /* begins another message */
        seen(w);
        report(w, "s", "tool_call", CALL("2"));
        report(w, "s", "turn_end", USAGE("20", ",\"final\":false"));
        seen(w);
        restart(w);
        report(w, "s", "turn_end", USAGE("5", ",\"final\":false"));
        seen(w);
        report(w, "s", "turn_end", USAGE("3", ""));
        ASSERT_HAS(seen(w), "Turn Completed");
        ASSERT_HAS(newest_payload(w), "\"Tokens Used\",\"value\":\"38\"");
        ASSERT_HAS(newest_payload(w), "\"Cost\",\"value\":\"$1.00\"");
        report(w, "s", "turn_end", USAGE("7", ""));
        ASSERT_HAS(seen(w), "Turn Completed");
        ASSERT_HAS(newest_payload(w), "\"Tokens Used\",\"value\":\"7\"");
}

static void a_page_grows_by_few_events_whatever_they_are(void **state)
{
        static const char *const types[] = { "note", "session_update", "tool_result" };
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "tool_call", CALL("1"));
        seen(w);
        for (size_t i = 0; i < COUNT(types); i++) {
                for (int k = 0; k < PAGE_EVENTS + 100; k++)
                        report(w, "s", types[i], "\"content\":\"x\"");
                settle(w);
                if (rig_number(w->g, "count(*) FROM journal, session_views WHERE stream = 4"
                                     " AND page > 0 AND seq >= page_from") >= PAGE_EVENTS)
                        fail_msg("all events of type %s are read again each time", types[i]);
        }
}

static void texts_of_blanks_are_shown(void **state)
{
        static const char *const blank[] = { "tool_call", "tool_result", "notice", "compaction",
                                             "retry",     "error",       "note",   "turn_end" };
        struct world *w = *state;
        const char *said;

        report(w, "s", "session_start", START);
        for (size_t i = 0; i < COUNT(blank); i++)
                for (int k = 0; k < 2; k++)
                        report(w, "s", blank[i], "\"tool_name\":\" \",\"content\":\" \\n\"");
        settle(w);
        said = rig_text(w->g, "group_concat(payload) FROM deliveries");
        if (strstr(said, "null)"))
                fail_msg("a text that is not there is shown: %s", said);
}

/* ---- bursts ---- */

/* How many calls, turns and errors the chat shows in the end, by the titles of its messages. */
struct total {
        long calls, turns, errors, asked;
};

static void add_number(const char *title, const char *word, long *to)
{
        const char *at = strstr(title, word);

        if (!at)
                return;
        while (at > title && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
                at--;
        *to += strtol(at, NULL, 10);
}

static int read_totals(struct store_tx *tx, void *arg, struct error *err)
{
        struct delivery_filter f = { .adapter = ADAPTER, .limit = 100000 };
        struct store_stmt *s = delivery_row_list(tx, &f);
        struct total *t = arg;
        struct delivery_row row;
        json_t *newest = json_object(), *payload;
        const char *key;
        json_t *title;
        char id[32];
        int rc;

        /* newest first: the first edit of a message is what it says */
        while ((rc = delivery_row_next(s, &row, err)) == 1) {
                if ((row.kind != DELIVER_SEND && row.kind != DELIVER_EDIT) ||
                    row.state != DELIVERY_SENT)
                        continue;
                snprintf(id, sizeof(id), "%lld",
                         (long long)(row.kind == DELIVER_EDIT ? row.edits : row.id));
                payload = json_loads(row.payload, 0, NULL);
                if (!json_object_get(newest, id))
                        json_object_set_new(newest, id,
                                            json_string(json_str(json_object_get(payload, "card"),
                                                                 "title", "")));
                json_decref(payload);
        }
        json_object_foreach(newest, key, title) {
                const char *text = json_string_value(title);

                t->calls += strstr(text, "Tool Execution") != NULL;
                add_number(text, "tool call", &t->calls);
                t->turns += strstr(text, "Turn Completed") != NULL;
                add_number(text, "turn", &t->turns);
                t->errors += strcmp(text, "❌ Error") == 0;
                add_number(text, "Errors", &t->errors);
                add_number(text, "error", &t->errors);
                t->asked += strstr(text, "Approval needed") || strstr(text, "Allowed");
        }
        json_decref(newest);
        return rc;
}

static struct total totals(struct world *w)
{
        struct total t = { 0 };

        assert_int_equal(store_read_now(w->g->store, read_totals, &t, NULL), 0);
        return t;
}

static void a_burst_is_few_messages_and_every_call_is_counted(void **state)
{
        struct world *w = *state;
        struct road_stats s;
        struct total t;
        unsigned answered = 0;

        w->g->auto_send = false;
        report(w, "s", "session_start", START);
        for (int i = 0; i < 2000; i++) {
                report(w, "s", "tool_call", CALL("1"));
                if (i % 100 == 99)
                        report(w, "s", "turn_end", "\"content\":\"x\"");
                if (i % 500 == 499)
                        report(w, "s", "error", "\"content\":\"x\"");
                if (i % 20 == 0)
                        rig_run_for(w->g, 1);
                road_stats(w->g->road, &s);
                assert_true(s.deliveries_open <= 12);
                if (i % 50 == 0) /* the platform is slow */
                        for (; answered < w->g->sent_count; answered++)
                                rig_result(w->g, answered, SEND_DONE, ERR_NONE, -1);
        }
        w->g->auto_send = true;
        for (; answered < w->g->sent_count; answered++)
                if (!w->g->sent[answered].answered)
                        rig_result(w->g, answered, SEND_DONE, ERR_NONE, -1);
        settle(w);
        t = totals(w);
        assert_int_equal(t.calls, 2000);
        assert_int_equal(t.turns, 20);
        assert_int_equal(t.errors, 4);
        assert_true(w->g->sent_count < 200);
}

static void nothing_is_lost_or_doubled_over_random_restarts(void **state)
{
        struct world *w = *state;
        unsigned seed = getenv("SEED") ? (unsigned)strtoul(getenv("SEED"), NULL, 10)
                                       : (unsigned)clock_mono_ns();
        long calls = 0, turns = 0, errors = 0, asked = 0;
        char members[300];
        struct total t;

        print_message("SEED=%u\n", seed);
        srand(seed);
        report(w, "s", "session_start", START);
        for (int i = 0; i < 400; i++) {
                int what = rand() % 20;

                if (what < 12) {
                        calls++;
                        report(w, "s", "tool_call", CALL("1"));
                } else if (what < 14) {
                        report(w, "s", "tool_result", DONE("1"));
                } else if (what < 16) {
                        turns++;
                        report(w, "s", "turn_end", "\"content\":\"x\"");
                } else if (what < 17) {
                        errors++;
                        report(w, "s", "error", "\"content\":\"x\"");
                } else if (what < 18) {
                        asked++;
                        snprintf(members, sizeof(members),
                                 "\"metadata\":{\"approval_id\":\"a%d\",\"timeoutMs\":300000}", i);
                        report(w, "s", "approval_request", members);
                }
                if (rand() % 3 == 0)
                        rig_run_for(w->g, rand() % 4);
                if (rand() % 15 == 0)
                        restart(w);
        }
        settle(w);
        t = totals(w);
        assert_int_equal(t.calls, calls);
        assert_int_equal(t.turns, turns);
        assert_int_equal(t.errors, errors);
        assert_int_equal(t.asked, asked);
}

/* ---- questions ---- */

static void a_question_has_buttons_and_shows_what_was_decided(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        seen(w);
        report(w, "s", "approval_request", ASK("x"));
        ASSERT_SEEN(w, "send[p2] ✋ Approval needed: bash\n");
        ASSERT_HAS(last(w)->buttons, "say:/approve sap-1");
        ASSERT_HAS(last(w)->buttons, "say:/refuse sap-1");
        assert_false(last(w)->silent);
        report(w, "s", "approval_resolved", ANSWER("x"));
        ASSERT_SEEN(w, "edit[p2] ✅ Allowed: bash\n");
        assert_string_equal(last(w)->buttons, "[]");
        restart(w);
        ASSERT_SEEN(w, "");
}

static void what_was_decided_before_anybody_was_asked_asks_nobody(void **state)
{
        struct world *w = *state;

        w->g->adapters_down = true;
        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        report(w, "s", "approval_resolved", ANSWER("x"));
        rig_until_count(w->g, "session_approvals WHERE state = 'allow'", 1);
        w->g->adapters_down = false;
        restart(w);
        ASSERT_SEEN(w, "send 💻 fix it\nthread fix it (ses-1)\n");
}

static void the_end_of_a_session_is_that_of_its_questions(void **state)
{
        struct world *w = *state;
        const char *text;

        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        seen(w);
        report(w, "s", "session_end", "");
        text = seen(w);
        ASSERT_HAS(text, "edit[p2] ⛔ Refused: bash\n");
        assert_int_equal(rig_count(w->g, "session_approvals WHERE state = 'open'"), 0);
        /* what the program did counts, whenever it says so */
        report(w, "s", "approval_resolved", ANSWER("x"));
        ASSERT_HAS(seen(w), "edit[p2] ✅ Allowed: bash\n");
        assert_int_equal(rig_count(w->g, "session_approvals WHERE state = 'allow'"), 1);
}

static void a_question_behind_many_that_ask_nobody_is_asked(void **state)
{
        struct world *w = *state;
        char members[200];

        w->g->adapters_down = true;
        report(w, "s", "session_start", START);
        for (int i = 0; i < 2 * VIEW_APPROVALS + 1; i++) {
                snprintf(members, sizeof(members), "\"metadata\":{\"approval_id\":\"a%d\"}", i);
                report(w, "s", "approval_request", members);
                report(w, "s", "approval_resolved", members);
        }
        report(w, "s", "approval_request", ASK("x"));
        rig_until_count(w->g, "session_approvals", 2 * VIEW_APPROVALS + 2);
        w->g->adapters_down = false;
        restart(w);
        ASSERT_HAS(seen(w), "✋ Approval needed: bash\n");
}

static void a_question_moves_with_its_session(void **state)
{
        struct world *w = *state;
        const char *text;

        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        ASSERT_HAS(seen(w), "send[p2] ✋ Approval needed: bash\n");
        link_to(w, "d", "9");
        text = seen(w);
        ASSERT_HAS(text, "send[9] 💻 fix it\n");
        ASSERT_HAS(text, "edit[p2] ✋ Approval needed: bash\n");
        ASSERT_HAS(text, "send[9] ✋ Approval needed: bash\n");
        ASSERT_HAS(rig_text(w->g, "payload FROM deliveries WHERE kind = 'edit'"),
                   "asks in its new place.\",\"fields\"");
        ASSERT_HAS(rig_text(w->g, "payload FROM deliveries WHERE kind = 'edit'"), "\"buttons\":[]");
        assert_int_equal(rig_count(w->g, "session_approvals WHERE state = 'open'"), 1);
        restart(w);
        ASSERT_SEEN(w, "");
        report(w, "s", "approval_resolved", ANSWER("x"));
        ASSERT_SEEN(w, "edit[9] ✅ Allowed: bash\n");
}

static void what_was_decided_shows_where_it_was_asked(void **state)
{
        struct world *w = *state;
        struct chat_key chat = { ADAPTER, "d", "9" };
        char members[200];
        const char *text;

        report(w, "s", "session_start", START);
        for (int i = 0; i < VIEW_APPROVALS; i++) {
                snprintf(members, sizeof(members), "\"metadata\":{\"approval_id\":\"a%d\"}", i);
                report(w, "s", "approval_request", members);
        }
        seen(w);
        assert_int_equal(store_write_now(w->g->store, link_elsewhere, &chat, NULL), 0);
        for (int i = 0; i < VIEW_APPROVALS; i++) {
                snprintf(members, sizeof(members), "\"metadata\":{\"approval_id\":\"a%d\"}", i);
                report(w, "s", "approval_resolved", members);
        }
        text = seen(w);
        ASSERT_HAS(text, "send[9] 💻 fix it\n");
        ASSERT_HAS(text, "edit[p2] ⛔ Refused: a tool\n");
        report(w, "s", "approval_request", ASK("x"));
        ASSERT_SEEN(w, "send[9] ✋ Approval needed: bash\n");
}

static void a_question_that_is_refused_holds_up_no_other(void **state)
{
        struct world *w = *state;
        struct session_approval_row asked = { .id = 1, .state = "open" };
        struct session_row session = { .id = 1 };
        struct view_round round = { .session = &session,
                                    .row = { .session = 1, .adapter = ADAPTER, .channel = "c" },
                                    .approvals = { { .row = &asked } },
                                    .approval_count = 1 };
        struct view_step step = { .round = &round,
                                  .kind = STEP_ASK,
                                  .approval = &round.approvals[0] };
        struct error err = { .kind = ERR_INVALID };

        w->g->adapters_down = true;
        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        rig_until_count(w->g, "session_approvals", 1);
        view_step_refused(&step, &err);
        assert_true(round.settles);
        assert_int_equal(store_write_now(w->g->store, view_write, &round, NULL), 0);
        w->g->adapters_down = false;
        restart(w);
        seen(w);
        assert_int_equal(rig_count(w->g, "deliveries WHERE payload LIKE '%✋%'"), 0);
        report(w, "s", "approval_request", ASK("y"));
        ASSERT_HAS(seen(w), "✋ Approval needed: bash\n");
        report(w, "s", "approval_resolved", ANSWER("x"));
        ASSERT_SEEN(w, "");
}

static void a_question_without_an_answer_expires(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        seen(w);
        rig_update(w->g, "session_approvals SET expires_ms = ?1", 1000, 0);
        remote_wake(w->r);
        rig_until_count(w->g, "session_approvals WHERE decided_by = 'timeout'", 1);
        ASSERT_SEEN(w, "edit[p2] ⛔ Refused: bash\n");
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'session.approval.expired'"), 1);
}

/* ---- whom it concerns ---- */

struct wish {
        const char *wants, *quiet_hours;
};

static int name_person(struct store_tx *tx, void *arg, struct error *err)
{
        const struct identity who = { "discord", "42" };
        int64_t person, id;

        (void)arg;
        person_row_insert(tx, 1, &person, err);
        person_row_add_identity(tx, &who, person, 1, &id, err);
        person_row_set_name(tx, person, "Ada", 1, err);
        return session_approval_row_decide(tx, 1, "deny", "discord:42", "use the trash", 9, err) < 0
                       ? -1
                       : 0;
}

static void who_decided_is_named(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        report(w, "s", "approval_request", ASK("x"));
        seen(w);
        assert_int_equal(store_write_now(w->g->store, name_person, NULL, NULL), 0);
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_HAS(seen(w), "edit[p2] ⛔ Refused: bash\n");
        ASSERT_HAS(rig_text(w->g, "payload FROM deliveries WHERE payload LIKE '%⛔%'"),
                   "Refused by Ada: use the trash");
}

static int write_person(struct store_tx *tx, void *arg, struct error *err)
{
        const struct wish *wish = arg;
        const struct identity who = { "discord", "42" };
        struct person_reach *reach;
        struct chat_key chat = { ADAPTER, "c", NULL };
        int64_t person, id;

        person_row_insert(tx, 1, &person, err);
        person_row_add_identity(tx, &who, person, 1, &id, err);
        person_row_set_notify(tx, person, wish->wants, 1, err);
        assert_int_equal(person_row_get_reach(tx, person, &reach, err), 1);
        reach->quiet_hours = wish->quiet_hours;
        person_row_set_reach(tx, person, reach, 1, err);
        free(reach);
        return session_row_link(tx, 1, &chat, "discord:42", err) < 0 ? -1 : 0;
}

static void people_hear_of_what_they_want(void **state)
{
        /* what calls them of: tool call, notice for them, turn, error, question, end */
        static const struct {
                struct wish wish;
                const char *calls;
        } rows[] = {
                { { "all", NULL }, ".nteqs" },  { { "errors", NULL }, ".n.eq." },
                { { "end", NULL }, ".nt.qs" },  { { "mentions", NULL }, ".n..q." },
                { { "off", NULL }, "......" },  { { "all", "00:00-24:00" }, "......" },
                { { "all", "off" }, ".nteqs" },
        };
        static const struct {
                const char *type, *members;
        } events[] = { { "tool_call", CALL("1") },
                       { "notice", "\"content\":\"x\",\"metadata\":{\"mention\":true}" },
                       { "turn_end", "\"content\":\"x\"" },
                       { "error", "\"content\":\"x\"" },
                       { "approval_request", ASK("x") },
                       { "session_end", "" } };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct world *w;

                if (i > 0) {
                        tear_down(state);
                        set_up(state);
                }
                w = *state;
                w->g->threads = CHAT_NO_THREADS;
                report(w, "s", "session_start", START);
                settle(w);
                assert_true(last(w)->silent);
                assert_int_equal(store_write_now(w->g->store, write_person,
                                                 (void *)(uintptr_t)&rows[i].wish, NULL),
                                 0);
                for (size_t k = 0; k < COUNT(events); k++) {
                        const struct rig_sent *s = NULL;
                        bool calls = rows[i].calls[k] != '.';
                        unsigned before;

                        settle(w);
                        before = w->g->sent_count;
                        report(w, "s", events[k].type, events[k].members);
                        settle(w);
                        for (unsigned n = before; n < w->g->sent_count && !s; n++)
                                if (strcmp(w->g->sent[n].kind, "send") == 0)
                                        s = &w->g->sent[n];
                        assert_non_null(s);
                        if (s->silent == calls || (strncmp(s->text, "@42", 3) == 0) != calls)
                                fail_msg("'%s' wants %s: '%s' (silent %d)", rows[i].wish.wants,
                                         events[k].type, s->text, s->silent);
                }
        }
}

/* ---- the end, and trouble ---- */

static void a_thread_is_closed_with_its_session_and_opened_again(void **state)
{
        struct world *w = *state;
        const char *text;

        report(w, "s", "session_start", START);
        seen(w);
        report(w, "s", "session_end", "");
        text = seen(w);
        ASSERT_HAS(text, "send[p2] 🏁 Session Ended\n");
        ASSERT_HAS(strstr(text, "Ended"), "change_thread[p2] \n");
        ASSERT_HAS(text, "edit 💻 fix it\n");
        ASSERT_HAS(rig_text(w->g, "payload FROM deliveries WHERE kind = 'change_thread'"),
                   "\"closed\":true");
        report(w, "s", "tool_call", CALL("1"));
        text = seen(w); /* the channel and the thread are not in order */
        ASSERT_HAS(text, "change_thread[p2] \n");
        ASSERT_HAS(strstr(text, "change_thread"), "send[p2] 🛠️ Tool Execution: bash\n");
        ASSERT_HAS(text, "edit 💻 fix it\n");
}

static void a_quiet_session_is_archived_with_its_thread(void **state)
{
        struct world *w = *state;
        const char *text;

        report(w, "s", "session_start", START);
        seen(w);
        rig_update(w->g, "sessions SET last_event_ms = ?1", 1000, 0);
        remote_wake(w->r);
        rig_until_count(w->g, "sessions WHERE state = 'archived'", 1);
        text = seen(w);
        ASSERT_HAS(text, "change_thread[p2] \n");
        ASSERT_HAS(text, "edit 💻 fix it\n");
        ASSERT_HAS(root_payload(w), "💤 Quiet");
        ASSERT_HAS(root_payload(w), "Write in its thread");
        report(w, "s", "tool_call", CALL("1"));
        text = seen(w);
        ASSERT_HAS(text, "change_thread[p2] \n");
        ASSERT_HAS(strstr(text, "change_thread"), "send[p2] 🛠️ Tool Execution: bash\n");
        ASSERT_HAS(root_payload(w), "🟢 Active");
}

static int append_connected(struct store_tx *tx, void *arg, struct error *err)
{
        const struct bus_event e = { .type = "adapter.connected",
                                     .adapter = ADAPTER,
                                     .payload = "{}" };

        return bus_append(tx, arg, &e, NULL, err) < 0 ? -1 : 0;
}

/* As settle, with a slow platform. */
static void settle_slowly(struct world *w)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        struct session_view *v;
        unsigned answered = w->told;

        while ((v = the_view(w)) || w->r->writes > 0) {
                if (clock_mono_ms() > deadline)
                        fail_msg("the view is not done");
                if (answered < w->g->sent_count)
                        v->submitted_ms -= LATE_MS;
                for (; answered < w->g->sent_count; answered++)
                        rig_result(w->g, answered, SEND_DONE, ERR_NONE, -1);
                rig_run_for(w->g, 5);
        }
}

static void a_slow_chat_says_in_the_end_how_its_session_is(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        seen(w);
        w->g->auto_send = false;
        report(w, "s", "tool_call", CALL("1"));
        rig_until(w->g, &w->g->sent_count, w->told + 1);
        report(w, "s", "session_end", "");
        settle_slowly(w);
        ASSERT_HAS(root_payload(w), "🏁 Ended");
        ASSERT_HAS(root_payload(w), "\"buttons\":[]");
}

static void a_chat_is_not_slow_because_its_adapter_was_away(void **state)
{
        struct world *w = *state;

        report(w, "s", "session_start", START);
        seen(w);
        w->g->auto_send = false;
        report(w, "s", "tool_call", CALL("1"));
        rig_until(w->g, &w->g->sent_count, w->told + 1);
        w->g->adapters_down = true;
        w->g->unready = 0;
        report(w, "s", "error", "\"content\":\"x\"");
        report(w, "s", "turn_end", "\"content\":\"x\"");
        rig_until(w->g, &w->stored, 4);
        rig_result(w->g, w->told, SEND_DONE, ERR_NONE, -1);
        rig_until(w->g, &w->g->unready, 1);
        the_view(w)->submitted_ms -= LATE_MS;
        w->g->auto_send = true;
        w->g->adapters_down = false;
        /* urgent */
        report(w, "s", "error", "\"content\":\"y\"");
        ASSERT_HAS(seen(w), "edit 💻 fix it\nsend[p2] ❌ Error\nsend[p2] ✅ Turn Completed\n");
}

static void while_the_adapter_is_away_nothing_piles_up(void **state)
{
        struct world *w = *state;
        struct bus_batch batch = { 0 };

        report(w, "s", "session_start", START);
        seen(w);
        w->g->adapters_down = true;
        for (int i = 0; i < 300; i++) {
                report(w, "s", "tool_call", CALL("1"));
                report(w, "s", "turn_end", "\"content\":\"x\"");
        }
        rig_until(w->g, &w->stored, 601);
        w->g->unready = 0;
        report(w, "s", "error", "\"content\":\"x\"");
        rig_until(w->g, &w->g->unready, 1);
        assert_int_equal(rig_count(w->g, "deliveries WHERE state = 'queued'"), 0);
        w->g->adapters_down = false;
        assert_int_equal(store_write_now(w->g->store, append_connected, &batch, NULL), 0);
        bus_publish(w->g->bus, &batch);
        bus_batch_release(&batch);
        settle(w);
        assert_int_equal(totals(w).calls, 300);
        assert_int_equal(totals(w).turns, 300);
        assert_true(w->g->sent_count < 12);
}

static void a_refused_first_message_ends_it_until_it_is_linked_again(void **state)
{
        struct world *w = *state;

        w->g->auto_send = false;
        report(w, "s", "session_start", START);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_REJECTED, ERR_MISSING, -1);
        settle(w);
        w->g->auto_send = true;
        report(w, "s", "turn_end", "\"content\":\"x\"");
        settle(w);
        assert_int_equal(w->g->sent_count, 1);
        ASSERT_HAS(rig_text(w->g, "error FROM session_views"), "the test says so");
        link_to(w, "d", "9");
        ASSERT_HAS(seen(w), "send[9] 💻 fix it\nsend[9] ✅ Turn Completed\n");
}

static void a_chat_that_is_not_there_ends_it_until_it_is_linked_again(void **state)
{
        struct world *w = *state;

        w->g->threads_error = ERR_MISSING;
        report(w, "s", "session_start", START);
        settle(w);
        ASSERT_HAS(rig_text(w->g, "error FROM session_views"), "the test says so");
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_SEEN(w, "");
        w->g->threads_error = ERR_NONE;
        link_to(w, "d", "9");
        ASSERT_HAS(seen(w), "send[9] 💻 fix it\n");
}

static void a_chat_that_cannot_be_asked_about_is_asked_again(void **state)
{
        struct world *w = *state;

        w->g->threads_error = ERR_NET;
        report(w, "s", "session_start", START);
        rig_until(w->g, &w->g->threads_asked, 1);
        w->g->threads_error = ERR_NONE;
        ASSERT_HAS(seen(w), "thread fix it (ses-1)\n");
        assert_int_equal(w->g->threads_asked, 2);
}

/* The message with the calls gets a second one, which the platform refuses. */
static void refuse_edit(struct world *w, enum error_kind kind)
{
        unsigned at;

        report(w, "s", "session_start", START);
        report(w, "s", "turn_end", USAGE("20", ",\"final\":false"));
        report(w, "s", "tool_call", CALL("1"));
        ASSERT_HAS(seen(w), "send[p2] 🛠️ Tool Execution: bash\n");
        w->g->auto_send = false;
        at = w->g->sent_count;
        post(w, "[" EVENT("turn_end", USAGE("3", ",\"final\":false")) "," EVENT("tool_call",
                                                                                CALL("2")) "]");
        /* also one that counts the responses */
        rig_until(w->g, &w->g->sent_count, at + 2);
        w->g->auto_send = true;
        for (; at < w->g->sent_count; at++) {
                bool root = strstr(w->g->sent[at].title, "💻") != NULL;

                rig_result(w->g, at, root ? SEND_DONE : SEND_REJECTED, root ? ERR_NONE : kind, -1);
        }
}

static void a_message_that_was_deleted_is_followed_by_another_with_all_of_it(void **state)
{
        struct world *w = *state;

        refuse_edit(w, ERR_MISSING);
        ASSERT_HAS(seen(w), "\nsend[p2] 🛠️ 2 tool calls\n");
        report(w, "s", "tool_call", CALL("3"));
        ASSERT_SEEN(w, "edit[p2] 🛠️ 3 tool calls\n");
        report(w, "s", "turn_end", USAGE("1", ""));
        ASSERT_HAS(seen(w), "Turn Completed");
        ASSERT_HAS(newest_payload(w), "\"Tokens Used\",\"value\":\"24\"");
}

static void what_an_edit_could_not_show_is_in_the_next_message(void **state)
{
        struct world *w = *state;

        refuse_edit(w, ERR_REFUSED);
        ASSERT_HAS(seen(w), "\nsend[p2] 🛠️ Tool Execution: bash\n");
        report(w, "s", "tool_call", CALL("3"));
        ASSERT_SEEN(w, "edit[p2] 🛠️ 2 tool calls\n");
        report(w, "s", "turn_end", USAGE("1", ""));
        ASSERT_HAS(seen(w), "Turn Completed");
        ASSERT_HAS(newest_payload(w), "\"Tokens Used\",\"value\":\"24\"");
        assert_int_equal(totals(w).calls, 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
                CASE(a_chat_is_behind_from_the_answer_to_the_program_on),
                CASE(a_session_gets_a_thread_at_its_first_message),
                CASE(a_forum_gets_a_topic_first),
                CASE(without_threads_a_reply_says_which_session_is_meant),
                CASE(a_kill_before_the_messages_are_known_forgets_none),
                CASE(threads_may_be_turned_off),
                CASE(a_thread_that_cannot_begin_leaves_the_channel),
                CASE(a_topic_that_is_refused_leaves_the_channel),
                CASE(a_session_that_is_linked_elsewhere_moves),
                CASE(what_was_before_its_link_is_not_shown),
                CASE(a_channel_is_its_sessions_only_if_no_thread_begins_there),
                CASE(a_session_that_ended_meanwhile_keeps_no_thread),
                CASE(the_first_message_says_where_people_write),
                CASE(a_thread_gets_the_title_once_that_is_known),
                CASE(a_name_that_has_to_wait_holds_up_nothing),
                CASE(a_thread_of_others_keeps_its_name),
                CASE(work_is_one_message_that_grows),
                CASE(what_is_shown_already_is_not_sent_again),
                CASE(a_platform_without_edits_gets_messages_only),
                CASE(a_turn_counts_its_responses_however_they_were_shown),
                CASE(a_page_grows_by_few_events_whatever_they_are),
                CASE(texts_of_blanks_are_shown),
                CASE(a_burst_is_few_messages_and_every_call_is_counted),
                CASE(nothing_is_lost_or_doubled_over_random_restarts),
                CASE(a_question_has_buttons_and_shows_what_was_decided),
                CASE(what_was_decided_before_anybody_was_asked_asks_nobody),
                CASE(the_end_of_a_session_is_that_of_its_questions),
                CASE(a_question_behind_many_that_ask_nobody_is_asked),
                CASE(a_question_moves_with_its_session),
                CASE(what_was_decided_shows_where_it_was_asked),
                CASE(a_question_that_is_refused_holds_up_no_other),
                CASE(a_question_without_an_answer_expires),
                CASE(who_decided_is_named),
                CASE(people_hear_of_what_they_want),
                CASE(a_thread_is_closed_with_its_session_and_opened_again),
                CASE(a_quiet_session_is_archived_with_its_thread),
                CASE(a_slow_chat_says_in_the_end_how_its_session_is),
                CASE(a_chat_is_not_slow_because_its_adapter_was_away),
                CASE(while_the_adapter_is_away_nothing_piles_up),
                CASE(a_refused_first_message_ends_it_until_it_is_linked_again),
                CASE(a_chat_that_is_not_there_ends_it_until_it_is_linked_again),
                CASE(a_chat_that_cannot_be_asked_about_is_asked_again),
                CASE(a_message_that_was_deleted_is_followed_by_another_with_all_of_it),
                CASE(what_an_edit_could_not_show_is_in_the_next_message),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
