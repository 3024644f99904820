#include "platform/discord/dc_window.h"

#include <inttypes.h>
#include <stdio.h>

bool dc_window_parse(const char *text, struct dc_window *out)
{
        *out = (struct dc_window){ 0 };
        return text && sscanf(text, "%" SCNd64 ":%" SCNd64 ":%" SCNd64, &out->first_ms,
                              &out->last_ms, &out->claimed_ms) == 3;
}

char *dc_window_write(const struct dc_window *w, char out[DC_WINDOW_SIZE])
{
        snprintf(out, DC_WINDOW_SIZE, "%" PRId64 ":%" PRId64 ":%" PRId64, w->first_ms, w->last_ms,
                 w->claimed_ms);
        return out;
}

struct dc_window dc_window_next(const struct dc_window *w, int64_t now_ms)
{
        return (struct dc_window){ .first_ms = w->first_ms > 0 ? w->first_ms : w->claimed_ms,
                                   .last_ms = w->claimed_ms > 0 ? w->claimed_ms : w->last_ms,
                                   .claimed_ms = now_ms };
}
