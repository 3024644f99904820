/*
 * sl_ts: Slack's timestamps, "SECONDS.MICROSECONDS" as text. They name messages, and are times of
 * Slack's clock.
 */
#ifndef PLATFORM_SLACK_SL_TS_H
#define PLATFORM_SLACK_SL_TS_H

#include <stdbool.h>
#include <stdint.h>

#define SL_TS_SIZE 24 /* with NUL */

bool sl_ts_valid(const char *ts); /* NULL is not */
/* Microseconds since 1970, for comparing; 0: not valid. */
int64_t sl_ts_us(const char *ts);
/* Writes it to out and returns out. Times before 1970 become 0. */
const char *sl_ts_write(int64_t us, char out[SL_TS_SIZE]);

#endif
