/*
 * road_private: the road's own structures. For the files of this room only.
 *
 * Three kinds of things live in memory, each rebuilt from rows at start: lanes with their waiting
 * and running turns, the outbox's channels with their deliveries, and events that are committed but
 * not yet decided. Everything idle lives in the store alone, so that a hundred thousand known
 * conversations cost nothing.
 *
 * A write that fails (disk full, I/O error) is repeated until it works: what it says has happened
 * in memory already. struct rewrite keeps such a write.
 */
#ifndef ROAD_ROAD_PRIVATE_H
#define ROAD_ROAD_PRIVATE_H

#include <sys/queue.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/map.h"
#include "road/road.h"
#include "rows/turn_row.h"

#define ROAD_KEY_BREAK "\x1f"     /* between the parts of a key; no platform has it in an id */
#define ROAD_CURSOR    "dispatch" /* events up to here are decided */
/* and up to here no open turn needs them any more; written by prune.c */
#define TURNS_CURSOR  "turns"
#define TURN_KEY_SIZE 24 /* "trn-" and a number */

enum turn_phase {
        PHASE_STORING,  /* its row is on the way to the disk */
        PHASE_QUEUED,   /* waits for its time, its lane or a free place */
        PHASE_STARTING, /* its claim is on the way to the disk */
        PHASE_RUNNING,  /* the agent has it */
        PHASE_ENDING,   /* its end and its deliveries are on the way to the disk */
};

struct turn {
        struct turn_run run; /* what the agent sees; first, so that run and turn convert */
        struct road *road;
        struct lane *lane;
        enum turn_phase phase;
        bool starts_now; /* stored as running at once: the lane was free */
        /* waits there for a free place or for room in its adapter's outbox; NULL: nowhere */
        struct turn_list *held_in;
        /* messages that were added but not stored yet: it must not start before them */
        unsigned joining;
        struct flight *flight; /* of its session while it runs; NULL: no session */
        char *agent, *rule, *adapter, *channel, *thread;
        char *person;  /* whose own lane it is in; NULL: everybody's */
        char *session; /* of the decision; NULL: none */
        char trace[ID_TRACE_SIZE];
        char key[TURN_KEY_SIZE];
        struct incoming **inputs;
        unsigned input_count, input_cap;
        /* a decision on its way to the disk cancels it: nothing joins it any more */
        bool doomed;
        unsigned deleted;   /* of its messages, by their authors, since it runs */
        int64_t created_ms; /* wall clock */
        int64_t started_ms;
        int64_t due_mono;           /* not before */
        int64_t due_ms;             /* the same by the wall clock, as stored */
        int64_t due_limit;          /* debounce may not push due_mono beyond this */
        struct timer *timer;        /* debounce while queued, deadline while running */
        struct reply_policy policy; /* strings are in the arena */
        struct arena arena;         /* also holds the history */
        struct draft *draft;    /* the answer while it grows, where the platform can show that */
        int64_t draft_delivery; /* the message that shows it; 0: none yet */
        /* pieces of the draft, or the mark, on their way to the disk: the end waits for them */
        unsigned showing;
        struct timer *slow;          /* until its message is marked */
        int64_t mark;                /* the delivery that marked it; 0: none */
        struct recalling *recalling; /* the platform is asked what was said */
        struct ending *ending;       /* the end that waits */
        char *cancel_why;            /* somebody asked to stop it before that was possible */
        store_done_fn *cancel_done;
        void *cancel_arg;
        TAILQ_ENTRY(turn) in_lane;
        TAILQ_ENTRY(turn) in_held;
};
TAILQ_HEAD(turn_list, turn);

/* Whose conversation it is. Strings are borrowed. */
struct lane_name {
        const char *adapter, *channel, *thread, *agent;
        const char *person; /* NULL: everybody's in the channel */
};

/*
 * What a decision changes besides placing its event: a command, a change of what waits. Carried out
 * by the decision's transaction.
 */
struct effect {
        /* may run more than once */
        int (*write)(struct store_tx *tx, struct effect *e, struct error *err);
        void (*committed)(struct effect *e);
        void (*free)(struct effect *e);
};

