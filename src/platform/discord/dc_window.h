/*
 * dc_window: when a message may have arrived, by Discord's clock, as stored with its delivery
 * (read_from) before each attempt.
 */
#ifndef PLATFORM_DISCORD_DC_WINDOW_H
#define PLATFORM_DISCORD_DC_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DC_WINDOW_SIZE 72 /* of the text */

struct dc_window {
        /* begin of the first and of the last earlier attempt that may have arrived; 0: none */
        int64_t first_ms, last_ms;
        int64_t claimed_ms; /* begin of this attempt; 0: it did not arrive */
};

/* False: no such text. */
bool dc_window_parse(const char *text, struct dc_window *out);
char *dc_window_write(const struct dc_window *w, char out[DC_WINDOW_SIZE]);
/* That of the next attempt. */
struct dc_window dc_window_next(const struct dc_window *w, int64_t now_ms);

#endif
