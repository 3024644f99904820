/*
 * breaker: whether an agent that fails again and again is asked at all.
 *
 *     CLOSED ── so many failures in a row ──► OPEN ── a pause ──► HALF_OPEN ── the one probe works
 *     ──► CLOSED
 *                                              ▲                    │
 *                                              └── the probe fails ─┘   each time a longer pause,
 *                                              up to eight times the first
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
        int64_t until_ms; /* OPEN: nobody is let through before */
        int reopened;     /* how often since it was last closed */
        bool probing;     /* HALF_OPEN: somebody is on the way */
        uint64_t opened;  /* how often in all */
};

struct breaker_limits {
        int64_t failures; /* that open it; 0: never */
        int64_t pause_ms;
};

/* Would it let somebody through now? */
bool breaker_blocks(const struct breaker *b, int64_t now_ms);
/*
 * Lets one through unless it is BREAKER_REFUSED, and then breaker_record or breaker_forget must
 * follow with what is returned.
 */
enum breaker_pass breaker_admit(struct breaker *b, int64_t now_ms);
/*
 * How the one that was let through ended. Of those who were under way when it opened only a success
 * says something new.
 */
enum breaker_change breaker_record(struct breaker *b, const struct breaker_limits *limits,
                                   enum breaker_pass pass, enum error_kind kind, int64_t now_ms);
/* It ended without telling anything. */
void breaker_forget(struct breaker *b, enum breaker_pass pass);
const char *breaker_name(enum breaker_state state); /* "closed", "open", "half-open" */

#endif
