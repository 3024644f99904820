/*
 * Trying rules: what would be done with an event, by the configuration as it is written now. No
 * daemon is asked.
 */
#include <errno.h>
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

#define FILE_MAX ((size_t)1024 * 1024)

/* ---- the event ---- */

struct event_lookup {
        int64_t seq;
        struct incoming *in;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct event_lookup *f = arg;

        f->in = dry_run_find(tx, f->seq, err);
        return f->in ? 0 : -1;
}

static struct incoming *stored_event(const char *dir, int64_t seq, struct error *err)
{
        struct event_lookup f = { .seq = seq };

        if (local_store_read(dir, find, &f, err) < 0)
                return NULL;
        return f.in;
}

static int read_text(const char *path, struct buf *out, struct error *err)
{
        FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
        char *at;

        if (!f)
                return error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        while (!feof(f) && !ferror(f) && (at = buf_reserve(out, 4096)))
                buf_grew(out, fread(at, 1, 4096, f));
        if (ferror(f))
                error_set(err, ERR_IO, "cannot read '%s'", path);
        else if (!feof(f))
                error_set(err, ERR_INVALID, "'%s' is longer than %zu bytes", path, FILE_MAX);
        else
                err->kind = ERR_NONE;
        if (f != stdin)
                fclose(f);
        return err->kind == ERR_NONE ? 0 : -1;
}

/* What `dragoman events` and the API show may be in an envelope. */
static struct incoming *written_event(const char *path, struct error *err)
{
        struct incoming *in = NULL;
        struct buf text;
        json_t *json = NULL;
        const json_t *inner;

        buf_init(&text, FILE_MAX);
        if (read_text(path, &text, err) == 0)
                json = json_read(text.data, text.len, err);
        inner = json_object_get(json, "data");
        if (json)
                in = dry_run_event(inner ? inner : json, err);
        json_decref(json);
        buf_release(&text);
        return in;
}

static struct incoming *event_of(const char *dir, const char *what, struct error *err)
{
        char *end;
        long long seq;

        if (strncmp(what, "evt-", 4) != 0)
                return written_event(what, err);
        errno = 0;
        seq = strtoll(what + 4, &end, 10);
        if (errno || *end || seq <= 0) {
                error_set(err, ERR_INVALID, "'%s' is no event", what);
                return NULL;
        }
        return stored_event(dir, seq, err);
}

/* ---- the answer ---- */

static void print_rule(const json_t *rule)
{
        bool matched = json_flag(rule, "matched", false);

        printf("  %s%-3s%s %s: %s\n", print_style(stdout, matched ? STYLE_BOLD : STYLE_DIM),
               matched ? "yes" : "no", print_style(stdout, STYLE_PLAIN),
               json_str(rule, "name", "?"), json_str(rule, "why", ""));
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
                printf("nobody would answer, because %s", json_str(decision, "reason", "?"));
        if (json_str(decision, "rule", NULL))
                printf(" (rule '%s')", json_str(decision, "rule", ""));
        if (json_flag(decision, "conversation", false))
                printf(", in a conversation that is going on");
        printf("\naccess: %s%s%s\n", json_flag(access, "allowed", false) ? "allowed" : "refused",
               json_str(access, "why", NULL) ? ", " : "", json_str(access, "why", ""));
        if (json_is_object(rate))
                printf("rate limit: %lld turns in %lld seconds\n",
                       (long long)json_int(rate, "turns", 0),
                       (long long)json_int(rate, "seconds", 0));
        puts(json_array_size(json_object_get(all, "rules")) > 0 ? "rules:" : "rules: none");
        json_array_foreach(json_object_get(all, "rules"), i, rule) {
                print_rule(rule);
        }
}

/* With the rules and access rules that are stored, when there is a database. */
static void explain_into(const struct args *a, struct dispatch *d, const struct incoming *in,
                         struct buf *out)
{
        struct error err;
        struct store *s = local_store_open(a->dir, &err);
        struct runtime_policy *policy = s ? runtime_policy_open(s, NULL, &err) : NULL;

        dispatch_set_policy(d, policy);
        dispatch_explain(d, in, out);
        dispatch_set_policy(d, NULL);
        store_close(s);
        runtime_policy_free(policy);
}

static int explain(const struct args *a, struct config *c, const struct incoming *in)
{
        struct dispatch *d = dispatch_new();
        struct buf text;
        json_t *json;

        buf_init(&text, 0);
        config_to_dispatch(c, d);
        explain_into(a, d, in, &text);
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
        in = event_of(a->dir, what, &err);
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
                                           "--since, --config and --all go with 'replay'");
        what = args_operand(a, "FILE or evt-N");
        if (!what || args_end(a) < 0)
                return CLI_USAGE;
        return test_route(a, what);
}
