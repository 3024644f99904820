/*
 * quiet: the quiet hours of one schedule (options "quietHours" and "quietZone").
 */
#ifndef SCHEDULE_QUIET_H
#define SCHEDULE_QUIET_H

#include <jansson.h>
#include <stdint.h>

/*
 * When a turn that is due now may begin: now, or when its quiet hours end. zone: of options without
 * one.
 */
int64_t quiet_end(const json_t *options, const char *zone, int64_t now_ms);

#endif
