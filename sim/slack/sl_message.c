#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/slack/sl_world.h"

#define REPLY_USERS 5

static void write_ts(int64_t us, char out[SL_TS_SIZE])
{
        snprintf(out, SL_TS_SIZE, "%lld.%06lld", (long long)(us / 1000000),
                 (long long)(us % 1000000));
}

int64_t sl_message_parse_ts(const char *ts)
{
        int64_t us = 0;
        int dot = -1;

        for (int i = 0; ts && ts[i]; i++) {
                if (ts[i] == '.' && dot < 0 && i > 0) {
                        dot = i;
                        continue;
                }
                if (ts[i] < '0' || ts[i] > '9' || (dot < 0 ? i > 10 : i - dot > 6))
                        return -1;
                us = us * 10 + (ts[i] - '0');
        }
        if (!ts || !*ts)
                return -1;
        for (int have = dot < 0 ? 0 : (int)strlen(ts) - dot - 1; have < 6; have++)
                us *= 10;
        return us;
}

struct slack_message *sl_message_new(struct slack_channel *c, struct slack_user *u,
                                     const char *text)
{
        struct slack_message *m = mem_zalloc(sizeof(*m));
        int64_t now = clock_wall_ms() * 1000;

        c->last_us = now > c->last_us ? now : c->last_us + 1;
        m->us = c->last_us;
        write_ts(m->us, m->ts);
        m->channel = c;
        m->user = u;
        m->text = mem_strdup(text ? text : "");
        return m;
}

void sl_message_free(struct slack_message *m)
{
        if (!m)
                return;
        free(m->subtype);
        free(m->text);
        free(m->client_msg_id);
        free(m->username);
        json_decref(m->blocks);
        json_decref(m->attachments);
        json_decref(m->files);
        json_decref(m->metadata);
        json_decref(m->extra);
        json_decref(m->reply_users);
        json_decref(m->reactions);
        json_decref(m->chunks);
        free(m);
}

size_t sl_message_index(const struct slack_channel *c, int64_t us)
{
        size_t low = 0, high = c->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c->messages[middle]->us < us)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

struct slack_message *sl_message_find(const struct slack_channel *c, const char *ts)
{
        int64_t us = sl_message_parse_ts(ts);
        size_t at = us < 0 ? c->count : sl_message_index(c, us);

        return at < c->count && strcmp(c->messages[at]->ts, ts) == 0 ? c->messages[at] : NULL;
}

struct slack_message *sl_message_search(const struct slack_world *w, const char *ts)
{
        struct slack_message *m = NULL;

        for (struct slack_channel *c = w->first_channel; c && !m; c = c->next)
                m = sl_message_find(c, ts);
        return m;
}

/* ---- threads ---- */

/* The root, if m is a reply and the root is still kept. */
static struct slack_message *root_of(const struct slack_message *m)
{
        return m->thread_ts[0] && strcmp(m->thread_ts, m->ts) != 0
                       ? sl_message_find(m->channel, m->thread_ts)
                       : NULL;
}

static void add_reply_user(struct slack_message *root, const struct slack_message *m)
{
        json_t *users = root->reply_users;
        const json_t *id;
        size_t i;

        if (!m->user)
                return;
        if (!users)
                users = root->reply_users = json_array();
        json_array_foreach(users, i, id) {
                if (strcmp(json_string_value(id), m->user->id) == 0)
                        return;
        }
        if (json_array_size(users) < REPLY_USERS)
                json_array_append_new(users, json_string(m->user->id));
}

/* Counts the replies again after one is removed. */
static void recount(struct slack_message *root)
{
        const struct slack_channel *c = root->channel;

        root->reply_count = 0;
        root->latest_reply[0] = '\0';
        json_decref(root->reply_users);
        root->reply_users = NULL;
        for (size_t i = sl_message_index(c, root->us) + 1; i < c->count; i++) {
                const struct slack_message *m = c->messages[i];

                if (strcmp(m->thread_ts, root->ts) != 0)
                        continue;
                root->reply_count++;
                memcpy(root->latest_reply, m->ts, SL_TS_SIZE);
                add_reply_user(root, m);
        }
        if (root->reply_count == 0)
                root->thread_ts[0] = '\0';
}

/* ---- posting ---- */

/* Drops a part of the oldest, so that this is rare. */
static void make_room(struct slack_world *w, struct slack_channel *c)
{
        size_t drop = c->count >= w->base.keep_messages ? w->base.keep_messages / 8 + 1 : 0;

        for (size_t i = 0; i < drop; i++) {
                c->forgotten_us = c->messages[i]->us;
                sl_message_free(c->messages[i]);
        }
        if (drop > 0) {
                c->count -= drop;
                memmove(c->messages, c->messages + drop, c->count * sizeof(struct slack_message *));
        }
        if (c->count == c->room) {
                c->room = c->room ? 2 * c->room : 16;
                c->messages = mem_realloc(c->messages, c->room * sizeof(struct slack_message *));
        }
}

void sl_message_post(struct slack_world *w, struct slack_message *m)
{
        struct slack_message *root;

        make_room(w, m->channel);
        root = root_of(m);
        if (root) {
                memcpy(root->thread_ts, root->ts, SL_TS_SIZE);
                root->reply_count++;
                memcpy(root->latest_reply, m->ts, SL_TS_SIZE);
                add_reply_user(root, m);
        }
        m->channel->messages[m->channel->count++] = m;
}

bool sl_message_remove(struct slack_message *m)
{
        struct slack_channel *c = m->channel;
        struct slack_message *root = root_of(m);
        size_t at = sl_message_index(c, m->us);

        if (m->reply_count > 0) {
                m->tombstone = true;
                free(m->text);
                m->text = mem_strdup("This message was deleted.");
                json_decref(m->blocks);
                json_decref(m->files);
                json_decref(m->metadata);
                json_decref(m->attachments);
                m->blocks = m->files = m->metadata = m->attachments = NULL;
                return false;
        }
        if (at < c->count && c->messages[at] == m) {
                c->count--;
                memmove(c->messages + at, c->messages + at + 1,
                        (c->count - at) * sizeof(struct slack_message *));
        }
        sl_message_free(m);
        if (root)
                recount(root);
        return true;
}

void sl_message_edited(struct slack_message *m, struct slack_user *by)
{
        int64_t now = clock_wall_ms() * 1000;
        int64_t before = m->edited_ts[0] ? sl_message_parse_ts(m->edited_ts) : 0;

        write_ts(now > before ? now : before + 1000000, m->edited_ts);
        m->edited_by = by;
}

/* ---- reactions ---- */

static size_t reacted_at(const json_t *users, const struct slack_user *u)
{
        const json_t *id;
        size_t i;

        json_array_foreach(users, i, id) {
                if (strcmp(json_string_value(id), u->id) == 0)
                        break;
        }
        return i;
}

bool sl_message_react(struct slack_message *m, const char *name, const struct slack_user *u)
{
        json_t *users;

        if (!m->reactions)
                m->reactions = json_object();
        users = json_object_get(m->reactions, name);
        if (!users)
                json_object_set_new(m->reactions, name, users = json_array());
        if (reacted_at(users, u) < json_array_size(users))
                return false;
        json_array_append_new(users, json_string(u->id));
        return true;
}

bool sl_message_unreact(struct slack_message *m, const char *name, const struct slack_user *u)
{
        json_t *users = json_object_get(m->reactions, name);
        size_t at = reacted_at(users, u);

        if (!users || at == json_array_size(users))
                return false;
        json_array_remove(users, at);
        if (json_array_size(users) == 0)
                json_object_del(m->reactions, name);
        return true;
}
