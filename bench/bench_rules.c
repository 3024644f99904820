/*
 * bench_rules: decisions per second with 1,000 rules.
 *
 * Each line is a kind of rule, by the condition that rules out all but the last. "rules/s" counts
 * the rules tried.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

#define RULES    1000
#define ADAPTERS 10
#define TIME_NS  ((uint64_t)500000000)

/* One kind of rule. */
struct kind {
        const char *name;
        const char *before, *after; /* its number */
        bool spread;                /* a tenth of the rules for each adapter */
};

static const struct kind kinds[] = {
        { "other-adapters", "\"channel\": \"c", "\"", true },
        { "channels", "\"channel\": \"c", "\"", false },
        { "globs", "\"channel\": [\"c", "*\", \"x*y*z\"]", false },
        { "roles", "\"role\": \"r", "\"", false },
        { "patterns", "\"text\": \"^deploy service-", " to \\\\w+\"", false },
};

static void add_rule(struct buf *json, const struct kind *k, int n)
{
        buf_addf(json, "%s{\"name\": \"rule %d\", \"agent\": \"a\", \"when\": {", n > 0 ? "," : "",
                 n);
        if (k->spread)
                buf_addf(json, "\"adapter\": \"bot-%d\", ", n % ADAPTERS);
        buf_addf(json, "%s%d%s}}", k->before, n, k->after);
}

static struct rule *read_rules(const struct kind *k)
{
        struct rule *rules = mem_array(RULES, sizeof(*rules));
        struct settings_source *src;
        struct error err = { 0 };
        struct buf json;

        buf_init(&json, 0);
        buf_addch(&json, '[');
        for (int i = 0; i < RULES - 1; i++)
                add_rule(&json, k, i);
        buf_addstr(&json, ",{\"name\": \"rest\", \"agent\": \"a\"}]");
        src = settings_source_new("rules", NULL, json.data, json.len, &err);
        for (size_t i = 0; src && i < RULES; i++) {
                if (rule_conf_read(src, i, json_array_get(settings_source_root(src), i), &rules[i],
                                   &err) < 0)
                        break;
        }
        if (err.kind != ERR_NONE) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
        }
        settings_source_free(src);
        buf_release(&json);
        return rules;
}

static struct dispatch *dispatch_of(const struct kind *k)
{
        struct dispatch_adapter *a = mem_array(ADAPTERS, sizeof(*a));
        struct dispatch *d = dispatch_new();

        for (int i = 0; i < ADAPTERS; i++)
                a[i] = (struct dispatch_adapter){ .name = mem_printf("bot-%d", i),
                                                  .platform = mem_strdup("discord"),
                                                  .trusted = true };
        dispatch_set(d, a, ADAPTERS, read_rules(k), RULES, "a");
        return d;
}

static void measure(const struct kind *k)
{
        struct dispatch *d = dispatch_of(k);
        struct incoming in = {
                .adapter = "bot-3",
                .platform = "discord",
                .channel = "123456789012345678",
                .chat = CHAT_GROUP,
                .sender_id = "234567890123456789",
                .text = "deploy service-none to production when you have a minute, please",
                .metadata = "{\"roles\": [\"1\", \"2\", \"3\"]}"
        };
        uint64_t began = clock_mono_ns(), took;
        struct decision out;
        int64_t events = 0;

        do {
                for (int i = 0; i < 100; i++)
                        dispatch_decide(d, &in, NULL, &out);
                events += 100;
                took = clock_mono_ns() - began;
        } while (took < TIME_NS);
        if (!out.rule || strcmp(out.rule, "rest") != 0)
                exit(1);
        printf("%s %.0f %.1f %.1f\n", k->name, (double)events * 1e9 / (double)took,
               (double)took / 1000 / (double)events,
               (double)events * (k->spread ? RULES / ADAPTERS : RULES) * 1e3 / (double)took);
        dispatch_free(d);
}

int main(void)
{
        puts("rules events/s us/event million-rules/s");
        for (size_t i = 0; i < COUNT(kinds); i++)
                measure(&kinds[i]);
        return 0;
}
