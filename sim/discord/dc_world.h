/*
 * world: the users, guilds, channels, messages and bots of the simulated Discord.
 *
 * Everything lives until the world is freed, except messages: a channel keeps the last
 * keep_messages. Ids are snowflakes: 64-bit numbers here, decimal text on the wire.
 */
#ifndef SIM_DISCORD_DC_WORLD_H
#define SIM_DISCORD_DC_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "net/loop.h"
#include "sim/journal.h"
#include "sim/world_base.h"

struct gateway;
struct rate_limits;
struct signer;

#define DC_ID_SIZE 21 /* a snowflake as text and the NUL */

enum channel_type {
        CHANNEL_TEXT = 0,
        CHANNEL_DM = 1,
        CHANNEL_VOICE = 2,
        CHANNEL_CATEGORY = 4,
        CHANNEL_NEWS = 5,
        CHANNEL_NEWS_THREAD = 10,
        CHANNEL_THREAD = 11,
        CHANNEL_PRIVATE_THREAD = 12,
        CHANNEL_FORUM = 15,
        CHANNEL_MEDIA = 16,
};

enum message_type {
        MESSAGE_DEFAULT = 0,
        MESSAGE_RENAMED = 4,
        MESSAGE_PINNED = 6,
        MESSAGE_JOINED = 7,
        MESSAGE_THREAD_CREATED = 18,
        MESSAGE_REPLY = 19,
        MESSAGE_COMMAND = 20,
        MESSAGE_THREAD_STARTER = 21,
        MESSAGE_CONTEXT_COMMAND = 23,
};

#define MESSAGE_FLAG_HAS_THREAD (1 << 5)
#define MESSAGE_FLAG_EPHEMERAL  (1 << 6)
#define MESSAGE_FLAG_LOADING    (1 << 7)
#define MESSAGE_FLAG_COMPONENTS (1 << 15)

/* Permissions of a bot in a channel. */
#define MAY_REACT         (1ull << 6)
#define MAY_VIEW          (1ull << 10)
#define MAY_SEND          (1ull << 11)
#define MAY_MANAGE        (1ull << 13)
#define MAY_EMBED         (1ull << 14)
#define MAY_ATTACH        (1ull << 15)
#define MAY_READ_HISTORY  (1ull << 16)
#define MAY_EVERYONE      (1ull << 17)
#define MAY_MANAGE_EVENTS (1ull << 33)
#define MAY_THREADS       (1ull << 34)
#define MAY_OPEN_THREADS  (1ull << 35)
#define MAY_SEND_THREADS  (1ull << 38)
#define MAY_CREATE_EVENTS (1ull << 44)

struct user {
        uint64_t id;
        char *username, *global_name;
        bool is_bot;
        bool refuses; /* refuses direct messages and reactions of bots */
};

struct role {
        uint64_t id;
        char *name;
        struct role *next;
};

struct member {
        struct user *user;
        char *nick;
        json_t *roles; /* ids as text */
        struct member *next;
};

struct emoji {
        uint64_t id; /* 0: a Unicode emoji */
        char name[64];
};

struct reaction {
        struct emoji emoji;
        struct user **users;
        size_t count;
        struct reaction *next;
};

/* Embeds, components and attachments are stored as the API shows them. */
struct message {
        uint64_t id;
        struct channel *channel;
        struct user *author;
        int type;
        int64_t flags;
        int64_t edited_ms; /* 0: never */
        char *content;
        char *nonce; /* JSON text or NULL */
        bool mention_everyone, pinned, tts;
        json_t *mentions;                          /* ids of users, as text */
        json_t *mention_roles;                     /* ids as text */
        json_t *attachments, *embeds, *components; /* arrays */
        json_t *extra;                             /* further members, or NULL */
        uint64_t reply_to, reply_channel;          /* 0: no reference */
        uint64_t application_id;                   /* 0: not of an interaction */
        json_t *interaction;                       /* interaction_metadata, or NULL */
        bool has_thread;
        struct reaction *reactions; /* in order of appearance */
};

struct channel {
        uint64_t id;
        enum channel_type type;
        struct guild *guild;    /* NULL: direct messages */
        struct channel *parent; /* of threads and of channels in a category */
        struct user *user;      /* of direct messages */
        struct bot *bot;        /* of direct messages */
        char *name, *topic;
        int position;
        uint64_t denied; /* to all bots */
        json_t *tags;    /* available_tags of a forum, applied_tags of a post */
        /* threads */
        uint64_t owner_id;
        bool archived, locked;
        int auto_archive; /* minutes */
        int64_t created_ms;
        json_t *joined; /* ids of the users in it, as text */
        /* messages, oldest first */
        struct message **messages;
        size_t count, room;
        uint64_t last_message_id;
        struct channel *next; /* in its guild */
};

enum event_status {
        EVENT_SCHEDULED = 1,
        EVENT_ACTIVE = 2,
        EVENT_COMPLETED = 3,
        EVENT_CANCELED = 4
};
enum event_entity { ENTITY_STAGE = 1, ENTITY_VOICE = 2, ENTITY_EXTERNAL = 3 };

