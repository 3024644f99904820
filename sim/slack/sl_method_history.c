/*
 * Methods that read messages and their reactions.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_page.h"

#define MAX_READ      999
#define FEW           15 /* for apps with few calls a minute */
#define MAX_REACTIONS 23
#define MAX_EMOJI     100

/* A span of time: first <= us < end. */
struct slack_span {
        int64_t first, end;
};

/* Reads oldest, latest and inclusive. 0, or -1 after sl_call_fail. */
static int read_span(struct slack_call *c, struct slack_span *s)
{
        const char *oldest = sl_call_text(c, "oldest"), *latest = sl_call_text(c, "latest");
        bool inclusive = sl_call_flag(c, "inclusive", false);

        *s = (struct slack_span){ 0, INT64_MAX };
        if (oldest && (s->first = sl_message_parse_ts(oldest)) < 0)
                return sl_call_fail(c, "invalid_ts_oldest");
        if (latest && (s->end = sl_message_parse_ts(latest)) < 0)
                return sl_call_fail(c, "invalid_ts_latest");
        if (oldest && !inclusive)
                s->first++;
        if (latest && inclusive)
                s->end++;
        return 0;
}

static unsigned how(const struct slack_call *c)
{
        return sl_call_flag(c, "include_all_metadata", false) ? SLACK_RENDER_METADATA
                                                              : SLACK_RENDER_PLAIN;
}

/* Not a reply, or one that is shown in the channel, too. */
static bool is_listed(const struct slack_message *m)
{
        return !m->thread_ts[0] || strcmp(m->thread_ts, m->ts) == 0 || m->broadcast;
}

/* From the newest of the span to the oldest; returns the time of the next one, 0: none. */
static int64_t read_backward(struct slack_call *c, const struct slack_channel *channel,
                             const struct slack_span *span, int64_t limit, json_t *list)
{
        for (size_t i = sl_message_index(channel, span->end); i > 0; i--) {
                const struct slack_message *m = channel->messages[i - 1];

                if (m->us < span->first)
                        break;
                if (!is_listed(m))
                        continue;
                if ((int64_t)json_array_size(list) == limit)
                        return m->us;
                json_array_append_new(list, sl_render_message(c->world, m, how(c)));
        }
        return 0;
}

/* From the oldest of the span to the newest, which is the first of the list. */
static int64_t read_forward(struct slack_call *c, const struct slack_channel *channel,
                            const struct slack_span *span, int64_t limit, json_t *list)
{
        for (size_t i = sl_message_index(channel, span->first); i < channel->count; i++) {
                const struct slack_message *m = channel->messages[i];

                if (!is_listed(m))
                        continue;
                if ((int64_t)json_array_size(list) == limit)
                        return m->us;
                json_array_insert_new(list, 0, sl_render_message(c->world, m, how(c)));
        }
        return 0;
}

/*
 * Newest first, without replies. With `oldest` alone, Slack's pages begin with what is closest to
 * it (slackhq/slack-api-docs#4). A cursor is the time of the next message.
 */
int sl_method_history(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");
        bool forward = sl_call_text(c, "oldest") && !sl_call_text(c, "latest") &&
                       c->world->settings.history_forward;
        struct slack_span span;
        int64_t cursor, limit, next;
        json_t *list;

        if (!channel || read_span(c, &span) != 0 ||
            sl_page_read(c, 100, MAX_READ, &cursor, &limit) != 0)
                return -1;
        if (c->world->settings.history_per_minute && limit > FEW)
                limit = FEW;
        if (forward && cursor > span.first)
                span.first = cursor;
        else if (!forward && cursor > 0 && cursor + 1 < span.end)
                span.end = cursor + 1;
        list = json_array();
        next = (forward ? read_forward : read_backward)(c, channel, &span, limit, list);
        sl_call_set_new(c, "messages", list);
        sl_call_set_new(c, "has_more", json_boolean(next > 0));
        sl_call_set_new(c, "pin_count", json_integer(0));
        sl_call_set_new(c, "channel_actions_ts", json_null());
        sl_call_set_new(c, "channel_actions_count", json_integer(0));
        if (next > 0)
                sl_page_set(c, next);
        return 0;
}

