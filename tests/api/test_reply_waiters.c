/* Requests that wait for the reply to a message, or follow it as a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "api/core/api_core.h"
#include "api/core/reply_waiters.h"
#include "base/mem.h"

#define LONG_MS 600000

struct waiting {
        struct reply_waiter *waiter, *removes; /* removes: in the call; may be NULL */
        unsigned calls;
        char *text; /* NULL: time was up */
};

static void on_reply(void *arg, const struct awaited_reply *reply)
{
        struct waiting *w = arg;

        w->calls++;
        w->text = mem_strdup(reply ? reply->text : NULL);
        if (w->removes)
                reply_waiters_remove(w->removes);
}

static void begin(struct api_rig *r, struct waiting *w, int64_t event, bool now, int64_t ms)
{
        *w = (struct waiting){ 0 };
        w->waiter = reply_waiters_add(r->api->waiters, event, now, ms, on_reply, w);
}

/* A turn without an answer yet; the number of its message. */
static int64_t hang(struct api_rig *r)
{
        api_rig_expect(r, "POST", "/api/v2/messages/inbound", "{\"text\":\"hang on\"}", 202, NULL);
        api_rig_until(r, &r->hanging_count, 1);
        return api_rig_number(r, "max(seq) FROM journal WHERE type = 'message.received'");
}

static void all_who_wait_for_a_message_get_its_reply(void **state)
{
        struct api_rig *r = *state;
        struct waiting waiting[100], late;
        int64_t event = hang(r);

        for (size_t i = 0; i < COUNT(waiting); i++)
                begin(r, &waiting[i], event, i % 2 == 0, LONG_MS);
        assert_int_equal(reply_waiters_count(r->api->waiters), COUNT(waiting));
        api_rig_release(r);
        for (size_t i = 0; i < COUNT(waiting); i++) {
                api_rig_until(r, &waiting[i].calls, 1);
                assert_string_equal(waiting[i].text, "re: hang on");
                free(waiting[i].text);
        }
        assert_int_equal(reply_waiters_count(r->api->waiters), 0);
        begin(r, &late, event, true, LONG_MS);
        api_rig_until(r, &late.calls, 1);
        assert_string_equal(late.text, "re: hang on");
        free(late.text);
}

static void each_waits_for_its_own_time(void **state)
{
        struct api_rig *r = *state;
        struct waiting brief, longer;
        int64_t event = hang(r);

        begin(r, &longer, event, true, LONG_MS);
        begin(r, &brief, event, true, 1);
        api_rig_until(r, &brief.calls, 1);
        assert_null(brief.text);
        assert_int_equal(longer.calls, 0);
        api_rig_release(r);
        api_rig_until(r, &longer.calls, 1);
        assert_string_equal(longer.text, "re: hang on");
        free(longer.text);
}

static void who_no_longer_waits_is_not_called(void **state)
{
        struct api_rig *r = *state;
        struct waiting gone, remover, removed, last;
        int64_t event = hang(r);

        begin(r, &gone, event, true, LONG_MS);
        reply_waiters_remove(gone.waiter); /* the only one */
        assert_int_equal(reply_waiters_count(r->api->waiters), 0);
        begin(r, &last, event, true, LONG_MS);
        begin(r, &removed, event, true, LONG_MS);
        begin(r, &remover, event, true, LONG_MS); /* called before the others */
        remover.removes = removed.waiter;
        api_rig_release(r);
        api_rig_until(r, &last.calls, 1);
        assert_int_equal(remover.calls, 1);
        assert_int_equal(removed.calls, 0);
        assert_int_equal(gone.calls, 0);
        assert_int_equal(reply_waiters_count(r->api->waiters), 0);
        free(remover.text);
        free(last.text);
}

static void who_still_waits_is_told_when_the_api_closes(void **state)
{
        struct api_rig *r = *state;
        struct waiting waiting[3];
        int64_t event = hang(r);

        for (size_t i = 0; i < COUNT(waiting); i++)
                begin(r, &waiting[i], event, true, LONG_MS);
        api_rig_restart(r);
        for (size_t i = 0; i < COUNT(waiting); i++) {
                assert_int_equal(waiting[i].calls, 1);
                assert_null(waiting[i].text);
        }
        api_rig_release(r);
}

/* Its client has gone, and would have been forgotten only at the end of the turn. */
static void a_stream_without_a_client_waits_no_more(void **state)
{
        static const char body[] =
                "{\"model\":\"echo\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":"
                "\"hang on\"}]}";
        struct api_rig *r = *state;
        struct http_raw c;

        api_rig_send(r, &c, "POST", "/v1/chat/completions", "", body);
        assert_true(http_raw_wait_for(&c, "assistant"));
        api_rig_until(r, &r->hanging_count, 1);
        assert_int_equal(reply_waiters_count(r->api->waiters), 1);
        http_raw_reset(&c);
        /* the server notices when it writes */
        for (int i = 0; i < 1000000 && reply_waiters_count(r->api->waiters) > 0; i++) {
                turn_delta(r->hanging[0], "x", 1);
                loop_step(r->loop, false);
        }
        assert_int_equal(reply_waiters_count(r->api->waiters), 0);
        api_rig_release(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(all_who_wait_for_a_message_get_its_reply),
                API_RIG_CASE(each_waits_for_its_own_time),
                API_RIG_CASE(who_no_longer_waits_is_not_called),
                API_RIG_CASE(a_stream_without_a_client_waits_no_more),
                API_RIG_CASE(who_still_waits_is_told_when_the_api_closes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
