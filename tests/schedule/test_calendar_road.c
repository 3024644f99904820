/* What people see of an event follows its row, once, also after a crash; what they do there counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "road/road_state.h"
#include "schedule/calendar/calendar_private.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)

struct world {
        struct rig *rig;
        struct schedule *schedule;
        struct schedule_conf conf;
        const char *adapter, *user;
        const char *channel; /* of a command; NULL: games */
        unsigned done;
        struct error refusal;
        char text[1000];
        int64_t event;
        unsigned seen; /* of rig->sent */
};

static bool adapter_at(void *arg, size_t i, const char **name, const char **platform)
{
        static const char *const names[] = { "nonce", "plans" };

        (void)arg;
        *name = i < COUNT(names) ? names[i] : NULL;
        *platform = "discord";
        return *name != NULL;
}

static void open_schedule(struct world *w)
{
        struct schedule_env env = { .loop = w->rig->loop,
                                    .store = w->rig->store,
                                    .bus = w->rig->bus,
                                    .road = w->rig->road,
                                    .dir = w->rig->dir,
                                    .adapter_at = adapter_at };
        struct error err = { 0 };

        w->schedule = schedule_open(&env, &w->conf, &err);
        if (!w->schedule)
                fail_msg("%s", err.text);
        schedule_start(w->schedule);
}

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->rig = rig_new();
        w->adapter = "nonce";
        w->conf = (struct schedule_conf){ .enabled = true,
                                          .missed = mem_strdup("once"),
                                          .max_age_seconds = 86400,
                                          .pending = 1000,
                                          .pending_per_person = 100,
                                          .daily_cap = 100,
                                          .fallback_seconds = 300 };
        open_schedule(w);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        schedule_close(w->schedule);
        rig_free(w->rig);
        free(w->conf.missed);
        free(w);
        return 0;
}

static void restart(struct world *w)
{
        schedule_close(w->schedule);
        rig_restart(w->rig);
        open_schedule(w);
}

static void on_done(void *arg, struct calendar_request *q, const struct error *err)
{
        struct world *w = arg;

        if (err)
                fail_msg("%s", err->text);
        w->refusal = q->refusal;
        snprintf(w->text, sizeof(w->text), "%s", q->text.data ? q->text.data : "");
        w->event = q->view.row ? q->view.row->id : 0;
        w->done++;
}

static struct calendar_request *request(struct world *w, const char *args)
{
        struct error wrong;
        struct calendar_request *q = calendar_command_parse(&w->conf, args, &wrong);

        if (!q)
                fail_msg("%s", wrong.text);
        calendar_request_set_by(q, &(struct chat_caller){ .adapter = w->adapter,
                                                          .platform = "discord",
                                                          .channel = "games",
                                                          .guild = "41",
                                                          .sender_id = w->user ? w->user : "1",
                                                          .sender_name = "Ann" });
        return q;
}

static void ask(struct world *w, const char *args)
{
        unsigned before = w->done;

        calendar_submit(w->schedule, request(w, args), on_done, w);
        rig_until(w->rig, &w->done, before + 1);
}

/* The next thing that is sent. */
static struct rig_sent *await_send(struct world *w)
{
        rig_until(w->rig, &w->rig->sent_count, w->seen + 1);
        return &w->rig->sent[w->seen++];
}

static void confirm(struct world *w)
{
        rig_result(w->rig, w->seen - 1, SEND_DONE, ERR_NONE, -1);
}

/* The next of this kind; what comes before it succeeds. */
static struct rig_sent *await_kind(struct world *w, const char *kind)
{
        for (;;) {
                struct rig_sent *s = await_send(w);

                if (strcmp(s->kind, kind) == 0)
                        return s;
                confirm(w);
        }
}

#define until_none(w, from)       \
        rig_until_count((w)->rig, \
                        "(SELECT 1 AS n) AS o WHERE NOT EXISTS (SELECT 1 FROM " from ")", 1)

static void until_sent(struct world *w)
{
        until_none(w, "deliveries WHERE state = 'queued' OR state = 'sending'");
}

#define NEW "new tomorrow 20:00 Catan; seats 2; remind off; zone UTC"

/* ---- the announcement ---- */

