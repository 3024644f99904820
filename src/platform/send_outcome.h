/*
 * send_outcome: what an HTTP answer means for a delivery, where a platform has no rule of its own.
 *
 * For answers that do not confirm the delivery; whether one does, only the platform knows.
 */
#ifndef PLATFORM_SEND_OUTCOME_H
#define PLATFORM_SEND_OUTCOME_H

#include <stdbool.h>

#include "net/http_client.h"
#include "road/road.h"

/* retry_after_ms of a delivery that fails for a bad token: the adapter is about to stop. */
#define SEND_OUTCOME_BAD_TOKEN_MS 60000

/*
 * status 0: no answer came. repeatable: doing it twice does no harm, so an unclear outcome is a
 * retry.
 */
enum send_outcome send_outcome_of(int status, enum http_reach reach, bool repeatable);
/* `transport`: the kind of error when no answer came. */
enum error_kind send_outcome_kind(int status, enum error_kind transport);

#endif
