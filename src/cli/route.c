/*
 * Decides an event by the current configuration, without a daemon and without acting on it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/local_store.h"
#include "cli/print.h"
#include "config/config.h"
#include "dispatch/dry_run.h"

/* ---- event ---- */

struct event_lookup {
        int64_t seq;
        struct incoming *in;
};

static int find_event(struct store_tx *tx, void *arg, struct error *err)
{
        struct event_lookup *l = arg;

        l->in = dry_run_find(tx, l->seq, err);
        return l->in ? 0 : -1;
}

/* As the API shows it, perhaps in its envelope. */
static struct incoming *event_from_file(const char *path, struct error *err)
{
        struct incoming *in = NULL;
        char *text = args_file(path, err);
        json_t *json = text ? json_read(text, strlen(text), err) : NULL;
        const json_t *inner = json_object_get(json, "data");

        if (json)
                in = dry_run_event(inner ? inner : json, err);
        json_decref(json);
        free(text);
        return in;
}

/* A file, or "evt-12" of the journal. */
static struct incoming *get_event(const char *dir, const char *what, struct error *err)
{
        struct event_lookup lookup = { .seq = bus_event_seq(what) };

        if (strncmp(what, "evt-", 4) != 0)
                return event_from_file(what, err);
        if (lookup.seq <= 0) {
                error_set(err, ERR_INVALID, "'%s' is not an event", what);
                return NULL;
        }
        return local_store_read(dir, find_event, &lookup, err) < 0 ? NULL : lookup.in;
}

/* ---- decision ---- */

static void print_rule(const json_t *rule)
{
        bool matched = json_flag(rule, "matched", false);

        printf("  %s%-3s%s", print_style(stdout, matched ? STYLE_BOLD : STYLE_DIM),
               matched ? "yes" : "no", print_style(stdout, STYLE_PLAIN));
        print_field(stdout, " ", json_str(rule, "name", "?"), 0);
        print_field(stdout, ": ", json_str(rule, "why", ""), 0);
        putchar('\n');
}

static void print_explanation(const json_t *all)
{
        const json_t *decision = json_object_get(all, "decision"),
                     *access = json_object_get(all, "access"), *rule;
        const json_t *rate = json_object_get(all, "rateLimit");
        size_t i;

        if (json_flag(decision, "trigger", false))
                printf("agent '%s' would answer", json_str(decision, "agent", "?"));
        else
                print_field(stdout, "no agent would answer: ", json_str(decision, "reason", "?"),
                            0);
        if (json_str(decision, "rule", NULL)) {
                print_quoted(stdout, " (rule ", json_str(decision, "rule", NULL));
                putchar(')');
        }
        if (json_flag(decision, "conversation", false))
                printf(", in an ongoing conversation");
        printf("\naccess: %s", json_flag(access, "allowed", false) ? "allowed" : "refused");
        print_field(stdout, ", ", json_str(access, "why", NULL), 0);
        putchar('\n');
        if (json_is_object(rate))
                printf("rate limit: %lld turns in %lld seconds\n",
                       (long long)json_int(rate, "turns", 0),
                       (long long)json_int(rate, "seconds", 0));
        puts(json_array_size(json_object_get(all, "rules")) > 0 ? "rules:" : "rules: none");
        json_array_foreach(json_object_get(all, "rules"), i, rule) {
                print_rule(rule);
        }
}

static int explain(const struct args *a, struct config *c, const struct incoming *in)
{
        struct dispatch *d = dispatch_new();
        struct store *s = local_store_open(a->dir, NULL);
        /* with stored rules and access rules, when there is a database */
        struct runtime_policy *policy = s ? runtime_policy_open(s, NULL, NULL) : NULL;
        struct buf text;
        json_t *json;

        buf_init(&text, 0);
        config_dispatch_apply(c, d);
        dispatch_set_policy(d, policy);
        dry_run_explain(d, in, DRY_RUN_ALL_RULES, &text);
        dispatch_set_policy(d, NULL);
        store_close(s);
        runtime_policy_free(policy);
        json = json_loadb(text.data, text.len, 0, NULL);
        if (a->json)
                print_json(json);
        else
                print_explanation(json);
        json_decref(json);
        buf_release(&text);
        dispatch_free(d);
        return CLI_OK;
}

static int test_route(const struct args *a, const char *what)
{
        struct config *c = NULL;
        struct error err = { 0 };
        struct incoming *in;
        int rc;

        if (config_load(a->dir, &c, &err) < 0) {
                command_failed(a, &err);
                return CLI_CONFIG;
        }
        in = get_event(a->dir, what, &err);
        rc = in ? explain(a, c, in) : command_failed(a, &err);
        incoming_free(in);
        config_free(c);
        return rc;
}

int route_command(struct args *a)
{
        static const char *const actions[] = { "test", "replay", NULL };
        const char *action = args_action(a, actions, NULL), *what;

        if (!action)
                return CLI_USAGE;
        if (strcmp(action, "replay") == 0)
                return route_replay_command(a);
        if (args_has(a, "since") || args_has(a, "config") || args_has(a, "all"))
                return command_usage_error(a->command,
                                           "--since, --config and --all belong to replay");
        what = args_operand(a, "FILE or evt-N");
        if (!what || args_end(a) < 0)
                return CLI_USAGE;
        return test_route(a, what);
}