static void an_event_is_announced_once_and_edited_when_it_changes(void **state)
{
        struct world *w = *state;
        struct rig_sent *s;

        ask(w, NEW);
        s = await_send(w);
        assert_string_equal(s->kind, "send");
        assert_string_equal(s->channel, "games");
        assert_non_null(strstr(s->text, "**Catan** (`cal-1`)"));
        assert_non_null(strstr(rig_text(w->rig, "payload FROM deliveries"),
                               "\"data\":\"say:/event yes cal-1\""));
        w->user = "2";
        ask(w, "yes"); /* before the message has an id */
        confirm(w);
        s = await_send(w);
        assert_string_equal(s->kind, "edit");
        assert_string_equal(s->message, "p1");
        assert_non_null(
                strstr(rig_text(w->rig, "payload FROM deliveries WHERE id = 2"), "(2 of 2)"));
        confirm(w);
        rig_settle(w->rig);
        assert_int_equal(w->rig->sent_count, 2);
        w->user = "1";
        ask(w, "cancel");
        s = await_send(w);
        assert_string_equal(s->kind, "edit");
        assert_non_null(strstr(s->text, "Cancelled"));
        assert_non_null(
                strstr(rig_text(w->rig, "payload FROM deliveries WHERE id = 3"), "\"buttons\":[]"));
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE announced = version", 1);
}

static void many_answers_are_few_edits(void **state)
{
        struct world *w = *state;
        unsigned before;

        ask(w, NEW);
        await_send(w);
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE message = 'p1'", 1);
        before = w->done;
        for (int i = 0; i < 40; i++) {
                struct calendar_request *q = request(w, i % 2 ? "yes" : "maybe");

                q->by.user = arena_printf(&q->arena, "%d", 100 + i);
                calendar_submit(w->schedule, q, on_done, w);
        }
        rig_until(w->rig, &w->done, before + 40);
        w->rig->auto_send = true;
        await_send(w);
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE announced = version", 1);
        until_sent(w);
        assert_true(rig_count(w->rig, "deliveries WHERE kind = 'edit'") < 10);
        /* the last one shows all of them */
        assert_non_null(strstr(rig_text(w->rig, "payload FROM deliveries WHERE kind = 'edit'"
                                                " ORDER BY id DESC LIMIT 1"),
                               "Maybe (20)"));
        assert_int_equal(rig_count(w->rig, "calendar_members WHERE status = 'yes'"), 2);
}

static void a_restart_announces_what_is_not_announced_and_nothing_twice(void **state)
{
        struct world *w = *state;

        w->rig->adapters_down = true;
        ask(w, NEW);
        restart(w); /* perhaps after the row, perhaps after its delivery */
        rig_until_count(w->rig, "deliveries", 1);
        restart(w);
        w->rig->adapters_down = false;
        outbox_wake(w->rig->road, w->adapter);
        await_send(w);
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE message = 'p1'", 1);
        ask(w, "change seats 7");
        await_send(w);
        restart(w); /* while the edit is under way: it may be repeated */
        w->rig->auto_send = true;
        until_sent(w);
        rig_settle(w->rig);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE kind = 'send'"), 1);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE kind = 'edit'"), 1);
        assert_int_equal(rig_count(w->rig, "calendar_events WHERE announced = version"), 1);
}

