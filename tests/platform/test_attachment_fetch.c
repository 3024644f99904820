/* Downloads of attachments: places and budgets of an adapter and of each sender. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/mem.h"
#include "platform/attachment_fetch.h"

#define WISHES 300

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct adapter adapter;
        struct attachment_files *files;
        struct attachment_limits limits;
        struct wish {
                struct rig *rig;
                struct attachment_fetch *fetch;
                char path[60];
                int64_t size;
                char why[120];
                bool done;
        } wishes[WISHES];
        unsigned count, located, done, cancelled;
        char order[WISHES + 1]; /* first letter of the sources, as they were located */
};

static int64_t max_bytes(const struct adapter *a)
{
        (void)a;
        return 1 << 20;
}

/* Never answers by itself. The source is "<sender> <number>". */
static void *locate(struct adapter *a, struct attachment_fetch *f, const char *source)
{
        struct rig *g = a->self;

        g->order[g->located++] = source[0];
        (void)f;
        return g;
}

static void cancel(void *lookup)
{
        ((struct rig *)lookup)->cancelled++;
}

static const struct attachment_source source = { max_bytes, locate, cancel };
static const struct platform_ops ops = { .name = "fake", .title = "Fake", .files = &source };

static int begin(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        g->dir = scratch_new();
        g->loop = loop_new();
        g->http = http_client_new(g->loop, NULL, NULL);
        g->files = attachment_files_new(g->loop, g->dir);
        g->limits = *attachment_files_limits(g->files);
        g->adapter = (struct adapter){
                .ops = &ops, .name = "x", .loop = g->loop, .http = g->http, .dir = g->dir, .self = g
        };
        g->adapter.files = attachment_queue_new(&g->adapter, g->files);
        *state = g;
        return 0;
}

static int end(void **state)
{
        struct rig *g = *state;

        attachment_queue_free(g->adapter.files);
        attachment_files_free(g->files);
        http_client_free(g->http);
        loop_free(g->loop);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static void on_fetched(void *arg, int64_t size, const char *why)
{
        struct wish *w = arg;

        w->fetch = NULL;
        w->size = size;
        w->done = true;
        w->rig->done++;
        snprintf(w->why, sizeof(w->why), "%s", why ? why : "");
}

static struct wish *wish(struct rig *g, const char *sender, int64_t size)
{
        struct wish *w = &g->wishes[g->count];

        w->rig = g;
        snprintf(w->path, sizeof(w->path), "channels/x/c/attachments/%u-a", g->count++);
        w->fetch = attachment_fetch_start(
                g->adapter.files,
                &(struct attachment_order){
                        .source = sender, .path = w->path, .sender = sender, .size = size },
                on_fetched, w);
        return w;
}

/* Looked for in order, so the last one to be looked for is the last of all. */
static void await_looks(struct rig *g)
{
        struct wish last = { .rig = g };

        attachment_files_find(g->files, "channels/x/c/attachments/0-none", 0, on_fetched, &last);
        while (!last.done)
                loop_step(g->loop, true);
        g->done--;
}

static void one_sender_leaves_places_to_others(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 150; i++)
                wish(g, "flooder", 1000);
        wish(g, "ann", 1000);
        wish(g, "bob", 1000);
        await_looks(g);
        assert_string_equal(g->order, "ffab");
        /* a place that becomes free goes to the one with the fewest */
        wish(g, "cid", 1000);
        await_looks(g);
        attachment_fetch_fail(g->wishes[0].fetch, "gone");
        assert_string_equal(g->order, "ffabc");
}

static void a_flooder_is_refused_and_nobody_else(void **state)
{
        struct rig *g = *state;
        unsigned refused = 0;

        for (int i = 0; i < 150; i++)
                wish(g, "flooder", 1000);
        for (int i = 0; i < 10; i++)
                wish(g, "ann", 1000);
        await_looks(g);
        for (int i = 0; i < 150; i++)
                refused += g->wishes[i].done;
        assert_int_equal(refused, 130); /* senderQueue is 20 */
        assert_string_equal(g->wishes[149].why, "too many files of this sender wait to be "
                                                "downloaded (attachments.senderQueue)");
        for (int i = 150; i < 160; i++)
                assert_false(g->wishes[i].done);
}