/* A scheduled event of a guild. */
struct scheduled_event {
        uint64_t id;
        struct guild *guild;
        struct user *creator;
        char *name, *description; /* description may be NULL */
        char *location;           /* of ENTITY_EXTERNAL */
        uint64_t channel_id;      /* of the others */
        int64_t start_ms, end_ms; /* end_ms 0: none */
        enum event_status status;
        enum event_entity entity;
        struct user **users; /* interested */
        size_t count;
        struct scheduled_event *next; /* in the guild */
};

struct guild {
        uint64_t id;
        char *name;
        struct user *owner;
        struct role *roles;       /* the first is @everyone and has the guild's id */
        struct member *members;   /* newest first */
        struct map members_by_id; /* -> struct member */
        struct channel *channels; /* and threads; in order of creation */
        struct channel **channels_end;
        struct scheduled_event *events;           /* in order of creation */
        uint64_t denied;                          /* to all bots, in the guild as a whole */
        size_t padding_members, padding_channels; /* invented, to make GUILD_CREATE large */
        bool unavailable;
        struct guild *next;
};

struct bot {
        struct world *world;
        struct user *user;
        uint64_t application_id;
        char *token;
        uint64_t intents;       /* enabled privileged intents */
        json_t *commands;       /* global ones */
        json_t *guild_commands; /* by guild id */
        /* gets interactions; NULL: the gateway does */
        char *interactions_url;
        struct map dms;      /* user id -> struct channel */
        struct map nonces;   /* of enforce_nonce -> struct remembered (dc_nonces.c) */
        int64_t starts_left; /* of session_start_limit */
        bool token_reset;    /* the token is invalid */
        struct bot *next;
};

struct world_settings {
        int64_t heartbeat_ms;
        int64_t resume_ms;  /* a lost session can be resumed */
        int64_t replay;     /* events kept for resuming */
        int64_t shards;     /* recommended by /gateway/bot */
        int64_t min_shards; /* refuse fewer with 4011 */
        int64_t max_concurrency;
        int64_t start_limit, start_reset_ms; /* of session_start_limit */
        bool acks;                           /* acknowledge heartbeats */
        int64_t nonce_ms;                    /* a nonce is remembered */
        int64_t ack_ms;                      /* an interaction must be answered */
};

struct world {
        struct world_base base; /* first */
        struct world_settings settings;
        struct bot *bots; /* in order of creation */
        struct map bots_by_token;
        struct map users;    /* id -> struct user */
        struct map guilds;   /* id -> struct guild */
        struct map channels; /* id -> struct channel, all of them */
        struct guild *first_guild;
        struct guild **guilds_end;
        struct map files;        /* attachment id -> struct file */
        struct map interactions; /* token -> struct interaction */
        struct gateway *gateway;
        struct rate_limits *rates;
        struct signer *signer;
        struct journal *links; /* gateway events */
        uint64_t event_count, limited_count;
        uint64_t last_id;
        size_t file_bytes;
        char base_url[200]; /* of attachments: http://127.0.0.1:8082 */
};

/* ---- dc_id.c ---- */
/* Always greater than those before. */
uint64_t dc_id_new(struct world *w);
int64_t dc_id_ms(uint64_t id);
char *dc_id_text(uint64_t id, char out[DC_ID_SIZE]);
/* 0: no snowflake, or NULL. */
uint64_t dc_id_parse(const char *text);
void *dc_id_map_get(const struct map *m, uint64_t id);
void dc_id_map_put(struct map *m, uint64_t id, void *value);

/* ---- dc_world.c ---- */
struct world *dc_world_new(struct loop *l);
/* Ends waiting calls, so call it while the server can still answer. */
void dc_world_free(struct world *w);
/* The bot of this token, made if missing. */
struct bot *dc_world_make_bot(struct world *w, const char *token);
struct bot *dc_world_bot_by_token(const struct world *w, const char *token);
/* By id, name or token; NULL gives the first. */
struct bot *dc_world_bot_by_name(const struct world *w, const char *text);
struct user *dc_world_user(const struct world *w, uint64_t id);
/* The user of this id, made if missing; 0 makes a new one. Names that are not NULL are set. */
struct user *dc_world_make_user(struct world *w, uint64_t id, const char *username,
                                const char *global_name);
/* By id or username. */
struct user *dc_world_user_by_name(const struct world *w, const char *text);

/* ---- dc_guild.c ---- */
struct guild *dc_guild_find(const struct world *w, uint64_t id);
struct guild *dc_guild_make(struct world *w, uint64_t id, const char *name, struct user *owner);
struct guild *dc_guild_by_name(const struct world *w, const char *text);
struct member *dc_guild_member(const struct guild *g, uint64_t user_id);
/* The member, added if missing. */
struct member *dc_guild_add_member(struct guild *g, struct user *u);
void dc_guild_remove_member(struct guild *g, uint64_t user_id);
struct role *dc_guild_add_role(struct world *w, struct guild *g, uint64_t id, const char *name);
struct role *dc_guild_role_by_name(const struct guild *g, const char *text);
void dc_guild_free(struct guild *g);