/* A conversation while something is going on in it. */
struct lane {
        char *key;            /* adapter, channel, thread, agent and perhaps person */
        int64_t conversation; /* 0 until its row is known */
        struct turn *running; /* STARTING, RUNNING or ENDING; also STORING when it starts now */
        struct turn_list waiting;
        int64_t mailbox; /* messages in waiting turns */
        /*
         * no message joins a turn with a smaller number: the conversation began anew with this one
         */
        int64_t joins_from;
        unsigned leaving; /* cancelled turns whose end is being stored while another one runs */
        struct place *place;
        LIST_ENTRY(lane) in_place;
};

/* Lanes that differ only in their agent: what people mean by "here". */
struct place {
        char *key;
        LIST_HEAD(, lane) lanes;
};

/* What a turn's end brings forth. */
struct answer {
        struct out **outs; /* in the order they leave */
        size_t count;
        size_t said;   /* of them, the parts of the text */
        int64_t first; /* the delivery that is the first of these */
        char *thread;  /* begun for it; NULL: none */
        char *silent;  /* why nothing is said although the turn ran; NULL: it is */
        bool journaled;
        bool refers;           /* to the message it answers */
        int64_t part_delay_ms; /* between these */
        int64_t superseded[4]; /* deliveries that had not left and are not worth sending any more */
        size_t superseded_count;
};

/* An event that is committed and waits for its decision. */
struct pending {
        struct incoming *in;
        STAILQ_ENTRY(pending) next;
};
STAILQ_HEAD(pending_list, pending);

enum out_state {
        OUT_QUEUED,
        OUT_CLAIMING, /* its claim is on the way to the disk */
        OUT_SENDING,  /* the adapter has it */
        OUT_SETTLING, /* its outcome is on the way to the disk */
};

/* A delivery while it is open. */
struct out {
        struct delivery d; /* strings owned by this struct */
        struct out_channel *channel;
        enum out_state state;
        bool unsure; /* claimed by an earlier life of this process: it may have arrived */
        bool reconciling;
        bool limited; /* an earlier life was told to wait by the platform's rate limit */
        bool counted; /* among the adapter's sends in doubt */
        int64_t ref;  /* an edit of the message that this delivery made; 0: none */
        int64_t due_mono;
        /* of the answer's later messages: not before so long after it was made */
        int64_t delay_ms;
        int64_t lease_ms;     /* of the last claim */
        int64_t expires_ms;   /* wall clock, as stored; 0: never */
        int64_t expires_boot; /* the same by a clock that nobody sets */
        struct timer *deadline;
        /* ours, and enqueued when this one is gone: the sign about an answer elsewhere */
        struct out *follower;
        TAILQ_ENTRY(out) next;
};
TAILQ_HEAD(out_list, out);

/* One ordered row of deliveries: a channel, or a thread in it. */
struct out_channel {
        struct out_adapter *adapter;
        char *key; /* channel and thread */
        struct out_list queue;
        struct timer *timer;
        bool crowded; /* waits until fewer sends are in doubt */
        TAILQ_ENTRY(out_channel) next_crowded;
};
TAILQ_HEAD(out_channel_list, out_channel);

struct out_adapter {
        struct road *road;
        char *name;
        struct pace *pace;
        struct map channels;
        struct turn_list held; /* turns that wait until fewer deliveries are open here */
        /* claimed, the outcome not yet stored, and the platform could not tell it */
        int64_t in_doubt;
        struct out_channel_list crowd;
        struct adapter_stats stats;
};

struct road {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road_limits limits;
        struct road_dispatch dispatch;
        struct road_agents agents;
        struct road_platforms platforms;
        char owner[17]; /* this life of the process */
        int64_t next_turn, next_delivery;

        /* inbox and decisions */
        struct pending_list pending;
        size_t pending_count;
        bool deciding;        /* a write with decisions is under way */
        struct placed *asked; /* a decision that needs what those before it have stored */

        /* lanes and turns */
        struct map lanes;
        struct map places;
        struct map turns; /* by number, for cancelling */
        /* the turn that is to answer a message, by adapter, channel and the platform's id */
        struct map inputs;
        struct map flights; /* sessions that have a running turn */
        LIST_HEAD(, late_reply) late_replies;
        struct turn_list ready;
        size_t running_count, turn_count;