/* Oldest first; the root comes first on every page. A cursor is the time of the next reply. */
int sl_method_replies(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");
        const char *ts = sl_call_text(c, "ts");
        const struct slack_message *root;
        struct slack_span span;
        int64_t cursor, limit, next = 0;
        json_t *list;

        if (!channel || read_span(c, &span) != 0 ||
            sl_page_read(c, MAX_READ, 1000, &cursor, &limit) != 0)
                return -1;
        if (c->world->settings.history_per_minute && limit > FEW)
                limit = FEW;
        root = sl_message_find(channel, ts);
        if (!root)
                return sl_call_fail(c, "thread_not_found");
        if (cursor > span.first)
                span.first = cursor;
        list = json_array();
        json_array_append_new(list, sl_render_message(c->world, root, how(c)));
        for (size_t i = sl_message_index(channel, span.first); i < channel->count; i++) {
                const struct slack_message *m = channel->messages[i];

                if (m->us >= span.end)
                        break;
                if (m == root || strcmp(m->thread_ts, ts) != 0)
                        continue;
                if ((int64_t)json_array_size(list) > limit) {
                        next = m->us;
                        break;
                }
                json_array_append_new(list, sl_render_message(c->world, m, how(c)));
        }
        sl_call_set_new(c, "messages", list);
        sl_call_set_new(c, "has_more", json_boolean(next > 0));
        if (next > 0)
                sl_page_set(c, next);
        return 0;
}

/* ---- reactions ---- */

/* The message of a reaction; NULL after sl_call_fail. */
static struct slack_message *reaction_target(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");

        if (channel && !sl_call_text(c, "timestamp")) {
                sl_call_fail(c, "no_item_specified");
                return NULL;
        }
        return channel ? sl_call_message(c, channel, "timestamp") : NULL;
}

/* Names have no colons; a skin tone may follow. */
static bool is_emoji(const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++) {
                if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
                    !strchr("_+-'", name[i]) && strncmp(name + i, "::skin-tone-", 12) != 0 &&
                    !(i > 0 && strncmp(name + i - 1, "::skin-tone-", 12) == 0))
                        return false;
        }
        return n > 0 && n <= MAX_EMOJI;
}

static void record_reaction(const struct slack_call *c, const char *kind,
                            const struct slack_message *m, const char *name)
{
        struct buf *b = sl_call_record(c, kind, m->channel);

        jsonw_str(b, "ts", m->ts);
        jsonw_str(b, "emoji", name);
        journal_close(c->world->base.sent);
}

int sl_method_react(struct slack_call *c)
{
        const char *name = sl_call_text(c, "name");
        struct slack_message *m = reaction_target(c);

        if (!m)
                return -1;
        if (!name || !is_emoji(name))
                return sl_call_fail(c, "invalid_name");
        if (!json_object_get(m->reactions, name) && json_object_size(m->reactions) >= MAX_REACTIONS)
                return sl_call_fail(c, "too_many_emoji");
        if (!sl_message_react(m, name, c->app->user))
                return sl_call_fail(c, "already_reacted");
        record_reaction(c, "reaction", m, name);
        sl_event_reaction(c->world, m, name, c->app->user, true);
        return 0;
}

int sl_method_unreact(struct slack_call *c)
{
        const char *name = sl_call_text(c, "name");
        struct slack_message *m = reaction_target(c);

        if (!m)
                return -1;
        if (!name || !is_emoji(name))
                return sl_call_fail(c, "invalid_name");
        if (!sl_message_unreact(m, name, c->app->user))
                return sl_call_fail(c, "no_reaction");
        record_reaction(c, "reaction_removed", m, name);
        sl_event_reaction(c->world, m, name, c->app->user, false);
        return 0;
}

int sl_method_reactions(struct slack_call *c)
{
        const struct slack_message *m = reaction_target(c);
        json_t *message;
        char *link;

        if (!m)
                return -1;
        message = sl_render_message(c->world, m, SLACK_RENDER_PLAIN);
        link = sl_render_permalink(m);
        json_object_set_new(message, "permalink", json_string(link));
        free(link);
        sl_call_set(c, "type", "message");
        sl_call_set(c, "channel", m->channel->id);
        sl_call_set_new(c, "message", message);
        return 0;
}

/* ---- pins ---- */

static int set_pin(struct slack_call *c, bool pinned)
{
        struct slack_message *m = reaction_target(c);
        struct buf *b;

        if (!m)
                return -1;
        if (m->pinned == pinned)
                return sl_call_fail(c, pinned ? "already_pinned" : "no_pin");
        m->pinned = pinned;
        b = sl_call_record(c, pinned ? "pin" : "unpin", m->channel);
        jsonw_str(b, "ts", m->ts);
        journal_close(c->world->base.sent);
        return 0;
}

int sl_method_pin(struct slack_call *c)
{
        return set_pin(c, true);
}

int sl_method_unpin(struct slack_call *c)
{
        return set_pin(c, false);
}
