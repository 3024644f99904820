/* log.jsonl has every message of a channel once, also after crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/bus_rig.h"
#include "agent/workspace/log_file.h"
#include "agent/workspace/log_record.h"
#include "agent/workspace/records.h"
#include "base/file.h"
#include "base/mem.h"

#define MAX_BYTES (1 << 20)

static int64_t say(struct bus_rig *r, const char *type, const char *channel, const char *payload)
{
        struct bus_event e = { .type = type,
                               .adapter = "tg",
                               .channel = channel,
                               .time_ms = 1763287200000,
                               .payload = payload };
        struct rig_append a;

        bus_rig_append(r, &a, &e, 1);
        return a.seq[0];
}

static void said(struct bus_rig *r, const char *channel, const char *id, const char *text)
{
        char *payload =
                mem_printf("{\"id\":\"%s\",\"channelId\":\"%s\",\"timestamp\":1763287200000,"
                           "\"sender\":{\"id\":\"7\",\"username\":\"ann\"},"
                           "\"text\":\"%s\"}",
                           id, channel, text);

        say(r, "message.received", channel, payload);
        free(payload);
}

static char *path_of(const struct bus_rig *r, const char *name)
{
        return mem_printf("%s/workspace/channels/tg/%s", r->dir, name);
}

static char *read_text(const struct bus_rig *r, const char *name)
{
        char *path = path_of(r, name);
        struct buf text;

        buf_init(&text, 0);
        file_read(path, 1 << 24, &text, NULL);
        free(path);
        return buf_take(&text);
}

/* Ids of the lines in order: "1 2 3". */
static void check_ids(const struct bus_rig *r, const char *name, const char *expected)
{
        char *text = read_text(r, name), *rest = text, *line;
        struct buf ids;

        buf_init(&ids, 0);
        while ((line = strsep(&rest, "\n")) && *line) {
                struct log_record record;
                json_t *json;

                assert_int_equal(log_record_read(&record, line, strlen(line), NULL, &json, NULL),
                                 0);
                buf_addf(&ids, "%s%s", ids.len ? " " : "", record.id);
                json_decref(json);
        }
        assert_string_equal(ids.data, expected);
        buf_release(&ids);
        free(text);
}

/* Runs the consumer until it has written everything. */
static void write_logs(struct bus_rig *r)
{
        struct log_files *fs = log_files_new(r->loop, r->bus, r->dir, MAX_BYTES);

        bus_rig_run(r);
        log_files_free(fs);
        bus_rig_run(r);
}

static void messages_become_lines_of_their_channel(void **state)
{
        struct bus_rig *r = *state;
        char *text;

        said(r, "42", "1", "hi");
        said(r, "43", "2", "others");
        say(r, "message.sent", "42",
            "{\"id\":\"3\",\"deliveryId\":\"dlv-1\",\"text\":\"<b>hello</b>\",\"plain\":\"hello\","
            "\"replyTo\":\"1\",\"turnId\":\"turn-1\"}");
        write_logs(r);
        text = read_text(r, "42/log.jsonl");
        assert_string_equal(
                text,
                "{\"id\":\"1\",\"channelId\":\"42\",\"timestamp\":\"2025-11-16T10:00:00.000Z\","
                "\"sender\":{\"id\":\"7\",\"username\":\"ann\",\"isBot\":false},"
                "\"text\":\"hi\",\"attachments\":[],\"isMention\":false,"
                "\"metadata\":{\"event\":\"evt-1\"}}\n"
                "{\"id\":\"3\",\"channelId\":\"42\",\"timestamp\":\"2025-11-16T10:00:00.000Z\","
                "\"sender\":{\"id\":\"bot\",\"username\":\"bot\",\"isBot\":true},"
                "\"text\":\"hello\",\"attachments\":[],\"isMention\":false,"
                "\"replyTo\":\"1\",\"metadata\":{\"event\":\"evt-3\",\"turn\":\"turn-1\"}}\n");
        free(text);
        check_ids(r, "43/log.jsonl", "2");
}

