#include "sim/discord/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/discord/files.h"
#include "sim/discord/gateway.h"
#include "sim/discord/interactions.h"
#include "sim/discord/nonces.h"
#include "sim/discord/rates.h"
#include "sim/discord/signer.h"

#define EPOCH_MS      1420070400000ll
#define JOURNAL_KEEP  20000
#define JOURNAL_BYTES ((size_t)64 << 20)

/* ---- ids ---- */

uint64_t dc_snowflake(struct world *w)
{
        uint64_t id = (uint64_t)(clock_wall_ms() - EPOCH_MS) << 22;

        w->last_id = id > w->last_id ? id : w->last_id + 1;
        return w->last_id;
}

int64_t dc_snowflake_ms(uint64_t id)
{
        return (int64_t)(id >> 22) + EPOCH_MS;
}

char *dc_id(uint64_t id, char out[DC_ID_SIZE])
{
        snprintf(out, DC_ID_SIZE, "%llu", (unsigned long long)id);
        return out;
}

uint64_t dc_parse_id(const char *text)
{
        size_t n = text ? strlen(text) : 0;

        if (n == 0 || n > 20 || strspn(text, "0123456789") != n)
                return 0;
        return strtoull(text, NULL, 10);
}

static void *find(const struct map *m, uint64_t id)
{
        char key[DC_ID_SIZE];

        return map_get(m, dc_id(id, key));
}

static void put(struct map *m, uint64_t id, void *value)
{
        char key[DC_ID_SIZE];

        map_put(m, dc_id(id, key), value);
}

/* ---- users ---- */

struct user *dc_user(const struct world *w, uint64_t id)
{
        return find(&w->users, id);
}

static void rename_text(char **slot, const char *text)
{
        if (!text)
                return;
        free(*slot);
        *slot = mem_strdup(text);
}

struct user *dc_user_make(struct world *w, uint64_t id, const char *username, const char *global_name)
{
        struct user *u;

        if (id == 0)
                id = dc_snowflake(w);
        u = dc_user(w, id);
        if (!u) {
                u = mem_zalloc(sizeof(*u));
                u->id = id;
                u->username = mem_printf("user%llu", (unsigned long long)id);
                put(&w->users, id, u);
        }
        rename_text(&u->username, username);
        rename_text(&u->global_name, global_name);
        return u;
}

struct user *dc_user_by_name(const struct world *w, const char *text)
{
        struct user *u = dc_user(w, dc_parse_id(text));
        const char *key;
        void *value;

        if (u || !text)
                return u;
        for (size_t i = 0; map_each(&w->users, &i, &key, &value);) {
                u = value;
                if (strcasecmp(u->username, text) == 0)
                        return u;
        }
        return NULL;
}

static void user_free(struct user *u)
{
        free(u->username);
        free(u->global_name);
        free(u);
}

/* ---- bots ---- */

struct bot *dc_bot_by_token(const struct world *w, const char *token)
{
        return token ? map_get(&w->bots_by_token, token) : NULL;
}

struct bot *dc_bot_by_name(const struct world *w, const char *text)
{
        struct bot *b = dc_bot_by_token(w, text);
        uint64_t id = dc_parse_id(text);

        if (b || !text)
                return b ? b : w->bots;
        for (b = w->bots; b; b = b->next) {
                if (b->user->id == id || strcasecmp(b->user->username, text) == 0)
                        return b;
        }
        return NULL;
}

static int base64_digit(char c)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* A token begins with the bot's number in base64; 0 when this one does not. */
static uint64_t id_of_token(const char *token)
{
        char text[32];
        size_t n = 0;
        unsigned bits = 0, have = 0;

        for (; *token && *token != '.' && n + 1 < sizeof(text); token++) {
                int digit = base64_digit(*token);

                if (digit < 0)
                        return 0;
                bits = bits << 6 | (unsigned)digit;
                have += 6;
                if (have >= 8) {
                        have -= 8;
                        text[n++] = (char)(bits >> have & 0xff);
                }
        }
        text[n] = '\0';
        return dc_parse_id(text);
}