/* ---- dc_channel.c ---- */
struct channel *dc_channel_find(const struct world *w, uint64_t id);
struct channel *dc_channel_make(struct world *w, struct guild *g, uint64_t id,
                                enum channel_type type, const char *name);
/* By id or name, threads included. */
struct channel *dc_channel_by_name(const struct world *w, const char *text);
/* NULL: missing, and `make` is false. */
struct channel *dc_channel_dm(struct bot *b, struct user *u, bool make);
struct channel *dc_channel_make_thread(struct world *w, struct channel *parent, uint64_t id,
                                       enum channel_type type, const char *name,
                                       struct user *owner);
void dc_channel_join(struct channel *c, const struct user *u);
/* Frees it with its messages; its threads stay. */
void dc_channel_remove(struct world *w, struct channel *c);
void dc_channel_free(struct channel *c);
bool dc_channel_is_thread(const struct channel *c);
bool dc_channel_is_forum(const struct channel *c);
/* MAY_* bits of this bot. */
uint64_t dc_channel_permissions(const struct bot *b, const struct channel *c);

/* ---- dc_scheduled_event.c ---- */
/* Without name and times. */
struct scheduled_event *dc_scheduled_event_new(struct world *w, struct guild *g,
                                               struct user *creator);
struct scheduled_event *dc_scheduled_event_find(const struct guild *g, uint64_t id);
/* Takes it out of the guild and frees it. */
void dc_scheduled_event_remove(struct scheduled_event *e);
/* False: nothing changes. */
bool dc_scheduled_event_set_interest(struct scheduled_event *e, struct user *u, bool interested);
void dc_scheduled_event_render(struct buf *b, const char *key, const struct scheduled_event *e,
                               bool with_count);
/* Sends GUILD_SCHEDULED_EVENT_ and `what`: "CREATE", "UPDATE", "DELETE". */
unsigned dc_scheduled_event_publish(struct world *w, const struct scheduled_event *e,
                                    const char *what);
/* The same for "USER_ADD" and "USER_REMOVE". */
unsigned dc_scheduled_event_publish_interest(struct world *w, const struct scheduled_event *e,
                                             const struct user *u, const char *what);

/* ---- dc_message.c ---- */
struct message *dc_message_new(struct world *w, struct channel *c, struct user *author);
void dc_message_free(struct message *m);
/* Takes over m; drops the oldest messages when the channel is full. */
void dc_message_post(struct world *w, struct message *m);
struct message *dc_message_find(const struct channel *c, uint64_t id);
void dc_message_remove(struct message *m);
/* Sets the mentions from the text; `allowed` is an allowed_mentions object, NULL allows all. */
void dc_message_mentions(struct world *w, struct message *m, const json_t *allowed);
bool dc_message_mentions_user(const struct message *m, uint64_t user_id);
struct reaction *dc_message_reaction(const struct message *m, const struct emoji *e);
bool dc_message_reacted(const struct reaction *r, const struct user *u);
/* False: it was there already. */
bool dc_message_add_reaction(struct message *m, const struct emoji *e, struct user *u);
/* False: there was none. */
bool dc_message_remove_reaction(struct message *m, const struct emoji *e, const struct user *u);
/* "👍" or "name:id". -1: no emoji. */
int dc_message_parse_emoji(const char *text, struct emoji *out);

/* ---- dc_nonces.c: messages sent with enforce_nonce ---- */
/* The message sent with this nonce to this channel lately; NULL: none. */
struct message *dc_nonce_find(struct bot *b, const struct channel *c, const char *nonce);
void dc_nonce_remember(struct bot *b, const struct message *m, const char *nonce);
void dc_nonces_release(struct bot *b);

/* ---- dc_render.c: JSON values; key NULL inside arrays and at the root ---- */
enum render_how {
        RENDER_PLAIN = 0,
        RENDER_EVENT = 1,  /* with guild_id and member, as in gateway events */
        RENDER_SECRET = 2, /* without what needs the message content intent */
        RENDER_NONCE = 4,
        RENDER_ALONE = 8, /* without the referenced message */
};
void dc_render_user(struct buf *b, const char *key, const struct user *u);
void dc_render_member(struct buf *b, const char *key, const struct member *m, bool with_user);
void dc_render_role(struct buf *b, const struct guild *g, const struct role *r);
void dc_render_channel(struct buf *b, const char *key, const struct channel *c);
void dc_render_thread_member(struct buf *b, const char *key, const struct channel *c,
                             uint64_t user_id);
/* Marks the viewer's own reactions; viewer may be NULL. */
void dc_render_message(struct buf *b, const char *key, struct world *w, const struct message *m,
                       const struct bot *viewer, unsigned how);
void dc_render_emoji(struct buf *b, const char *key, const struct emoji *e);
/* created: with members, channels and threads, as the viewer gets them in GUILD_CREATE. */
void dc_render_guild(struct buf *b, const struct guild *g, const struct bot *viewer, bool created);
void dc_render_id(struct buf *b, const char *key, uint64_t id);           /* 0 writes null */
void dc_render_json(struct buf *b, const char *key, const json_t *value); /* NULL writes null */

#endif
