/* The window of updates between a platform and the inbox: order, files, refusals, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "fake_road.h"
#include "platform/intake.h"
#include "platform/platform.h"

struct update {
        struct intake_update base;
        char key[20];
        bool was_stored, was_given_back;
        unsigned duplicates;
};

struct rig {
        struct loop *loop;
        struct adapter adapter;
        struct intake intake;
        struct update *freed[8];
        unsigned freed_count, advanced;
};

static struct rig *rig_of(struct intake_update *u)
{
        return u->intake->adapter->self;
}

static void on_done(struct intake_update *u, bool stored)
{
        if (stored)
                ((struct update *)u)->was_stored = true;
        else
                ((struct update *)u)->was_given_back = true;
}

/* Kept for the test to look at. */
static void on_free(struct intake_update *u)
{
        struct rig *g = rig_of(u);

        g->freed[g->freed_count++] = (struct update *)u;
}

static void on_advanced(struct intake *in)
{
        ((struct rig *)in->adapter->self)->advanced++;
}

static struct intake_handlers handlers;

static int begin(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        fake_road_reset();
        handlers = (struct intake_handlers){ .done = on_done,
                                             .free = on_free,
                                             .advanced = on_advanced };
        g->loop = loop_new();
        g->adapter = (struct adapter){ .ops = &cli_platform,
                                       .name = "x",
                                       .loop = g->loop,
                                       .road = FAKE_ROAD,
                                       .dir = "/nowhere",
                                       .self = g };
        intake_open(&g->intake, &g->adapter, &handlers);
        *state = g;
        return 0;
}

static int end(void **state)
{
        struct rig *g = *state;

        intake_close(&g->intake);
        assert_int_equal(g->intake.count, 0);
        for (unsigned i = 0; i < COUNT(fake_road.arrivals); i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE); /* late: nothing is touched */
        for (unsigned i = 0; i < g->freed_count; i++)
                free(g->freed[i]);
        loop_free(g->loop);
        free(g);
        return 0;
}

/* ---- helpers ---- */

static struct update *add_as(struct rig *g, const char *chat, const char *key,
                             enum intake_order order)
{
        struct update *u = mem_zalloc(sizeof(*u));
        struct intake_content *c = &u->base.content;

        snprintf(u->key, sizeof(u->key), "%s", key);
        u->base.chat = chat;
        u->base.order = order;
        intake_content_init(c);
        c->events = arena_alloc(&c->arena, sizeof(*c->events));
        c->event_count = 1;
        c->events[0] = (struct incoming){ .key = u->key, .id = u->key, .channel = chat };
        intake_add(&g->intake, &u->base);
        return u;
}

static struct update *add(struct rig *g, const char *chat, const char *key)
{
        return add_as(g, chat, key, INTAKE_IN_ORDER);
}

static void add_file(struct update *u, int64_t size)
{
        struct intake_content *c = &u->base.content;

        c->attachments = arena_alloc(&c->arena, sizeof(*c->attachments));
        c->attachments[0].size = size;
        c->attachments[0].source = "source";
        c->attachment_count = 1;
}

/* The keys the inbox has got so far, in order. */
static void expect_arrivals(const char *keys)
{
        char got[200] = "";

        for (unsigned i = 0; i < fake_road.received_count; i++)
                snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i > 0 ? " " : "",
                         fake_road.arrivals[i].key);
        assert_string_equal(got, keys);
}

static void wait_for_arrivals(struct rig *g, unsigned n)
{
        while (fake_road.received_count < n)
                loop_step(g->loop, true);
}

/* ---- order ---- */

static void one_chat_keeps_its_order_and_others_do_not_wait(void **state)
{
        struct rig *g = *state;
        struct update *first = add(g, "a", "1");

        intake_prepared(&add(g, "a", "2")->base);
        intake_prepared(&add(g, "b", "3")->base);
        expect_arrivals("3");
        intake_prepared(&first->base);
        expect_arrivals("3 1 2");
}

static void an_urgent_update_waits_for_nothing(void **state)
{
        struct rig *g = *state;

        add(g, "a", "1");
        intake_hold(&g->intake, "a");
        intake_prepared(&add_as(g, "a", "2", INTAKE_URGENT)->base);
        expect_arrivals("2");
}

