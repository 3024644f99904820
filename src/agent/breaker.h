/*
 * breaker: stops asking an agent that keeps failing.
 *
 *     CLOSED ── failures in a row ──► OPEN ── pause ──► HALF_OPEN ── the probe works ──► CLOSED
 *                                      ▲                    │
 *                                      └── the probe fails ─┘  doubles the pause, up to eight times
 *
 * Pure arithmetic: the caller brings the time. Turns that were cancelled or failed by their own
 * fault count neither way.
 */
#ifndef AGENT_BREAKER_H
#define AGENT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
enum breaker_pass { BREAKER_REFUSED, BREAKER_PASSED, BREAKER_PROBES };
enum breaker_change { BREAKER_SAME, BREAKER_OPENED, BREAKER_RECOVERED };

struct breaker {
        enum breaker_state state;
        int64_t failures; /* in a row */
        int64_t until_ms; /* OPEN: refuses until then */
        int reopened;     /* since it was last closed */
        bool probing;     /* HALF_OPEN: under way */
        uint64_t opened;  /* in total */
};

struct breaker_limits {
        int64_t failures; /* in a row that open it; 0: never */
        int64_t pause_ms;
};

/* Would breaker_admit refuse now? */
bool breaker_blocks(const struct breaker *b, int64_t now_ms);
/* Unless it refuses, breaker_record or breaker_forget must follow. */
enum breaker_pass breaker_admit(struct breaker *b, int64_t now_ms);
/* For turns under way when the circuit opened, only a success counts. */
enum breaker_change breaker_record(struct breaker *b, const struct breaker_limits *limits,
                                   enum breaker_pass pass, enum error_kind kind, int64_t now_ms);
/* Ended without a result. */
void breaker_forget(struct breaker *b, enum breaker_pass pass);
const char *breaker_name(enum breaker_state state); /* "closed", "open", "half-open" */

#endif
