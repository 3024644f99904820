/*
 * fake_child: a child as a dialect sees it, without a process.
 *
 * Defines the child_* functions, so a program includes it once and links no children. What the
 * dialect sends and reports is recorded as lines.
 */
#ifndef TESTS_AGENT_FAKE_CHILD_H
#define TESTS_AGENT_FAKE_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc.h"
#include "base/json.h"
#include "base/mem.h"

struct child {
        struct agent agent;
        struct agent_ops ops;
        struct rpc_conf conf;
        struct rpc state;
        struct turn_run run;
        bool works;       /* on the run */
        bool holds_files; /* fake_child_files gives them to the dialect */
        child_files_fn *files;
        struct buf words; /* of its command */
        struct buf sent;  /* lines */
        struct buf told;  /* "text one", "over 0", ... */
        unsigned overs;
        child_answer_fn *answer; /* of the last question */
        void *answer_arg;
};

static inline struct child *fake_child_new(struct loop *loop, const char *type)
{
        struct child *c = mem_zalloc(sizeof(*c));

        c->ops.type = type;
        c->agent = (struct agent){ .ops = &c->ops, .name = "fake", .loop = loop };
        c->conf.child.line_kb = 1024;
        c->conf.child.answer_kb = 64;
        c->conf.while_running = (char *)"steer";
        buf_init(&c->words, 0);
        buf_init(&c->sent, 0);
        buf_init(&c->told, 0);
        rpc_child_dialect.add_words(c, NULL);
        rpc_child_dialect.started(c);
        return c;
}

static inline void fake_child_free(struct child *c)
{
        rpc_child_dialect.ended(c);
        buf_release(&c->words);
        buf_release(&c->sent);
        buf_release(&c->told);
        free(c);
}

/* A line of the program. */
static inline void fake_child_line(struct child *c, const char *line, size_t n)
{
        struct buf out;
        json_t *message = NULL;
        int what;

        buf_init(&out, 0);
        what = rpc_child_dialect.read_line(c, line, n, &out);
        if (what < 0)
                message = json_read_lenient(line, n, NULL);
        else if (what > 0)
                message = json_read_lenient(out.data, out.len, NULL);
        if (json_is_object(message))
                rpc_child_dialect.received(c, message);
        json_decref(message);
        buf_release(&out);
}

static inline void fake_child_files(struct child *c)
{
        child_files_fn *done = c->files;

        c->files = NULL;
        if (done)
                done(c, NULL, 0);
}

static inline void fake_child_prompt(struct child *c)
{
        c->run.id++;
        c->works = true;
        rpc_child_dialect.prompt(c);
        if (!c->holds_files)
                fake_child_files(c);
}

/* People stop the turn. */
static inline void fake_child_cancel(struct child *c)
{
        c->works = false;
        rpc_child_dialect.cancel(c);
}

/* ---- what a dialect may ask ---- */

void *child_state(struct child *c)
{
        return &c->state;
}

const void *child_conf(const struct child *c)
{
        return &c->conf;
}

struct agent *child_agent(const struct child *c)
{
        return (struct agent *)&c->agent;
}

const char *child_session(const struct child *c)
{
        (void)c;
        return "";
}

const char *child_folder(const struct child *c)
{
        (void)c;
        return "/home/agent/work";
}

const char *child_home(const struct child *c)
{
        (void)c;
        return "/home/agent";
}

struct turn_run *child_run(const struct child *c)
{
        return c->works ? (struct turn_run *)&c->run : NULL;
}

char *child_prompt_text(const struct child *c)
{
        return mem_printf("prompt %lld", (long long)c->run.id);
}

/* Without files. */
struct child_files *child_files_read(struct child *c, bool images, child_files_fn *done)
{
        (void)images;
        c->files = done;
        return (struct child_files *)c;
}

void child_files_drop(struct child_files *f)
{
        if (f)
                ((struct child *)f)->files = NULL;
}

/* ---- what it reports ---- */

void child_add_word(struct child_words *words, const char *word)
{
        (void)words;
        (void)word;
}

void child_send(struct child *c, const char *json, size_t n)
{
        if (memchr(json, '\n', n))
                abort();
        buf_add(&c->sent, json, n);
        buf_addch(&c->sent, '\n');
}

void child_ready(struct child *c, const char *session, bool resumed)
{
        (void)session;
        buf_addf(&c->told, "ready %d\n", resumed);
}

void child_refused(struct child *c, enum error_kind kind, const char *notice, const char *why)
{
        (void)kind;
        (void)notice;
        buf_addf(&c->told, "refused %s\n", why);
}

void child_set_busy(struct child *c, bool runs, bool awaits)
{
        (void)c;
        (void)runs;
        (void)awaits;
}

void child_text(struct child *c, const char *text, size_t n)
{
        if (c->works)
                buf_addf(&c->told, "text %.*s\n", (int)n, text);
}

void child_message(struct child *c, const char *text, size_t n)
{
        if (c->works)
                buf_addf(&c->told, "message %.*s\n", (int)n, text ? text : "");
}

void child_progress(struct child *c, const char *label)
{
        if (c->works)
                buf_addf(&c->told, "progress %s\n", label);
}

void child_tool(struct child *c, const struct child_tool *t)
{
        if (c->works)
                buf_addf(&c->told, "tool %s %d\n", t->id, (int)t->state);
}

void child_set_usage(struct child *c, const struct child_usage *u)
{
        (void)c;
        if (u->tokens_in < 0 || u->tokens_out < 0 || u->cost_microusd < 0)
                abort();
}

void child_ask(struct child *c, const struct child_question *q, child_answer_fn *done, void *arg)
{
        buf_addf(&c->told, "ask %s\n", q->tool);
        c->answer = done;
        c->answer_arg = arg;
}

void child_ask_forget(struct child *c, void *arg)
{
        if (c->answer_arg == arg)
                c->answer = NULL;
}

void child_over(struct child *c, const struct child_end *end)
{
        c->works = false;
        c->overs++;
        buf_addf(&c->told, "over %d%s%s\n", (int)end->kind, end->remark ? " " : "",
                 end->remark ? end->remark : "");
}

void agent_late_reply(struct agent *a, int64_t turn, const struct turn_reply *reply)
{
        buf_addf(&((struct child *)a)->told, "late %lld %s\n", (long long)turn, reply->text);
}

#endif