static void what_a_schedule_says_is_a_line(void **state)
{
        struct bus_rig *r = *state;
        struct bus_event e = { .type = "schedule.fired",
                               .adapter = "tg",
                               .channel = "42",
                               .key = "tick:3",
                               .time_ms = 1763287200000,
                               .payload =
                                       "{\"sender\":{\"id\":\"schedule\","
                                       "\"username\":\"sch-12\","
                                       "\"displayName\":\"nightly.json\"},"
                                       "\"text\":\"[EVENT:nightly.json:immediate:immediate] x\"}" };
        struct rig_append a;
        char *text;

        said(r, "42", "1", "hi");
        bus_rig_append(r, &a, &e, 1);
        say(r, "schedule.skipped", "42", "{}");
        write_logs(r);
        check_ids(r, "42/log.jsonl", "1 tick:3");
        text = read_text(r, "42/log.jsonl");
        assert_non_null(strstr(text, "\"displayName\":\"nightly.json\""));
        assert_non_null(strstr(text, "\"text\":\"[EVENT:nightly.json:immediate:immediate] x\""));
        free(text);
}

static void a_draft_counts_when_it_is_final(void **state)
{
        struct bus_rig *r = *state;
        char *text;

        say(r, "message.sent", "42", "{\"id\":\"1\",\"text\":\"hel\",\"draft\":true}");
        say(r, "delivery.sent", "42", "{\"id\":\"1\",\"text\":\"hello w\",\"draft\":true}");
        say(r, "delivery.sent", "42", "{\"id\":\"1\",\"text\":\"hello world\",\"answers\":[]}");
        say(r, "delivery.sent", "42", "{\"id\":\"2\",\"emoji\":\"x\"}");
        write_logs(r);
        check_ids(r, "42/log.jsonl", "1");
        text = read_text(r, "42/log.jsonl");
        assert_non_null(strstr(text, "\"hello world\""));
        free(text);
}

static void attachments_are_named_as_they_are_saved(void **state)
{
        struct bus_rig *r = *state;
        char *text;

        say(r, "message.received", "42",
            "{\"id\":\"5\",\"text\":\"\",\"attachments\":[{\"name\":\"a/b.png\",\"source\":\"x\","
            "\"mimeType\":\"image/png\",\"size\":9},{\"kind\":\"location\"}]}");
        write_logs(r);
        text = read_text(r, "42/log.jsonl");
        assert_non_null(strstr(text, "\"attachments\":[{\"filename\":\"a/b.png\",\"localPath\":"
                                     "\"attachments/5-a_b.png\",\"mimeType\":\"image/png\","
                                     "\"size\":9},{\"filename\":\"location\"}]"));
        free(text);
}

/* As after a crash between writing and moving the cursor, and in the middle of a line. */
static void nothing_is_written_twice_or_left_torn(void **state)
{
        struct bus_rig *r = *state;
        char *path = path_of(r, "42/log.jsonl");
        const struct bus_event again = { .seq = 1,
                                         .type = "message.received",
                                         .adapter = "tg",
                                         .channel = "42",
                                         .payload = "{\"id\":\"1\",\"text\":\"x\"}" };
        const struct bus_event *list[] = { &again };
        const struct log_target to = { r->dir, MAX_BYTES, 1000 };
        struct error err;
        int fd;

        said(r, "42", "1", "one");
        said(r, "42", "2", "two");
        write_logs(r);
        assert_int_equal(log_file_append(&to, list, 1, &err), 0);
        check_ids(r, "42/log.jsonl", "1 2");
        fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, "{\"id\":\"3\",\"te", 13), 13);
        close(fd);
        said(r, "42", "3", "three");
        write_logs(r);
        check_ids(r, "42/log.jsonl", "1 2 3");
        free(path);
}

