/* What agents say in either version of A2A, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a_answer.h"
#include "agent/a2a/a2a_card.h"
#include "agent/a2a/a2a_wire.h"
#include "base/json.h"
#include "base/mem.h"

static void names_of_both_versions_are_known(void **state)
{
        static const char *const others[] = { "2.0", "0.2.5", "1", "", "1.01", "0.30" };
        enum a2a_version v, w;
        enum a2a_method m, n;

        (void)state;
        for (v = A2A_1_0; v <= A2A_0_3; v++) {
                assert_true(a2a_version_parse(a2a_version_name(v), &w));
                assert_int_equal(v, w);
                for (enum a2a_state s = A2A_UNKNOWN; s < A2A_STATES; s++)
                        assert_int_equal(a2a_state_parse(a2a_state_name(v, s)), s);
                for (m = 0; m < A2A_METHODS; m++) {
                        assert_true(a2a_method_parse(a2a_method_name(v, m), &w, &n));
                        assert_int_equal(v, w);
                        assert_int_equal(m, n);
                }
        }
        assert_true(a2a_version_parse("1.0.1", &w));
        assert_false(a2a_version_parse(NULL, &w));
        for (size_t i = 0; i < COUNT(others); i++)
                assert_false(a2a_version_parse(others[i], &w));
        assert_int_equal(a2a_state_parse("TASK_STATE_NEW"), A2A_UNKNOWN);
        assert_int_equal(a2a_state_parse(NULL), A2A_UNKNOWN);
        assert_false(a2a_method_parse("tasks/", &w, &n));
}

static void a_part_that_is_written_is_read_again(void **state)
{
        json_t *data = json_pack("{s:[i,b]}", "n", 7, 1);
        const struct a2a_part parts[] = {
                { A2A_TEXT, .text = "héllo \"x\"" },
                { A2A_RAW, .text = "aGk=", .name = "a.txt", .mime = "text/plain" },
                { A2A_URL, .text = "https://x.example/y", .name = "y" },
                { A2A_DATA, .data = data },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(parts); i++) {
                for (enum a2a_version v = A2A_1_0; v <= A2A_0_3; v++) {
                        const struct a2a_part *p = &parts[i];
                        struct a2a_part got;
                        struct buf b;
                        json_t *root;

                        buf_init(&b, 0);
                        a2a_part_write(&b, v, p);
                        root = json_read(b.data, b.len, NULL);
                        assert_non_null(root);
                        assert_int_equal(json_object_get(root, "kind") != NULL, v == A2A_0_3);
                        assert_true(a2a_part_read(root, &got));
                        assert_int_equal(got.kind, p->kind);
                        if (p->text)
                                assert_string_equal(got.text, p->text);
                        else
                                assert_true(json_equal(got.data, p->data));
                        if (p->name)
                                assert_string_equal(got.name, p->name);
                        if (p->mime)
                                assert_string_equal(got.mime, p->mime);
                        json_decref(root);
                        buf_release(&b);
                }
        }
        json_decref(data);
}

static void a_result_of_either_form_is_the_same(void **state)
{
        static const struct {
                const char *text;
                enum a2a_kind kind;
                enum a2a_state state;
        } rows[] = {
                { "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                  "\"TASK_STATE_WORKING\"}}}",
                  A2A_TASK, A2A_WORKING },
                { "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_FAILED\"}}",
                  A2A_TASK, A2A_FAILED },
                { "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                  "\"working\"}}",
                  A2A_TASK, A2A_WORKING },
                { "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                  "\"TASK_STATE_CANCELED\"}}}",
                  A2A_STATUS, A2A_CANCELED },
                { "{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\",\"final\":true,"
                  "\"status\":{\"state\":\"canceled\"}}",
                  A2A_STATUS, A2A_CANCELED },
                { "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"append\":true,"
                  "\"lastChunk\":true,\"artifact\":{}}}",
                  A2A_ARTIFACT, A2A_UNKNOWN },
                { "{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"contextId\":\"c\",\"append\":"
                  "true,\"lastChunk\":true,\"artifact\":{}}",
                  A2A_ARTIFACT, A2A_UNKNOWN },
                { "{\"message\":{\"messageId\":\"m\",\"taskId\":\"t\",\"contextId\":\"c\"}}",
                  A2A_MESSAGE, A2A_UNKNOWN },
                { "{\"kind\":\"message\",\"messageId\":\"m\",\"taskId\":\"t\",\"contextId\":\"c\"}",
                  A2A_MESSAGE, A2A_UNKNOWN },
        };
        static const char *const others[] = {
                "{}", "[]", "7", "{\"task\":7}", "{\"kind\":\"x\"}", "{\"id\":7,\"status\":{}}"
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *root = json_read(rows[i].text, strlen(rows[i].text), NULL);
                struct a2a_result r;

                a2a_result_read(root, &r);
                assert_int_equal(r.kind, rows[i].kind);
                assert_int_equal(r.state, rows[i].state);
                assert_string_equal(r.task, "t");
                assert_string_equal(r.context, "c");
                if (r.kind == A2A_ARTIFACT)
                        assert_true(r.append && r.artifact);
                if (r.kind == A2A_MESSAGE)
                        assert_string_equal(json_str(r.message, "messageId", ""), "m");
                json_decref(root);
        }
        for (size_t i = 0; i < COUNT(others); i++) {
                json_t *root = json_read(others[i], strlen(others[i]), NULL);
                struct a2a_result r;

                a2a_result_read(root, &r);
                assert_int_equal(r.kind, A2A_NOTHING);
                json_decref(root);
        }
}

static void the_first_interface_that_we_speak_is_taken(void **state)
{
        static const struct {
                const char *card, *url;
                enum a2a_version v;
        } rows[] = {
                { "{\"supportedInterfaces\":[{\"url\":\"http://g\",\"protocolBinding\":\"GRPC\","
                  "\"protocolVersion\":\"1.0\"},{\"url\":\"http://o\",\"protocolBinding\":"
                  "\"JSONRPC\",\"protocolVersion\":\"0.3\"},{\"url\":\"http://n\","
                  "\"protocolBinding\":\"jsonrpc\",\"protocolVersion\":\"1.0\"}]}",
                  "http://n", A2A_1_0 },
                { "{\"supportedInterfaces\":[{\"url\":\"http://o\",\"protocolBinding\":\"JSONRPC\","
                  "\"protocolVersion\":\"0.3.0\"}]}",
                  "http://o", A2A_0_3 },
                { "{\"url\":\"http://o\",\"protocolVersion\":\"0.3.0\"}", "http://o", A2A_0_3 },
                { "{\"url\":\"http://o\"}", "http://o", A2A_0_3 },
                { "{\"url\":\"http://g\",\"preferredTransport\":\"GRPC\",\"additionalInterfaces\":["
                  "{\"url\":\"http://h\",\"transport\":\"HTTP+JSON\"},{\"url\":\"http://j\","
                  "\"transport\":\"JSONRPC\"}]}",
                  "http://j", A2A_0_3 },
                /* cards for both kinds of clients */
                { "{\"url\":\"http://o\",\"protocolVersion\":\"0.3.0\",\"supportedInterfaces\":[{"
                  "\"url\":\"http://n\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":"
                  "\"1.0\"}]}",
                  "http://n", A2A_1_0 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *root = json_read(rows[i].card, strlen(rows[i].card), NULL);
                struct error err = { 0 };
                struct a2a_card *c = a2a_card_read(root, &err);

                if (!c)
                        fail_msg("%s", err.text);
                assert_string_equal(c->url, rows[i].url);
                assert_int_equal(c->version, rows[i].v);
                a2a_card_unref(c);
                json_decref(root);
        }
}