struct bot *dc_bot(struct world *w, const char *token)
{
        struct bot *b = dc_bot_by_token(w, token), **end = &w->bots;
        uint64_t id = id_of_token(token);

        if (b)
                return b;
        b = mem_zalloc(sizeof(*b));
        b->world = w;
        b->token = mem_strdup(token);
        b->user = dc_user_make(w, id && !dc_user(w, id) ? id : 0, w->bots ? NULL : "dragoman", NULL);
        b->user->is_bot = true;
        b->application_id = b->user->id;
        b->intents = ~0ull;
        b->commands = json_array();
        b->guild_commands = json_object();
        b->starts_left = w->settings.start_limit;
        map_init(&b->dms);
        map_init(&b->nonces);
        while (*end)
                end = &(*end)->next;
        *end = b;
        map_put(&w->bots_by_token, token, b);
        for (struct guild *g = w->first_guild; g; g = g->next)
                dc_member_make(g, b->user);
        return b;
}

static void bot_free(struct bot *b)
{
        dc_nonces_release(b);
        map_release(&b->dms);
        json_decref(b->commands);
        json_decref(b->guild_commands);
        free(b->interactions_url);
        free(b->token);
        free(b);
}

/* ---- guilds ---- */

struct guild *dc_guild(const struct world *w, uint64_t id)
{
        return find(&w->guilds, id);
}

struct guild *dc_guild_by_name(const struct world *w, const char *text)
{
        struct guild *g = dc_guild(w, dc_parse_id(text));

        if (!text)
                return w->first_guild;
        for (struct guild *at = w->first_guild; !g && at; at = at->next)
                g = strcasecmp(at->name, text) == 0 ? at : NULL;
        return g;
}

struct guild *dc_guild_make(struct world *w, uint64_t id, const char *name, struct user *owner)
{
        struct guild *g = mem_zalloc(sizeof(*g));

        g->id = id ? id : dc_snowflake(w);
        g->name = mem_strdup(name);
        g->owner = owner;
        g->channels_end = &g->channels;
        map_init(&g->members_by_id);
        put(&w->guilds, g->id, g);
        *w->guilds_end = g;
        w->guilds_end = &g->next;
        dc_role_make(w, g, g->id, "@everyone");
        dc_member_make(g, owner);
        for (struct bot *b = w->bots; b; b = b->next)
                dc_member_make(g, b->user);
        return g;
}

struct member *dc_member(const struct guild *g, uint64_t user_id)
{
        return find(&g->members_by_id, user_id);
}

struct member *dc_member_make(struct guild *g, struct user *u)
{
        struct member *m = dc_member(g, u->id);

        if (m)
                return m;
        m = mem_zalloc(sizeof(*m));
        m->user = u;
        m->roles = json_array();
        m->next = g->members;
        g->members = m;
        put(&g->members_by_id, u->id, m);
        return m;
}

static void member_free(struct member *m)
{
        json_decref(m->roles);
        free(m->nick);
        free(m);
}

void dc_member_remove(struct guild *g, uint64_t user_id)
{
        struct member **at = &g->members, *m;
        char key[DC_ID_SIZE];

        map_remove(&g->members_by_id, dc_id(user_id, key));
        while (*at && (*at)->user->id != user_id)
                at = &(*at)->next;
        if (!(m = *at))
                return;
        *at = m->next;
        member_free(m);
}

struct role *dc_role_make(struct world *w, struct guild *g, uint64_t id, const char *name)
{
        struct role *r = mem_zalloc(sizeof(*r)), **end = &g->roles;

        r->id = id ? id : dc_snowflake(w);
        r->name = mem_strdup(name);
        while (*end)
                end = &(*end)->next;
        *end = r;
        return r;
}

struct role *dc_role_by_name(const struct guild *g, const char *text)
{
        uint64_t id = dc_parse_id(text);

        for (struct role *r = g->roles; text && r; r = r->next) {
                if (r->id == id || strcasecmp(r->name, text) == 0)
                        return r;
        }
        return NULL;
}

