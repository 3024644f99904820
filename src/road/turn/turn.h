/*
 * turn: turns and lanes in memory. For src/road alone.
 *
 *     STORING ──► QUEUED ── claim committed ──► STARTING ──► RUNNING ── answer ──► ENDING
 *        └── lane free ──► STORING_RUNNING ──────┘                end committed: freed
 *
 * The claim raises attempt and fence before the agent is asked, and the end names the fence, so a
 * late answer changes nothing. After a crash a running turn goes on if its agent permits that, else
 * it ends with a notice (recover.c).
 */
#ifndef ROAD_TURN_TURN_H
#define ROAD_TURN_TURN_H

#include <sys/queue.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/map.h"
#include "road/outbox/delivery_job.h"
#include "road/road.h"
#include "rows/turn_row.h"

enum turn_phase {
        PHASE_STORING,         /* being inserted as queued */
        PHASE_STORING_RUNNING, /* being inserted as running: the lane was free */
        PHASE_QUEUED,          /* waits for its time, lane, session or a free place */
        PHASE_STARTING,        /* storing its claim, or reading its history */
        PHASE_RUNNING,         /* the agent has it */
        PHASE_ENDING,          /* storing its end */
};

#define TURN_DETAILS 32

struct turn {
        struct turn_run run; /* first member: a run converts to its turn */
        struct road *road;
        struct lane *lane;
        enum turn_phase phase;
        char trace[ID_TRACE_SIZE];
        char key[ROAD_KEY_SIZE];  /* "trn-12" */
        struct incoming **inputs; /* same as run.inputs */
        unsigned input_cap;
        struct reply_policy policy; /* strings in the arena */
        struct arena arena;         /* also holds the history */
        int64_t created_ms;         /* wall clock */
        int64_t started_ms;
        struct timer *timer; /* debounce while queued, deadline while running */

        struct {
                int64_t due_mono;          /* not before */
                int64_t due_ms;            /* the same by the wall clock, as stored */
                int64_t due_limit;         /* of the debounce */
                struct turn_list *held_in; /* waits there for a free place; NULL: nowhere */
                unsigned changes;          /* to its inputs, being stored: must not start */
        } queue;

        struct {
                TAILQ_HEAD(, turn_file) list; /* one for each input with files */
                unsigned pending;             /* still being fetched: it does not start yet */
        } files;

        struct {
                struct history_fetch *fetch;  /* fetch of the channel history; may be NULL */
                struct context_read *reacted; /* being fetched; may be NULL */
                struct session_lock *lock;    /* may be NULL */
                unsigned deleted;             /* inputs deleted while running */
                struct turn_end *end;         /* waiting to be stored */
        } progress;

        struct {
                bool pending; /* cancel being stored: no message joins */
                char *why;    /* NULL: not cancelled */
                store_done_fn *done;
                void *arg;
        } cancel;

        struct {
                const char *agent; /* that took over; NULL: none */
                struct buf failed; /* those before it, a JSON list without its end */
                int64_t tokens_in, tokens_cached, tokens_out, cost_microusd; /* theirs */
        } failover;

        struct {
                struct turn_usage usage;
                char label[80];   /* what it is doing, for /status */
                unsigned writes;  /* of steps, in flight: the end waits for them */
                bool waits;       /* for a person: no deadline */
                bool no_deadline; /* its agent has limits of its own */
        } steps;

        struct {
                struct buf held;               /* streamed text that may become "no reply" */
                bool streams;                  /* it cannot: streamed text is shown */
                struct draft *draft;           /* may be NULL */
                int64_t draft_delivery;        /* delivery that shows it; 0: none */
                char *message;                 /* the platform's id of that; NULL: not known */
                struct timer *slow;            /* until the progress reaction */
                int64_t reaction;              /* delivery of the progress reaction; 0: none */
                int64_t details[TURN_DETAILS]; /* deliveries; the first ones of this process */
                unsigned detail_count;
                unsigned writes; /* in flight: the end waits for them */
        } display;

        LIST_HEAD(, approval_ask) approval_asks; /* being stored */
        unsigned approvals_open;                 /* that it waits for: it has no deadline */

        TAILQ_ENTRY(turn) in_lane;
        TAILQ_ENTRY(turn) in_held;
};

/* Names a conversation. Strings are borrowed. */
struct lane_name {
        const char *adapter, *channel, *thread, *agent;
        const char *person; /* NULL: shared by the chat */
};

/* A conversation with an open turn. */
struct lane {
        char *key;
        int64_t conversation; /* 0 until its row is known */
        struct turn *running; /* in any phase except STORING and QUEUED */
        struct turn_list waiting;
        int64_t mailbox;     /* messages in queued turns */
        int64_t reset_turn;  /* of the last /new: no message joins an earlier turn */
        unsigned cancelling; /* turns that end while another runs */
        struct lane_group *group;
        LIST_ENTRY(lane) in_group;
};

