/*
 * child_rig: a real road with an agent that is a started program, named "steps":
 * tests/lib/fake_acp.py, which does what messages say.
 */
#ifndef TESTS_AGENT_CHILD_RIG_H
#define TESTS_AGENT_CHILD_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/patience.h"
#include "../lib/road_rig.h"
#include "agent/agent.h"
#include "agent/agents.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/turn/approval.h"

struct child_rig {
        struct rig *road;
        struct agents *agents;
        const char *type, *script;
        const char *options; /* of the fake agent, separated by blanks */
        const char *members; /* of the agent's settings, JSON */
        char *state;         /* file that counts */
};

static inline void child_rig_start(struct rig *g, struct turn_run *run)
{
        agent_runs_start(((struct child_rig *)g->test)->agents, run);
}

static inline void child_rig_cancel(struct rig *g, struct turn_run *run)
{
        agent_runs_cancel(((struct child_rig *)g->test)->agents, run);
}

static inline void child_rig_waits(struct rig *g, struct turn_run *run)
{
        agent_runs_waiting(((struct child_rig *)g->test)->agents, run);
}

static inline void child_rig_decides(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        if (strcmp(in->text, "/new") != 0)
                return;
        out->trigger = false;
        out->command = COMMAND_NEW;
}

static inline char *child_rig_conf(const struct child_rig *r)
{
        char *script = realpath(r->script, NULL), *json;
        struct buf words;

        buf_init(&words, 0);
        for (const char *w = r->options; *w;) {
                size_t n = strcspn(w, " ");

                buf_addf(&words, ", \"%.*s\"", (int)n, w);
                w += n + strspn(w + n, " ");
        }
        json = mem_printf("{\"command\": [\"python3\", \"%s\", \"--state\", \"%s\"%s], "
                          "\"breakerFailures\": 0%s%s}",
                          script, r->state, words.data, *r->members ? ", " : "", r->members);
        buf_release(&words);
        free(script);
        return json;
}

static inline void child_rig_open_agents(struct child_rig *r)
{
        struct agents_env env = { r->road->store, r->road->bus, r->road->road };
        struct agent_conf *conf;
        struct error err = { 0 };
        char *json = child_rig_conf(r);

        r->agents = agents_new(r->road->loop, NULL, r->road->dir);
        if (agents_connect(r->agents, &env, &err) < 0)
                fail_msg("%s", err.text);
        conf = agent_conf_make("steps", r->type, json, &err);
        if (!conf || agents_apply(r->agents, &conf, 1, &err) < 0)
                fail_msg("%s in %s", err.text, json);
        free(json);
}

static inline struct child_rig *child_rig_new_of(const char *type, const char *script,
                                                 const char *options, const char *members)
{
        struct child_rig *r = mem_zalloc(sizeof(*r));

        r->type = type;
        r->script = script;
        r->road = rig_new();
        r->road->auto_send = true;
        r->road->test = r;
        r->road->starts = child_rig_start;
        r->road->cancels = child_rig_cancel;
        r->road->waits = child_rig_waits;
        r->road->decides = child_rig_decides;
        r->options = options;
        r->members = members ? members : "\"sandbox\": {\"kind\": \"host\"}";
        r->state = mem_printf("%s/state", r->road->dir);
        child_rig_open_agents(r);
        return r;
}

/* members: "\"sandbox\": {\"kind\": \"host\"}" is the default. */
static inline struct child_rig *child_rig_new(const char *options, const char *members)
{
        return child_rig_new_of("acp", "tests/lib/fake_acp.py", options, members);
}

/* As after a crash of Dragoman, with its processes killed. */
static inline void child_rig_restart(struct child_rig *r)
{
        struct agents *before = r->agents;

        rig_restart(r->road);
        agents_free(before);
        child_rig_open_agents(r);
}

static inline void child_rig_free(struct child_rig *r)
{
        struct rig *g = r->road;

        road_close(g->road);
        g->road = NULL;
        agents_free(r->agents);
        free(r->state);
        free(r);
        rig_free(g);
}

/* With the rig's folder in the place of '@', and the program in that of '$'. */
static inline char *child_rig_fill(const struct child_rig *r, const char *text)
{
        char *dir = realpath(r->road->dir, NULL), *script = realpath(r->script, NULL);
        struct buf out;

        buf_init(&out, 0);
        for (; *text; text++)
                if (*text == '@' || *text == '$')
                        buf_addstr(&out, *text == '@' ? dir : script);
                else
                        buf_addch(&out, *text);
        free(dir);
        free(script);
        return buf_take(&out);
}

/* ---- what happened ---- */

static inline void child_rig_say_in(struct child_rig *r, const char *channel, const char *text)
{
        rig_say(r->road, "nonce", channel, "steps", text, NULL);
}

static inline void child_rig_say(struct child_rig *r, const char *text)
{
        child_rig_say_in(r, "c", text);
}

/* Answers and notices, oldest first, with ", " between. */
#define child_rig_answers(r) \
        rig_list((r)->road, "text FROM transcript WHERE role = 'assistant' ORDER BY id")

