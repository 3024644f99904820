/*
 * Messages that grow: chat.startStream, appendStream, stopStream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_compose.h"
#include "sim/slack/sl_methods.h"

#define FIELD_MAX 256

/* ---- chunks ---- */

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(list[i], text) == 0)
                        return true;
        }
        return false;
}

static int check_task(struct slack_call *c, const json_t *chunk)
{
        static const char *const states[] = { "pending", "in_progress", "complete", "error" };
        static const char *const fields[] = { "title", "details", "output" };

        if (!*json_str(chunk, "id", "") ||
            !is_one_of(json_str(chunk, "status", "pending"), states, COUNT(states)))
                return sl_call_fail_because(c, "invalid_chunks", "a task needs an id and a status");
        for (size_t i = 0; i < COUNT(fields); i++) {
                if (sl_compose_length(json_str(chunk, fields[i], "")) > FIELD_MAX)
                        return sl_call_fail_because(c, "invalid_chunks",
                                                    "%s of more than 256 characters", fields[i]);
        }
        return 0;
}

static int check_chunk(struct slack_call *c, const json_t *chunk)
{
        const char *type = json_str(chunk, "type", "");
        char problem[SL_SPEC_PROBLEM_SIZE] = "";

        if (strcmp(type, "markdown_text") == 0)
                return sl_compose_length(json_str(chunk, "text", "")) <= SL_MARKDOWN_MAX
                               ? 0
                               : sl_call_fail(c, "msg_too_long");
        if (strcmp(type, "task_update") == 0)
                return check_task(c, chunk);
        if (strcmp(type, "plan_update") == 0)
                return sl_compose_length(json_str(chunk, "title", "")) <= FIELD_MAX
                               ? 0
                               : sl_call_fail(c, "invalid_chunks");
        if (strcmp(type, "blocks") == 0 &&
            !sl_compose_check_blocks(json_object_get(chunk, "blocks"), SL_BLOCKS_MAX, problem))
                return 0;
        return sl_call_fail_because(c, "invalid_chunks", "%s", *problem ? problem : type);
}

static int check_growth(struct slack_call *c)
{
        const json_t *chunks = json_object_get(c->args, "chunks"), *chunk;
        const char *text = sl_call_text(c, "markdown_text");
        size_t i;

        if (text && chunks)
                return sl_call_fail_because(c, "invalid_arguments",
                                            "markdown_text and chunks exclude each other");
        if (text && sl_compose_length(text) > SL_MARKDOWN_MAX)
                return sl_call_fail(c, "msg_too_long");
        json_array_foreach(chunks, i, chunk) {
                if (check_chunk(c, chunk) != 0)
                        return -1;
        }
        return 0;
}

static void add_text(struct slack_message *m, const char *text)
{
        char *longer = mem_printf("%s%s", m->text, text);

        free(m->text);
        m->text = longer;
}

/* Adds what the call brings; it is checked. */
static void grow(const struct slack_call *c, struct slack_message *m)
{
        json_t *chunks = json_object_get(c->args, "chunks"), *chunk;
        const char *text = sl_call_text(c, "markdown_text");
        size_t i;

        if (text)
                add_text(m, text);
        json_array_foreach(chunks, i, chunk) {
                if (strcmp(json_str(chunk, "type", ""), "markdown_text") == 0) {
                        add_text(m, json_str(chunk, "text", ""));
                        continue;
                }
                if (!m->chunks)
                        m->chunks = json_array();
                json_array_append(m->chunks, chunk);
        }
        m->stream_at_ms = clock_mono_ms();
}

/* ---- methods ---- */