static void guild_free(struct guild *g)
{
        while (g->members) {
                struct member *m = g->members;

                g->members = m->next;
                member_free(m);
        }
        while (g->roles) {
                struct role *r = g->roles;

                g->roles = r->next;
                free(r->name);
                free(r);
        }
        map_release(&g->members_by_id);
        free(g->name);
        free(g);
}

/* ---- channels ---- */

struct channel *dc_channel(const struct world *w, uint64_t id)
{
        return find(&w->channels, id);
}

struct channel *dc_channel_by_name(const struct world *w, const char *text)
{
        struct channel *c = dc_channel(w, dc_parse_id(text));

        for (const struct guild *g = w->first_guild; !c && text && g; g = g->next) {
                for (struct channel *at = g->channels; !c && at; at = at->next)
                        c = strcasecmp(at->name, text) == 0 ? at : NULL;
        }
        return c;
}

static struct channel *channel_new(struct world *w, uint64_t id, enum channel_type type, const char *name)
{
        struct channel *c = mem_zalloc(sizeof(*c));

        c->id = id ? id : dc_snowflake(w);
        c->type = type;
        c->name = mem_strdup(name);
        c->created_ms = clock_wall_ms();
        put(&w->channels, c->id, c);
        return c;
}

struct channel *dc_channel_make(struct world *w, struct guild *g, uint64_t id, enum channel_type type,
                                const char *name)
{
        struct channel *c = channel_new(w, id, type, name);

        c->guild = g;
        c->tags = json_array();
        for (const struct channel *at = g->channels; at; at = at->next)
                c->position++;
        *g->channels_end = c;
        g->channels_end = &c->next;
        return c;
}

struct channel *dc_thread_make(struct world *w, struct channel *parent, uint64_t id, enum channel_type type,
                               const char *name, struct user *owner)
{
        struct channel *c = dc_channel_make(w, parent->guild, id, type, name);

        c->parent = parent;
        c->owner_id = owner->id;
        c->auto_archive = 1440;
        c->joined = json_array();
        dc_thread_join(c, owner);
        return c;
}

void dc_thread_join(struct channel *c, const struct user *u)
{
        char id[DC_ID_SIZE];
        const json_t *at;
        size_t i;

        dc_id(u->id, id);
        json_array_foreach(c->joined, i, at) {
                if (strcmp(json_string_value(at), id) == 0)
                        return;
        }
        json_array_append_new(c->joined, json_string(id));
}

struct channel *dc_dm(struct bot *b, struct user *u, bool make)
{
        struct channel *c = find(&b->dms, u->id);

        if (c || !make)
                return c;
        c = channel_new(b->world, 0, CHANNEL_DM, NULL);
        c->user = u;
        c->bot = b;
        put(&b->dms, u->id, c);
        return c;
}

static void channel_free(struct channel *c)
{
        for (size_t i = 0; i < c->count; i++)
                dc_message_free(c->messages[i]);
        free(c->messages);
        json_decref(c->tags);
        json_decref(c->joined);
        free(c->name);
        free(c->topic);
        free(c);
}

void dc_channel_remove(struct world *w, struct channel *c)
{
        struct channel **at = &c->guild->channels;
        char key[DC_ID_SIZE];

        while (*at != c)
                at = &(*at)->next;
        *at = c->next;
        if (c->guild->channels_end == &c->next)
                c->guild->channels_end = at;
        for (struct channel *other = c->guild->channels; other; other = other->next) {
                if (other->parent == c)
                        other->parent = NULL;
        }
        map_remove(&w->channels, dc_id(c->id, key));
        channel_free(c);
}

bool dc_is_thread(const struct channel *c)
{
        return c->type >= CHANNEL_NEWS_THREAD && c->type <= CHANNEL_PRIVATE_THREAD;
}

bool dc_is_forum(const struct channel *c)
{
        return c->type == CHANNEL_FORUM || c->type == CHANNEL_MEDIA;
}

