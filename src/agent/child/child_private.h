/*
 * child_private: the structs of src/agent/child. For that folder alone.
 */
#ifndef AGENT_CHILD_CHILD_PRIVATE_H
#define AGENT_CHILD_CHILD_PRIVATE_H

#include <sys/queue.h>

#include "agent/child/child.h"
#include "agent/sandbox/sandbox.h"
#include "agent/workspace/workspace.h"
#include "base/map.h"

struct child_agent;
struct child_turn;

#define CHILD_ENV_MAX   80
#define CHILD_PATHS_MAX 10 /* of readOnly and writable */

/* ---- child_place.c: where it runs and what it sees ---- */

struct child_place {
        char *folder, *home;         /* as it sees them */
        char *workspace;             /* the path of DIR/workspace */
        struct workspace_view *view; /* its mounts, outer ones first; not a channel's view */
};

/* Makes the folders of the turn's session. */
int child_place_open(struct child_place *p, const struct child_agent *o, const struct turn_run *run,
                     struct error *err);
/* Only what the settings list, of no session: to look for the program. */
int child_place_open_bare(struct child_place *p, const struct child_agent *o, struct error *err);
void child_place_release(struct child_place *p);
/* "NAME=value", NULL-terminated; free with child_env_free(). */
char **child_place_env(const struct child_conf *conf);

/* ---- child_path.c ---- */

/*
 * Opens (O_PATH) a path of the settings; the setting is named in errors. A link that an agent could
 * have made is not followed.
 */
int child_path_open(const struct child_agent *o, const char *path, const char *setting,
                    struct error *err);
/* The path outside of an entry "OUTSIDE:INSIDE"; yours to free. */
char *child_path_outside(const char *entry);
/* Where a descriptor is; yours to free. NULL with an error. */
char *child_path_of(int fd, struct error *err);

/* ---- child_process.c: a process and its lines ---- */

struct child_process;
struct child_process_handlers {
        /* A line that may be an object: 1: parse what is in out instead; 0: drop it; -1: parse it.
         */
        int (*line)(void *arg, const char *line, size_t n, struct buf *out);
        void (*message)(void *arg, json_t *message); /* an object; borrowed */
        /* Its connection cannot be used any longer; it is being killed, and ended follows. */
        void (*broken)(void *arg, enum error_kind kind, const char *why);
        /* Once, last: "it ended with exit code 1: no such model". */
        void (*ended)(void *arg, const char *why);
};
struct child_process_options {
        struct sandboxes *sandboxes;
        struct sandbox_key key;
        const char *folder;
        const char *const *argv;
        const char *name; /* of the agent, for the log */
        size_t line_max;
        struct loop *loop;
};
struct child_process *child_process_start(const struct child_process_options *o,
                                          const struct child_process_handlers *h, void *arg,
                                          struct error *err);
int child_process_send(struct child_process *p, const char *line, size_t n, struct error *err);
void child_process_close_input(struct child_process *p);
void child_process_stop(struct child_process *p, int64_t grace_ms);
/* Kills it if it still runs; no handler follows. */
void child_process_free(struct child_process *p);
int child_process_pid(const struct child_process *p);
size_t child_process_received(const struct child_process *p); /* bytes that were parsed */
char *child_process_last_words(struct child_process *p);      /* yours to free */

/* ---- child_turn.c: what a turn collects ---- */

struct child_turn {
        struct child_agent *owner;
        struct child *child; /* NULL: its session is being read */
        struct turn_run *run;
        struct session_load *load; /* NULL: done */
        struct buf answer;         /* since the agent last worked with a tool */
        size_t message;            /* where its last message begins in it */
        bool message_ended;
        struct buf aside; /* what it said before, unless that was nothing */
        bool cut;         /* the answer is longer than answerKb */
        char *label;      /* shown last */
        struct child_usage usage;
        size_t received; /* by its process, when it began */
        unsigned lost;   /* processes that were ready, and ended before they were given it */
        TAILQ_HEAD(tool_list, tool_entry) tools;
        unsigned tool_count;
        struct buf detail; /* of tool calls that ended, not posted yet */
        unsigned detail_count;
        struct timer *detail_timer; /* until it is posted */
        LIST_HEAD(, child_asking) asking;
        TAILQ_ENTRY(child_turn) next;
};

struct child_turn *child_turn_new(struct child_agent *o, struct turn_run *run);
/* Without a word to the road. */
void child_turn_free(struct child_turn *t);
/* Ends and frees it. notice and error may be NULL. */
void child_turn_fail(struct child_turn *t, enum error_kind kind, enum agent_effect effect,
                     const char *notice, const char *error);
