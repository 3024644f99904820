#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

/* ---- sending ---- */

/* A bot may answer a user with whom it shares no guild, but not write first. */
static bool is_stranger(const struct call *c, const struct channel *dm)
{
        for (const struct guild *g = c->world->first_guild; g; g = g->next) {
                if (dc_guild_member(g, dm->user->id) && dc_guild_member(g, c->bot->user->id))
                        return false;
        }
        for (size_t i = 0; i < dm->count; i++) {
                if (dm->messages[i]->author == dm->user)
                        return false;
        }
        return true;
}

static int check_channel(struct call *c, const struct channel *channel)
{
        if (!channel->guild && channel->user->refuses)
                return dc_call_fail(c, 403, 50007, "Cannot send messages to this user");
        if (!channel->guild && is_stranger(c, channel))
                return dc_call_fail(
                        c, 403, 50278,
                        "Cannot send messages to this user due to having no mutual guilds");
        if (dc_channel_is_forum(channel) || channel->type == CHANNEL_CATEGORY)
                return dc_call_fail(c, 400, 50008, "Cannot send messages in a non-text channel");
        if (channel->locked && !(dc_channel_permissions(c->bot, channel) & MAY_THREADS))
                return dc_call_fail(c, 400, 160005, "Thread is locked");
        return 0;
}

static void record_message(const struct call *c, const char *kind, const struct message *m,
                           const json_t *args)
{
        struct buf *b = dc_call_record(c, kind, m->channel);
        const json_t *allowed = json_object_get(args, "allowed_mentions");

        dc_render_id(b, "message_id", m->id);
        jsonw_str(b, "text", m->content);
        if (m->reply_to)
                dc_render_id(b, "reply_to", m->reply_to);
        if (allowed)
                dc_render_json(b, "allowed_mentions", allowed);
        dc_render_message(b, "message", c->world, m, c->bot, RENDER_NONCE | RENDER_ALONE);
        journal_close(c->world->base.sent);
        dc_call_print(c, m);
}

static int answer_message(struct call *c, const struct message *m)
{
        dc_render_message(&c->out, NULL, c->world, m, c->bot, RENDER_NONCE);
        return 0;
}

/* The nonce as text, yours; NULL: none. */
static char *nonce_of(const json_t *args)
{
        const json_t *nonce = json_object_get(args, "nonce");

        if (json_is_string(nonce))
                return mem_strdup(json_string_value(nonce));
        return json_is_integer(nonce) ? mem_printf("%lld", (long long)json_integer_value(nonce))
                                      : NULL;
}

static int send_message(struct call *c, struct channel *channel, const char *nonce)
{
        bool enforce = nonce && json_flag(c->args, "enforce_nonce", false);
        struct message *m = enforce ? dc_nonce_find(c->bot, channel, nonce) : NULL;

        if (m)
                return answer_message(c, m);
        m = dc_message_new(c->world, channel, c->bot->user);
        m->nonce = nonce ? json_text(json_object_get(c->args, "nonce")) : NULL;
        if (dc_compose_reference(c, m, c->args) != 0 || dc_compose(c, m, c->args, false) != 0) {
                dc_message_free(m);
                return -1;
        }
        dc_world_event_message(c->world, m);
        if (enforce)
                dc_nonce_remember(c->bot, m, nonce);
        record_message(c, "message", m, c->args);
        return answer_message(c, m);
}

static uint64_t needed_for_embeds(const struct call *c)
{
        return json_array_size(json_object_get(c->args, "embeds")) > 0 ? MAY_EMBED : 0;
}

static int create_message(struct call *c)
{
        struct channel *at = dc_channel_find(c->world, dc_call_id(c, "channel_id"));
        uint64_t needed = (at && dc_channel_is_thread(at) ? MAY_SEND_THREADS : MAY_SEND) |
                          (c->uploads.count > 1 ? MAY_ATTACH : 0) | needed_for_embeds(c);
        struct channel *channel = dc_call_channel(c, needed);
        char *nonce;
        int rc;

        if (!channel || check_channel(c, channel) != 0)
                return -1;
        nonce = nonce_of(c->args);
        rc = send_message(c, channel, nonce);
        free(nonce);
        return rc;
}

/* ---- reading ---- */

static size_t first_after(const struct channel *ch, uint64_t id)
{
        size_t i = 0;

        while (i < ch->count && ch->messages[i]->id <= id)
                i++;
        return i;
}