/* A chat's or person's lanes with different agents: the scope of commands. */
struct lane_group {
        char *key;
        LIST_HEAD(, lane) lanes;
};

struct turns {
        struct map lanes, lane_groups;
        struct map by_number;
        struct map inputs; /* turns by message, see message_edit_index */
        struct map session_locks;
        struct turn_list ready;      /* waiting for a free place */
        TAILQ_HEAD(, turn_end) ends; /* waiting for delivery numbers */
        LIST_HEAD(, late_reply) late_replies;
        size_t running, open;
};

/* The deliveries of a turn's end. */
struct answer {
        struct delivery_job **jobs; /* in order */
        size_t count;
        size_t messages, first; /* messages of the text, and the index of the first */
        char *thread;           /* started for it; NULL: none */
        char *silent_reason;    /* why nothing is posted; NULL: posted */
        char *draft;            /* the text shown so far; NULL: none */
        bool refers;            /* to the message answered */
        int64_t superseded[4];
        size_t superseded_count;
};

/* ---- lane.c ---- */

char *lane_key(const struct lane_name *n); /* yours to free */
const struct lane_group *lane_group_find(const struct road *r, const struct lane_name *n);
struct lane *lane_get(struct road *r, const struct lane_name *n); /* created on demand */
/* Starts the next turn if allowed; may free the lane. */
void lane_pump(struct road *r, struct lane *lane);
void lane_pump_ready(struct road *r);                             /* a place became free */
void lane_release_held(struct road *r, struct outbox_adapter *a); /* its outbox may have room */
void lane_free_if_idle(struct road *r, struct lane *lane);
void lane_append(struct lane *lane, struct turn *t);
void lane_hold(struct turn *t, struct turn_list *list);
void lane_unhold(struct turn *t);
void lane_set_running(struct turn *t);
/* Removes a queued turn, which becomes the running one if the lane has none. */
void lane_take(struct turn *t);
void lane_give_back(struct turn *t); /* undoes lane_take */
void lane_release_all(struct road *r);

/* ---- session_lock.c ---- */

bool session_lock_is_free(const struct road *r, const char *agent, const char *session);
void session_lock_take(struct turn *t);
/* True: another lane's turn holds the session; t waits. */
bool session_lock_hold(struct turn *t);
void session_lock_release(struct turn *t);
void session_lock_release_all(struct road *r);

/* ---- turn.c ---- */

/* Copies; id 0 takes a new number; mode and prompt are those of the policy. */
struct turn *turn_new(struct road *r, struct lane *lane, const struct turn_run *run,
                      const struct reply_policy *policy);
void turn_free(struct turn *t);
/* The only place that changes the phase. */
void turn_enter(struct turn *t, enum turn_phase phase);
void turn_add_input(struct turn *t, struct incoming *in); /* takes ownership */
struct incoming *turn_last_input(const struct turn *t);
bool turn_has_sender(const struct turn *t, const char *sender); /* NULL: unnamed */
bool turn_has_others(const struct turn *t, const char *sender); /* other senders */
char *turn_inputs_text(const struct turn *t);                   /* "12,15", yours to free */
void turn_write_inputs(const struct turn *t, const char *key, struct buf *json);
const char *turn_agent(const struct turn *t); /* that has it now: run.agent, or by failover */
bool turn_is_unsampled(const struct turn *t); /* the caller does not record its trace */
struct turn *turn_find(const struct road *r, int64_t id);
bool turn_may_start(const struct road *r, const char *adapter);
void turn_claim(struct turn *t);
/* In store functions. */
int turn_append_started(struct store_tx *tx, struct bus_batch *batch, const struct turn *t,
                        int64_t now_ms, struct error *err);
/* Ends a queued turn that a crash interrupted. */
void turn_give_up(struct turn *t, const char *why);
/* turn_failover.c: an earlier run of the daemon gave it to another agent. */
void turn_recover_failover(struct turn *t, const struct turn_row *row);
/* Ends a cancelled turn if its phase allows. */
void turn_check_cancel(struct turn *t);
bool turn_is_withdrawn(const struct turn *t); /* have all its messages been deleted? */
void turn_leave(struct turn *t);              /* frees it and pumps its lane */

/* ---- turn_files.c ---- */

