#include "sim/discord/dc_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* ---- messages ---- */

struct message *dc_message_new(struct world *w, struct channel *c, struct user *author)
{
        struct message *m = mem_zalloc(sizeof(*m));

        m->id = dc_id_new(w);
        m->channel = c;
        m->author = author;
        m->content = mem_strdup("");
        m->mentions = json_array();
        m->mention_roles = json_array();
        m->attachments = json_array();
        m->embeds = json_array();
        m->components = json_array();
        return m;
}

void dc_message_free(struct message *m)
{
        if (!m)
                return;
        while (m->reactions) {
                struct reaction *r = m->reactions;

                m->reactions = r->next;
                free(r->users);
                free(r);
        }
        json_decref(m->mentions);
        json_decref(m->mention_roles);
        json_decref(m->attachments);
        json_decref(m->embeds);
        json_decref(m->components);
        json_decref(m->extra);
        json_decref(m->interaction);
        free(m->content);
        free(m->nonce);
        free(m);
}

void dc_message_post(struct world *w, struct message *m)
{
        struct channel *c = m->channel;

        if (c->count == w->base.keep_messages) {
                /* drop a quarter at once, so moving the rest costs little per message */
                size_t gone = c->count / 4 + 1;

                for (size_t i = 0; i < gone; i++)
                        dc_message_free(c->messages[i]);
                memmove(c->messages, c->messages + gone, (c->count - gone) * sizeof(*c->messages));
                c->count -= gone;
        }
        if (c->count == c->room) {
                c->room = c->room ? c->room * 2 : 16;
                c->messages = mem_realloc(c->messages, c->room * sizeof(*c->messages));
        }
        c->messages[c->count++] = m;
        c->last_message_id = m->id;
        w->base.message_count++;
}

