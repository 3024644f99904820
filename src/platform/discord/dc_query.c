/* What the road asks Discord about: the last messages of a channel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define HISTORY_MAX 100

struct history_job {
        struct discord *dc;
        channel_history_fn *done;
        void *arg;
};

static struct channel_message read_message(const struct discord *dc, const json_t *m)
{
        const json_t *author = json_object_get(m, "author"),
                     *snapshot = json_array_get(json_object_get(m, "message_snapshots"), 0);
        const char *sender = json_str(author, "id", ""), *text = json_str(m, "content", "");

        if (!*text && snapshot) /* a forwarded message */
                text = json_str(json_object_get(snapshot, "message"), "content", "");
        return (struct channel_message){
                .id = json_str(m, "id", ""),
                .sender_id = sender,
                .sender_name = json_str(author, "global_name", json_str(author, "username", NULL)),
                .is_own = dc->self.id && strcmp(sender, dc->self.id) == 0,
                .is_bot = json_flag(author, "bot", false) || json_str(m, "webhook_id", NULL),
                .text = text,
                .time_ms = dc_id_time_ms(json_str(m, "id", NULL))
        };
}

/* Discord lists the newest message first. */
static void on_messages(void *arg, const struct dc_answer *a)
{
        struct history_job *job = arg;
        size_t n = json_array_size(a->result);
        struct channel_message *lines = mem_array(n + 1, sizeof(*lines));
        struct error err = { 0 };

        for (size_t i = 0; i < n; i++)
                lines[i] = read_message(job->dc, json_array_get(a->result, n - 1 - i));
        if (!a->ok)
                dc_outcome_error(a, &err);
        if (job->dc->adapter->road) /* else the road has closed */
                job->done(job->arg, lines, a->ok ? n : 0, a->ok ? NULL : &err);
        free(lines);
        free(job);
}

void dc_query_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg)
{
        struct discord *dc = a->self;
        struct history_job *job = mem_zalloc(sizeof(*job));
        char query[24];

        job->dc = dc;
        job->done = done;
        job->arg = arg;
        limit = limit < 1 ? 1 : limit > HISTORY_MAX ? HISTORY_MAX : limit;
        snprintf(query, sizeof(query), "limit=%u", limit);
        dc_rest_ask(dc->rest,
                    &(struct dc_request){ .method = "GET",
                                          .route = "/channels/{channel_id}/messages",
                                          .args = { dc_destination_channel(dc, channel, thread) },
                                          .query = query,
                                          .priority = DC_NORMAL,
                                          .repeatable = true },
                    on_messages, job);
}
