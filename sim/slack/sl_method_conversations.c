/*
 * Methods about conversations: which there are, who is in them, opening and joining.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_page.h"

#define MAX_LISTED  1000
#define MAX_PERSONS 8 /* in group direct messages, beside the app */

static const char *const type_names[] = { "public_channel", "private_channel", "im", "mpim" };
static const char *const type_scopes[] = { "channels:read", "groups:read", "im:read", "mpim:read" };

int sl_method_channel_info(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        json_t *about;

        if (!channel)
                return -1;
        about = sl_render_channel(channel, c->app);
        if (sl_call_flag(c, "include_num_members", false))
                json_object_set_new(about, "num_members",
                                    json_integer((json_int_t)channel->member_count));
        sl_call_set_new(c, "channel", about);
        return 0;
}

/* ---- lists ---- */

/* Bits of enum slack_channel_kind; 0 after sl_call_fail. */
static unsigned read_types(struct slack_call *c)
{
        char *text = mem_strdup(sl_call_text(c, "types")), *rest = text, *one;
        unsigned kinds = text ? 0 : 1u << SLACK_PUBLIC;

        while ((one = text ? strsep(&rest, ",") : NULL)) {
                size_t i = 0;

                one += strspn(one, " ");
                while (i < COUNT(type_names) && strcmp(type_names[i], one) != 0)
                        i++;
                if (i == COUNT(type_names)) {
                        sl_call_fail(c, "invalid_types");
                        kinds = 0;
                        break;
                }
                kinds |= 1u << i;
        }
        free(text);
        for (size_t i = 0; i < COUNT(type_names) && kinds; i++) {
                if ((kinds & (1u << i)) && sl_call_need(c, type_scopes[i]) != 0)
                        kinds = 0;
        }
        return kinds;
}

/* Of those the app sees; `of` NULL: also public ones it is not in. */
static int list_channels(struct slack_call *c, const struct slack_user *of)
{
        unsigned kinds = read_types(c);
        bool no_archived = sl_call_flag(c, "exclude_archived", false);
        int64_t from, limit, at = 0, next = 0;
        json_t *list;

        if (!kinds || sl_page_read(c, 100, MAX_LISTED, &from, &limit) != 0)
                return -1;
        list = json_array();
        for (struct slack_channel *one = c->world->first_channel; one; one = one->next) {
                bool member = sl_channel_has(one, c->app->user);

                if (!(kinds & (1u << one->kind)) || (no_archived && one->archived) ||
                    one->team != c->app->team || (!member && one->kind != SLACK_PUBLIC) ||
                    (of && !sl_channel_has(one, of)))
                        continue;
                if (at++ < from)
                        continue;
                if ((int64_t)json_array_size(list) == limit) {
                        next = at - 1;
                        break;
                }
                json_array_append_new(list, sl_render_channel(one, c->app));
        }
        sl_call_set_new(c, "channels", list);
        sl_page_set(c, next);
        return 0;
}

int sl_method_channel_list(struct slack_call *c)
{
        return list_channels(c, NULL);
}

int sl_method_user_channels(struct slack_call *c)
{
        const char *user = sl_call_text(c, "user");
        const struct slack_user *of = user ? sl_user_find(c->world, user) : c->app->user;

        return of ? list_channels(c, of) : sl_call_fail(c, "user_not_found");
}

int sl_method_channel_members(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");
        int64_t from, limit, i;
        json_t *list;

        if (!channel || sl_page_read(c, 100, MAX_LISTED, &from, &limit) != 0)
                return -1;
        list = json_array();
        for (i = from; i < (int64_t)channel->member_count && i < from + limit; i++)
                json_array_append_new(list, json_string(channel->members[i]->id));
        sl_call_set_new(c, "members", list);
        sl_page_set(c, i < (int64_t)channel->member_count ? i : 0);
        return 0;
}

