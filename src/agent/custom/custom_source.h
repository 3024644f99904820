/*
 * custom_source: where custom tools come from; for the files of this folder.
 */
#ifndef AGENT_CUSTOM_CUSTOM_SOURCE_H
#define AGENT_CUSTOM_CUSTOM_SOURCE_H

#include <sys/queue.h>

#include "agent/custom/custom.h"
#include "agent/custom/saved_files.h"

#define CUSTOM_KEY_MAX         64
#define CUSTOM_DESCRIPTION_MAX 4096
#define CUSTOM_SCHEMA_MAX      (64 << 10) /* bytes of its text */
#define CUSTOM_TIMEOUT_MS      60000

struct custom_source_ops {
        const char *kind; /* "program", "module", "mcp" */
        /* custom_call_done follows; not before call has returned. */
        void (*call)(struct custom_call *c);
        void (*cancel)(struct custom_call *c);
        const char *(*state)(const struct custom_source *s); /* for the status; NULL: "ready" */
        void (*free)(struct custom_source *s);               /* without calls */
};

struct custom_source {
        const struct custom_source_ops *ops;
        struct custom_tools *all;
        char *name;
        struct custom_tool *tools;
        size_t count;
        bool known;   /* its tools are known, or it has failed */
        bool retired; /* replaced; freed after its last call */
        unsigned calls;
        char problem[500]; /* for the status; "": none */
        char logged[500];  /* the last one */
        TAILQ_ENTRY(custom_source) next;
};

struct custom_call {
        struct custom_source *source; /* NULL: refused before it reached one */
        char *key, *tool, *id;
        json_t *args;
        unsigned flags;
        int64_t timeout_ms;
        struct saved_files *files; /* for what results leave behind; NULL: none */
        void *data;                /* of the source */
        struct custom_handlers on;
        void *arg;
        struct timer *later;          /* for a refusal */
        struct custom_saving *saving; /* the files are being written; result waits */
        struct tool_result result;
        struct custom_tools *all;
        LIST_ENTRY(custom_call) next;
};

/* Zeroed, of `size` bytes, which begin with struct custom_source; not yet in the list. */
struct custom_source *custom_source_new(struct custom_tools *all, size_t size,
                                        const struct custom_source_ops *ops, const char *name);
void custom_source_add(struct custom_source *s);
/* Takes it off the list; it is freed now or after its last call. */
void custom_source_retire(struct custom_source *s);
/* Frees the tools and the name; for ops->free, which frees the struct. */
void custom_source_release(struct custom_source *s);
/* Adds an empty tool; its key, name, description and schema are to be set. */
struct custom_tool *custom_source_tool(struct custom_source *s);
void custom_source_clear(struct custom_source *s);
/* The tools of one source become those of another, which has none. */
void custom_source_move(struct custom_source *from, struct custom_source *to);
/* Adds to the problem shown by the status, and logs it unless it was the last one logged. */
void custom_source_problem(struct custom_source *s, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* After any change of tools or `known`: sorts the list anew, wakes those who wait. */
void custom_changed(struct custom_tools *all);

const struct custom_options *custom_options(const struct custom_tools *all);

/* Ends the call; takes what r holds and frees c. */
void custom_call_done(struct custom_call *c, struct tool_result *r);
void custom_call_fail(struct custom_call *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* As custom_call_fail, but later: for ops->call. */
void custom_call_refuse(struct custom_call *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* Is it a name a model can write: [A-Za-z0-9_-], 1 to 64 bytes? */
bool custom_is_key(const char *name);

/* custom_folder.c: the tools in DIR/tools. */
struct custom_folder;
struct custom_folder *custom_folder_new(struct custom_tools *all);
void custom_folder_free(struct custom_folder *f);
bool custom_folder_known(const struct custom_folder *f); /* has it been read? */
/* Appends a row per folder whose tool cannot be used. */
void custom_folder_status(const struct custom_folder *f, struct buf *out);

#endif
