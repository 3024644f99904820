/* What people write where a session is shown, who may, and what they see of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fault_map.h"
#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "remote/remote_private.h"
#include "remote/session_command.h"
#include "rows/delivery_row.h"

#define ADAPTER "react"
#define OWNER   "42" /* of session 1 */
#define ADMIN   "1"
#define TRUSTED "7" /* in sessions.people */
#define OTHER   "5"

static struct fault_control *faults;

struct world {
        struct rig *g;
        struct remote *r;
        struct road_remote contract;
        struct bus_batch batch;
        unsigned decided;
        int64_t last_seq;
        unsigned late; /* events that were published after a later one */
};

/* ---- a daemon with a session, and dispatch ---- */

/* As dispatch does: a command, or a message that steers. */
static void decide(struct rig *g, const struct incoming *in, struct decision *out)
{
        struct world *w = g->test;
        const char *text = in->text, *space = strchr(text, ' ');
        const struct chat_caller by = { .adapter = in->adapter,
                                        .platform = "discord",
                                        .channel = in->channel,
                                        .thread = in->thread,
                                        .sender_id = in->sender_id,
                                        .reply_to = in->reply_to,
                                        .trace = in->trace,
                                        .is_admin = strcmp(in->sender_id, ADMIN) == 0 };
        char *name;

        w->decided++;
        out->trigger = false;
        if (text[0] == '/') {
                name = mem_strndup(text + 1, space ? (size_t)(space - text - 1) : strlen(text + 1));
                out->effect = w->contract.command(w->contract.remote, &by, in, name,
                                                  space ? space + 1 : "");
                free(name);
        } else if (w->contract.part(w->contract.remote, &by) == REMOTE_STEERS) {
                out->effect = w->contract.command(w->contract.remote, &by, in, "", text);
        }
        if (out->effect)
                out->command = COMMAND_EFFECT;
        else
                out->notice = "not here";
}

static void open_remote(struct world *w)
{
        static char account[] = "discord:" TRUSTED, *people[] = { account };
        struct remote_env env = {
                .loop = w->g->loop, .store = w->g->store, .bus = w->g->bus, .road = w->g->road
        };
        const struct remote_conf conf = { .command_seconds = 3600,
                                          .archive_seconds = 86400,
                                          .active = 1000,
                                          .queued = 50,
                                          .update_ms = 20,
                                          .people = { people, 1, true } };
        struct error err = { 0 };

        w->r = remote_open(&env, &conf, &err);
        assert_non_null(w->r);
        remote_contract(w->r, &w->contract);
        remote_start(w->r);
}

static int write_session(struct store_tx *tx, void *arg, struct error *err)
{
        const struct session_row row = { .session = "0199-abcd",
                                         .identity = "discord:" OWNER,
                                         .state = SESSION_ARCHIVED, /* so it is not shown */
                                         .adapter = ADAPTER,
                                         .channel = "9",
                                         .trace = "t1",
                                         .created_ms = 1,
                                         .last_event_ms = clock_wall_ms() };
        const struct session_approval_row asked = {
                .session = 1, .approval = "a1", .tool = "bash", .content = "rm x", .created_ms = 1
        };
        int64_t id;

        (void)arg;
        if (session_row_insert(tx, &row, &id, err) < 0)
                return -1;
        return session_approval_row_insert(tx, &asked, &id, err) < 0 ? -1 : 0;
}

static int set_up(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->g = rig_new();
        w->g->auto_send = true;
        w->g->decides = decide;
        w->g->test = w;
        assert_int_equal(store_write_now(w->g->store, write_session, NULL, NULL), 0);
        open_remote(w);
        *state = w;
        return 0;
}

static int tear_down(void **state)
{
        struct world *w = *state;

        remote_quiesce(w->r);
        remote_close(w->r);
        bus_batch_release(&w->batch);
        rig_free(w->g);
        free(w);
        return 0;
}

static void restart(struct world *w)
{
        remote_quiesce(w->r);
        remote_close(w->r);
        rig_restart(w->g);
        open_remote(w);
        rig_settle(w->g);
}

/* Returns when everything that follows has happened. */
static void say(struct world *w, const char *sender, const char *channel, const char *text)
{
        rig_receive(w->g, &(struct incoming){ .adapter = ADAPTER,
                                              .channel = channel,
                                              .text = text,
                                              .sender_id = sender,
                                              .time_ms = clock_wall_ms() });
        rig_settle(w->g);
}