        /* outbox */
        struct map adapters;
        struct map outs; /* by number, for answers of adapters */
        size_t out_count;
        size_t sending_count; /* claimed or claiming */

        struct timer *prune;
        struct road_stats stats;

        bool dual_emit; /* reactions are also journaled as messages, for readers of the old way */
        bool resumed;   /* what an earlier life left has been taken up; others may be asked */
        bool draining;  /* nothing new is started */
        bool closing;   /* what cannot be written now is left to the next life */
        struct timer *drain_timer;
        void (*drained)(void *arg);
        void *drained_arg;

        unsigned writes; /* under way; road_close waits for them */
};

/* Number → "trn-12" etc. */
char *road_key(const char *prefix, int64_t n, char out[TURN_KEY_SIZE]);

/*
 * A write that must succeed in the end. fn and done are as in store.h; on an error the write is
 * repeated with growing pauses, and done is only called once it is committed. `what` is for the
 * log.
 */
void road_write(struct road *r, const char *what, store_fn *fn, void (*done)(void *arg), void *arg);

/* prune.c */
void prune_begin(struct road *r); /* from now on, every minute */
void prune_run(void *road);       /* now */

/* decide.c */
/* looks at pending events, if nobody does */
void decide_pending(struct road *r);
void decide_later(struct road *r, struct incoming *in); /* takes in over */
void decide_forget(struct road *r);

/* command.c */
const char *command_name(enum road_command what);
/* What is to be done, and what is said about it. WHY is answered by its story alone. */
struct effect *command_new(struct road *r, enum road_command what, const struct lane_name *n,
                           const struct incoming *in, struct buf *answer);

/* change.c */
void change_index(struct turn *t, const struct incoming *in);
void change_unindex(struct turn *t, const struct incoming *in);
/*
 * What an edit or a deletion changes, and a sentence about it, yours to free; NULL: nothing that is
 * still to be answered.
 */
struct effect *change_new(struct road *r, const struct incoming *in, struct turn **turn,
                          char **reason);

/* lane.c */
char *lane_key(const struct lane_name *n); /* yours to free */
/* any agent's; NULL: nothing is going on */
const struct place *lane_place(const struct road *r, const struct lane_name *n);
struct lane *lane_get(struct road *r, const struct lane_name *n); /* made on demand */
/*
 * Inside store functions: the number of its row, made on demand, and the turn with which it began
 * anew (0: never).
 */
int lane_row(struct store_tx *tx, const char *key, const struct lane_name *n, int64_t now_ms,
             int64_t *conversation, int64_t *begun, struct error *err);
/* starts the next turn if it may; may free the lane */
void lane_pump(struct road *r, struct lane *lane);
void lane_pump_ready(struct road *r); /* a place became free */
/* there may be room in the adapter's outbox */
void lane_release_held(struct road *r, struct out_adapter *a);
void lane_free_if_idle(struct road *r, struct lane *lane);
void lane_free(struct road *r, struct lane *lane); /* out of the maps, too */
void lane_append(struct lane *lane, struct turn *t);
void lane_hold(struct turn *t, struct turn_list *list);
void lane_unhold(struct turn *t);
void lane_run(struct turn *t); /* it becomes the running one of its lane, which has none */
/* out of the waiting ones; the lane's running turn if there is none */
void lane_take(struct turn *t);
void lane_give_back(struct turn *t); /* undoes lane_take when the turn leaves */

/* flight.c */
/* also without one */
bool flight_is_free(const struct road *r, const char *agent, const char *session);
void flight_begin(struct turn *t); /* it runs: nobody else does on its session */
/* another lane's turn runs on its session: it is held until that has ended */
bool flight_holds(struct turn *t);
void flight_end(struct turn *t);
void flight_release_all(struct road *r);

/* history.c */
void quote_gather(struct turn *t);   /* what was reacted to; history_gather follows */
void history_gather(struct turn *t); /* what its agent is to read before; turn_hand_over follows */

/* turn.c */
struct turn *turn_new(struct road *r, struct lane *lane, const char *agent, const char *rule,
                      const char *trace);