static void a_large_log_is_put_aside_once(void **state)
{
        struct bus_rig *r = *state;
        const struct bus_event big = { .seq = 100,
                                       .type = "message.received",
                                       .adapter = "tg",
                                       .channel = "42",
                                       .time_ms = 1763287200000,
                                       .payload = "{\"id\":\"100\",\"text\":\"x\"}" };
        const struct bus_event *list[] = { &big };
        const struct log_target to = { r->dir, 10, 1000 };
        struct error err;

        said(r, "42", "1", "one");
        write_logs(r);
        assert_int_equal(log_file_append(&to, list, 1, &err), 0);
        check_ids(r, "42/log.1.jsonl", "1 100");
        check_ids(r, "42/log.jsonl", "");
        assert_int_equal(log_file_append(&to, list, 1, &err), 0); /* it is in the other */
        check_ids(r, "42/log.1.jsonl", "1 100");
        check_ids(r, "42/log.jsonl", "");
}

static void what_an_agent_put_there_is_renamed(void **state)
{
        struct bus_rig *r = *state;
        char *folder = path_of(r, "42"), *link = path_of(r, "42/log.jsonl"),
             *victim = mem_printf("%s/victim", r->dir);
        struct stat st;

        assert_int_equal(file_make_dirs(folder, NULL), 0);
        assert_int_equal(symlink(victim, link), 0);
        said(r, "42", "1", "one");
        write_logs(r);
        assert_int_equal(lstat(victim, &st), -1);
        check_ids(r, "42/log.jsonl", "1");
        assert_int_equal(unlink(link), 0);
        assert_int_equal(mkdir(link, 0700), 0);
        said(r, "42", "2", "two");
        write_logs(r);
        check_ids(r, "42/log.jsonl", "2");
        free(folder);
        free(link);
        free(victim);
}

/* An agent that runs on the host can write into the log, but not stop it. */
static void a_forged_number_does_not_stop_the_log(void **state)
{
        struct bus_rig *r = *state;
        char *path = path_of(r, "42/log.jsonl");
        FILE *f;

        said(r, "42", "1", "one");
        write_logs(r);
        f = fopen(path, "a");
        fputs("{\"id\":\"x\",\"timestamp\":\"2026-11-16T10:00:00Z\",\"text\":\"\","
              "\"metadata\":{\"event\":\"evt-900000\"}}\n",
              f);
        fclose(f);
        said(r, "42", "2", "two");
        write_logs(r);
        check_ids(r, "42/log.jsonl", "1 x 2");
        free(path);
}

static int rebuild(struct store_tx *tx, void *arg, struct error *err)
{
        struct log_rebuild report;

        return log_rebuild(tx, arg, MAX_BYTES, &report, err);
}

static void logs_are_made_anew_from_the_journal(void **state)
{
        struct bus_rig *r = *state;
        char *path = path_of(r, "42/log.jsonl"), *before, *after;
        struct error err;
        FILE *f;

        said(r, "42", "1", "one");
        said(r, "43", "2", "two");
        said(r, "42", "3", "three");
        write_logs(r);
        before = read_text(r, "42/log.jsonl");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(store_read_now(r->store, rebuild, r->dir, &err), 0);
        after = read_text(r, "42/log.jsonl");
        assert_string_equal(before, after);
        check_ids(r, "43/log.jsonl", "2");
        /* lines of mom stay, ours are written again */
        f = fopen(path, "w");
        fputs("{\"ts\":\"1.5\",\"date\":\"2020-01-01T00:00:00Z\",\"user\":\"U1\","
              "\"text\":\"old\"}\n"
              "garbage\n",
              f);
        fputs(after, f);
        fclose(f);
        assert_int_equal(store_read_now(r->store, rebuild, r->dir, &err), 0);
        free(after);
        after = read_text(r, "42/log.jsonl");
        assert_non_null(strstr(after, "\"old\""));
        assert_string_equal(strstr(after, "{\"id\":\"1\""), before);
        free(before);
        free(after);
        free(path);
}

static void apply(struct bus_rig *r, struct records *records, const char *word, bool has_builtin)
{
        struct workspace_conf conf = { .records = (char *)word,
                                       .log_bytes = MAX_BYTES,
                                       .context_bytes = MAX_BYTES };

        records_apply(records, &conf, has_builtin);
        bus_rig_run(r);
}

