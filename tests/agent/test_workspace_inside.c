/* What commands in a sandbox can do to the records of their channel and to what is shared. */
#include "sandbox_rig.h"

#include "agent/workspace/log_file.h"

static void append_limited(const struct rig *r, int64_t seq, const char *payload, int64_t max)
{
        const struct bus_event e = { .seq = seq,
                                     .type = "message.received",
                                     .adapter = "tg",
                                     .channel = "42",
                                     .time_ms = 1763287200000,
                                     .payload = payload };
        const struct bus_event *list[] = { &e };
        const struct log_target to = { r->dir, max, 100 };
        struct error err;

        if (log_file_append(&to, list, 1, &err) < 0)
                fail_msg("%s", err.text);
}

static void append(const struct rig *r, int64_t seq, const char *payload)
{
        append_limited(r, seq, payload, 1 << 20);
}

static void records_and_what_is_shared_cannot_be_changed_inside(void **state)
{
        struct rig *r = *state;

        scratch_put(r->dir, "workspace/MEMORY.md", "shared\n");
        rig_view(r, "42");
        rig_expect(r,
                   "for f in log.jsonl context.jsonl /workspace/MEMORY.md; do\n"
                   "  (echo x >>$f) 2>/dev/null && echo wrote $f\n"
                   "  (: >$f) 2>/dev/null && echo emptied $f\n"
                   "  rm -f $f 2>/dev/null && echo removed $f\n"
                   "  mv $f moved 2>/dev/null && echo moved $f\n"
                   "  ln -sf /etc/passwd $f 2>/dev/null && echo linked $f\n"
                   "done\n"
                   "cat /workspace/MEMORY.md\n"
                   "echo mine >MEMORY.md && cat MEMORY.md\n",
                   "shared\nmine\n");
}

/* A sandbox stands for a while, so what it mounted must be the file that grows. */
static void a_standing_sandbox_sees_new_messages(void **state)
{
        struct rig *r = *state;

        rig_expect(r, "cat log.jsonl", "");
        append(r, 1, "{\"id\":\"1\",\"text\":\"first\"}");
        append(r, 2, "{\"id\":\"2\",\"text\":\"second\"}");
        rig_expect(r, "wc -l <log.jsonl", "2\n");
        append_limited(r, 3, "{\"id\":\"3\",\"text\":\"third\"}", 10); /* it is put aside */
        append(r, 4, "{\"id\":\"4\",\"text\":\"fourth\"}");
        rig_expect(r, "grep -o '\"text\":\"[a-z]*\"' log.1.jsonl log.jsonl",
                   "log.1.jsonl:\"text\":\"first\"\nlog.1.jsonl:\"text\":\"second\"\n"
                   "log.1.jsonl:\"text\":\"third\"\nlog.jsonl:\"text\":\"fourth\"\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(records_and_what_is_shared_cannot_be_changed_inside),
                TEST(a_standing_sandbox_sees_new_messages),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