/* The answer to the message. */
static inline const char *child_rig_ask(struct child_rig *r, const char *text)
{
        child_rig_say(r, text);
        rig_until_idle(r->road);
        return rig_text(r->road,
                        "text FROM transcript WHERE role = 'assistant' ORDER BY id DESC LIMIT 1");
}

/* How often a text is in the answers. */
static inline unsigned child_rig_occurs(struct child_rig *r, const char *text)
{
        const char *at = child_rig_answers(r);
        unsigned n = 0;

        while ((at = strstr(at, text))) {
                at += strlen(text);
                n++;
        }
        return n;
}

/* The last text that was sent. */
static inline const char *child_rig_notice(struct child_rig *r)
{
        return r->road->sent[(r->road->sent_count - 1) % RIG_MAX].text;
}

/* How often the fake agent counted this. */
static inline unsigned child_rig_counted(struct child_rig *r, const char *what)
{
        char *key = mem_printf("{\"what\": \"%s", what), line[500];
        FILE *f = fopen(r->state, "r");
        unsigned n = 0;

        while (f && fgets(line, sizeof(line), f))
                n += strncmp(line, key, strlen(key)) == 0;
        if (f)
                fclose(f);
        free(key);
        return n;
}

static inline void child_rig_until_counted(struct child_rig *r, const char *what, unsigned n)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        while (child_rig_counted(r, what) < n) {
                if (clock_mono_ms() > deadline)
                        fail_msg("it did not happen: %s", what);
                rig_run_for(r->road, 5);
        }
}

/* The pid that counted last. */
static inline pid_t child_rig_pid(struct child_rig *r)
{
        char line[500];
        FILE *f = fopen(r->state, "r");
        pid_t pid = 0;

        while (f && fgets(line, sizeof(line), f)) {
                json_t *j = json_read(line, strlen(line), NULL);

                pid = (pid_t)json_int(j, "pid", 0);
                json_decref(j);
        }
        if (f)
                fclose(f);
        return pid;
}

static inline void child_rig_until_gone(struct child_rig *r, pid_t pid)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        while (kill(pid, 0) == 0) {
                if (clock_mono_ms() > deadline)
                        fail_msg("process %d is still there", (int)pid);
                rig_run_for(r->road, 5);
        }
}

struct child_rig_decision {
        bool done;
        enum error_kind kind;
};

static inline void child_rig_on_decided(void *arg, const struct approval_row *row,
                                        const struct error *err)
{
        struct child_rig_decision *d = arg;

        (void)row;
        d->done = true;
        d->kind = err ? err->kind : ERR_NONE;
}

/* Waits until so many questions were asked, and answers the last one. */
static inline void child_rig_decide(struct child_rig *r, unsigned asked, bool approve, bool always)
{
        struct approval_verdict v = { .approve = approve, .always = always, .by = "the test" };
        struct child_rig_decision d;

        rig_until_count(r->road, "approvals", asked);
        v.id = rig_number(r->road, "max(id) FROM approvals");
        do { /* it may be in the store and not yet known to the road */
                d = (struct child_rig_decision){ 0 };
                approval_decide(r->road->road, &v, child_rig_on_decided, &d);
                while (!d.done)
                        rig_run_for(r->road, 1);
        } while (d.kind == ERR_BUSY);
        assert_int_equal(d.kind, ERR_NONE);
}

/* Stops the turn that runs, as /stop does. */
static inline void child_rig_stop(struct child_rig *r)
{
        int64_t turn = rig_number(r->road, "id FROM turns WHERE state = 'running'");

        turn_cancel(r->road->road, turn, "stopped by the test", NULL, NULL);
        rig_until_idle(r->road);
}

static inline void child_rig_write_status(void *arg, const struct agent *a,
                                          const struct agent_health *h)
{
        (void)h;
        a->ops->status(a, arg);
}

static inline void child_rig_on_health(void *arg, const struct agent_health *h)
{
        snprintf(arg, sizeof(h->why), "%s", h->healthy ? "healthy" : h->why);
}

/* "healthy", or why it is not. */
static inline const char *child_rig_health(struct child_rig *r)
{
        static char why[sizeof(((struct agent_health *)NULL)->why)];
        struct error err;

        why[0] = '\0';
        assert_int_equal(agents_check(r->agents, "steps", child_rig_on_health, why, &err), 0);
        for (int64_t end = clock_mono_ms() + PATIENCE_MS; !why[0] && clock_mono_ms() < end;)
                rig_run_for(r->road, 1);
        return why;
}

/* Of the agent's status; yours. */
static inline json_t *child_rig_status(struct child_rig *r)
{
        struct buf b;
        json_t *json;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        agents_each(r->agents, child_rig_write_status, &b);
        jsonw_close(&b, '}');
        json = json_read(b.data, b.len, NULL);
        buf_release(&b);
        return json;
}

/* Until no process runs. */
static inline void child_rig_until_ended(struct child_rig *r)
{
        for (int64_t deadline = clock_mono_ms() + PATIENCE_MS; clock_mono_ms() < deadline;) {
                json_t *status = child_rig_status(r);
                int64_t running = json_int(json_object_get(status, "processes"), "running", 1);

                json_decref(status);
                if (running == 0)
                        return;
                rig_run_for(r->road, 5);
        }
        fail_msg("its process does not end");
}

#endif
