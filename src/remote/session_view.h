/*
 * session_view: what happens in a session is shown in its chat.
 *
 * A view is the work on one session's chat; it exists while there is some. It reads which events
 * are not shown yet (session_digest.h makes pages of them), submits messages and edits, and waits
 * until the last of them has been sent. Only then it looks again: so a session has a few deliveries
 * open at most, and what happens meanwhile is shown together, however fast it was and however slow
 * the platform is.
 *
 *     RESTING ──► READING ──► STORING ──► ASKING ──► SUBMITTING ──► SENDING ──► RESTING ──► gone
 *        ▲           │        what it    (once: has   a step after      │
 *        └───────────┘        learned    it threads?) the other         └──► READING
 *        nothing to do
 *
 * Each step is a delivery, and how far the chat is then (rows/session_view_row.h) is stored in its
 * transaction: a crash loses and repeats nothing.
 *
 * Its deliveries carry the trace of the session, by which their ends are recognised.
 */
#ifndef REMOTE_SESSION_VIEW_H
#define REMOTE_SESSION_VIEW_H

#include "base/arena.h"
#include "remote/remote_private.h"
#include "remote/session_digest.h"
#include "rows/session_view_row.h"

#define VIEW_APPROVALS 4 /* in one round */
#define VIEW_STEPS     (4 + 2 * VIEW_APPROVALS + DIGEST_ROOM + 4)
#define VIEW_SENT      VIEW_STEPS
#define VIEW_MESSAGES  (VIEW_SENT + 2 + VIEW_APPROVALS)

/* Whom its messages concern, and what they want to hear. */
struct view_person {
        const char *id;    /* on the platform of the chat; NULL: nobody is known there */
        const char *name;  /* NULL: they never wrote */
        const char *wants; /* "all", "errors", "end", "mentions", "off" */
        bool quiet;        /* these are their quiet hours */
};
struct view_account {
        const char *platform, *user;
};
#define VIEW_ACCOUNTS 8

enum view_step_kind {
        STEP_TOPIC,    /* a thread by its name, before the first message */
        STEP_ROOT,     /* the first message */
        STEP_THREAD,   /* a thread at the first message */
        STEP_REOPEN,   /* the thread */
        STEP_RENAME,   /* the thread */
        STEP_WITHDRAW, /* an edit of a question: it is asked in another place now */
        STEP_ASK,      /* a question */
        STEP_OUTCOME,  /* an edit: what became of it */
        STEP_PAGE,     /* a message */
        STEP_PAGE_EDIT,
        STEP_ROOT_EDIT,
        STEP_CLOSE, /* the thread */
};

struct view_approval {
        struct session_approval_row *row;
        const char *decider;           /* their name; NULL: not known */
        const char *adapter, *channel; /* where its message is; NULL: there is none to change */
        bool settled;                  /* no message is needed for it */
};

struct view_step {
        struct view_round *round;
        enum view_step_kind kind;
        const struct page *page;
        struct view_approval *approval;
        /* names what the message says then, of an approval or the root; of a thread its name */
        const char *shown;
};

/* One round: what was read, and what is done about it. Lives from READING to STORING. */
struct view_round {
        struct session_view *view;
        struct arena arena;
        /* what is read with */
        int64_t now_ms;
        size_t room;
        bool fresh; /* what failed before is tried again */
        const char *default_adapter, *default_channel;
        int64_t sent[VIEW_SENT]; /* deliveries of the round before */
        size_t sent_count;
        bool inherits; /* what the last run of the daemon sent may not be known */
        /* what was read */
        struct session_row *session; /* NULL: it is gone */
        struct session_view_row row; /* strings are in the arena */
        bool is_new, shown_nowhere;
        bool under_way;  /* the last delivery has not ended */
        bool changed;    /* the row */
        bool links;      /* the session moves into its own thread */
        bool claims;     /* none begins: messages in the chat itself are the session's */
        bool more;       /* events are left to read */
        int64_t counted; /* row.shown_seq as it was read */
        struct digest digest;
        struct view_approval approvals[VIEW_APPROVALS];
        size_t approval_count;
        bool settles;      /* some of them */
        bool more_settled; /* so there may be further ones behind them */
        struct view_person person;
        struct view_account accounts[VIEW_ACCOUNTS]; /* theirs */
        size_t account_count;
        struct {
                char *id;
                bool is_root;
        } messages[VIEW_MESSAGES]; /* in a chat without threads */
        size_t message_count;
        /* what is done */
        enum chat_threads threads;
        unsigned can; /* ADAPTER_* */
        bool planned;
        struct view_step steps[VIEW_STEPS];
        size_t step_count, at;
        /* results of storing */
        bool linked; /* links or claims, and it was not linked elsewhere meanwhile */
        struct bus_batch batch;
};

enum view_state {
        VIEW_RESTING, /* until its timer ends */
        VIEW_READING,
        VIEW_ASKING,
        VIEW_SUBMITTING,
        VIEW_STORING,
        VIEW_SENDING, /* until the last delivery has ended */
};

struct session_view {
        struct remote *remote;
        int64_t session;
        char *trace;
        enum view_state state;
        bool again;  /* something happened since it read */
        bool heard;  /* the end of a delivery did */
        bool urgent; /* and it should not wait */
        bool fresh;
        bool slow;   /* the chat takes messages slower than they come */
        bool failed; /* the round could not be finished */
        bool inherits;
        struct timer *timer;
        struct view_round *round;
        struct view_question *question;
        int64_t submitted_ms; /* loop_now_ms of its last round */
        int64_t sent[VIEW_SENT];
        size_t sent_count;
};

/* ---- session_view_read.c ---- */

/* Store functions, with a view_round. Reading is repeated while round->more. */
store_fn view_read, view_write;
void view_round_free(struct view_round *round);

/* ---- session_view_steps.c ---- */

/* Needs the chat's abilities and threads. */
void view_plan(struct view_round *round);
/* Texts live in the round's arena. */
void view_outgoing(struct view_round *round, struct view_step *step, struct outgoing *out);
/* Does the view look again only when it has ended? Not where that says nothing of the chat. */
bool view_step_is_awaited(const struct view_step *step);
/* The row as it is when the step is a delivery; also what the step's transaction writes. */
void view_step_done(const struct view_step *step, int64_t delivery, struct session_view_row *row);
/* The outbox refuses it for good. */
void view_step_refused(struct view_step *step, const struct error *err);

#endif
