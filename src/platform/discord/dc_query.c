/* The last messages of a channel, as an agent that joins the room reads them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define RECALL_MAX 100

struct recall {
        struct discord *dc;
        channel_history_fn *done;
        void *arg;
};

/* Forwarded messages have their text in the snapshot. */
static const char *text_of(const json_t *m)
{
        const char *text = json_str(m, "content", "");
        const json_t *snapshot = json_array_get(json_object_get(m, "message_snapshots"), 0);

        return *text || !snapshot ? text
                                  : json_str(json_object_get(snapshot, "message"), "content", "");
}

static const char *name_of(const json_t *author)
{
        const char *shown = json_str(author, "global_name", NULL);

        return shown ? shown : json_str(author, "username", NULL);
}

static struct channel_message line_of(const struct discord *dc, const json_t *m)
{
        const json_t *author = json_object_get(m, "author");
        const char *sender = json_str(author, "id", "");

        return (struct channel_message){ .id = json_str(m, "id", ""),
                                         .sender_id = sender,
                                         .sender_name = name_of(author),
                                         .is_own = dc->self.id && strcmp(sender, dc->self.id) == 0,
                                         .is_bot = json_flag(author, "bot", false) ||
                                                   json_str(m, "webhook_id", NULL),
                                         .text = text_of(m),
                                         .time_ms = dc_id_time_ms(json_str(m, "id", NULL)) };
}

/* Discord has the newest first. */
static void on_messages(void *arg, const struct dc_answer *a)
{
        struct recall *r = arg;
        size_t n = json_array_size(a->result);
        struct channel_message *lines = mem_array(n + 1, sizeof(*lines));
        struct error err = { 0 };

        for (size_t i = 0; i < n; i++)
                lines[i] = line_of(r->dc, json_array_get(a->result, n - 1 - i));
        if (!a->ok)
                error_set(&err, a->status ? ERR_REFUSED : ERR_NET, "%s", a->why);
        if (r->dc->adapter->road) /* else nobody is there to hear it */
                r->done(r->arg, lines, a->ok ? n : 0, a->ok ? NULL : &err);
        free(lines);
        free(r);
}

void dc_recall(struct adapter *a, const char *channel, const char *thread, unsigned limit,
               channel_history_fn *done, void *arg)
{
        struct discord *dc = a->self;
        struct recall *r = mem_zalloc(sizeof(*r));
        char query[24];

        r->dc = dc;
        r->done = done;
        r->arg = arg;
        snprintf(query, sizeof(query), "limit=%u",
                 limit < 1            ? 1
                 : limit > RECALL_MAX ? RECALL_MAX
                                      : limit);
        dc_rest_ask(dc->rest,
                    &(struct dc_request){ .method = "GET",
                                          .route = "/channels/{channel_id}/messages",
                                          .args = { dc_place(dc, channel, thread) },
                                          .query = query,
                                          .priority = DC_NORMAL,
                                          .repeatable = true },
                    on_messages, r);
}