static void logs_are_written_where_a_built_in_agent_is(void **state)
{
        struct bus_rig *r = *state;
        struct records *records = records_new(r->loop, r->store, r->bus, r->dir);
        char *folder = path_of(r, "42");

        said(r, "42", "1", "one");
        apply(r, records, "auto", false);
        apply(r, records, "off", true);
        assert_int_equal(access(folder, F_OK), -1);
        apply(r, records, "auto", true);
        check_ids(r, "42/log.jsonl", "1");
        apply(r, records, "off", true);
        said(r, "42", "2", "two");
        bus_rig_run(r);
        check_ids(r, "42/log.jsonl", "1");
        apply(r, records, "on", false); /* what was said meanwhile is not lost */
        check_ids(r, "42/log.jsonl", "1 2");
        records_free(records);
        bus_rig_run(r);
        free(folder);
}

static void lines_of_mom_are_read(void **state)
{
        static const char legacy[] =
                "{\"date\":\"2026-11-15T02:51:01.042Z\",\"ts\":\"1794711061.042248\","
                "\"user\":\"U1\","
                "\"userName\":\"mario\",\"displayName\":\"Mario Z\",\"text\":\"look\","
                "\"attachments\":[{\"original\":\"my pic.png\",\"local\":"
                "\"D1/attachments/1794711061042_my_pic.png\"}],\"isBot\":false}",
                          bot[] = "{\"date\":\"2026-11-15T02:51:01.104Z\","
                                  "\"ts\":\"1794711061.059005\",\"user\":\"bot\","
                                  "\"text\":\"final\","
                                  "\"attachments\":[],\"isBot\":true}",
                          ancient[] = "{\"ts\":\"1794711061042\",\"user\":\"U1\",\"text\":\"x\"}",
                          sample[] = "{\"id\":\"9\",\"ts\":\"2026-11-15T02:51:01.042Z\",\"sender\":"
                                     "{\"id\":\"U1\",\"username\":\"m\",\"isBot\":false},"
                                     "\"text\":\"x\"}";
        struct log_record r;
        json_t *json;

        (void)state;
        assert_int_equal(log_record_read(&r, legacy, strlen(legacy), "D1", &json, NULL), 0);
        assert_string_equal(r.id, "1794711061.042248");
        assert_int_equal(r.time_ms, 1794711061042);
        assert_string_equal(r.username, "mario");
        assert_string_equal(r.attachments[0].path, "attachments/1794711061042_my_pic.png");
        json_decref(json);
        assert_int_equal(log_record_read(&r, bot, strlen(bot), "D1", &json, NULL), 0);
        assert_string_equal(r.username, "mom");
        assert_true(r.is_bot);
        json_decref(json);
        assert_int_equal(log_record_read(&r, ancient, strlen(ancient), "D1", &json, NULL), 0);
        assert_int_equal(r.time_ms, 1794711061042);
        json_decref(json);
        assert_int_equal(log_record_read(&r, sample, strlen(sample), "D1", &json, NULL), 0);
        assert_int_equal(r.time_ms, 1794711061042);
        json_decref(json);
        assert_int_equal(log_record_read(&r, "{}", 2, NULL, &json, NULL), -1);
        assert_int_equal(log_record_read(&r, "[1]", 3, NULL, &json, NULL), -1);
        assert_int_equal(log_record_read(&r, "{\"a", 3, NULL, &json, NULL), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bus_rig_setup, bus_rig_teardown)
        const struct CMUnitTest tests[] = {
                TEST(messages_become_lines_of_their_channel),
                TEST(what_a_schedule_says_is_a_line),
                TEST(a_draft_counts_when_it_is_final),
                TEST(attachments_are_named_as_they_are_saved),
                TEST(nothing_is_written_twice_or_left_torn),
                TEST(a_large_log_is_put_aside_once),
                TEST(what_an_agent_put_there_is_renamed),
                TEST(a_forged_number_does_not_stop_the_log),
                TEST(logs_are_made_anew_from_the_journal),
                TEST(logs_are_written_where_a_built_in_agent_is),
                cmocka_unit_test(lines_of_mom_are_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