static const struct rig_sent *last(const struct world *w)
{
        assert_true(w->g->sent_count > 0);
        return &w->g->sent[w->g->sent_count - 1];
}

/* The last message; "": none. */
static const char *said(const struct world *w)
{
        for (unsigned i = w->g->sent_count; i > 0; i--)
                if (strcmp(w->g->sent[i - 1].kind, "send") == 0)
                        return w->g->sent[i - 1].text;
        return "";
}

#define ASSERT_SAID(w, part)                                                                      \
        do {                                                                                      \
                if (!strstr(said(w), (part)))                                                     \
                        fail_msg("expected '%s', but the last message is '%s'", (part), said(w)); \
        } while (0)

/* ---- who may ---- */

static void only_some_people_steer(void **state)
{
        static const struct {
                const char *sender;
                bool may;
        } rows[] = { { OTHER, false }, { OWNER, true }, { ADMIN, true }, { TRUSTED, true } };
        struct world *w = *state;
        int64_t queued = 0;

        for (size_t i = 0; i < COUNT(rows); i++) {
                say(w, rows[i].sender, "9", "use the other branch");
                queued += rows[i].may;
                assert_int_equal(rig_count(w->g, "session_commands"), queued);
                say(w, rows[i].sender, "elsewhere", "/steer ses-1 go left");
                queued += rows[i].may;
                assert_int_equal(rig_count(w->g, "session_commands"), queued);
                ASSERT_SAID(w, rows[i].may ? "Queued for" : "no such session that you may steer");
        }
        assert_string_equal(rig_list(w->g, "DISTINCT given_by FROM session_commands ORDER BY 1"),
                            "discord:1, discord:42, discord:7");
}

static void who_may_not_steer_learns_nothing(void **state)
{
        static const char *const asks[] = { "/steer ses-1 x", "/steer 0199-abcd x", "/steer 0199 x",
                                            "/steer ses-77 x", "/abort ses-1" };
        struct world *w = *state;
        char first[256] = "";

        for (size_t i = 0; i < COUNT(asks); i++) {
                say(w, OTHER, "elsewhere", asks[i]);
                if (i > 0)
                        assert_string_equal(said(w), first);
                snprintf(first, sizeof(first), "%s", said(w));
        }
        say(w, OTHER, "elsewhere", "/sessions");
        ASSERT_SAID(w, "no active session that you may steer");
        say(w, OTHER, "elsewhere", "/approve sap-1");
        ASSERT_SAID(w, "no question `sap-1` that you may decide");
        say(w, OTHER, "9", "/refuse sap-1");
        assert_int_equal(rig_count(w->g, "session_commands"), 0);
        assert_int_equal(rig_count(w->g, "session_approvals WHERE state = 'open'"), 1);
        say(w, OWNER, "elsewhere", "/approve sap-1");
        ASSERT_SAID(w, "is allowed");
        assert_int_equal(rig_count(w->g, "session_commands WHERE decision = 'allow'"), 1);
}

/* ---- what they see ---- */

static int move_on(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        struct session_command_row *row;
        struct session_ack ack = { .by = { .all = true },
                                   .state = SESSION_COMMAND_DELIVERED,
                                   .now_ms = clock_wall_ms() };
        int rc;

        bus_batch_reset(&w->batch);
        assert_int_equal(session_command_row_get(tx, 1, &row, err), 1);
        ack.command = row->command;
        if (row->state == SESSION_COMMAND_DELIVERED)
                ack.state = SESSION_COMMAND_SEEN;
        rc = session_command_ack(tx, &w->batch, &ack, err);
        free(row);
        return rc;
}

static void each_step_of_a_command_is_a_reaction(void **state)
{
        struct world *w = *state;

        say(w, OWNER, "9", "go left");
        assert_string_equal(last(w)->emoji, "⏳");
        assert_string_equal(last(w)->message, "k0");
        for (int i = 0; i < 2; i++) {
                assert_int_equal(store_write_now(w->g->store, move_on, w, NULL), 0);
                bus_publish(w->g->bus, &w->batch);
                rig_settle(w->g);
                assert_string_equal(last(w)->emoji, i == 0 ? "📨" : "👀");
        }
}

