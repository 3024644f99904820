/*
 * turn: turns and lanes in memory. For src/road alone.
 *
 *     STORING ──► QUEUED ── claim committed ──► STARTING ──► RUNNING ── agent answers ──► ENDING
 *        └── the lane is free ──► STORING_RUNNING ──┘                        end committed ──►
 * freed
 *
 * The claim raises attempt and fence before the agent is asked, and the end names the fence: an
 * agent that answers after its turn was given away changes nothing. If the process dies while a
 * turn runs, its row says running, and the next run repeats it when that does no harm
 * (AGENT_REPEATABLE) or ends it with a notice.
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
        PHASE_STORING,         /* its row is being stored as queued */
        PHASE_STORING_RUNNING, /* its row is being stored as running: the lane was free */
        PHASE_QUEUED,          /* waits for its time, its lane, its session or a free place */
        PHASE_STARTING,        /* its claim is being stored, or its history read */
        PHASE_RUNNING,         /* the agent has it */
        PHASE_ENDING,          /* its end and its deliveries are being stored */
};

/* What a running turn still needs before the agent gets it, in this order. */
enum prepare_step {
        PREPARE_REACTION_CONTEXT, /* the message that was reacted to */
        PREPARE_HISTORY,          /* the transcript, or the channel's history */
        PREPARE_HAND_OVER,
};

struct turn {
        struct turn_run run; /* first, so that a run converts to its turn; always filled in */
        struct road *road;
        struct lane *lane;
        enum turn_phase phase;
        char trace[ID_TRACE_SIZE];
        char key[ROAD_KEY_SIZE];  /* "trn-12" */
        struct incoming **inputs; /* the same as run.inputs */
        unsigned input_cap;
        struct reply_policy policy; /* strings are in the arena */
        struct arena arena;         /* also holds the history */
        int64_t created_ms;         /* wall clock */
        int64_t started_ms;
        struct timer *timer; /* debounce while queued, deadline while running */

        struct {
                int64_t due_mono;          /* not before */
                int64_t due_ms;            /* the same by the wall clock, as stored */
                int64_t due_limit;         /* debounce may not push due_mono beyond this */
                struct turn_list *held_in; /* waits there for a free place; NULL: nowhere */
                /* changes of its inputs that are being stored: it must not start before them */
                unsigned changes;
        } queue;

        struct {
                enum prepare_step step;
                struct history_fetch *fetch; /* of the channel's history; NULL: none */
                struct session_lock *lock;   /* of its session; NULL: none */
                unsigned deleted;            /* inputs deleted by their authors since it runs */
                struct turn_end *end;        /* waits to be stored */
        } progress;

        struct {
                bool pending; /* a decision that cancels it is being stored: nothing joins it */
                char *why;    /* NULL: not cancelled */
                store_done_fn *done;
                void *arg;
        } cancel;

        struct {
                struct draft *draft;    /* the growing answer, where the platform shows it */
                int64_t draft_delivery; /* the message that shows it; 0: none */
                struct timer *slow;     /* until the progress reaction */
                int64_t reaction;       /* the delivery that put the progress reaction; 0: none */
                unsigned writes;        /* pieces being stored: the end waits for them */
        } display;

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
        struct turn *running; /* in any phase but STORING and QUEUED */
        struct turn_list waiting;
        int64_t mailbox;     /* messages in waiting turns */
        int64_t reset_turn;  /* of the last /new: no message joins a turn with a smaller number */
        unsigned cancelling; /* cancelled turns whose end is being stored while another runs */
        struct lane_group *group;
        LIST_ENTRY(lane) in_group;
};

/* The lanes of one chat (or person in it) with different agents: what commands are about. */
struct lane_group {
        char *key;
        LIST_HEAD(, lane) lanes;
};

struct turns {
        struct map lanes, lane_groups;
        struct map by_number;
        struct map inputs; /* turns by adapter, channel and id of a message they answer */
        struct map session_locks;
        struct turn_list ready;      /* wait for a free place */
        TAILQ_HEAD(, turn_end) ends; /* wait for delivery numbers */
        LIST_HEAD(, late_reply) late_replies;
        size_t running, open;
};

/* The deliveries that a turn's end makes. */
struct answer {
        struct delivery_job **jobs; /* in the order they leave */
        size_t count;
        size_t messages;     /* of them, parts of the text */
        size_t first;        /* index of the first of these */
        char *thread;        /* begun for it; NULL: none */
        char *silent_reason; /* why nothing is posted although the turn ran; NULL: it is */
        bool journaled;
        bool refers; /* to the message it answers */
        int64_t superseded[4];
        size_t superseded_count;
};

/* ---- lane.c ---- */

