/*
 * road_rig: a road with a real store in a temporary folder; the test plays dispatch, agents and
 * adapters. Names select behaviour:
 *
 *     agent    echo     takes one message a turn; its turns may be repeated
 *              batch    takes several, with history; its turns may be repeated
 *              once     its turns must not be repeated
 *              steps    stores steps: its turns go on, and take further messages while they run
 *     adapter  j        journaled: a delivery is sent by its commit
 *              x        edits; its sends cannot be repeated nor read back
 *              nonce    edits; its sends are idempotent
 *              look     its sends can be read back
 *              sketch   the same; edits, streams answers
 *              grow     edits, streams answers, types, has threads
 *              work     edits, streams answers, shows the steps of turns in threads
 *              react    edits, reacts, types, has threads and channel history
 *              hush     types in threads only
 *              named    commands begin with "/dragoman "
 *              plans    has a calendar, opens direct chats; its sends are idempotent
 *              cards    edits, has threads, buttons and cards; its sends are idempotent
 *              tools    its sends are idempotent; takes files of 1000 bytes, has the tools
 *                       test_read and test_send of a chat (channel_id), test_dm of all
 *
 * An event names its agent in `guild`; a text that begins with "skip" triggers nothing. A '|' in an
 * answer separates messages. Turns are answered by rig_answer or auto_answer, sends by rig_result
 * or auto_send.
 */
#ifndef TESTS_ROAD_RIG_H
#define TESTS_ROAD_RIG_H

#include "road/road.h"
#include "rows.h"

#define RIG_MAX 4096

struct rig_run {
        struct turn_run *run; /* NULL once answered or cancelled */
        char text[256];       /* inputs joined by '+' */
        int attempt;
        bool cancelled;
};

struct rig_sent {
        int64_t delivery, fence, read_seq;
        char adapter[16], channel[32], thread[32], kind[16], target[16], text[256];
        char message[32], emoji[16], name[128], reply_to[32], read_from[32];
        char title[128];   /* of a card */
        char buttons[400]; /* as JSON */
        bool answered, reconcile, silent;
};

/* A message of the channel history. */
struct rig_line {
        const char *id, *sender, *name, *text;
        bool own;
};

/* The files of a message with a `source`, while a turn holds them. */
struct rig_held {
        struct held_files base; /* first */
        struct attachment item;
        char source[32], why[120];
        files_ready_fn *done;
        void *arg;
        bool released;
};

struct rig {
        char *dir;
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        struct road *road;
        struct road_limits limits;

        /* events */
        unsigned received, acks, duplicates, refusals;
        struct error last_error;
        char last_trace[40];
        int64_t last_event;
        unsigned next_key;

        /* decisions */
        int64_t debounce_ms, debounce_max_ms;
        struct reply_policy policy; /* of every decision */
        bool counts_turns;          /* admit only turns_left further turns */
        unsigned turns_left;
        const char *notice; /* sent to a sender who is refused; NULL: none */
        /* changes the rig's decision; NULL: does not */
        void (*decides)(struct rig *g, const struct incoming *in, struct decision *out);
        struct road_dispatch real; /* takes the place of the rig; members may be NULL */

        /* turns */
        struct rig_run runs[RIG_MAX];
        unsigned run_count;
        bool auto_answer; /* answer each turn with "re:" and its text */
        /* take the place of the rig; NULL: they do not */
        void (*starts)(struct rig *g, struct turn_run *run);
        void (*cancels)(struct rig *g, struct turn_run *run);
        void (*waits)(struct rig *g, struct turn_run *run);
        unsigned waitings; /* messages behind a running turn that were offered to its agent */
        void *test;        /* theirs */
        unsigned endings, ended;
        struct turn_outcome outcome; /* of the last turn that ended */
        char outcome_thread[32];
        struct late_reply_policy late_replies; /* of every agent; max_replies 0: none */

        /* adapters */
        struct rig_sent sent[RIG_MAX];
        unsigned sent_count;
        bool auto_send; /* every send succeeds */
        bool adapters_down;
        const char *down; /* only this one; NULL: none */
        unsigned unready; /* how often one was found down */
        bool asks_admins; /* what becomes of sends that may have arrived */
        struct pace_limits pace;
        enum chat_threads threads;     /* of every chat */
        enum error_kind threads_error; /* instead; ERR_NONE: none */
        unsigned threads_asked;
        bool no_thread;             /* else a message can start the thread "t-" plus its id */
        struct rig_line history[8]; /* channel history, oldest first */
        unsigned history_count;
        /* what the platform says about one message; NULL: it cannot be fetched */
        const char *message_text;
        bool message_is_own, message_is_gone;
        bool message_hangs;
        unsigned message_fetches;
        channel_history_fn *message_done;
        void *message_arg;
        unsigned history_fetches; /* how often it was fetched */
        bool history_hangs;       /* only rig_send_history answers */
        bool history_fails;
        channel_history_fn *history_done;
        void *history_arg;
        /* the last call of a tool; the rig answers {"ok":true}, or with an error */
        unsigned tool_calls;
        char tool_name[32], tool_arguments[256], tool_key[64];
        struct error tool_error;
        struct rig_held held[512];
        unsigned held_count;
};

struct rig *rig_new(void);
/* On the folder of another rig; rig_free removes it. */
struct rig *rig_new_in(const char *dir);
void rig_free(struct rig *g);
/* Closes everything and opens it again, as after a crash. */
void rig_restart(struct rig *g);

/* Both return at once. key NULL: a new one. */
void rig_say(struct rig *g, const char *adapter, const char *channel, const char *agent,
             const char *text, const char *key);
/* An answer of adapter "x" waits; adapters_down = false and outbox_wake send it. */
void rig_queue_delivery(struct rig *g);
/* Fills in what is NULL: adapter "j", channel "c", agent "echo", sender Ann. */
void rig_receive(struct rig *g, const struct incoming *in);
void rig_answer(struct rig *g, unsigned run, const char *text);
void rig_fail(struct rig *g, unsigned run, enum error_kind kind, const char *notice);
void rig_result(struct rig *g, unsigned sent, enum send_outcome outcome, enum error_kind kind,
                int64_t retry_after_ms);
/* The file is there, or why says why not. */
void rig_file(struct rig *g, unsigned held, const char *path, const char *why);
/* Answers a pending fetch of channel history. */
void rig_send_history(struct rig *g);
/* The platform answers late about one message. */
void rig_send_message(struct rig *g);

/* Each runs the loop; those that wait fail the test after PATIENCE_MS. */
void rig_until(struct rig *g, const unsigned *counter, unsigned n);
/* Until no event, turn or delivery is open. */
void rig_until_idle(struct rig *g);
/*
 * Until nothing is being received or written, and nothing has happened for longer than a retry
 * takes: then what has not happened will not.
 */
void rig_settle(struct rig *g);
/* For a fixed time: for what depends on a timer of the road. */
void rig_run_for(struct rig *g, int64_t ms);

/* Rows; see rows.h. */
#define rig_count(g, from)             rows_count((g)->store, from)
#define rig_number(g, select)          rows_number((g)->store, select)
#define rig_text(g, select)            rows_text((g)->store, select)
#define rig_list(g, select)            rows_list((g)->store, select)
#define rig_members(g, select, member) rows_members((g)->store, select, member)
#define rig_update(g, set, a, b)       rows_update((g)->store, set, a, b)
/* Runs the loop until there are so many rows. */
#define rig_until_count(g, from, n) rig_sql_until(g, "SELECT count(*) FROM " from, n)
void rig_sql_until(struct rig *g, const char *sql, int64_t count);

#endif
