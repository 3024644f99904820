/*
 * steps: the stored steps of a conversation in memory, and what follows from them.
 *
 * Everything here is a function of the rows, so a turn that goes on after a crash does what it
 * would have done without it. Messages are built so that every service accepts them: each call is
 * followed by exactly one result, in call order, whatever happened to it.
 */
#ifndef AGENT_BUILTIN_STEPS_H
#define AGENT_BUILTIN_STEPS_H

#include <jansson.h>

#include "road/turn/turn_run.h"
#include "rows/step_row.h"

#define STEP_CALL_SIZE 48 /* "12.0" */

struct step {
        int64_t id, turn;
        enum step_kind kind;
        char *call;   /* NULL: none */
        json_t *body; /* see agent/llm/model.h */
        int64_t first_kept, time_ms;
};

struct steps {
        struct step *items; /* oldest first */
        size_t count, cap;
};

void steps_release(struct steps *s);
/* Takes call and body. */
void steps_add(struct steps *s, const struct step *step);

/* What the turn did in all its attempts, also before a compaction. */
struct steps_totals {
        struct turn_usage usage;
        int64_t rounds;    /* answers of the model */
        bool started_tool; /* a call may have had effects */
};
struct steps_query {
        int64_t conversation, turn, from; /* from: the turn of the last /new */
        const char *session;
        const char *dir; /* the data directory, for images */
};
/* In a store function. */
int steps_read(struct store_tx *tx, const struct steps_query *q, struct steps *out,
               struct steps_totals *totals, struct error *err);
void steps_count_usage(struct steps_totals *t, const json_t *body, int64_t cost_microusd);

/* ---- what is next ---- */

enum next_action {
        NEXT_BEGIN, /* store what people said */
        NEXT_CALLS, /* the model wants tools to run that have no result */
        NEXT_ASK,   /* ask the model */
        NEXT_END,   /* the model has answered */
};
/* *answer: the last answer of the turn (NEXT_CALLS, NEXT_END). */
enum next_action steps_next(const struct steps *s, int64_t turn, const struct step **answer);

enum call_state { CALL_NEW, CALL_STARTED, CALL_DONE };
enum call_state steps_call_state(const struct steps *s, const char *call);
/* The result of a call that is done, borrowed; else NULL. */
const json_t *steps_call_result(const struct steps *s, const char *call);
/* The i-th tool call of an answer, or NULL. */
const json_t *steps_call(const json_t *body, unsigned i);
char *steps_call_key(const struct step *answer, unsigned i, char out[STEP_CALL_SIZE]);

/* ---- messages ---- */

/* plain: without images and thinking, for a service that refused the request. */
json_t *steps_messages(const struct steps *s, bool plain);
/* The text of a message; yours to free. */
char *steps_text(const json_t *body);
/* May what the model sees hold untrusted text? */
bool steps_untrusted(const struct steps *s);
/* The last compaction; NULL: none. */
const struct step *steps_compaction(const struct steps *s);

/* A result for a call that has none. */
json_t *steps_error_result(const json_t *call, const char *text);

#endif
