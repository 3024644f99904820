#include "base/jsonw.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

#define MAX_REACTIONS 20

struct target {
        struct message *message;
        struct emoji emoji;
};

/* The message and the emoji of the path. -1 after dc_call_fail. */
static int find_target(struct call *c, uint64_t needed, struct target *t)
{
        struct channel *channel = dc_call_channel(c, needed);

        t->message = channel ? dc_call_message(c, channel) : NULL;
        if (!t->message)
                return -1;
        if (channel->archived) {
                dc_call_archived(c);
                return -1;
        }
        if (dc_message_parse_emoji(http_param(c->x, "emoji_name"), &t->emoji) != 0)
                return dc_call_fail(c, 400, 10014, "Unknown Emoji");
        return 0;
}

static void record(const struct call *c, const char *kind, const struct target *t)
{
        struct buf *b = dc_call_record(c, kind, t->message->channel);

        dc_render_id(b, "message_id", t->message->id);
        jsonw_str(b, "emoji", t->emoji.name);
        if (t->emoji.id)
                dc_render_id(b, "emoji_id", t->emoji.id);
        journal_close(c->world->base.sent);
}

static int react(struct call *c)
{
        struct target t;
        size_t count = 0;
        bool first;

        if (find_target(c, MAY_READ_HISTORY, &t) != 0)
                return -1;
        first = !dc_message_reaction(t.message, &t.emoji);
        if (first && !(dc_channel_permissions(c->bot, t.message->channel) & MAY_REACT))
                return dc_call_fail(c, 403, 50013, "Missing Permissions");
        for (const struct reaction *r = t.message->reactions; r; r = r->next)
                count++;
        if (first && count >= MAX_REACTIONS)
                return dc_call_fail(c, 400, 30010, "Maximum number of reactions reached (20)");
        if (t.message->author->refuses)
                return dc_call_fail(c, 403, 90001, "Reaction was blocked");
        record(c, "reaction", &t);
        dc_world_event_react(c->world, t.message, &t.emoji, c->bot->user);
        return dc_call_no_content(c);
}

/* The bot's own reaction, or that of the user in the path. */
static int unreact(struct call *c)
{
        bool own = !http_param(c->x, "user_id");
        struct user *u = own ? c->bot->user : dc_world_user(c->world, dc_call_id(c, "user_id"));
        struct target t;

        if (find_target(c, own ? 0 : MAY_MANAGE, &t) != 0)
                return -1;
        if (!u)
                return dc_call_fail(c, 404, 10013, "Unknown User");
        record(c, "reaction_removed", &t);
        dc_world_event_unreact(c->world, t.message, &t.emoji, u);
        return dc_call_no_content(c);
}

/* All reactions of a message, or all of one emoji. */
static int clear_reactions(struct call *c)
{
        bool one = http_param(c->x, "emoji_name") != NULL;
        struct target t = { 0 };
        struct channel *channel;

        if (one) {
                if (find_target(c, MAY_MANAGE, &t) != 0)
                        return -1;
        } else {
                channel = dc_call_channel(c, MAY_MANAGE);
                t.message = channel ? dc_call_message(c, channel) : NULL;
                if (!t.message)
                        return -1;
        }
        record(c, "reactions_cleared", &t);
        dc_world_event_clear(c->world, t.message, one ? &t.emoji : NULL);
        return dc_call_no_content(c);
}

static int list_reactions(struct call *c)
{
        const struct reaction *r;
        struct target t;

        if (find_target(c, MAY_READ_HISTORY, &t) != 0)
                return -1;
        r = dc_message_reaction(t.message, &t.emoji);
        jsonw_open(&c->out, '[');
        for (size_t i = 0; r && i < r->count; i++)
                dc_render_user(&c->out, NULL, r->users[i]);
        jsonw_close(&c->out, ']');
        return 0;
}

const struct dc_op_row dc_op_reactions[] = {
        { "add_my_message_reaction", react },
        { "delete_my_message_reaction", unreact },
        { "delete_user_message_reaction", unreact },
        { "delete_all_message_reactions", clear_reactions },
        { "delete_all_message_reactions_by_emoji", clear_reactions },
        { "list_message_reactions_by_emoji", list_reactions },
        { 0 },
};