void turn_free(struct turn *t);
void turn_add_input(struct turn *t, struct incoming *in); /* takes in over */
bool turn_may_start(const struct road *r, const char *adapter);
/* Inside store functions: the turn.started event. */
int turn_started_event(struct store_tx *tx, struct bus_batch *batch, const struct turn *t,
                       int64_t attempt, int64_t now_ms, struct error *err);
void turn_leave(struct turn *t); /* out of memory: its lane goes on */
void turn_claim(struct turn *t); /* QUEUED → STARTING */
void turn_begin(struct turn *t); /* its row says running: hand it to the agent */
void turn_hand_over(struct turn *t);
/* what others see of it */
void turn_fill_run(struct turn *t);
/* the events it answers */
void turn_show_inputs(const struct turn *t, const char *key, struct buf *out);
/* a run that was interrupted too often, or may not be repeated */
void turn_give_up(struct turn *t, const char *why);
void turn_check_cancel(struct turn *t);
bool turn_is_taken_back(const struct turn *t); /* whoever asked has deleted the question */
/* Inside store functions: it is to be cancelled, whatever happens to this process. */
int turn_mark_cancelled(struct store_tx *tx, int64_t turn, const char *why, struct error *err);
void turn_inputs_text(const struct turn *t, struct buf *out);

/* recover.c */
int recover_turns(struct road *r, struct error *err);
int recover_events(struct road *r, struct error *err);

/* ending.c */
/* stores the end and the deliveries; the turn leaves */
void turn_end(struct turn *t, const struct turn_reply *reply);
/* the last piece of its draft is stored: now it may end */
void turn_end_held(struct turn *t);

/* late_reply.c */
/* The end of a turn is stored; answered: as an answer, not as a failure. */
void late_reply_turn_ended(struct road *r, int64_t turn, bool answered);
void late_reply_release(struct road *r);

/* note.c: lines of the transcript that belong to no turn; inside store functions */
/*
 * What somebody said while no agent was asked; the lane's conversation is made if it is not there.
 */
int note_heard(struct store_tx *tx, const char *key, const struct lane_name *n,
               const struct incoming *in, int64_t now_ms, struct error *err);
/* What a person said in the bot's name: all conversations of the chat hear it. */
int note_told(struct store_tx *tx, const struct out *o, const char *author, const char *text,
              struct error *err);

/* answer.c */
void answer_make(struct turn *t, const struct turn_reply *reply, struct answer *a); /* a is empty */
void answer_add(struct answer *a, struct out *o);
void answer_supersede(struct turn *t, struct answer *a, struct out *o); /* o is gone from memory */
void answer_release(struct answer *a);                                  /* not the deliveries */

/* silence.c */
bool silence_is(const struct reply_policy *policy, const char *text);
/* of a text that still grows */
bool silence_may_follow(const struct reply_policy *policy, const char *text);

/* mark.c */
void mark_begin(struct turn *t); /* it runs: should it take long, its message is marked */
void mark_end(struct turn *t, enum error_kind kind, struct answer *a);
/*
 * Is it a sign in the channel about this answer (NULL: none), which stands in a thread? It must not
 * be put before the answer is there.
 */
bool mark_follows(const struct out *o, const struct out *answer);
/*
 * A tick must not stand on a message whose answer did not arrive. The payload it has then, yours to
 * free; NULL: it is no tick.
 */
char *mark_cross(const struct out *o);
/*
 * Inside store functions: *crossed when the answer is known not to have arrived, and the row has
 * the payload now.
 */
int mark_cross_out(struct store_tx *tx, const struct out *o, const char *cross, bool *crossed,
                   struct error *err);

/* withdraw.c */
bool withdraw_is_due(
        const struct incoming *in); /* does its place have to be taken away when nothing is said? */
struct out *withdraw_new(struct road *r, const struct incoming *in, int64_t turn,
                         const char *turn_key);             /* 0, NULL: no turn */
void withdraw_unanswered(struct turn *t, struct answer *a); /* after its parts were added */

/* recall.c */
void recall_begin(struct turn *t, unsigned limit); /* turn_hand_over follows, or the turn fails */
void recall_forget(struct turn *t);