/* The daemon is killed after the row and before the delivery. */
static void what_became_of_a_command_is_told_after_a_crash(void **state)
{
        struct world *w = *state;

        say(w, OWNER, "9", "go left");
        rig_update(w->g, "session_commands SET state = 'expired', ended_ms = ?1", clock_wall_ms(),
                   0);
        restart(w);
        ASSERT_SAID(w, "has expired");
        ASSERT_SAID(w, "go left");
        assert_string_equal(last(w)->reply_to, "k0");
        restart(w);
        assert_int_equal(rig_count(w->g, "deliveries WHERE kind = 'send'"), 1);
        assert_int_equal(rig_count(w->g, "deliveries"), 2); /* with the reaction before */
}

#define TEN(x) x x x x x x x x x x

static int fail_it(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return session_command_row_move(tx, 1, SESSION_COMMAND_QUEUED, SESSION_COMMAND_FAILED,
                                        "*no* <@5> @everyone " TEN(TEN("éö")) TEN(TEN("éö")), NULL,
                                        clock_wall_ms(), err) == 1
                       ? 0
                       : -1;
}

static void what_a_program_says_is_shown_as_it_is(void **state)
{
        struct world *w = *state;

        say(w, OWNER, "9", "go left");
        assert_int_equal(store_write_now(w->g->store, fail_it, NULL, NULL), 0);
        restart(w);
        ASSERT_SAID(w, "\\*no\\* \\<\\@5\\> \\@everyone");
        assert_non_null(strstr(rig_text(w->g, "payload FROM deliveries WHERE kind = 'send'"),
                               "ö…\\n> go left"));
}

static void what_is_too_long_is_refused_whole(void **state)
{
        struct world *w = *state;
        char text[SESSION_COMMAND_MAX + 2];

        memset(text, 'x', sizeof(text));
        text[SESSION_COMMAND_MAX + 1] = '\0';
        say(w, OWNER, "9", text);
        ASSERT_SAID(w, "it is longer than 16384 bytes");
        assert_int_equal(rig_count(w->g, "session_commands"), 0);
        text[SESSION_COMMAND_MAX] = '\0';
        say(w, OWNER, "9", text);
        assert_int_equal(rig_count(w->g, "session_commands"), 1);
        memcpy(text, "/steer ses-1 ", strlen("/steer ses-1 "));
        say(w, OWNER, "elsewhere", text);
        assert_int_equal(rig_count(w->g, "session_commands"), 2);
}

static void a_message_for_a_session_that_is_gone_is_not_swallowed(void **state)
{
        struct world *w = *state;

        rig_update(w->g, "sessions SET id = 1000", 0, 0); /* as pruning does */
        say(w, OWNER, "9", "go left");
        ASSERT_SAID(w, "That was not passed on");
        assert_int_equal(
                session_index_find(w->r, &(struct chat_key){ ADAPTER, "9", NULL }, NULL, NULL), 0);
}

static int name_oddly(struct store_tx *tx, void *arg, struct error *err)
{
        const struct session_row row = { .session = "`*odd*`-1",
                                         .identity = "discord:" OWNER,
                                         .state = SESSION_ACTIVE,
                                         .program = "[pi](http://x)",
                                         .title = "*fix* <@5>\n# now",
                                         .trace = "t2",
                                         .created_ms = 1,
                                         .last_event_ms = clock_wall_ms() };
        const struct session_approval_row asked = {
                .session = 2, .approval = "a2", .tool = "@everyone", .content = "", .created_ms = 1
        };
        int64_t id;

        (void)arg;
        if (session_row_insert(tx, &row, &id, err) < 0)
                return -1;
        return session_approval_row_insert(tx, &asked, &id, err) < 0 ? -1 : 0;
}

static void answers_show_names_of_programs_as_they_are(void **state)
{
        struct world *w = *state;

        assert_int_equal(store_write_now(w->g->store, name_oddly, NULL, NULL), 0);
        say(w, OWNER, "elsewhere", "/sessions");
        ASSERT_SAID(w, "- `ses-2` \\*fix\\* \\<\\@5\\>… (\\[pi\\]\\(http\\://x\\), ``");
        say(w, OWNER, "elsewhere", "/steer ses-2 go left");
        ASSERT_SAID(w, "Queued for `ses-2` \\*fix\\* \\<\\@5\\>…");
        say(w, OWNER, "elsewhere", "/approve sap-2");
        ASSERT_SAID(w, "`sap-2` (\\@everyone) is allowed");
        say(w, ADMIN, "elsewhere", "/steer @everyone x");
        ASSERT_SAID(w, "there is no session '\\@everyone'");
}