char *lane_key(const struct lane_name *n); /* yours to free */
const struct lane_group *lane_group_find(const struct road *r, const struct lane_name *n);
struct lane *lane_get(struct road *r, const struct lane_name *n); /* made on demand */
/* Starts the next turn if it may; may free the lane. */
void lane_pump(struct road *r, struct lane *lane);
void lane_pump_ready(struct road *r);                             /* a place became free */
void lane_release_held(struct road *r, struct outbox_adapter *a); /* its outbox may have room */
void lane_free_if_idle(struct road *r, struct lane *lane);
void lane_append(struct lane *lane, struct turn *t);
void lane_hold(struct turn *t, struct turn_list *list);
void lane_unhold(struct turn *t);
void lane_set_running(struct turn *t); /* its lane has no running turn */
/* Takes it out of the waiting ones; it becomes the running turn if the lane has none. */
void lane_take(struct turn *t);
void lane_give_back(struct turn *t); /* undoes lane_take when the turn leaves */
void lane_release_all(struct road *r);

/* ---- session_lock.c ---- */

bool session_lock_is_free(const struct road *r, const char *agent, const char *session);
void session_lock_take(struct turn *t);
/* Holds the turn while another lane's turn runs on its session. False: it is free. */
bool session_lock_hold(struct turn *t);
void session_lock_release(struct turn *t); /* the turns it held go on */
void session_lock_release_all(struct road *r);

/* ---- turn.c ---- */

/* Strings are copied; id 0 takes a new number. */
struct turn *turn_new(struct road *r, struct lane *lane, const struct turn_run *run);
void turn_free(struct turn *t);
/* The only place that changes the phase. */
void turn_enter(struct turn *t, enum turn_phase phase);
/* The strings of *policy are in the turn's arena. */
void turn_set_policy(struct turn *t, const struct reply_policy *policy);
void turn_add_input(struct turn *t, struct incoming *in); /* takes in over */
struct incoming *turn_last_input(const struct turn *t);
char *turn_inputs_text(const struct turn *t); /* "12,15", yours to free */
void turn_write_inputs(const struct turn *t, const char *key, struct buf *json);
struct turn *turn_find(const struct road *r, int64_t id);
bool turn_may_start(const struct road *r, const char *adapter);
void turn_claim(struct turn *t);
/* Inside store functions: the turn.started event. */
int turn_append_started(struct store_tx *tx, struct bus_batch *batch, const struct turn *t,
                        int64_t now_ms, struct error *err);
/* Ends a queued turn that an earlier run was interrupted in. */
void turn_give_up(struct turn *t, const char *why);
/* Ends it if it was asked to stop and can be stopped now. */
void turn_check_cancel(struct turn *t);
bool turn_is_withdrawn(const struct turn *t); /* all its messages were deleted */
void turn_leave(struct turn *t);              /* frees it; its lane goes on */

/* ---- turn_prepare.c ---- */

void turn_prepare(struct turn *t); /* its row says running: gather what the agent needs */
/* Called by the steps below when they have finished. */
void turn_prepare_next(struct turn *t);
/* True: the step has begun, and turn_prepare_next or turn_end follows. False: nothing to do. */
bool reaction_context_begin(struct turn *t);
bool history_begin(struct turn *t);
bool channel_history_begin(struct turn *t);
void channel_history_forget(struct turn *t);

/* ---- turn_commit.c ---- */

/* Stores the end and the deliveries, once its display is stored; the turn leaves. */
void turn_end(struct turn *t, const struct turn_reply *reply);
/* Goes on with an end that waited for the display or for delivery numbers. */
void turn_end_resume(struct turn *t);
void turn_end_resume_all(struct road *r);
void turn_end_discard(struct turn *t); /* the next run ends it */

/* ---- late_reply.c ---- */

/* The end of a turn is stored; answered: as an answer, not as a failure. */
void late_reply_turn_ended(struct road *r, int64_t turn, bool answered);
void late_reply_release(struct road *r);

/* ---- turn_deliveries.c ---- */

/* Fills an empty answer; its deliveries have no numbers yet. */
void turn_deliveries_make(struct turn *t, const struct turn_reply *reply, struct answer *a);
void turn_deliveries_add(struct answer *a, struct delivery_job *j);
/* A queued delivery that is pointless now; frees it in memory. */
void turn_deliveries_supersede(struct turn *t, struct answer *a, struct delivery_job *j);
void turn_deliveries_release(struct answer *a); /* not the deliveries */

/* ---- no_reply.c ---- */

bool no_reply_matches(const struct reply_policy *policy, const char *text);
bool no_reply_may_follow(const struct reply_policy *policy, const char *text); /* text grows */

/* ---- draft.c ---- */

void draft_begin(struct turn *t);
void draft_add(struct turn *t, const char *text, size_t n);
void draft_end(struct turn *t); /* no further typing and edits */
void draft_supersede(struct turn *t, struct answer *a);
void draft_free(struct draft *d);

/* ---- progress_reaction.c ---- */

void progress_reaction_begin(struct turn *t);
void progress_reaction_end(struct turn *t, enum error_kind kind, struct answer *a);
/* Is j a reaction in the channel about an answer in a thread? It must not arrive first. */
bool progress_reaction_follows(const struct delivery_job *j, const struct delivery_job *answer);
/* Of a ✅: its payload as ❌, in case the answer does not arrive, yours to free; else NULL. */
char *progress_reaction_failed_payload(const struct delivery_job *j);

#endif