static void a_full_queue_takes_from_the_sender_with_the_most(void **state)
{
        struct rig *g = *state;

        g->limits.adapter_queue = 10;
        attachment_files_set_limits(g->files, &g->limits);
        for (int i = 0; i < 8; i++)
                wish(g, "flooder", 1000);
        wish(g, "bob", 1000);
        wish(g, "cid", 1000);
        await_looks(g);
        assert_int_equal(g->done, 0);
        wish(g, "ann", 1000);
        await_looks(g);
        assert_int_equal(g->done, 1);
        assert_true(g->wishes[7].done); /* the flooder's newest */
        assert_string_equal(g->wishes[7].why,
                            "too many files wait to be downloaded (attachments.adapterQueue)");
        wish(g, "flooder", 1000);
        await_looks(g);
        assert_true(g->wishes[11].done);
}

static const char sender_refusal[] = "this sender's files have used up the budget for this hour "
                                     "(attachments.senderBytesPerHour)";

static void budgets_of_bytes_are_kept(void **state)
{
        struct rig *g = *state;

        g->limits.sender_hour_bytes = 3 << 20;
        g->limits.adapter_hour_bytes = 4 << 20;
        attachment_files_set_limits(g->files, &g->limits);
        wish(g, "ann", 1 << 20);
        wish(g, "ann", 1 << 20);
        wish(g, "ann", 1 << 20);
        wish(g, "ann", 1);
        wish(g, "bob", 1 << 20);
        wish(g, "bob", 1);
        await_looks(g);
        assert_int_equal(g->done, 2);
        assert_string_equal(g->wishes[3].why, sender_refusal);
        assert_string_equal(
                g->wishes[5].why,
                "the budget for this hour is used up (attachments.adapterBytesPerHour)");
}

static void budgets_begin_again_every_hour(void **state)
{
        struct rig *g = *state;
        struct wish *bob, *refused, *ann;
        int64_t start;

        g->limits.sender_hour_bytes = 1 << 20;
        g->limits.adapter_hour_bytes = 2 << 20;
        attachment_files_set_limits(g->files, &g->limits);
        ann = wish(g, "ann", 1 << 20);
        bob = wish(g, "bob", 1 << 20);
        await_looks(g);
        attachment_fetch_fail(bob->fetch, "gone");
        refused = wish(g, "ann", 1 << 20);
        await_looks(g);
        assert_string_equal(refused->why, sender_refusal);
        assert_false(ann->done);
        g->limits.hour_ms = 2;
        attachment_files_set_limits(g->files, &g->limits);
        for (start = loop_now_ms(g->loop); loop_now_ms(g->loop) < start + 3;)
                loop_step(g->loop, false);
        wish(g, "ann", 1 << 20);
        wish(g, "bob", 1 << 20);
        await_looks(g);
        assert_int_equal(g->done, 2); /* no other is refused */
}

static void small_files_are_limited_in_number(void **state)
{
        struct rig *g = *state;

        g->limits.sender_hour_bytes = 3 * 65536;
        attachment_files_set_limits(g->files, &g->limits);
        for (int i = 0; i < 4; i++)
                wish(g, "ann", 1);
        await_looks(g);
        assert_int_equal(g->done, 1);
        assert_string_equal(g->wishes[3].why, sender_refusal);
}