/* out.c */
struct out *out_new(int64_t id, int64_t turn, const char *adapter, const char *channel,
                    const char *thread, enum delivery_kind kind, enum pace_class class,
                    const char *payload, const char *trace);
void out_free(struct out *o);
void out_expires_at(struct out *o, int64_t wall_ms);             /* 0: never */
void out_set_expiry(const struct road *r, struct out *o);        /* as the limits say */
void out_delay(const struct road *r, struct out *o, int64_t ms); /* not before so long from now */
void out_set_payload(struct out *o, const char *payload);
void out_becomes_send(struct out *o);        /* an edit whose message is not there */
bool out_is_fleeting(const struct out *o);   /* typing: only worth something now, and no message */
bool out_is_repeatable(const struct out *o); /* doing it twice has the effect of doing it once */
/*
 * Inside store functions: the row, and for a journaled adapter the message.sent event that is the
 * delivery.
 */
int out_store(struct store_tx *tx, struct bus_batch *batch, const struct out *o, bool journaled,
              const char *request_key, struct error *err);
int out_event(struct store_tx *tx, struct bus_batch *batch, const struct out *o, const char *type,
              int64_t time_ms, const char *payload, struct error *err);
void out_sent_payload(const struct out *o, const char *platform_id, int64_t time_ms,
                      struct buf *payload);
/* 1: the waiting delivery has the new payload now; 0: it does not wait any more; -1. */
int out_replace_payload(struct store_tx *tx, int64_t delivery, const char *payload,
                        struct error *err);

/* outbox.c */
void outbox_enqueue(struct road *r, struct out *o); /* takes o over; its row exists */
/*
 * The same for deliveries that come together, in their order. *answer: the last part of an answer
 * among those before; NULL at first.
 */
void outbox_enqueue_next(struct road *r, struct out *o, struct out **answer);
/*
 * May it leave as soon as its row is stored? Then it is in memory and claimed: store its row, which
 * says so, and tell how that ended.
 */
bool outbox_claim_with_row(struct road *r, struct out *o);
void outbox_row_stored(struct road *r, struct out *o, bool stored);
void outbox_leave(struct road *r,
                  struct out *o); /* takes it out of memory; its row is the caller's business */
/*
 * The thread could not be begun: what its turn has for it goes to the channel, as the rows say
 * already.
 */
void outbox_move_to_channel(struct road *r, struct out *thread);
void outbox_pump(struct road *r, struct out_channel *c);
void outbox_decided(struct road *r, struct out *o); /* its outcome is stored: no longer in doubt */
void outbox_pump_all(struct road *r);
void outbox_set_all_limits(struct road *r);
struct out *outbox_find(const struct road *r, int64_t delivery);
bool outbox_has_room(const struct road *r, const char *adapter);
/*
 * An edit of the same message (by draft or by platform id) that has not left yet: only the newest
 * text is worth sending.
 */
struct out *outbox_waiting_edit(struct road *r, const char *adapter, const char *channel,
                                const char *thread, int64_t ref, const char *message_id);
struct out_adapter *outbox_adapter(struct road *r, const char *name); /* made on demand */
void outbox_release(struct road *r);

/* outbox_submit.c */
int recover_deliveries(struct road *r, struct error *err);

/* settle.c */
void settle_result(struct road *r, struct out *o, const struct send_result *result);
void settle_expired(struct road *r, struct out *o, const char *why);
void settle_unknown(struct road *r, struct out *o, const char *why);
/* The process ends before it is sent: back to the queue as if it had not been claimed. */
void settle_unclaim(struct road *r, struct out *o);

/* draft.c */
/*
 * The turn runs: typing, if the platform shows it; for an agent that may keep silent not before it
 * speaks.
 */
void draft_begin(struct turn *t);
void draft_add(struct turn *t, const char *text, size_t n);
/* the turn ends: no further typing and edits */
void draft_end(struct turn *t);
void draft_supersede(struct turn *t, struct answer *a); /* what of the draft has not left yet */
void draft_free(struct draft *d);

/* road.c */
void road_check_drained(struct road *r);

#endif