static void a_held_chat_waits_while_its_backfill_goes_first(void **state)
{
        struct rig *g = *state;

        intake_hold(&g->intake, "a");
        intake_hold(&g->intake, INTAKE_EVERYWHERE);
        intake_prepared(&add(g, "a", "new")->base);
        intake_prepared(&add(g, "b", "other")->base);
        intake_prepared(&add_as(g, "a", "old1", INTAKE_BACKFILL)->base);
        intake_prepared(&add_as(g, "a", "old2", INTAKE_BACKFILL)->base);
        expect_arrivals("old1 old2");
        assert_int_equal(g->intake.backfilling, 2);
        intake_release(&g->intake, INTAKE_EVERYWHERE);
        expect_arrivals("old1 old2 other");
        fake_road_ack(0, ERR_NONE);
        fake_road_ack(1, ERR_NONE);
        assert_int_equal(g->intake.backfilling, 0);
        intake_release(&g->intake, "a");
        expect_arrivals("old1 old2 other new");
}

static void a_hold_ends_when_it_is_released_as_often_as_held(void **state)
{
        struct rig *g = *state;

        intake_hold(&g->intake, "a");
        intake_hold(&g->intake, "a");
        intake_prepared(&add(g, "a", "1")->base);
        intake_release(&g->intake, "a");
        expect_arrivals("");
        intake_release(&g->intake, "a");
        expect_arrivals("1");
        intake_release(&g->intake, "a"); /* once too often does no harm */
}

static void a_skipped_update_is_done_and_its_chat_goes_on(void **state)
{
        struct rig *g = *state;
        struct update *first = add(g, "a", "1");

        intake_prepared(&add(g, "a", "2")->base);
        intake_skip(&first->base);
        assert_true(first->was_stored);
        assert_ptr_equal(g->freed[0], first);
        expect_arrivals("2");
}

/* ---- the end of an update ---- */

static void an_update_is_done_when_all_its_events_are_committed(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");
        struct incoming two[2] = { { .key = "1", .channel = "a" }, { .key = "2", .channel = "a" } };

        u->base.content.events = two;
        u->base.content.event_count = 2;
        intake_prepared(&u->base);
        fake_road_ack(1, ERR_NONE);
        assert_false(u->was_stored);
        fake_road_ack(0, ERR_NONE);
        assert_true(u->was_stored);
        assert_int_equal(g->intake.count, 0);
        assert_int_equal(g->advanced, 1);
}

static void repeatable_updates_leave_in_order(void **state)
{
        struct rig *g = *state;
        struct update *first, *second;

        g->intake.leaves_in_order = true;
        intake_prepared(&(first = add(g, "a", "1"))->base);
        intake_prepared(&(second = add(g, "b", "2"))->base);
        fake_road_ack(1, ERR_NONE);
        assert_true(second->was_stored);
        assert_int_equal(g->intake.count, 2);
        fake_road_ack(0, ERR_NONE);
        assert_true(first->was_stored);
        assert_int_equal(g->intake.count, 0);
}

static void a_refused_update_is_offered_again(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");

        intake_prepared(&u->base);
        fake_road_ack(0, ERR_FULL);
        assert_int_equal(g->intake.refusals, 1);
        intake_prepared(&add(g, "b", "2")->base);
        expect_arrivals("1"); /* the inbox is left alone for a moment */
        wait_for_arrivals(g, 3);
        expect_arrivals("1 1 2");
        fake_road_ack(1, ERR_NONE);
        assert_true(u->was_stored);
        assert_int_equal(g->intake.refusals, 0);
}

static void a_refused_update_whose_sender_retries_is_given_back(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");

        u->base.sender_retries = true;
        intake_prepared(&u->base);
        fake_road_ack(0, ERR_LIMIT);
        assert_true(u->was_given_back && !u->was_stored);
        assert_int_equal(g->intake.count, 0);
}

static void an_event_that_is_never_accepted_is_dropped(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");

        intake_prepared(&u->base);
        fake_road_ack(0, ERR_INVALID);
        assert_true(u->was_stored);
}

static void compose_twice(struct intake_update *u, struct intake_content *out)
{
        out->event_count = 2;
        out->events = arena_alloc(&out->arena, 2 * sizeof(*out->events));
        out->events[0] = out->events[1] = u->content.events[0];
}

