#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"

static void on_page(void *arg, const struct dc_answer *a)
{
        bool ok = a->status == 200 && json_is_array(a->result);

        readback_page(arg, &(struct readback_page){ .messages = ok ? a->result : NULL,
                                                    .unavailable = dc_rest_is_unavailable(a),
                                                    .retry_after_ms = -1, /* dc_rest waits */
                                                    .why = a->why });
}

static void read_page(void *intake, struct readback_job *j)
{
        struct dc_intake *in = intake;
        char query[60];

        if (j->before > 0)
                snprintf(query, sizeof(query), "before=%" PRIu64 "&limit=%d", j->before,
                         READBACK_PAGE);
        else
                snprintf(query, sizeof(query), "limit=%d", READBACK_PAGE);
        in->hooks.get(in->hooks.ctx,
                      &(struct dc_get){ "/channels/{channel_id}/messages",
                                        { j->chat },
                                        .query = query,
                                        .idle = true },
                      on_page, j);
}

static uint64_t id_number(const json_t *message)
{
        const char *id = json_str(message, "id", NULL);

        return dc_id_valid(id) ? strtoull(id, NULL, 10) : 0;
}

static bool message_key(void *intake, const struct readback_job *j, const json_t *message,
                        char out[READBACK_KEY_SIZE])
{
        const char *self = ((struct dc_intake *)intake)->self;
        const char *author = json_str(json_object_get(message, "author"), "id", "");

        (void)j;
        snprintf(out, READBACK_KEY_SIZE, "%s", json_str(message, "id", ""));
        return !(self && strcmp(author, self) == 0);
}

static bool is_to_us(void *intake, const struct readback_job *j, const json_t *message)
{
        const struct dc_intake *in = intake;
        const struct dc_event_context context = { .self = in->self,
                                                  .cache = in->cache,
                                                  .role_mentions = in->o.role_mentions };

        (void)j;
        return dc_event_is_to_us(&context, message);
}

static void on_missed(void *intake, const struct readback_job *j, json_t *message)
{
        dc_intake_missed(intake, j->chat, message);
}

static void on_room(void *intake)
{
        dc_catchup_continue(((struct dc_intake *)intake)->catchup);
}

int64_t dc_readback_wait_ms(const struct dc_intake *in, unsigned failures)
{
        return readback_wait_ms(in->o.catchup_times.wait_ms, failures);
}

void dc_readback_want(struct readback *r, const char *channel, int64_t since_ms)
{
        char since[DC_ID_SIZE];

        dc_id_at(since_ms, since);
        readback_want(r, channel, NULL, false, strtoull(since, NULL, 10));
}

struct readback *dc_readback_new(struct dc_intake *in)
{
        static const struct readback_ops ops = { .read = read_page,
                                                 .order = id_number,
                                                 .key = message_key,
                                                 .is_to_us = is_to_us,
                                                 .missed = on_missed,
                                                 .room = on_room };

        return readback_new(&(struct readback_options){ .window = &in->window,
                                                        .ops = &ops,
                                                        .ctx = in,
                                                        .messages = in->o.catchup_messages,
                                                        .wait_ms = in->o.catchup_times.wait_ms,
                                                        .hold_ms = in->o.catchup_times.hold_ms });
}