uint64_t dc_permissions(const struct bot *b, const struct channel *c)
{
        uint64_t denied = c->denied | (c->parent ? c->parent->denied : 0);

        if (!c->guild)
                return c->bot == b ? ~denied : 0;
        return dc_member(c->guild, b->user->id) ? ~denied : 0;
}

/* ---- messages ---- */

struct message *dc_message_new(struct world *w, struct channel *c, struct user *author)
{
        struct message *m = mem_zalloc(sizeof(*m));

        m->id = dc_snowflake(w);
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

static void reaction_free(struct reaction *r)
{
        free(r->users);
        free(r);
}

void dc_message_free(struct message *m)
{
        if (!m)
                return;
        while (m->reactions) {
                struct reaction *r = m->reactions;

                m->reactions = r->next;
                reaction_free(r);
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

        if (c->count == w->settings.keep_messages) {
                /* a quarter at once, so that moving the rest costs little per message */
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
        w->message_count++;
}

/* The place of the first message whose id is not smaller. */
static size_t place(const struct channel *c, uint64_t id)
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

struct message *dc_message(const struct channel *c, uint64_t id)
{
        size_t at = place(c, id);

        return id && at < c->count && c->messages[at]->id == id ? c->messages[at] : NULL;
}

void dc_message_remove(struct message *m)
{
        struct channel *c = m->channel;
        size_t at = place(c, m->id);

        memmove(c->messages + at, c->messages + at + 1, (c->count - at - 1) * sizeof(*c->messages));
        c->count--;
        dc_message_free(m);
}

/* ---- mentions ---- */

static bool listed(const json_t *list, const char *text)
{
        const json_t *at;
        size_t i;

        json_array_foreach(list, i, at) {
                if (json_is_string(at) && strcmp(json_string_value(at), text) == 0)
                        return true;
        }
        return false;
}

/* Does allowed_mentions let this one through? Without it everything pings. */
static bool allows(const json_t *allowed, const char *kind, const char *id)
{
        if (!json_is_object(allowed))
                return true;
        return listed(json_object_get(allowed, "parse"), kind) ||
               (id && listed(json_object_get(allowed, kind), id));
}

static void add_once(json_t *list, const char *text)
{
        if (!listed(list, text))
                json_array_append_new(list, json_string(text));
}

/* "<@42>", "<@!42>" or "<@&42>" at p: the id goes to out, *kind says what it is. */
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

        if (!allows(allowed, kind, id))
                return;
        if (!roles && dc_user(w, dc_parse_id(id)))
                add_once(m->mentions, id);
        else if (roles && m->channel->guild && dc_role_by_name(m->channel->guild, id))
                add_once(m->mention_roles, id);
}

void dc_message_mentions(struct world *w, struct message *m, const json_t *allowed)
{
        char id[DC_ID_SIZE];
        const char *kind;

        json_array_clear(m->mentions);
        json_array_clear(m->mention_roles);
        m->mention_everyone = (strstr(m->content, "@everyone") || strstr(m->content, "@here")) &&
                              m->channel->guild && allows(allowed, "everyone", NULL);
        for (const char *p = m->content; (p = strchr(p, '<')); p++) {
                if (mention_at(p, id, &kind))
                        add_mention(w, m, allowed, kind, id);
        }
        if (m->type == MESSAGE_REPLY && m->reply_to &&
            (!json_is_object(allowed) || json_flag(allowed, "replied_user", false))) {
                const struct channel *c = dc_channel(w, m->reply_channel);
                const struct message *to = c ? dc_message(c, m->reply_to) : NULL;

                if (to)
                        add_once(m->mentions, dc_id(to->author->id, id));
        }
}

bool dc_message_mentions_user(const struct message *m, uint64_t user_id)
{
        char id[DC_ID_SIZE];

        return listed(m->mentions, dc_id(user_id, id));
}

/* ---- reactions ---- */

int dc_emoji_parse(const char *text, struct emoji *out)
{
        const char *colon = strrchr(text, ':');
        size_t n = colon ? (size_t)(colon - text) : strlen(text);

        memset(out, 0, sizeof(*out));
        if (n == 0 || n >= sizeof(out->name))
                return -1;
        memcpy(out->name, text, n);
        if (colon)
                return (out->id = dc_parse_id(colon + 1)) ? 0 : -1;
        /* letters and the like are no emoji; digits only with the keycap behind them */
        for (const char *p = text; *p; p++) {
                if ((unsigned char)*p >= 0x80)
                        return 0;
        }
        return -1;
}

static bool same_emoji(const struct emoji *a, const struct emoji *b)
{
        return a->id || b->id ? a->id == b->id : strcmp(a->name, b->name) == 0;
}

struct reaction *dc_reaction(const struct message *m, const struct emoji *e)
{
        for (struct reaction *r = m->reactions; r; r = r->next) {
                if (same_emoji(&r->emoji, e))
                        return r;
        }
        return NULL;
}

bool dc_reaction_has(const struct reaction *r, const struct user *u)
{
        for (size_t i = 0; i < r->count; i++) {
                if (r->users[i] == u)
                        return true;
        }
        return false;
}

bool dc_react(struct message *m, const struct emoji *e, struct user *u)
{
        struct reaction *r = dc_reaction(m, e), **end = &m->reactions;

        if (r && dc_reaction_has(r, u))
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

bool dc_unreact(struct message *m, const struct emoji *e, const struct user *u)
{
        struct reaction *r = dc_reaction(m, e), **at = &m->reactions;
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
        reaction_free(r);
        return true;
}

/* ---- the whole ---- */

struct world *dc_world_new(struct loop *l)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->loop = l;
        w->settings = (struct world_settings){
                .strict = true,
                .limits = true,
                .record_calls = true,
                .keep_messages = 500,
                .heartbeat_ms = 41250,
                .resume_ms = 300000,
                .replay = 10000,
                .shards = 1,
                .min_shards = 1,
                .max_concurrency = 1,
                .start_limit = 1000,
                .start_reset_ms = 86400000,
                .acks = true,
                .nonce_ms = 300000,
                .ack_ms = 3000,
        };
        map_init(&w->bots_by_token);
        map_init(&w->users);
        map_init(&w->guilds);
        map_init(&w->channels);
        map_init(&w->files);
        map_init(&w->interactions);
        w->guilds_end = &w->first_guild;
        faults_init(&w->faults, id_random_below(UINT64_MAX));
        w->sent = journal_new(l, JOURNAL_KEEP, JOURNAL_BYTES);
        w->calls = journal_new(l, JOURNAL_KEEP, JOURNAL_BYTES);
        w->invalid = journal_new(l, JOURNAL_KEEP, JOURNAL_BYTES);
        w->links = journal_new(l, JOURNAL_KEEP, JOURNAL_BYTES);
        w->rates = dc_rates_new();
        w->signer = dc_signer_new();
        w->gateway = dc_gateway_new(w);
        return w;
}

void dc_world_free(struct world *w)
{
        const char *key;
        void *value;

        if (!w)
                return;
        dc_gateway_free(w->gateway);
        journal_free(w->sent);
        journal_free(w->calls);
        journal_free(w->invalid);
        journal_free(w->links);
        dc_interactions_release(w);
        dc_files_release(w);
        for (size_t i = 0; map_each(&w->channels, &i, &key, &value);)
                channel_free(value);
        map_release(&w->channels);
        while (w->first_guild) {
                struct guild *g = w->first_guild;

                w->first_guild = g->next;
                guild_free(g);
        }
        map_release(&w->guilds);
        while (w->bots) {
                struct bot *b = w->bots;

                w->bots = b->next;
                bot_free(b);
        }
        map_release(&w->bots_by_token);
        for (size_t i = 0; map_each(&w->users, &i, &key, &value);)
                user_free(value);
        map_release(&w->users);
        faults_release(&w->faults);
        dc_rates_free(w->rates);
        dc_signer_free(w->signer);
        free(w);
}