static void an_abort_stops_the_session_that_it_names(void **state)
{
        struct world *w = *state;

        assert_int_equal(store_write_now(w->g->store, name_oddly, NULL, NULL), 0);
        say(w, OWNER, "9", "/abort `*odd*`");
        say(w, OWNER, "9", "/abort ses-2");
        say(w, OWNER, "9", "/abort nothing");
        ASSERT_SAID(w, "there is no such session that you may steer");
        say(w, OWNER, "9", "/abort");
        assert_string_equal(rig_list(w->g, "session || action FROM session_commands ORDER BY id"),
                            "2abort, 2abort, 1abort");
}

/* Its program asked, so it is there. */
static void a_question_is_decided_although_commands_wait(void **state)
{
        struct world *w = *state;
        struct remote_conf conf = *remote_get_conf(w->r);

        conf.queued = 1;
        conf.people = (struct setting_list){ 0 };
        remote_set_conf(w->r, &conf);
        say(w, OWNER, "9", "go left");
        say(w, OWNER, "9", "go right");
        ASSERT_SAID(w, "That was not passed on: 1 commands wait for this session already");
        say(w, OWNER, "elsewhere", "/approve sap-1 go on");
        ASSERT_SAID(w, "`sap-1` (bash) is allowed");
        assert_string_equal(rig_list(w->g, "action FROM session_commands ORDER BY id"),
                            "steer, decision");
}

static void a_look_for_stale_commands_that_failed_is_repeated(void **state)
{
        struct world *w = *state;

        say(w, OWNER, "9", "go left");
        rig_update(w->g, "session_commands SET expires_ms = ?1", 1, 0);
        faults->disk_full = 1;
        remote_wake(w->r);
        while (w->r->looking)
                loop_step(w->g->loop, true);
        faults->disk_full = 0;
        rig_until_count(w->g, "session_commands WHERE state = 'expired'", 1);
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct world *w = arg;

        w->late += e->seq < w->last_seq;
        w->last_seq = e->seq;
}

/* Three are decided, the last two of them together. */
static void events_are_published_in_the_order_of_the_journal(void **state)
{
        static const struct {
                const char *adapter, *text;
        } says[] = { { ADAPTER, "hello" }, { ADAPTER, "go left" }, { "j", "skip it" } };
        struct world *w = *state;
        struct bus_listener *all = bus_listen(w->g->bus, BUS_ALL_STREAMS, on_event, w);

        for (size_t i = 0; i < COUNT(says); i++)
                rig_receive(w->g, &(struct incoming){ .adapter = says[i].adapter,
                                                      .channel = "9",
                                                      .text = says[i].text,
                                                      .sender_id = OWNER,
                                                      .time_ms = clock_wall_ms() });
        rig_settle(w->g);
        assert_int_equal(rig_count(w->g, "session_commands"), 2);
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'message.sent' AND seq > (SELECT"
                                         " max(seq) FROM journal WHERE type ="
                                         " 'session.command.queued')"),
                         1);
        assert_int_equal(w->late, 0);
        bus_unlisten(w->g->bus, all);
}

/* As the daemon closes them. */
static void what_is_being_decided_at_the_end_is_stored(void **state)
{
        struct world *w = *state;

        rig_receive(w->g, &(struct incoming){ .adapter = ADAPTER,
                                              .channel = "9",
                                              .text = "go left",
                                              .sender_id = OWNER,
                                              .time_ms = clock_wall_ms() });
        rig_until(w->g, &w->decided, 1);
        remote_quiesce(w->r);
        road_settle(w->g->road);
        remote_close(w->r);
        rig_restart(w->g);
        assert_int_equal(rig_count(w->g, "session_commands"), 1);
        open_remote(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
                CASE(only_some_people_steer),
                CASE(who_may_not_steer_learns_nothing),
                CASE(each_step_of_a_command_is_a_reaction),
                CASE(what_became_of_a_command_is_told_after_a_crash),
                CASE(what_a_program_says_is_shown_as_it_is),
                CASE(what_is_too_long_is_refused_whole),
                CASE(a_message_for_a_session_that_is_gone_is_not_swallowed),
                CASE(answers_show_names_of_programs_as_they_are),
                CASE(an_abort_stops_the_session_that_it_names),
                CASE(a_question_is_decided_although_commands_wait),
                CASE(a_look_for_stale_commands_that_failed_is_repeated),
                CASE(events_are_published_in_the_order_of_the_journal),
                CASE(what_is_being_decided_at_the_end_is_stored),
        };

        faults = fault_map();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
