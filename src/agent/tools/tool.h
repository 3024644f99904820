/*
 * tool: what the built-in agent can do.
 *
 * A tool is a row of the table in tools.c and a file with its functions. The loop checks the
 * arguments against the schema and the policy, stores that the call began, calls start, and stores
 * the result before the model sees it. An error is a result like any other: the model reads it and
 * tries something else.
 */
#ifndef AGENT_TOOLS_TOOL_H
#define AGENT_TOOLS_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/sandbox/sandbox.h"
#include "agent/workspace/workspace.h"

#define TOOL_LINES_MAX 2000
#define TOOL_BYTES_MAX (50 << 10)
#define TOOL_ROUND_MAX (200 << 10) /* of all results of one message, see bytes_max */
/* Bytes that a model is shown; services refuse an image with more than 5 MB of base64. */
#define TOOL_IMAGE_MAX    (3750 << 10)
#define TOOL_DOCUMENT_MAX (10 << 20)

enum tool_flag {
        TOOL_READ_ONLY = 1 << 0, /* without effects: may run again after a crash */
        TOOL_UNTRUSTED = 1 << 1, /* the result may hold untrusted text */
        TOOL_RISKY = 1 << 2,     /* asks if the turn has seen such text, see policy.h */
};

struct custom_tools;
struct road;
struct store;
struct tool_call;
struct tool_scope;

struct tool {
        const char *name;
        const char *description; /* for the model */
        const char *parameters;  /* JSON Schema of an object; "label" is added to all */
        unsigned flags;
        /* The flags of one call, where they depend on its arguments. NULL: flags. */
        unsigned (*flags_of)(const struct tool_scope *scope, const json_t *arguments);
        /* Is it of use in this turn? NULL: always. */
        bool (*offered)(const struct tool_scope *scope);
        void (*start)(struct tool_call *c);  /* tool_finish follows, perhaps before it returns */
        void (*cancel)(struct tool_call *c); /* ends children; no tool_finish follows; frees data */
};

/* What the tools of one turn work with. */
struct tool_scope {
        struct agent *agent;
        const struct turn_run *run;
        struct workspace_view *view;
        struct sandboxes *sandboxes; /* NULL: no commands */
        struct sandbox_key sandbox;
        struct loop *loop;
        struct road *road;
        struct store *store;
        struct custom_tools *custom; /* behind invoke_tool; NULL: none */
        bool images, documents;      /* the model takes them */
        bool everywhere;             /* the platform's tools reach beyond this chat */
        int64_t silence_ms;          /* 0: a minute; tests shorten it */
};

/* The result, which belongs to the caller of tool_finish until then. */
struct tool_result {
        bool is_error;
        bool untrusted;
        json_t *content; /* array of text and image blocks, see llm/model.h */
        json_t *details; /* for the journal, never for the model; may be NULL */
};

struct tool_call {
        const struct tool *tool;
        const struct tool_scope *scope;
        const char *id;          /* unique in the turn */
        const json_t *arguments; /* checked */
        void *data;              /* the tool's own; NULL when it starts */
        /* text of the result, smaller when a message has many calls; 0: TOOL_BYTES_MAX */
        size_t bytes_max;
        /* set by the caller: */
        void (*on_output)(struct tool_call *c, const char *text, size_t n); /* live; may be NULL */
        void (*on_done)(struct tool_call *c, struct tool_result *r);        /* takes what r holds */
        void *arg;
};

/* All tools of the program, NULL-terminated, by name. Those of the platform are not among them. */
extern const struct tool *const tools[];
const struct tool *tool_find(const char *name);
/* TOOL_* of this call. */
unsigned tool_flags(const struct tool *t, const struct tool_scope *scope, const json_t *arguments);

/* The tools of one turn: those of the table that are offered, and those of its platform. */
struct tool_set;
/* only: names; NULL or not set: all. */
struct tool_set *tool_set_new(const struct tool_scope *scope, const struct setting_list *only);
void tool_set_free(struct tool_set *set);
/* NULL: there is none. Valid as long as the set. */
const struct tool *tool_set_find(const struct tool_set *set, const char *name);
/* For model_request.tools: an array by name; yours. */
json_t *tool_set_describe(const struct tool_set *set);

/* -1: ERR_INVALID with a text for the model: what is wrong, and what would have been accepted. */
int tool_check(const struct tool *t, const json_t *arguments, struct error *err);

/* ---- for tools ---- */

/* Takes the JSON. */
void tool_finish(struct tool_call *c, struct tool_result *r);
void tool_finish_text(struct tool_call *c, bool is_error, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

#endif
