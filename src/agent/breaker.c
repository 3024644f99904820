#include "agent/breaker.h"

#include "base/id.h"

#define DOUBLINGS_MAX 3 /* of the pause */

bool breaker_blocks(const struct breaker *b, int64_t now_ms)
{
        switch (b->state) {
        case BREAKER_CLOSED:
                return false;
        case BREAKER_OPEN:
                return now_ms < b->until_ms;
        default:
                return b->probing;
        }
}

enum breaker_pass breaker_admit(struct breaker *b, int64_t now_ms)
{
        if (breaker_blocks(b, now_ms))
                return BREAKER_REFUSED;
        if (b->state == BREAKER_CLOSED)
                return BREAKER_PASSED;
        b->state = BREAKER_HALF_OPEN;
        b->probing = true;
        return BREAKER_PROBES;
}

enum breaker_change breaker_record(struct breaker *b, const struct breaker_limits *limits,
                                   enum breaker_pass pass, enum error_kind kind, int64_t now_ms)
{
        bool was_closed = b->state == BREAKER_CLOSED;
        int64_t pause;

        /* bad requests say nothing about the agent */
        if (kind == ERR_CANCELLED || kind == ERR_INVALID || kind == ERR_CONFLICT) {
                breaker_forget(b, pass);
                return BREAKER_SAME;
        }
        if (kind == ERR_NONE) {
                b->failures = 0;
                b->reopened = 0;
                b->probing = false;
                b->state = BREAKER_CLOSED;
                return was_closed ? BREAKER_SAME : BREAKER_RECOVERED;
        }
        b->failures++;
        if (limits->failures == 0 || (!was_closed && pass != BREAKER_PROBES))
                return BREAKER_SAME;
        if (!was_closed)
                b->reopened++;
        else if (b->failures < limits->failures)
                return BREAKER_SAME;
        b->state = BREAKER_OPEN;
        b->probing = false;
        b->opened++;
        pause = limits->pause_ms << (b->reopened < DOUBLINGS_MAX ? b->reopened : DOUBLINGS_MAX);
        /* jitter, so that many daemons do not probe at once */
        b->until_ms = now_ms + pause + (int64_t)id_random_below((uint64_t)pause / 4 + 1);
        return was_closed ? BREAKER_OPENED : BREAKER_SAME;
}

void breaker_forget(struct breaker *b, enum breaker_pass pass)
{
        if (pass == BREAKER_PROBES)
                b->probing = false;
}

const char *breaker_name(enum breaker_state state)
{
        static const char *const names[] = { [BREAKER_CLOSED] = "closed",
                                             [BREAKER_OPEN] = "open",
                                             [BREAKER_HALF_OPEN] = "half-open" };

        return names[state];
}
