/*
 * custom: tools that are not built in, which the model calls by invoke_tool.
 *
 * They come from three sources: programs with a manifest and modules for Node in DIR/tools, and the
 * MCP servers of the agent's settings. All run on the host, outside any sandbox, with a clean
 * environment. DIR/tools is watched: a change applies to the next turn. A tool that cannot be
 * loaded is reported once and hurts no other.
 */
#ifndef AGENT_CUSTOM_CUSTOM_H
#define AGENT_CUSTOM_CUSTOM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/tools/tool.h"
#include "base/buf.h"
#include "base/settings.h"
#include "net/http_client.h"
#include "net/loop.h"

struct custom_tools;

/* Borrowed as long as the tools live. */
struct custom_options {
        struct loop *loop;
        struct http_client *http;
        const char *dir;               /* the data directory */
        const char *agent;             /* its name */
        const struct setting_map *mcp; /* struct mcp_conf by name, see mcp.h; may be NULL */
};

struct custom_tools *custom_new(const struct custom_options *options);
/* Ends all programs; no callback follows. Not from inside a handler. NULL is fine. */
void custom_free(struct custom_tools *all);

/*
 * Calls fn once every source has told its tools or failed, at the latest after 30 s, but never
 * before it returns. Await it before custom_prompt.
 */
struct custom_wait;
struct custom_wait *custom_wait_start(struct custom_tools *all, loop_fn *fn, void *arg);
void custom_wait_cancel(struct custom_wait *w);

struct custom_tool {
        char *key;         /* [A-Za-z0-9_-], at most 64 bytes, unique */
        char *name;        /* as its source calls it */
        char *description; /* valid UTF-8, not blank */
        json_t *schema;    /* JSON Schema of an object */
        unsigned flags;    /* TOOL_* of tool.h */
        int64_t timeout_ms;
        struct custom_source *source;
};

/* By key; NULL when there is none. Valid until the loop runs. */
const struct custom_tool *custom_find(const struct custom_tools *all, const char *key);
size_t custom_count(const struct custom_tools *all);
const struct custom_tool *custom_at(const struct custom_tools *all, size_t i); /* by key */

/*
 * Appends the part of the system prompt about these tools: with their schemas if these take less
 * than a tenth of the window (in tokens), else name and first line. Nothing if there are none.
 */
void custom_prompt(const struct custom_tools *all, int64_t window, struct buf *out);
/* Tokens of that part, about; *deferred: the schemas are left to tool_search. */
int64_t custom_prompt_tokens(const struct custom_tools *all, int64_t window, bool *deferred);
/* Appends the schemas of the tools that fit the query best. */
void custom_search(const struct custom_tools *all, const char *query, size_t most, struct buf *out);

struct custom_handlers {
        void (*on_progress)(void *arg, const char *text); /* may be NULL */
        /* Once; takes what r holds. The call is freed when it returns. */
        void (*on_done)(void *arg, struct tool_result *r);
};

struct custom_request {
        const char *key;
        const json_t *args;
        const char *id;                    /* of the call */
        const struct workspace_view *view; /* where files of a result are saved; may be NULL */
};

struct custom_call;
/* An unknown tool or wrong arguments give an error result. No handler is called before it returns.
 */
struct custom_call *custom_call_start(struct custom_tools *all, const struct custom_request *q,
                                      const struct custom_handlers *h, void *arg);
/* Ends it with its children; no handler is called. */
void custom_call_cancel(struct custom_call *c);

/* Appends an element per source to an array: kind, name, state, tools, problem. */
void custom_status(const struct custom_tools *all, struct buf *out);

/* invoke_tool.c */
extern const struct tool invoke_tool, tool_search_tool;

#endif