static bool store_twice(struct intake_update *u)
{
        u->compose = compose_twice;
        return ((struct update *)u)->duplicates++ == 0;
}

static void other_events_may_take_the_place_of_a_duplicate(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");

        handlers.duplicate = store_twice;
        intake_prepared(&u->base);
        fake_road_answer(0, INBOX_DUPLICATE, ERR_NONE);
        assert_false(u->was_stored);
        expect_arrivals("1 1 1");
        fake_road_answer(1, INBOX_DUPLICATE, ERR_NONE);
        fake_road_ack(2, ERR_NONE);
        assert_true(u->was_stored);
}

static void closing_gives_back_what_is_not_committed(void **state)
{
        struct rig *g = *state;
        struct update *storing = add(g, "a", "1"), *refused = add(g, "c", "3"), *preparing;

        intake_prepared(&storing->base);
        intake_prepared(&refused->base);
        fake_road_ack(1, ERR_FULL);
        preparing = add(g, "b", "2");
        intake_close(&g->intake);
        assert_int_equal(g->intake.ready, 0);
        assert_true(storing->was_given_back);
        assert_true(refused->was_given_back);
        assert_true(preparing->was_given_back);
        intake_open(&g->intake, &g->adapter, &handlers);
}

/* ---- files and parts ---- */

/* Its sender has not been judged yet. */
static void an_update_does_not_wait_for_its_files(void **state)
{
        struct rig *g = *state;
        struct update *u = add(g, "a", "1");

        add_file(u, 10);
        intake_prepared(&u->base);
        expect_arrivals("1");
        assert_int_equal(fake_road.arrivals[0].attachments, 1);
        assert_string_equal(fake_road.received.attachments[0].source, "source");
        assert_null(fake_road.received.attachments[0].path);
}

static void parts_are_stored_with_their_lead(void **state)
{
        struct rig *g = *state;
        struct update *lead = add(g, "a", "1"), *part = add(g, "a", "2");

        intake_wait(&lead->base, 20);
        intake_prepared(&lead->base);
        intake_join(&lead->base, &part->base);
        intake_prepared(&part->base);
        intake_prepared(&add(g, "a", "3")->base);
        expect_arrivals(""); /* another part may come */
        wait_for_arrivals(g, 2);
        expect_arrivals("1 3");
        fake_road_ack(0, ERR_NONE);
        assert_true(lead->was_stored && part->was_stored);
        assert_int_equal(g->intake.count, 1);
}

/* Something between them is not stored yet. */
static void a_part_may_stay_longer_than_its_lead(void **state)
{
        struct rig *g = *state;
        struct update *lead, *other, *part;

        g->intake.leaves_in_order = true;
        lead = add(g, "a", "1");
        other = add(g, "b", "2");
        part = add(g, "a", "3");
        intake_join(&lead->base, &part->base);
        intake_prepared(&other->base);
        intake_prepared(&part->base);
        intake_prepared(&lead->base);
        expect_arrivals("2 1");
        fake_road_ack(1, ERR_NONE);
        assert_true(lead->was_stored && part->was_stored);
        assert_int_equal(g->freed_count, 1);
        free(g->freed[--g->freed_count]);
        intake_hold(&g->intake, "c");
        intake_release(&g->intake, "c"); /* looks at the window */
        assert_int_equal(g->intake.count, 2);
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(g->intake.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                TEST(one_chat_keeps_its_order_and_others_do_not_wait),
                TEST(an_urgent_update_waits_for_nothing),
                TEST(a_held_chat_waits_while_its_backfill_goes_first),
                TEST(a_hold_ends_when_it_is_released_as_often_as_held),
                TEST(a_skipped_update_is_done_and_its_chat_goes_on),
                TEST(an_update_is_done_when_all_its_events_are_committed),
                TEST(repeatable_updates_leave_in_order),
                TEST(a_refused_update_is_offered_again),
                TEST(a_refused_update_whose_sender_retries_is_given_back),
                TEST(an_event_that_is_never_accepted_is_dropped),
                TEST(other_events_may_take_the_place_of_a_duplicate),
                TEST(closing_gives_back_what_is_not_committed),
                TEST(an_update_does_not_wait_for_its_files),
                TEST(parts_are_stored_with_their_lead),
                TEST(a_part_may_stay_longer_than_its_lead),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