static void an_announcement_that_failed_is_made_again_with_the_next_change(void **state)
{
        struct world *w = *state;
        struct rig_sent *s;

        ask(w, NEW);
        await_send(w);
        rig_result(w->rig, w->seen - 1, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_count(w->rig, "calendar_events WHERE announcement IS NULL", 1);
        rig_settle(w->rig);
        assert_int_equal(w->rig->sent_count, 1);
        ask(w, "change seats 5");
        s = await_send(w);
        assert_string_equal(s->kind, "send");
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE message = 'p2'", 1);
}

static void events_that_ended_long_ago_are_deleted(void **state)
{
        struct world *w = *state;

        w->rig->auto_send = true;
        ask(w, NEW);
        ask(w, "new tomorrow 21:00 Go");
        rig_until_count(w->rig, "calendar_events WHERE announced = version", 2);
        rig_update(w->rig, "calendar_events SET starts_ms = ?1, ends_ms = ?2 WHERE id = 1", 1, 2);
        prune_run(w->rig->road);
        until_none(w, "calendar_events WHERE id = 1");
        assert_int_equal(rig_count(w->rig, "calendar_members WHERE event = 1"), 0);
        assert_int_equal(rig_count(w->rig, "calendar_members WHERE event = 2"), 1);
        until_sent(w);
}

/* ---- reactions ---- */

static void react(struct world *w, const char *type, const char *emoji, const char *user)
{
        unsigned before = w->rig->acks;
        char key[20];

        snprintf(key, sizeof(key), "r%u", w->rig->next_key++);
        rig_receive(w->rig, &(struct incoming){ .type = type,
                                                .adapter = w->adapter,
                                                .platform = "discord",
                                                .key = key,
                                                .id = "p1",
                                                .channel = "games",
                                                .sender_id = user,
                                                .sender_name = user,
                                                .emoji = emoji });
        rig_until(w->rig, &w->rig->acks, before + 1);
}

static void a_reaction_is_an_answer(void **state)
{
        struct world *w = *state;

        ask(w, NEW);
        await_send(w);
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE message = 'p1'", 1);
        w->rig->auto_send = true;
        react(w, EVENT_REACTION_RECEIVED, "✅", "ben");
        rig_until_count(w->rig, "calendar_members WHERE status = 'yes'", 2);
        react(w, EVENT_REACTION_RECEIVED, "🎉", "dan"); /* means nothing */
        react(w, EVENT_REACTION_RECEIVED, "✅", "cleo");
        rig_until_count(w->rig, "calendar_members WHERE status = 'waiting'", 1);
        react(w, EVENT_REACTION_REMOVED, "✅", "ben");
        rig_until_count(w->rig, "calendar_members WHERE status = 'invited'", 1);
        /* Cleo has the seat */
        assert_string_equal(
                rig_text(w->rig, "status FROM calendar_members WHERE external_id = 'cleo'"), "yes");
        react(w, EVENT_REACTION_RECEIVED, "❌", "cleo");
        rig_until_count(w->rig, "calendar_members WHERE status = 'no'", 1);
        assert_int_equal(rig_count(w->rig, "calendar_members"), 3);
        until_sent(w);
}

static void reactions_while_the_daemon_was_down_count_afterwards(void **state)
{
        struct world *w = *state;

        ask(w, NEW);
        await_send(w);
        confirm(w);
        rig_until_count(w->rig, "calendar_events WHERE message = 'p1'", 1);
        schedule_close(w->schedule); /* the road stores what comes */
        w->schedule = NULL;
        react(w, EVENT_REACTION_RECEIVED, "✅", "ben");
        assert_int_equal(rig_count(w->rig, "calendar_members"), 1);
        w->rig->auto_send = true;
        rig_restart(w->rig);
        open_schedule(w);
        rig_until_count(w->rig, "calendar_members WHERE status = 'yes'", 2);
        until_sent(w);
}

/* ---- the platform's own event ---- */

static void tell(struct world *w, const char *metadata)
{
        unsigned before = w->rig->acks;
        char key[20];

        snprintf(key, sizeof(key), "c%u", w->rig->next_key++);
        rig_receive(w->rig, &(struct incoming){ .type = EVENT_CALENDAR,
                                                .adapter = "plans",
                                                .platform = "discord",
                                                .key = key,
                                                .id = "77",
                                                .channel = "guild:41",
                                                .guild = "41",
                                                .text = "skip",
                                                .metadata = metadata });
        rig_until(w->rig, &w->rig->acks, before + 1);
}

static void the_platforms_event_follows_and_is_followed(void **state)
{
        struct world *w = *state;
        const char *start;
        char put[400];

        w->adapter = "plans";
        w->rig->auto_send = true;
        ask(w, NEW "; place Ann's");
        rig_until_count(w->rig, "deliveries WHERE kind = 'calendar'", 1);
        assert_non_null(strstr(rig_text(w->rig, "payload FROM deliveries WHERE kind = 'calendar'"),
                               "\"op\":\"put\""));
        until_sent(w);
        rig_until_count(w->rig, "calendar_events WHERE platform_event IS NOT NULL", 1);
        rig_update(w->rig,
                   "calendar_events SET platform_event = '77', starts_ms = ?1, ends_ms = ?2",
                   4102444800000, 4102452000000);
        start = "\"startsAt\":\"2100-01-01T00:00:00.000Z\",\"endsAt\":\"2100-01-01T02:00:00.000Z\"";
        /* the echo of what we wrote changes nothing */
        snprintf(put, sizeof(put),
                 "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\",\"byUs\":true,"
                 "\"title\":\"Catan\",\"place\":\"Ann's\",%s}",
                 start);
        tell(w, put);
        rig_settle(w->rig);
        assert_int_equal(rig_number(w->rig, "sequence FROM calendar_events"), 0);
        /* somebody edits it there: the row follows, nothing goes back */
        snprintf(put, sizeof(put),
                 "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\",\"byUs\":true,"
                 "\"title\":\"Azul\",\"place\":\"Ben's\",%s}",
                 start);
        tell(w, put);
        rig_until_count(w->rig, "calendar_events WHERE title = 'Azul' AND place = 'Ben''s'", 1);
        tell(w, "{\"op\":\"join\",\"guildId\":\"41\",\"eventId\":\"77\","
                "\"user\":{\"id\":\"9\",\"name\":\"Eve\"}}");
        rig_until_count(w->rig, "calendar_members WHERE display_name = 'Eve' AND status = 'yes'",
                        1);
        tell(w, "{\"op\":\"leave\",\"guildId\":\"41\",\"eventId\":\"77\","
                "\"user\":{\"id\":\"9\",\"name\":\"Eve\"}}");
        rig_until_count(w->rig, "calendar_members WHERE status = 'invited'", 1);
        until_sent(w);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE kind = 'calendar'"), 1);
        /* ours goes there */
        ask(w, "change title Go");
        rig_until_count(w->rig, "deliveries WHERE kind = 'calendar' AND state = 'sent'", 2);
        rig_until_count(w->rig, "calendar_events WHERE synced = sequence AND put IS NULL", 1);
        tell(w, "{\"op\":\"delete\",\"guildId\":\"41\",\"eventId\":\"77\"}");
        rig_until_count(w->rig, "calendar_events WHERE state = 'cancelled'", 1);
        until_sent(w);
        rig_settle(w->rig);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE kind = 'calendar'"), 2);
}

static void an_event_that_people_make_there_becomes_ours(void **state)
{
        struct world *w = *state;
        const char *put = "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\","
                          "\"state\":\"scheduled\",\"title\":\"Party\",\"place\":\"Park\","
                          "\"startsAt\":\"2030-01-01T18:00:00.000Z\","
                          "\"endsAt\":\"2030-01-01T20:00:00.000Z\"}";

        w->rig->auto_send = true;
        tell(w, put);
        rig_until_count(w->rig, "calendar_events WHERE platform_event = '77'", 1);
        tell(w, put); /* told again */
        tell(w, "{\"op\":\"members\",\"guildId\":\"41\",\"eventId\":\"77\",\"complete\":true,"
                "\"users\":[{\"id\":\"8\",\"name\":\"Dan\"},{\"id\":\"9\",\"name\":\"Eve\"}]}");
        rig_until_count(w->rig, "calendar_members WHERE status = 'yes'", 2);
        assert_int_equal(rig_count(w->rig, "calendar_events"), 1);
        /* after a downtime it is not there any more */
        tell(w, "{\"op\":\"list\",\"guildId\":\"42\",\"events\":[]}");
        tell(w, "{\"op\":\"list\",\"guildId\":\"41\",\"events\":[\"77\"]}");
        rig_settle(w->rig);
        assert_int_equal(rig_count(w->rig, "calendar_events WHERE state = 'planned'"), 1);
        tell(w, "{\"op\":\"list\",\"guildId\":\"41\",\"events\":[\"78\"]}");
        rig_until_count(w->rig, "calendar_events WHERE state = 'cancelled'", 1);
        until_sent(w);
        assert_int_equal(rig_count(w->rig, "deliveries"), 0);
}

static void interest_lost_during_a_downtime_ends_a_seat(void **state)
{
        struct world *w = *state;

        w->rig->auto_send = true;
        tell(w, "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\",\"title\":\"Party\","
                "\"startsAt\":\"2030-01-01T18:00:00.000Z\"}");
        tell(w, "{\"op\":\"members\",\"guildId\":\"41\",\"eventId\":\"77\",\"complete\":true,"
                "\"users\":[{\"id\":\"8\",\"name\":\"Dan\"},{\"id\":\"9\",\"name\":\"Eve\"}]}");
        rig_until_count(w->rig, "calendar_members WHERE status = 'yes'", 2);
        w->adapter = "plans";
        w->user = "8"; /* stays interested there */
        ask(w, "no cal-1");
        w->user = "5"; /* was never interested there */
        ask(w, "yes cal-1");
        tell(w, "{\"op\":\"members\",\"guildId\":\"41\",\"eventId\":\"77\",\"complete\":false,"
                "\"users\":[]}");
        tell(w, "{\"op\":\"members\",\"guildId\":\"41\",\"eventId\":\"77\",\"complete\":true,"
                "\"users\":[{\"id\":\"8\",\"name\":\"Dan\"}]}");
        rig_until_count(w->rig, "calendar_members WHERE interest IS NULL", 2);
        assert_string_equal(
                rig_text(w->rig, "status FROM calendar_members WHERE external_id = '9'"),
                "invited");
        assert_string_equal(
                rig_text(w->rig, "status FROM calendar_members WHERE external_id = '8'"), "no");
        assert_string_equal(
                rig_text(w->rig, "status FROM calendar_members WHERE external_id = '5'"), "yes");
}

static void a_change_made_there_while_ours_is_under_way_loses(void **state)
{
        struct world *w = *state;

        w->adapter = "plans";
        ask(w, NEW);
        for (int i = 0; i < 2; i++) { /* the announcement and the event, in either order */
                await_send(w);
                confirm(w);
        }
        rig_until_count(w->rig, "calendar_events WHERE platform_event IS NOT NULL", 1);
        rig_update(w->rig, "calendar_events SET platform_event = '77', version = version + ?1", 0,
                   0);
        ask(w, "change title Go");
        await_kind(w, "calendar");
        tell(w, "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\",\"title\":\"Azul\"}");
        rig_until_count(w->rig, "calendar_events WHERE synced = -1", 1);
        assert_string_equal(rig_text(w->rig, "title FROM calendar_events"), "Go");
        confirm(w);
        await_kind(w, "calendar"); /* ours once more */
        rig_until_count(w->rig, "calendar_events WHERE put IS NOT NULL AND synced = sequence", 1);
        tell(w, "{\"op\":\"put\",\"guildId\":\"41\",\"eventId\":\"77\",\"title\":\"Azul\"}");
        rig_until_count(w->rig, "calendar_events WHERE synced = -1", 1);
        confirm(w);
        w->rig->auto_send = true;
        until_sent(w);
        rig_settle(w->rig);
        /* it is not repeated for ever */
        assert_true(rig_count(w->rig, "deliveries WHERE kind = 'calendar'") <= 4);
        assert_string_equal(rig_text(w->rig, "title FROM calendar_events"), "Go");
}

static void an_event_of_a_program_is_shown_in_the_server_of_its_chat(void **state)
{
        struct world *w = *state;
        unsigned before = w->rig->acks;
        struct calendar_request *q;

        w->rig->auto_send = true;
        w->adapter = "plans";
        rig_receive(w->rig, &(struct incoming){ .type = EVENT_MESSAGE_RECEIVED,
                                                .adapter = "plans",
                                                .platform = "discord",
                                                .key = "m1",
                                                .id = "m1",
                                                .channel = "games",
                                                .guild = "41",
                                                .sender_id = "1",
                                                .text = "skip" });
        rig_until(w->rig, &w->rig->acks, before + 1);
        q = request(w, NEW);
        q->by.guild = q->by.user = NULL;
        q->by.trusted = true;
        before = w->done;
        calendar_submit(w->schedule, q, on_done, w);
        rig_until(w->rig, &w->done, before + 1);
        assert_string_equal(rig_text(w->rig, "guild FROM calendar_events"), "41");
        rig_until_count(w->rig, "deliveries WHERE kind = 'calendar'", 1);
        until_sent(w);
}

static void an_event_cancelled_while_it_is_made_there_is_deleted_there(void **state)
{
        struct world *w = *state;

        w->adapter = "plans";
        ask(w, NEW);
        await_kind(w, "calendar");
        ask(w, "cancel");
        confirm(w); /* it exists there now */
        await_kind(w, "calendar");
        assert_non_null(strstr(rig_text(w->rig, "payload FROM deliveries WHERE kind = 'calendar'"
                                                " ORDER BY id DESC LIMIT 1"),
                               "\"op\":\"delete\""));
        confirm(w);
        w->rig->auto_send = true;
        rig_until_count(w->rig, "calendar_events WHERE platform_event IS NULL AND put IS NULL", 1);
        until_sent(w);
        rig_settle(w->rig);
        assert_int_equal(rig_count(w->rig, "deliveries WHERE kind = 'calendar'"), 2);
}

/* ---- the command ---- */

struct command_run {
        struct effect *effect;
        struct buf answer;
};

static int run_report(struct store_tx *tx, void *arg, struct error *err)
{
        struct command_run *c = arg;

        return c->effect->report(tx, c->effect, &c->answer, err);
}

static int run_write(struct store_tx *tx, void *arg, struct error *err)
{
        struct command_run *c = arg;

        return c->effect->write(tx, c->effect, err);
}

static void begin_command(struct world *w, struct command_run *c, const char *user,
                          const char *args)
{
        struct chat_caller by = { .adapter = w->adapter,
                                  .platform = "discord",
                                  .channel = w->channel ? w->channel : "games",
                                  .chat = CHAT_GROUP,
                                  .sender_id = user,
                                  .sender_name = user };
        struct incoming in = { .sender_id = user, .sender_name = user };
        struct error err = { 0 };

        c->effect = calendar_command(w->schedule, &by, &in, args);
        buf_init(&c->answer, 0);
        if (store_read_now(w->rig->store, run_report, c, &err) < 0)
                fail_msg("%s", err.text);
}

static void end_command(struct world *w, struct command_run *c)
{
        struct error err = { 0 };

        if (store_write_now(w->rig->store, run_write, c, &err) < 0)
                fail_msg("%s", err.text);
        c->effect->committed(c->effect);
        c->effect->free(c->effect);
        buf_release(&c->answer);
}

static void a_seat_that_is_gone_between_answer_and_write_is_corrected(void **state)
{
        struct world *w = *state;
        struct command_run ben, cleo, dan;

        w->rig->auto_send = true;
        ask(w, NEW);
        begin_command(w, &ben, "ben", "yes cal-1"); /* two press at once: one seat is left */
        begin_command(w, &cleo, "cleo", "yes cal-1");
        assert_non_null(strstr(ben.answer.data, "You are coming"));
        assert_non_null(strstr(cleo.answer.data, "You are coming"));
        end_command(w, &ben);
        end_command(w, &cleo);
        assert_int_equal(rig_count(w->rig, "calendar_members WHERE status = 'yes'"), 2);
        assert_int_equal(rig_count(w->rig, "schedules WHERE kind = 'immediate'"), 1);
        assert_non_null(strstr(rig_text(w->rig, "text FROM schedules WHERE kind = 'immediate'"),
                               "number 1 on the waiting list"));
        begin_command(w, &dan, "dan", "ys cal-1");
        assert_non_null(strstr(dan.answer.data, "perhaps it means `yes`"));
        end_command(w, &dan);
        begin_command(w, &dan, "dan", "help");
        assert_non_null(strstr(dan.answer.data, "/event invite"));
        end_command(w, &dan);
        begin_command(w, &dan, "dan", "cancel cal-1");
        assert_non_null(strstr(dan.answer.data, "Only who planned"));
        end_command(w, &dan);
        assert_int_equal(rig_count(w->rig, "schedules WHERE kind = 'immediate'"), 1);
        until_sent(w);
}

static void a_correction_goes_to_the_chat_where_it_was_asked(void **state)
{
        struct world *w = *state;
        struct command_run ben, cleo;

        w->rig->auto_send = true;
        ask(w, NEW);
        ask(w, "invite cal-1 discord:cleo");
        begin_command(w, &ben, "ben", "yes cal-1");
        w->channel = "cleo's";
        begin_command(w, &cleo, "cleo", "yes cal-1");
        end_command(w, &ben);
        end_command(w, &cleo);
        assert_string_equal(
                rig_text(w->rig, "channel FROM schedules WHERE text LIKE 'Correction%'"), "cleo's");
        until_sent(w);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(an_event_is_announced_once_and_edited_when_it_changes),
                TEST(many_answers_are_few_edits),
                TEST(a_restart_announces_what_is_not_announced_and_nothing_twice),
                TEST(an_announcement_that_failed_is_made_again_with_the_next_change),
                TEST(events_that_ended_long_ago_are_deleted),
                TEST(a_reaction_is_an_answer),
                TEST(reactions_while_the_daemon_was_down_count_afterwards),
                TEST(the_platforms_event_follows_and_is_followed),
                TEST(an_event_that_people_make_there_becomes_ours),
                TEST(interest_lost_during_a_downtime_ends_a_seat),
                TEST(a_change_made_there_while_ours_is_under_way_loses),
                TEST(an_event_of_a_program_is_shown_in_the_server_of_its_chat),
                TEST(an_event_cancelled_while_it_is_made_there_is_deleted_there),
                TEST(a_seat_that_is_gone_between_answer_and_write_is_corrected),
                TEST(a_correction_goes_to_the_chat_where_it_was_asked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
