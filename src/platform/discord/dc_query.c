/* Lookups for the road and the API: the last messages of a channel, a channel, a user. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define HISTORY_MAX 100

struct query_job {
        struct discord *dc;
        void *arg;
        union {
                channel_history_fn *history;
                channel_info_fn *channel;
                user_info_fn *user;
        } done;
};

static void start(struct discord *dc, const struct query_job *query, const char *route,
                  const char *id, const char *parameters, dc_answer_fn *done)
{
        struct query_job *job = mem_dup(query, sizeof(*query));

        job->dc = dc;
        dc_rest_ask(dc->rest,
                    &(struct dc_request){ .method = "GET",
                                          .route = route,
                                          .args = { id },
                                          .query = parameters,
                                          .priority = DC_NORMAL,
                                          .repeatable = true },
                    done, job);
}

/* ---- messages ---- */

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
        struct query_job *job = arg;
        size_t n = a->ok ? json_array_size(a->result) : 0;
        struct channel_message *lines = mem_array(n + 1, sizeof(*lines));
        struct error err = { 0 };

        for (size_t i = 0; i < n; i++)
                lines[i] = read_message(job->dc, json_array_get(a->result, n - 1 - i));
        if (!a->ok)
                dc_outcome_error(a, &err);
        if (job->dc->adapter->road) /* else the road has closed */
                job->done.history(job->arg, lines, n, a->ok ? NULL : &err);
        free(lines);
        free(job);
}

void dc_query_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg)
{
        struct discord *dc = a->self;
        char parameters[24];

        limit = limit < 1 ? 1 : limit > HISTORY_MAX ? HISTORY_MAX : limit;
        snprintf(parameters, sizeof(parameters), "limit=%u", limit);
        start(dc, &(struct query_job){ .arg = arg, .done.history = done },
              "/channels/{channel_id}/messages", dc_destination_channel(dc, channel, thread),
              parameters, on_messages);
}

/* ---- channels and users ---- */

static void on_channel(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        const json_t *recipient = json_array_get(json_object_get(a->result, "recipients"), 0);
        const struct channel_info info = {
                .id = json_str(a->result, "id", ""),
                .kind = json_str(a->result, "guild_id", NULL) ? CHAT_GROUP : CHAT_DM,
                .name = json_str(a->result, "name", json_str(recipient, "username", NULL)),
                .topic = json_str(a->result, "topic", NULL),
                .parent = json_str(a->result, "parent_id", NULL),
                .members = json_int(a->result, "member_count", -1) /* only threads have it */
        };
        struct error err = { 0 };

        if (!a->ok)
                dc_outcome_error(a, &err);
        job->done.channel(job->arg, a->ok ? &info : NULL, a->ok ? NULL : &err);
        free(job);
}

int dc_query_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err)
{
        const char *id = dc_destination_channel(a->self, channel, NULL);

        if (!dc_id_valid(id))
                return error_set(err, ERR_MISSING, "'%.40s' is no id of a Discord channel",
                                 channel);
        start(a->self, &(struct query_job){ .arg = arg, .done.channel = done },
              "/channels/{channel_id}", id, NULL, on_channel);
        return 0;
}

static void on_user(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        const struct user_info info = { .id = json_str(a->result, "id", ""),
                                        .username = json_str(a->result, "username", NULL),
                                        .name = json_str(a->result, "global_name",
                                                         json_str(a->result, "username", NULL)),
                                        .is_bot = json_flag(a->result, "bot", false) };
        struct error err = { 0 };

        if (!a->ok)
                dc_outcome_error(a, &err);
        job->done.user(job->arg, a->ok ? &info : NULL, a->ok ? NULL : &err);
        free(job);
}

int dc_query_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err)
{
        if (!dc_id_valid(user))
                return error_set(err, ERR_MISSING, "'%.40s' is no id of a Discord user", user);
        start(a->self, &(struct query_job){ .arg = arg, .done.user = done }, "/users/{user_id}",
              user, NULL, on_user);
        return 0;
}