/* A name that only looks alike is another origin. */
static void only_our_own_origins_are_trusted(void **state)
{
        static char origin[] = "https://rpc.example";
        static char *items[] = { origin };
        static const struct setting_list origins = { items, 1, true };
        static const struct {
                const char *url;
                int trust; /* -1: must not be used */
        } rows[] = {
                { "https://agent.example/rpc", A2A_OURS },
                { "https://AGENT.example:443/rpc", A2A_OURS },
                { "https://rpc.example/x", A2A_OURS },
                { "https://agent.example:8443/rpc", A2A_STRANGER },
                { "https://agent.example.evil/rpc", A2A_STRANGER },
                { "https://agent.example@evil.example/", A2A_STRANGER },
                { "http://agent.example/rpc", -1 },
                { "http://rpc.example/", -1 },
                { "ftp://agent.example/", -1 },
                { "/rpc", -1 },
                { "", -1 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                enum a2a_trust trust = A2A_OURS;
                int rc = a2a_card_trust(rows[i].url, "https://agent.example/card.json", &origins,
                                        &trust, NULL);

                if ((rc < 0 ? -1 : (int)trust) != rows[i].trust)
                        fail_msg("%s", rows[i].url);
        }
}

static void add(struct a2a_answer *a, const char *text, bool append)
{
        json_t *root = json_read(text, strlen(text), NULL);

        assert_non_null(root);
        a2a_answer_add(a, root, append);
        json_decref(root);
}

static void expect(const struct a2a_answer *a, const char *text)
{
        struct buf b;

        buf_init(&b, 0);
        a2a_answer_write(a, &b);
        assert_string_equal(b.data, text);
        buf_release(&b);
}

static void artifacts_are_kept_apart_by_their_ids(void **state)
{
        struct a2a_answer a;
        json_t *list;

        (void)state;
        a2a_answer_init(&a);
        add(&a, "{\"artifactId\":\"x\",\"parts\":[{\"text\":\"1\"},{\"text\":\"2\"}]}", true);
        add(&a, "{\"artifactId\":\"y\",\"parts\":[{\"text\":\" \"}]}", false);
        add(&a, "{\"artifactId\":\"x\",\"parts\":[{\"kind\":\"text\",\"text\":\"3\"}]}", true);
        expect(&a, "123");
        add(&a, "{\"artifactId\":\"y\",\"parts\":[{\"text\":\"y\"}]}", true);
        expect(&a, "123\n\n y");
        add(&a, "{\"artifactId\":\"x\",\"parts\":[]}", false);
        expect(&a, " y");
        add(&a, "{\"parts\":\"odd\"}", false);
        add(&a, "[]", false);
        expect(&a, " y");
        /* as a list, careless ones are all shown */
        list = json_loads("[{\"parts\":[{\"text\":\"a\"}]},{\"parts\":[{\"text\":\"b\"}]},"
                          "{\"artifactId\":\"z\",\"parts\":[{\"text\":\"c\"}]},"
                          "{\"artifactId\":\"z\",\"parts\":[{\"text\":\"d\"}]}]",
                          0, NULL);
        a2a_answer_replace(&a, list);
        expect(&a, "a\n\nb\n\ncd");
        a2a_answer_set_old(&a);
        expect(&a, "");
        add(&a, "{\"artifactId\":\"new\",\"parts\":[{\"text\":\"e\"}]}", false);
        a2a_answer_replace(&a, list);
        expect(&a, "");
        json_decref(list);
        list = json_loads("[{\"artifactId\":\"z\",\"parts\":[{\"text\":\"changed\"}]}]", 0, NULL);
        a2a_answer_replace(&a, list);
        expect(&a, "changed");
        json_decref(list);
        a2a_answer_release(&a);
}

static void files_have_a_limit_together(void **state)
{
        struct a2a_answer a;
        json_t *part = json_pack("{s:o, s:s}", "raw", json_string(""), "filename", "f"), *artifact;
        char *megabyte = mem_zalloc((1 << 20) + 1);

        (void)state;
        memset(megabyte, 'A', 1 << 20);
        json_object_set_new(part, "raw", json_string(megabyte));
        artifact = json_pack("{s:s, s:[O,O,O,O,O,O,O,O,O,O]}", "artifactId", "x", "parts", part,
                             part, part, part, part, part, part, part, part, part);
        a2a_answer_init(&a);
        a2a_answer_add(&a, artifact, true);
        assert_int_equal(a.file_count, 10);
        assert_false(a.cut);
        a2a_answer_add(&a, artifact, true);
        assert_int_equal(a.file_count, 16);
        assert_true(a.cut);
        a2a_answer_add(&a, artifact, false); /* they are released */
        assert_int_equal(a.file_count, 10);
        assert_int_equal(a.file_bytes, 10 << 20);
        a2a_answer_release(&a);
        assert_int_equal(a.file_bytes, 0);
        json_decref(artifact);
        json_decref(part);
        free(megabyte);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_of_both_versions_are_known),
                cmocka_unit_test(a_part_that_is_written_is_read_again),
                cmocka_unit_test(a_result_of_either_form_is_the_same),
                cmocka_unit_test(the_first_interface_that_we_speak_is_taken),
                cmocka_unit_test(only_our_own_origins_are_trusted),
                cmocka_unit_test(artifacts_are_kept_apart_by_their_ids),
                cmocka_unit_test(files_have_a_limit_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
