/*
 * session_event: what a program reports about its session, as its JSON says it.
 *
 *     { "session_id": "0199…", "event_type": "tool_call", "tool_name": "bash",
 *       "content": "make", "metadata": {…}, "timestamp": "2026-…", "event_id": "…" }
 *
 * Only session_id and event_type must be there; members that are not known, and metadata of other
 * types than expected, are kept and otherwise ignored, so that newer programs work.
 */
#ifndef REMOTE_SESSION_EVENT_H
#define REMOTE_SESSION_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define SESSION_EVENTS_MAX   200   /* of one request */
#define SESSION_ID_MAX       128   /* bytes, also of an event */
#define SESSION_CONTENT_MAX  65536 /* bytes */
#define SESSION_METADATA_MAX 65536 /* bytes as text; larger ones are left out */

enum session_event_kind {
        SESSION_EVENT_OTHER,
        SESSION_EVENT_START,
        SESSION_EVENT_TURN_END,
        SESSION_EVENT_END,
        SESSION_EVENT_APPROVAL_REQUEST,
        SESSION_EVENT_APPROVAL_RESOLVED,
};

/* Strings live in the arena; NULL: not said. */
struct session_event {
        enum session_event_kind kind;
        bool is_urgent; /* people wait for it: an answer, an error, a question */
        bool ends_turn; /* the agent waits for people */
        const char *session;
        const char *type;    /* of the journal: "session.tool_call" */
        const char *key;     /* dedup key of the journal; NULL: none */
        const char *payload; /* of the journal */
        const char *content, *tool;
        const char *program, *host, *cwd, *title, *model;         /* of a start */
        int64_t tokens, cost_microusd;                            /* of the end of a turn */
        const char *approval, *reason, *fallback, *decision, *by; /* of approvals */
        int64_t timeout_ms;                                       /* of a request; 0: not said */
};

struct session_events {
        struct arena arena;
        struct session_event *items;
        size_t count;
};

/* Is it 1 to SESSION_ID_MAX bytes without control characters? */
bool session_id_is_valid(const char *id);
/*
 * body: one event or a list of them. 0, or -1 with ERR_INVALID that begins with the member:
 * "[3].session_id: expected …". Release it in any case.
 */
int session_events_read(const json_t *body, struct session_events *out, struct error *err);
void session_events_release(struct session_events *e);

/* Of the metadata "usage", which may be anything. */
int64_t session_event_tokens(const json_t *usage);
int64_t session_event_cost(const json_t *usage); /* in millionths of a dollar */

#endif