void child_turn_finish(struct child_turn *t, const struct child_end *end);
/* What it said so far is not the answer: it goes on working. */
void child_turn_aside(struct child_turn *t);
void child_turn_progress(struct child_turn *t, const char *label);

/* ---- child_ask.c ---- */

bool child_turn_asks(const struct child_turn *t);
void child_asks_release(struct child_turn *t);

/* ---- child_tools.c ---- */

/* Those that have not ended did not, because of this; posts what is left. */
void child_tools_end(struct child_turn *t, const char *why);
void child_tools_release(struct child_turn *t);

/* ---- child.c ---- */

enum child_state {
        CHILD_ABSENT,
        CHILD_QUEUED,   /* for a place */
        CHILD_STARTING, /* the handshake */
        CHILD_IDLE,
        CHILD_MARKING, /* that it is given a turn is being stored */
        CHILD_WORKING,
        CHILD_STOPPING, /* its turn has ended for people */
        CHILD_ENDING,   /* its stdin is closed, or it is being killed */
};

struct child {
        struct child_agent *owner;
        char *name; /* of the session */
        int64_t number;
        enum child_state state;
        TAILQ_HEAD(, child_turn) turns;  /* that wait for it, oldest first */
        struct child_turn *turn;         /* MARKING, WORKING */
        struct child_mark *mark;         /* being stored */
        struct child_steering *steering; /* the same */
        bool runs, awaits;               /* without a turn, see child_set_busy */
        char *session;                   /* the agent's id; "": none */
        bool resumed;
        struct child_process *process;
        struct child_place place;
        void *dialect; /* its state */
        struct timer *timer, *limit;
        int64_t limit_ms;            /* when `limit` ends; what is left while a person is asked */
        int64_t heard_ms;            /* loop_now_ms of its last line */
        int64_t conversation;        /* of its last turn */
        int64_t started_ms, used_ms; /* wall clock */
        int64_t turns_done;
        int64_t memory_bytes, cpu_ms; /* measured */
        LIST_ENTRY(child) all;
};

struct child_agent {
        struct agent *agent;
        const struct child_conf *conf;
        const struct child_dialect *dialect;
        struct sandbox_conf sandbox;
        struct sandboxes *sandboxes;
        char **env;
        struct map by_name;
        LIST_HEAD(, child) children;
        int64_t last_number;
        unsigned running;                     /* processes */
        struct timer *sweep, *measure, *late; /* late: answers what a look could not */
        struct child_measure *measuring;      /* on the pool; NULL: none */
        char *workspace;                      /* its absolute path */
        struct sandbox_run *look;             /* for its program; NULL: done */
        LIST_HEAD(, child_probe) probes;      /* health checks that wait for it */
        char missing[300]; /* why it cannot be started; "": its program is there */
        char problem[300]; /* of the last start; "": it worked */
};

/* Takes the next step for the turns that wait for it. */
void child_pump(struct child *c);
/* Starts the process for the first of them. */
void child_begin(struct child *c);
/* Gives it time to save what it has. A turn that comes meanwhile waits for its end. */
void child_end_process(struct child *c);
/* It misbehaves: its turn fails. */
void child_kill(struct child *c, enum error_kind kind, const char *why);
void child_pause_limits(struct child *c, bool pause); /* a person is asked */
/* Without a turn; one that is silent for as long as a turn may be has got stuck. 0: it does not. */
int64_t child_works_for_ms(const struct child *c);
void child_make_timers(struct child *c);
void child_forget_writes(struct child *c); /* it is being freed */
const char *child_state_name(enum child_state state);

/* ---- child_pool.c ---- */

/* Takes turn and name; session: as stored, may be NULL. */
void child_queue(struct child_agent *o, struct child_turn *t, char *name, const char *session);
void child_remember(struct child *c, const char *session);
bool child_has_place(const struct child_agent *o);
/* Ends the process that is idle for longest, or looks again when one that works may be stuck. */
void child_make_room(struct child_agent *o);
void child_free(struct child *c);
loop_fn child_sweep;

/* ---- child_steer.c ---- */

/* Takes messages that wait behind its turn, if it can be told of them now. */
void child_steer(struct child *c);
/* Messages are joining the turn, so it does not end yet. */
bool child_steering_holds(struct child *c, const struct child_end *end);
void child_forget_steering(struct child *c);

/* ---- child_health.c ---- */

/* Looks for the program where it would run; a failure is logged. */
void child_look(struct child_agent *o);
void child_health_release(struct child_agent *o);

/* ---- child_status.c ---- */

void child_measure_begin(struct child_agent *o); /* when a process runs */
void child_measure_forget(struct child_agent *o);

#endif