/* What was announced as small, or not at all, costs what arrives, or as much as may arrive. */
static void budgets_count_what_arrives(void **state)
{
        static const struct {
                size_t arrives;
                int64_t budget;
        } rows[] = { { 300000, 300000 + 65535 }, { 2 << 20, (1 << 20) + 65535 } };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char head[80], *bytes;
                int n = snprintf(head, sizeof(head),
                                 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", rows[i].arrives);
                struct fake_answer answer = { .n = (size_t)n + rows[i].arrives };
                struct fake_server *server;
                const char *sender = i == 0 ? "ann" : "bob";
                struct wish *w = wish(g, sender, 0), *second;
                char *url;

                bytes = mem_zalloc(answer.n);
                memcpy(bytes, head, (size_t)n);
                answer.bytes = bytes;
                server = fake_server_new(g->loop, &answer, 1);
                url = fake_server_url(server, "/a");
                g->limits.sender_hour_bytes = rows[i].budget;
                attachment_files_set_limits(g->files, &g->limits);
                await_looks(g);
                attachment_fetch_from(w->fetch, url);
                while (!w->done)
                        loop_step(g->loop, true);
                assert_int_equal(w->size, i == 0 ? (int64_t)rows[i].arrives : -1);
                second = wish(g, sender, 1);
                await_looks(g);
                assert_true(second->done);
                assert_string_equal(second->why, sender_refusal);
                fake_server_free(server);
                free(url);
                free(bytes);
        }
}

static void a_downloaded_file_is_not_downloaded_again(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthe bytes" }
        };
        struct rig *g = *state;
        struct fake_server *server = fake_server_new(g->loop, script, COUNT(script));
        char *url = fake_server_url(server, "/a");
        struct wish *w = wish(g, "ann", 9), *again;

        await_looks(g);
        attachment_fetch_from(w->fetch, url);
        while (!w->done)
                loop_step(g->loop, true);
        assert_int_equal(w->size, 9);
        again = &g->wishes[g->count++];
        again->rig = g;
        again->fetch = attachment_fetch_start(
                g->adapter.files,
                &(struct attachment_order){
                        .source = "ann", .path = w->path, .sender = "ann", .size = 9 },
                on_fetched, again);
        while (!again->done)
                loop_step(g->loop, true);
        assert_int_equal(again->size, 9);
        assert_int_equal(g->located, 1);
        assert_int_equal(fake_server_requests(server), 1);
        free(url);
        fake_server_free(server);
}

/* They could lead to any host. */
static void redirects_are_not_followed(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n" },
                { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthe bytes" }
        };
        struct rig *g = *state;
        struct fake_server *server = fake_server_new(g->loop, script, COUNT(script));
        char *url = fake_server_url(server, "/a");
        struct wish *w = wish(g, "ann", 9);

        await_looks(g);
        attachment_fetch_from(w->fetch, url);
        while (!w->done)
                loop_step(g->loop, true);
        assert_string_equal(w->why, "the download failed: Fake refused it");
        assert_int_equal(fake_server_requests(server), 1);
        free(url);
        fake_server_free(server);
}

static void a_dropped_fetch_gives_its_place_to_another(void **state)
{
        struct rig *g = *state;

        wish(g, "ann", 1);
        wish(g, "ann", 1);
        wish(g, "ann", 1);
        await_looks(g);
        assert_string_equal(g->order, "aa");
        attachment_fetch_drop(g->wishes[0].fetch);
        assert_int_equal(g->cancelled, 1);
        assert_string_equal(g->order, "aaa");
        assert_int_equal(g->done, 0);
}

static void a_closed_adapter_answers_every_fetch(void **state)
{
        struct rig *g = *state;

        wish(g, "ann", 1);
        await_looks(g);
        wish(g, "ann", 1);
        attachment_queue_free(g->adapter.files);
        g->adapter.files = NULL;
        assert_int_equal(g->done, 2);
        assert_string_equal(g->wishes[0].why, "its adapter was stopped");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                TEST(one_sender_leaves_places_to_others),
                TEST(a_flooder_is_refused_and_nobody_else),
                TEST(a_full_queue_takes_from_the_sender_with_the_most),
                TEST(budgets_of_bytes_are_kept),
                TEST(budgets_begin_again_every_hour),
                TEST(small_files_are_limited_in_number),
                TEST(budgets_count_what_arrives),
                TEST(a_downloaded_file_is_not_downloaded_again),
                TEST(redirects_are_not_followed),
                TEST(a_dropped_fetch_gives_its_place_to_another),
                TEST(a_closed_adapter_answers_every_fetch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