/* The index of the first message with this id or a greater one. */
static size_t index_of(const struct channel *c, uint64_t id)
{
        size_t low = 0, high = c->count;

        while (low < high) {
                size_t mid = (low + high) / 2;

                if (c->messages[mid]->id < id)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

struct message *dc_message_find(const struct channel *c, uint64_t id)
{
        size_t at = index_of(c, id);

        return id && at < c->count && c->messages[at]->id == id ? c->messages[at] : NULL;
}

void dc_message_remove(struct message *m)
{
        struct channel *c = m->channel;
        size_t at = index_of(c, m->id);

        memmove(c->messages + at, c->messages + at + 1, (c->count - at - 1) * sizeof(*c->messages));
        c->count--;
        dc_message_free(m);
}

/* ---- mentions ---- */

static bool has_text(const json_t *list, const char *text)
{
        const json_t *at;
        size_t i;

        json_array_foreach(list, i, at) {
                if (json_is_string(at) && strcmp(json_string_value(at), text) == 0)
                        return true;
        }
        return false;
}

/* Checks allowed_mentions; without one all mentions ping. */
static bool is_allowed(const json_t *allowed, const char *kind, const char *id)
{
        if (!json_is_object(allowed))
                return true;
        return has_text(json_object_get(allowed, "parse"), kind) ||
               (id && has_text(json_object_get(allowed, kind), id));
}

static void add_once(json_t *list, const char *text)
{
        if (!has_text(list, text))
                json_array_append_new(list, json_string(text));
}

/* Reads "<@42>", "<@!42>" or "<@&42>"; *kind becomes "users" or "roles". */
static bool mention_at(const char *p, char out[DC_ID_SIZE], const char **kind)
{
        size_t n;

        if (strncmp(p, "<@", 2) != 0)
                return false;
        *kind = p[2] == '&' ? "roles" : "users";
        p += p[2] == '&' || p[2] == '!' ? 3 : 2;
        n = strspn(p, "0123456789");
        if (n == 0 || n >= DC_ID_SIZE || p[n] != '>')
                return false;
        memcpy(out, p, n);
        out[n] = '\0';
        return true;
}

static void add_mention(struct world *w, struct message *m, const json_t *allowed, const char *kind,
                        const char *id)
{
        bool roles = strcmp(kind, "roles") == 0;

        if (!is_allowed(allowed, kind, id))
                return;
        if (!roles && dc_world_user(w, dc_id_parse(id)))
                add_once(m->mentions, id);
        else if (roles && m->channel->guild && dc_guild_role_by_name(m->channel->guild, id))
                add_once(m->mention_roles, id);
}

void dc_message_mentions(struct world *w, struct message *m, const json_t *allowed)
{
        char id[DC_ID_SIZE];
        const char *kind;

        json_array_clear(m->mentions);
        json_array_clear(m->mention_roles);
        m->mention_everyone = (strstr(m->content, "@everyone") || strstr(m->content, "@here")) &&
                              m->channel->guild && is_allowed(allowed, "everyone", NULL);
        for (const char *p = m->content; (p = strchr(p, '<')); p++) {
                if (mention_at(p, id, &kind))
                        add_mention(w, m, allowed, kind, id);
        }
        if (m->type == MESSAGE_REPLY && m->reply_to &&
            (!json_is_object(allowed) || json_flag(allowed, "replied_user", false))) {
                const struct channel *c = dc_channel_find(w, m->reply_channel);
                const struct message *to = c ? dc_message_find(c, m->reply_to) : NULL;

                if (to)
                        add_once(m->mentions, dc_id_text(to->author->id, id));
        }
}

bool dc_message_mentions_user(const struct message *m, uint64_t user_id)
{
        char id[DC_ID_SIZE];

        return has_text(m->mentions, dc_id_text(user_id, id));
}

/* ---- reactions ---- */

int dc_message_parse_emoji(const char *text, struct emoji *out)
{
        const char *colon = strrchr(text, ':');
        size_t n = colon ? (size_t)(colon - text) : strlen(text);

        memset(out, 0, sizeof(*out));
        if (n == 0 || n >= sizeof(out->name))
                return -1;
        memcpy(out->name, text, n);
        if (colon)
                return (out->id = dc_id_parse(colon + 1)) ? 0 : -1;
        /* an emoji has at least one non-ASCII character; a digit needs its keycap */
        for (const char *p = text; *p; p++) {
                if ((unsigned char)*p >= 0x80)
                        return 0;
        }
        return -1;
}

struct reaction *dc_message_reaction(const struct message *m, const struct emoji *e)
{
        for (struct reaction *r = m->reactions; r; r = r->next) {
                const struct emoji *own = &r->emoji;

                if (own->id || e->id ? own->id == e->id : strcmp(own->name, e->name) == 0)
                        return r;
        }
        return NULL;
}

bool dc_message_reacted(const struct reaction *r, const struct user *u)
{
        for (size_t i = 0; i < r->count; i++) {
                if (r->users[i] == u)
                        return true;
        }
        return false;
}

bool dc_message_add_reaction(struct message *m, const struct emoji *e, struct user *u)
{
        struct reaction *r = dc_message_reaction(m, e), **end = &m->reactions;

        if (r && dc_message_reacted(r, u))
                return false;
        if (!r) {
                r = mem_zalloc(sizeof(*r));
                r->emoji = *e;
                while (*end)
                        end = &(*end)->next;
                *end = r;
        }
        r->users = mem_realloc(r->users, (r->count + 1) * sizeof(*r->users));
        r->users[r->count++] = u;
        return true;
}

bool dc_message_remove_reaction(struct message *m, const struct emoji *e, const struct user *u)
{
        struct reaction *r = dc_message_reaction(m, e), **at = &m->reactions;
        size_t i = 0;

        while (r && i < r->count && r->users[i] != u)
                i++;
        if (!r || i == r->count)
                return false;
        memmove(r->users + i, r->users + i + 1, (r->count - i - 1) * sizeof(*r->users));
        if (--r->count > 0)
                return true;
        while (*at != r)
                at = &(*at)->next;
        *at = r->next;
        free(r->users);
        free(r);
        return true;
}
