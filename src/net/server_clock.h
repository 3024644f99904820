/*
 * server_clock: another machine's clock, by the Date of its last answer. Never ahead of it, and
 * behind by at most the time the answer took and a second. Our own until there was an answer.
 */
#ifndef NET_SERVER_CLOCK_H
#define NET_SERVER_CLOCK_H

#include <stdint.h>

/* Zeroed at first. */
struct server_clock {
        int64_t date_ms, boot_ms; /* the date, and when it came */
};

/* date: the header, may be NULL or malformed. */
void server_clock_set(struct server_clock *c, const char *date);
int64_t server_clock_now_ms(const struct server_clock *c);

#endif
