/*
 * fuzz_rules: reads a rule with its patterns and hours, matches it against an event, and explains.
 *
 * The input is a rule (JSON), a NUL, and a message. A rule that does not parse is used as a
 * pattern, so that the fuzzer reaches PCRE2 without having to write JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/dispatch_private.h"
#include "dispatch/rules/pattern.h"
#include "dispatch/rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum placement begin_turn(void *arg, struct decision *d)
{
        (void)arg;
        (void)d;
        return PLACEMENT_NEW_TURN;
}

static int read_rule(const char *text, size_t n, struct rule *out)
{
        struct error err = { 0 };
        struct settings_source *src = settings_source_new("config.json", NULL, text, n, &err);
        int rc = src ? rule_conf_read(src, 0, settings_source_root(src), out, &err) : -1;

        settings_source_free(src);
        return rc;
}

/* {"when": {"text": [pattern], "mentionPattern": [pattern]}} */
static int make_rule(const char *pattern, struct rule *out)
{
        struct buf json;
        int rc;

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_open_member(&json, "when", '{');
        jsonw_str(&json, "text", pattern);
        jsonw_str(&json, "mentionPattern", pattern);
        jsonw_close(&json, '}');
        jsonw_close(&json, '}');
        rc = read_rule(json.data, json.len, out);
        buf_release(&json);
        return rc;
}

static void ask(struct rule *r, const char *text)
{
        struct incoming in = { .adapter = "tg",
                               .platform = "telegram",
                               .channel = text,
                               .chat = CHAT_GROUP,
                               .sender_id = text,
                               .text = text,
                               .emoji = text,
                               .metadata = text,
                               .time_ms = 1794728171127 };
        struct buf why;

        buf_init(&why, 0);
        for (int type = 0; type < 2; type++) {
                in.type = type == 0 ? EVENT_MESSAGE_RECEIVED : EVENT_REACTION_RECEIVED;
                in.sender_is_bot = type == 1;
                struct rule_context context = { .in = &in,
                                                .platform = "telegram",
                                                .in_session = type == 0 };
                if (!rule_matches(r, &context, &why) && why.len == 0)
                        abort(); /* a refusal without a reason */
                rule_context_release(&context);
                buf_clear(&why);
        }
        buf_release(&why);
}

static void ask_access(char *entry, const char *text)
{
        struct setting_list list = { &entry, 1, true };
        struct access_lists lists = {
                .admins = &list, .dm = &list, .allow = &list, .block = &list, .channels = &list
        };
        struct access *a = access_new(&lists);
        struct incoming in = { .channel = text, .sender_id = text, .metadata = text };
        struct buf why;

        buf_init(&why, 0);
        if (!access_allows(a, &in, &why) && why.len == 0)
                abort();
        access_describe(a, &why);
        buf_release(&why);
        access_free(a);
}

/* The arguments of a command must be part of the text. */
static void ask_command(const char *text)
{
        const char *rest = NULL;
        const struct chat_command *c = command_parse(text, &rest), *meant = command_suggest(text);

        if (c && (!rest || rest < text || rest > text + strlen(text) || meant))
                abort();
}

/* The whole evaluator: a refusal must have a reason, and a trigger an agent. */
static void decide(struct rule *rules, const char *text)
{
        static struct dispatch *d;
        struct dispatch_adapter *a = mem_array(1, sizeof(*a));
        struct incoming in = { .adapter = "tg",
                               .platform = "telegram",
                               .channel = "c",
                               .chat = CHAT_GROUP,
                               .sender_id = "7",
                               .text = text,
                               .metadata = text,
                               .is_mention = true };
        struct decision out;

        if (!d)
                d = dispatch_new();
        a[0] = (struct dispatch_adapter){ .name = mem_strdup("tg"),
                                          .platform = mem_strdup("telegram"),
                                          .trusted = true,
                                          .commands = true,
                                          .conversation_seconds = 300 };
        dispatch_set(d, a, 1, rules, rules ? 1 : 0, "agent");
        dispatch_set_clock(d, 1794728171127);
        dispatch_decide(d, &in, &(struct placement_query){ begin_turn, NULL }, &out);
        if (out.trigger ? !out.agent : !out.reason)
                abort();
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        if (out.session)
                dispatch_ended(d,
                               &(struct turn_run){
                                       .adapter = "tg", .channel = "c", .session = out.session },
                               &(struct turn_outcome){ .answered = true });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rule *taken;
        char *all = mem_alloc(size + 1);
        const char *text;
        struct hours_list list;
        struct hours h;
        struct rule r;

        memcpy(all, data, size);
        all[size] = '\0';
        text = strlen(all) < size ? all + strlen(all) + 1 : "";
        if (hours_parse(all, &h) == 0)
                (void)hours_hold(&h, (struct moment){ 3, 600 });
        if (hours_list_parse(all, &list) == 0)
                (void)hours_list_end(&list, NULL, 0);
        ask_access(all, text);
        ask_command(text);
        if (read_rule(all, strlen(all), &r) == 0 || make_rule(all, &r) == 0) {
                ask(&r, text);
                taken = mem_array(1, sizeof(*taken));
                taken[0] = r;
                decide(taken, text);
        }
        free(all);
        return 0;
}