int sl_method_user_list(struct slack_call *c)
{
        int64_t from, limit, at = 0, next = 0;
        json_t *list;

        if (sl_page_read(c, MAX_LISTED, MAX_LISTED, &from, &limit) != 0)
                return -1;
        list = json_array();
        for (const struct slack_user *u = c->world->first_user; u; u = u->next) {
                if (u->team != c->app->team || at++ < from)
                        continue;
                if ((int64_t)json_array_size(list) == limit) {
                        next = at - 1;
                        break;
                }
                json_array_append_new(list, sl_render_user(u));
        }
        sl_call_set_new(c, "members", list);
        sl_call_set_new(c, "cache_ts", json_integer(1700000000));
        sl_page_set(c, next);
        return 0;
}

/* ---- opening and joining ---- */

/* People by their ids, separated by commas; how many, or -1 after sl_call_fail. */
static int read_people(struct slack_call *c, struct slack_user *out[MAX_PERSONS])
{
        char *text = mem_strdup(sl_call_text(c, "users")), *rest = text, *one;
        int n = 0;

        while ((one = strsep(&rest, ","))) {
                struct slack_user *u = sl_user_find(c->world, one + strspn(one, " "));

                if (!u || u->deleted || u->app || n == MAX_PERSONS) {
                        n = sl_call_fail(c, !u           ? "user_not_found"
                                            : u->deleted ? "user_disabled"
                                            : u->app     ? "cannot_dm_bot"
                                                         : "too_many_users");
                        break;
                }
                out[n++] = u;
        }
        free(text);
        return n;
}

static struct slack_channel *open_with(struct slack_call *c, bool *was_open)
{
        bool make = !sl_call_flag(c, "prevent_creation", false);
        struct slack_user *people[MAX_PERSONS];
        struct slack_channel *channel;
        int n = read_people(c, people);

        if (n < 0 || sl_call_need(c, n == 1 ? "im:write" : "mpim:write") != 0)
                return NULL;
        channel = n == 1 ? sl_channel_im(c->app, people[0], false)
                         : sl_channel_mpim(c->app, people, (size_t)n, false);
        *was_open = channel != NULL;
        if (!channel && make)
                channel = n == 1 ? sl_channel_im(c->app, people[0], true)
                                 : sl_channel_mpim(c->app, people, (size_t)n, true);
        if (!channel)
                sl_call_fail(c, "channel_not_found");
        return channel;
}

int sl_method_channel_open(struct slack_call *c)
{
        bool was_open = true;
        struct slack_channel *channel;

        if (!sl_call_text(c, "users") && !sl_call_text(c, "channel"))
                return sl_call_fail(c, "users_list_not_supplied");
        channel = sl_call_text(c, "users") ? open_with(c, &was_open)
                                           : sl_call_member_of(c, "channel");
        if (!channel)
                return -1;
        if (!was_open) {
                sl_call_record(c, "open", channel);
                journal_close(c->world->base.sent);
        } else {
                sl_call_set_new(c, "no_op", json_true());
                sl_call_set_new(c, "already_open", json_true());
        }
        sl_call_set_new(c, "channel",
                        sl_call_flag(c, "return_im", false)
                                ? sl_render_channel(channel, c->app)
                                : json_pack("{s:s}", "id", channel->id));
        return 0;
}

int sl_method_channel_join(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_channel(c, "channel");

        if (!channel)
                return -1;
        if (channel->kind != SLACK_PUBLIC)
                return sl_call_fail(c, "method_not_supported_for_channel_type");
        if (channel->archived)
                return sl_call_fail(c, "is_archived");
        if (sl_channel_join(channel, c->app->user)) {
                sl_call_record(c, "join", channel);
                journal_close(c->world->base.sent);
                sl_event_member(c->world, channel, c->app->user, true);
        } else {
                sl_call_set(c, "warning", "already_in_channel");
                sl_call_set_new(c, "response_metadata",
                                json_pack("{s:[s]}", "warnings", "already_in_channel"));
        }
        sl_call_set_new(c, "channel", sl_render_channel(channel, c->app));
        return 0;
}

int sl_method_channel_mark(struct slack_call *c)
{
        struct slack_channel *channel = sl_call_member_of(c, "channel");
        const char *ts = sl_call_text(c, "ts");

        if (!channel)
                return -1;
        if (!ts || sl_message_parse_ts(ts) < 0 || strlen(ts) >= SL_TS_SIZE)
                return sl_call_fail(c, "invalid_timestamp");
        memcpy(channel->last_read, ts, strlen(ts) + 1);
        return 0;
}
