/*
 * session_digest: the events of a session as few messages.
 *
 *     tool_call tool_result retry tool_call │ turn_end │ error error │ tool_call ...
 *     └─────────── a page of work ──────────┘ └ a page ┘ └── a page ─┘
 *
 * Each page becomes one message. Where there would be more pages than there is room for, because
 * the chat is slower than the session, the older ones become one that counts what they had. Events
 * are folded in one pass, and what is kept does not grow with their number.
 */
#ifndef REMOTE_SESSION_DIGEST_H
#define REMOTE_SESSION_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bus/bus.h"
#include "rows/rows.h"

#define DIGEST_ROOM 4    /* pages, at most, besides the one that grows */
#define PAGE_LINES  8    /* calls shown one by one, the newest */
#define PAGE_TOOLS  6    /* counted by name */
#define PAGE_FULL   200  /* calls: the next one begins another page */
#define PAGE_EVENTS 1000 /* the next one begins another page, because all are read each time */
#define PAGE_NOTES  4    /* the newest */

enum page_kind {
        PAGE_WORK,    /* tool calls, and news that need no message of their own */
        PAGE_TURN,    /* the agent has answered */
        PAGE_ERROR,   /* one, or several in a row */
        PAGE_NOTICE,  /* asks for a person by name */
        PAGE_END,     /* of the session */
        PAGE_SUMMARY, /* counts what several pages had */
};

enum page_call_state { CALL_RUNS, CALL_DONE, CALL_FAILED, CALL_BLOCKED };

/* All strings but tool may be NULL. */
struct page_call {
        char *id; /* joins the result to the call */
        char *tool, *input, *output, *cwd;
        char *gist;    /* of the input, a line */
        char *warning; /* the policy flags it: why */
        char *subagent;
        enum page_call_state state;
        int64_t took_ms; /* -1: not known */
        bool is_late;    /* a result alone: its call is on an earlier page */
};

struct page {
        enum page_kind kind;
        int64_t from, to; /* events */
        size_t events;    /* since the first, also those that it does not show */
        int64_t time_ms;  /* of the last */
        /* Of responses up to the last event, in a turn that has not ended. */
        int64_t open_tokens, open_cost_microusd;
        bool mention; /* asks for the session's person by name */
        /* PAGE_WORK; counted in PAGE_SUMMARY */
        struct page_call lines[PAGE_LINES]; /* a ring */
        size_t line_count;                  /* of all that were added */
        size_t calls, failed;
        struct {
                char *name;
                size_t count;
        } tools[PAGE_TOOLS];     /* of the calls; the last counts all that have no place */
        char *notes[PAGE_NOTES]; /* a ring: Markdown on one line; of PAGE_ERROR the errors */
        size_t note_count;
        /* PAGE_TURN; summed up in PAGE_SUMMARY */
        size_t turns, errors, notices;
        int64_t tokens, cost_microusd, took_ms;
        char *pending; /* messages that wait: "False", "3" */
        char *outcome; /* "aborted", "error"; NULL: completed */
        bool ended;    /* the session */
        char *text;    /* the answer, the notice, the reason; in PAGE_SUMMARY the last answer */
        char *error;   /* the last */
};

struct digest {
        /* Where it is shown: what was given there is not repeated. Borrowed; may be empty. */
        struct chat_key here;
        const char *own_thread;
        /* one more each for the page that grows, and while two are joined */
        struct page pages[DIGEST_ROOM + 2];
        size_t count, room;
        int64_t open_from;             /* the first page begins here; 0: it may be any */
        bool from_link;                /* what was before the session was linked is not shown */
        int64_t upto;                  /* the last event */
        int64_t counted;               /* responses up to this event are in the next two */
        int64_t tokens, cost_microusd; /* of responses, in a turn that has not ended */
        /* With from_link, the last time it was linked, and what the two were; seq 0: it was not. */
        struct {
                int64_t seq, tokens, cost_microusd;
        } link;
};

/* room: 1 to DIGEST_ROOM pages, and one that begins at open_from (0: none does). */
void digest_init(struct digest *d, size_t room, int64_t open_from);
void digest_release(struct digest *d);
/* In the order of the journal. */
void digest_add(struct digest *d, const struct bus_event *e);

/* May further events change it? */
bool page_grows(const struct page *p);
/* Shown lines and notes, oldest first. */
size_t page_line_count(const struct page *p);
const struct page_call *page_line(const struct page *p, size_t i);
size_t page_note_count(const struct page *p);
const char *page_note(const struct page *p, size_t i);

#endif