static int list_messages(struct call *c)
{
        struct channel *ch = dc_call_channel(c, 0);
        int64_t limit = dc_call_query_int(c, "limit", 50);
        uint64_t before = dc_call_query_id(c, "before"), after = dc_call_query_id(c, "after"),
                 around = dc_call_query_id(c, "around");
        size_t from = 0, to;
        bool oldest_first;

        if (!ch)
                return -1;
        /* Discord's order is not promised for every parameter */
        oldest_first = faults_fire(&c->world->base.faults, FAULT_REORDER, "list_messages") != NULL;
        to = ch->count;
        if (before)
                to = first_after(ch, before - 1);
        if (after) {
                from = first_after(ch, after);
                to = from + (size_t)limit < ch->count ? from + (size_t)limit : ch->count;
        } else if (around) {
                size_t middle = first_after(ch, around - 1);

                to = middle + (size_t)limit / 2 + 1 < ch->count ? middle + (size_t)limit / 2 + 1
                                                                : ch->count;
        }
        if (to - from > (size_t)limit)
                from = to - (size_t)limit;
        jsonw_open(&c->out, '[');
        if (dc_channel_permissions(c->bot, ch) & MAY_READ_HISTORY) {
                for (size_t i = 0; i < to - from; i++)
                        dc_render_message(&c->out, NULL, c->world,
                                          ch->messages[oldest_first ? from + i : to - 1 - i],
                                          c->bot, RENDER_PLAIN);
        }
        jsonw_close(&c->out, ']');
        return 0;
}

static int get_message(struct call *c)
{
        struct channel *channel = dc_call_channel(c, MAY_READ_HISTORY);
        struct message *m = channel ? dc_call_message(c, channel) : NULL;

        return m ? answer_message(c, m) : -1;
}

/* ---- changing ---- */

static int update_message(struct call *c)
{
        struct channel *channel = dc_call_channel(c, needed_for_embeds(c));
        struct message *m = channel ? dc_call_message(c, channel) : NULL;

        if (!m)
                return -1;
        if (m->author != c->bot->user)
                return dc_call_fail(c, 403, 50005,
                                    "Cannot edit a message authored by another user");
        if (channel->archived)
                return dc_call_archived(c);
        if (dc_compose(c, m, c->args, true) != 0)
                return -1;
        dc_world_event_edit(c->world, m);
        record_message(c, "edit", m, c->args);
        return answer_message(c, m);
}

static void remove_message(const struct call *c, struct message *m)
{
        dc_render_id(dc_call_record(c, "delete", m->channel), "message_id", m->id);
        journal_close(c->world->base.sent);
        dc_world_event_delete(c->world, m);
}

static int delete_message(struct call *c)
{
        struct channel *channel = dc_call_channel(c, 0);
        struct message *m = channel ? dc_call_message(c, channel) : NULL;

        if (!m)
                return -1;
        if (m->author != c->bot->user &&
            (!channel->guild || !(dc_channel_permissions(c->bot, channel) & MAY_MANAGE)))
                return channel->guild ? dc_call_fail(c, 403, 50013, "Missing Permissions")
                                      : dc_call_fail(c, 403, 50003,
                                                     "Cannot execute action on a DM channel");
        remove_message(c, m);
        return dc_call_no_content(c);
}

static int bulk_delete(struct call *c)
{
        struct channel *channel = dc_call_channel(c, MAY_MANAGE);
        const json_t *ids = json_object_get(c->args, "messages"), *id;
        size_t i;

        if (!channel)
                return -1;
        json_array_foreach(ids, i, id) {
                struct message *m = dc_message_find(channel, dc_id_parse(json_string_value(id)));

                if (m)
                        remove_message(c, m);
        }
        return dc_call_no_content(c);
}

/* ---- pins ---- */

/* PUT or DELETE. */
static int pin(struct call *c)
{
        bool pinned = strcmp(c->op->method, "PUT") == 0;
        struct channel *channel = dc_call_channel(c, MAY_MANAGE);
        struct message *m = channel ? dc_call_message(c, channel) : NULL;

        if (!m)
                return -1;
        m->pinned = pinned;
        dc_render_id(dc_call_record(c, pinned ? "pin" : "unpin", channel), "message_id", m->id);
        journal_close(c->world->base.sent);
        return dc_call_no_content(c);
}

static int list_pins(struct call *c)
{
        struct channel *channel = dc_call_channel(c, MAY_READ_HISTORY);

        if (!channel)
                return -1;
        jsonw_open(&c->out, '[');
        for (size_t i = channel->count; i > 0; i--) {
                if (channel->messages[i - 1]->pinned)
                        dc_render_message(&c->out, NULL, c->world, channel->messages[i - 1], c->bot,
                                          RENDER_PLAIN);
        }
        jsonw_close(&c->out, ']');
        return 0;
}

const struct dc_op_row dc_op_messages[] = {
        { "create_message", create_message },
        { "list_messages", list_messages },
        { "get_message", get_message },
        { "update_message", update_message },
        { "delete_message", delete_message },
        { "bulk_delete_messages", bulk_delete },
        { "create_pin", pin },
        { "delete_pin", pin },
        { "deprecated_create_pin", pin },
        { "deprecated_delete_pin", pin },
        { "deprecated_list_pins", list_pins },
        { 0 },
};