int sl_method_start_stream(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");
        const char *thread = sl_call_text(c, "thread_ts");
        const char *person = sl_call_text(c, "recipient_user_id");
        struct slack_message *m;

        if (!channel || check_growth(c) != 0)
                return -1;
        if (!thread || !sl_message_find(channel, thread))
                return sl_call_fail(c, "invalid_thread_ts");
        if (!person)
                return sl_call_fail(c, "missing_recipient_user_id");
        if (!sl_call_text(c, "recipient_team_id"))
                return sl_call_fail(c, "missing_recipient_team_id");
        if (!sl_user_find(c->world, person))
                return sl_call_fail(c, "user_not_found");
        m = sl_message_new(channel, c->app->user, NULL);
        m->app = c->app;
        m->stream = SLACK_STREAMING;
        m->stream_from_ms = clock_mono_ms();
        if (sl_method_set_thread(c, m, thread) != 0) {
                sl_message_free(m);
                return -1;
        }
        grow(c, m);
        sl_method_posted(c, m, "stream");
        sl_call_set(c, "channel", channel->id);
        sl_call_set(c, "ts", m->ts);
        return 0;
}

void sl_method_expire_stream(const struct slack_call *c, struct slack_message *m)
{
        const struct slack_settings *s = &c->world->settings;
        int64_t now = clock_mono_ms();

        if (m->stream == SLACK_STREAMING &&
            (now - m->stream_at_ms > s->stream_idle_ms || now - m->stream_from_ms > s->stream_ms))
                m->stream = SLACK_STREAMED;
}

/* The message, if it still streams; NULL after sl_call_fail. */
static struct slack_message *streaming(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");
        struct slack_message *m = channel ? sl_call_message(c, channel, "ts") : NULL;

        if (!m)
                return NULL;
        if (m->app != c->app) {
                sl_call_fail(c, "message_not_owned_by_app");
                return NULL;
        }
        sl_method_expire_stream(c, m);
        if (m->stream != SLACK_STREAMING) {
                sl_call_fail(c, m->stopped ? "stopped_by_user" : "message_not_in_streaming_state");
                return NULL;
        }
        return m;
}

static void record(const struct slack_call *c, const char *kind, const struct slack_message *m)
{
        struct buf *b = sl_call_record(c, kind, m->channel);

        sl_compose_record(c, b, m);
        journal_close(c->world->base.sent);
}

int sl_method_append_stream(struct slack_call *c)
{
        struct slack_message *m = streaming(c);
        json_t *previous;

        if (!m || check_growth(c) != 0)
                return -1;
        if (!sl_call_text(c, "markdown_text") &&
            json_array_size(json_object_get(c->args, "chunks")) == 0)
                return sl_call_fail(c, "no_text");
        previous = sl_render_message(c->world, m, SLACK_RENDER_METADATA);
        grow(c, m);
        record(c, "append", m);
        sl_event_changed(c->world, m, previous);
        sl_call_set(c, "channel", m->channel->id);
        sl_call_set(c, "ts", m->ts);
        return 0;
}

int sl_method_stop_stream(struct slack_call *c)
{
        struct slack_message *m = streaming(c);
        json_t *blocks = json_object_get(c->args, "blocks"), *previous;
        char problem[SL_SPEC_PROBLEM_SIZE] = "";
        const char *error = NULL;

        if (!m || check_growth(c) != 0)
                return -1;
        if (blocks)
                error = sl_compose_check_blocks(blocks, SL_BLOCKS_MAX, problem);
        if (error)
                return sl_call_fail_because(c, error, "%s", problem);
        previous = sl_render_message(c->world, m, SLACK_RENDER_METADATA);
        if (sl_compose_metadata(c, m) != 0) {
                json_decref(previous);
                return -1;
        }
        grow(c, m);
        json_decref(m->blocks);
        m->blocks = json_incref(blocks);
        m->stream = SLACK_STREAMED;
        record(c, "stop_stream", m);
        sl_event_changed(c->world, m, previous);
        sl_call_set(c, "channel", m->channel->id);
        sl_call_set(c, "ts", m->ts);
        sl_call_set_new(c, "message", sl_render_message(c->world, m, SLACK_RENDER_METADATA));
        return 0;
}