/* Has the message files that must be fetched before an agent sees it? */
bool turn_files_needed(const struct road *r, const struct incoming *in);
/* Fetches the files of an input; the turn does not start before they are there or given up. */
void turn_files_want(struct turn *t, const struct incoming *in);
/* Gives up files of an input that are not there at once: others must not wait for them. */
void turn_files_hurry(struct turn *t, int64_t event);
void turn_files_forget(struct turn *t, int64_t event);    /* its input has changed or gone */
void turn_files_move(struct turn *from, struct turn *to); /* none is still being fetched */
void turn_files_apply(struct turn *t); /* gives the inputs the path of each file, or the error */
void turn_files_write(const struct turn *t, struct buf *json); /* as a member, if there are any */
void turn_files_release(struct turn *t);

/* ---- turn_prepare.c ---- */

void turn_prepare(struct turn *t);           /* called when its row says running */
void turn_prepare_history(struct turn *t);   /* its reaction is quoted, if it has one */
void turn_hand_over(struct turn *t);         /* the agent starts, or a cancelled turn ends */
void reaction_context_begin(struct turn *t); /* turn_prepare_history follows */
void history_begin(struct turn *t);          /* turn_hand_over follows */
void channel_history_begin(struct turn *t);  /* turn_hand_over or turn_finish follows */
void channel_history_forget(struct turn *t);
void reaction_context_forget(struct turn *t);

/* ---- turn_commit.c ---- */

/* Stores the end that turn_finish made, once display writes and delivery numbers allow. */
void turn_commit(struct turn *t);
void turn_commit_waiting(struct road *r); /* there are delivery numbers */
void turn_commit_discard(struct turn *t);

/* ---- late_reply.c ---- */

/* Called after the commit; answered: not a failure. */
void late_reply_turn_ended(struct road *r, int64_t turn, bool answered);
void late_reply_release(struct road *r);

/* ---- turn_deliveries.c ---- */

/* Leaves the deliveries unnumbered. */
void turn_deliveries_make(struct turn *t, const struct turn_reply *reply, struct answer *a);
void turn_deliveries_add(struct answer *a, struct delivery_job *j);
/* Frees a queued delivery; the turn's end marks its row. */
void turn_deliveries_supersede(struct turn *t, struct answer *a, struct delivery_job *j);

/* ---- approval.c ---- */

struct incoming;

/* Does the message answer an open approval without naming it? */
bool approval_is_answered_by(const struct road *r, const struct incoming *in);
/* The turn ends or is freed: it no longer waits. */
void approval_forget_turn(struct turn *t);
/* Open approvals of a turn that ends, closed in its transaction. */
struct approvals_closed {
        struct approval_row **rows;
        size_t count;
};
/* Collects them, and appends edits that show it. */
void approval_end_turn(struct turn *t, struct answer *out, struct approvals_closed *closed);
int approval_write_closed(struct store_tx *tx, struct bus_batch *batch,
                          const struct approvals_closed *closed, struct error *err);
void approval_closed(struct road *r, struct approvals_closed *closed); /* after the commit */
void approvals_closed_release(struct approvals_closed *closed);
void approval_message_sent(struct road *r, int64_t delivery, const char *platform_id);
/* Appends a sentence for each that the turn waits for. */
void approval_describe_turn(const struct road *r, int64_t turn, struct buf *out);
/* Loads open ones and the rules; blocks. */
int approvals_open(struct road *r, struct error *err);
void approvals_close(struct road *r);

/* ---- draft.c ---- */

void draft_begin(struct turn *t);
void draft_add(struct turn *t, const char *text, size_t n);
void draft_turn_over(struct turn *t);                   /* the next text replaces the one shown */
void draft_progress(struct turn *t, const char *label); /* shown below the text so far */
/* A delivery of a turn was sent: if it is the draft, commands in its thread mean the turn. */
void draft_message_sent(struct road *r, const struct delivery_job *j, const char *platform_id);
/* Shows it at once, with a placeholder if need be. False: there is none. */
bool draft_show_now(struct turn *t);
char *draft_end(struct turn *t); /* the text so far, yours to free; NULL: none */
void draft_supersede(struct turn *t, struct answer *a);

/* ---- turn_detail.c ---- */

/* What the work used, below the details; the reply has the sums. */
void turn_detail_end(struct turn *t, const struct turn_reply *reply, struct answer *a);
/* The draft is deleted: so are its details, first, as far as this process has stored them. */
void turn_detail_delete(struct turn *t, struct answer *a);

/* ---- progress_reaction.c ---- */

void progress_reaction_begin(struct turn *t);
void progress_reaction_end(struct turn *t, enum error_kind kind, struct answer *a);
/* Must j, a reaction in the channel, wait for an answer in a thread? */
bool progress_reaction_follows(const struct delivery_job *j, const struct delivery_job *answer);
/* For a ✅: the payload as ❌, in case the answer does not arrive, yours to free; else NULL. */
char *progress_reaction_failed_payload(const struct delivery_job *j);

#endif
