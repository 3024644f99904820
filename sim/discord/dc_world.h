/*
 * world: the users, guilds, channels, messages and bots that exist in the simulated Discord.
 *
 * Everything lives until the world is freed, except messages, of which a channel keeps the last so
 * many. Ids are snowflakes: 64-bit numbers here, decimal text on the wire. All simulators are one
 * program, so the functions of this one begin with dc_.
 */
#ifndef SIM_DISCORD_DC_WORLD_H
#define SIM_DISCORD_DC_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "sim/faults.h"
#include "sim/journal.h"

struct call;
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

/* What a bot may do in a channel. */
#define MAY_REACT        (1ull << 6)
#define MAY_VIEW         (1ull << 10)
#define MAY_SEND         (1ull << 11)
#define MAY_MANAGE       (1ull << 13)
#define MAY_EMBED        (1ull << 14)
#define MAY_ATTACH       (1ull << 15)
#define MAY_READ_HISTORY (1ull << 16)
#define MAY_EVERYONE     (1ull << 17)
#define MAY_THREADS      (1ull << 34)
#define MAY_OPEN_THREADS (1ull << 35)
#define MAY_SEND_THREADS (1ull << 38)

struct user {
        uint64_t id;
        char *username, *global_name;
        bool is_bot;
        bool refuses; /* direct messages and reactions of bots */
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

/* What nobody here looks into (embeds, components, attachments) is kept as the API shows it. */
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
        struct user *user;      /* of direct messages: who talks with ... */
        struct bot *bot;        /* ... this bot */
        char *name, *topic;
        int position;
        uint64_t denied; /* what no bot may do here */
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

struct guild {
        uint64_t id;
        char *name;
        struct user *owner;
        struct role *roles;       /* the first is @everyone and has the guild's id */
        struct member *members;   /* newest first */
        struct map members_by_id; /* -> struct member */
        struct channel *channels; /* and threads; in order of creation */
        struct channel **channels_end;
        size_t padding_members, padding_channels; /* invented ones that make GUILD_CREATE large */
        bool unavailable;
        struct guild *next;
};

struct bot {
        struct world *world;
        struct user *user;
        uint64_t application_id;
        char *token;
        uint64_t intents;       /* the privileged ones that are switched on */
        json_t *commands;       /* global ones */
        json_t *guild_commands; /* by guild id */
        /* where interactions go instead of the gateway; NULL: the gateway */
        char *interactions_url;
        struct map dms;      /* user id -> struct channel */
        struct map nonces;   /* of enforce_nonce -> struct remembered (nonces.c) */
        int64_t starts_left; /* of session_start_limit */
        bool token_reset;    /* the token is good for nothing any more */
        struct bot *next;
};

struct world_settings {
        bool strict;       /* unknown members and wrong types are refused */
        bool limits;       /* 429 when a rate is passed */
        bool record_calls; /* every call goes to the list of calls, with its parameters */
        size_t keep_messages;
        int64_t heartbeat_ms;
        int64_t resume_ms;  /* how long a lost session can be resumed */
        int64_t replay;     /* how many events are kept for that */
        int64_t shards;     /* what /gateway/bot recommends */
        int64_t min_shards; /* fewer are refused with 4011 */
        int64_t max_concurrency;
        int64_t start_limit, start_reset_ms; /* of session_start_limit */
        bool acks;                           /* heartbeats are acknowledged */
        int64_t nonce_ms;                    /* how long a nonce is remembered */
        int64_t ack_ms;                      /* how long an interaction may stay unanswered */
};

struct world {
        struct loop *loop;
        struct http_client *client; /* for the interactions endpoint */
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
        struct faults faults;
        struct journal *sent;    /* what bots did */
        struct journal *calls;   /* what they asked for */
        struct journal *invalid; /* those calls that break the rules */
        struct journal *links;   /* what happened at the gateway */
        struct call *live;
        uint64_t call_count, invalid_count, message_count, event_count, limited_count;
        uint64_t last_id;
        size_t file_bytes;
        bool quiet;
        char base_url[200]; /* as attachments are told: http://127.0.0.1:8082 */
};

/* ---- world.c ---- */
struct world *dc_world_new(struct loop *l);
void dc_world_free(struct world *w);
/* A new one; never the same, always growing. */
uint64_t dc_id_new(struct world *w);
int64_t dc_id_ms(uint64_t id);
char *dc_id_text(uint64_t id, char out[DC_ID_SIZE]);
/* 0 when the text is no snowflake; NULL is none. */
uint64_t dc_id_parse(const char *text);

/* Made on first mention. */
struct bot *dc_world_make_bot(struct world *w, const char *token);
struct bot *dc_world_bot_by_token(const struct world *w, const char *token);
/* By id, name or token; NULL gives the first. */
struct bot *dc_world_bot_by_name(const struct world *w, const char *text);
struct user *dc_world_user(const struct world *w, uint64_t id);
/* Made when missing; id 0 takes a new one; names that are given replace the old ones. */
struct user *dc_world_make_user(struct world *w, uint64_t id, const char *username,
                                const char *global_name);
/* By id or username. */
struct user *dc_world_user_by_name(const struct world *w, const char *text);

/* ---- guilds.c ---- */
struct guild *dc_guild_find(const struct world *w, uint64_t id);
struct guild *dc_guild_make(struct world *w, uint64_t id, const char *name, struct user *owner);
struct guild *dc_guild_by_name(const struct world *w, const char *text);
struct member *dc_guild_member(const struct guild *g, uint64_t user_id);
/* Joins when not there. */
struct member *dc_guild_add_member(struct guild *g, struct user *u);
void dc_guild_remove_member(struct guild *g, uint64_t user_id);
struct role *dc_guild_add_role(struct world *w, struct guild *g, uint64_t id, const char *name);
struct role *dc_guild_role_by_name(const struct guild *g, const char *text);

/* ---- channels.c ---- */
struct channel *dc_channel_find(const struct world *w, uint64_t id);
struct channel *dc_channel_make(struct world *w, struct guild *g, uint64_t id,
                                enum channel_type type, const char *name);
/* By id or name, threads included. */
struct channel *dc_channel_by_name(const struct world *w, const char *text);
/* NULL when it does not exist and shall not be made. */
struct channel *dc_channel_dm(struct bot *b, struct user *u, bool make);
struct channel *dc_channel_make_thread(struct world *w, struct channel *parent, uint64_t id,
                                       enum channel_type type, const char *name,
                                       struct user *owner);
void dc_channel_join(struct channel *c, const struct user *u);
/* Gone for good, with its messages; its threads stay until they are removed themselves. */
void dc_channel_remove(struct world *w, struct channel *c);
bool dc_channel_is_thread(const struct channel *c);
bool dc_channel_is_forum(const struct channel *c);
/* What this bot may do here. */
uint64_t dc_channel_permissions(const struct bot *b, const struct channel *c);

/* ---- message.c ---- */
struct message *dc_message_new(struct world *w, struct channel *c, struct user *author);
void dc_message_free(struct message *m);
/* Takes over m; the oldest goes when there are too many. */
void dc_message_post(struct world *w, struct message *m);
struct message *dc_message_find(const struct channel *c, uint64_t id);
void dc_message_remove(struct message *m);
/*
 * Finds who is mentioned in the text; `allowed` is an allowed_mentions object or NULL for
 * everybody.
 */
void dc_message_mentions(struct world *w, struct message *m, const json_t *allowed);
bool dc_message_mentions_user(const struct message *m, uint64_t user_id);

struct reaction *dc_message_reaction(const struct message *m, const struct emoji *e);
bool dc_message_reacted(const struct reaction *r, const struct user *u);
/* False when it was there already. */
bool dc_message_add_reaction(struct message *m, const struct emoji *e, struct user *u);
/* False when there was none. */
bool dc_message_remove_reaction(struct message *m, const struct emoji *e, const struct user *u);
/* "👍" or "name:id". -1 when it is no emoji. */
int dc_message_parse_emoji(const char *text, struct emoji *out);

/* ---- render.c: values of the answers; key NULL inside arrays and at the root ---- */
enum render_how {
        RENDER_PLAIN = 0,
        RENDER_EVENT = 1,  /* with guild_id and member, as the gateway tells it */
        RENDER_SECRET = 2, /* without what the message content intent would show */
        RENDER_NONCE = 4,
        RENDER_ALONE = 8, /* without the message it refers to */
};
void dc_render_user(struct buf *b, const char *key, const struct user *u);
void dc_render_member(struct buf *b, const char *key, const struct member *m, bool with_user);
void dc_render_role(struct buf *b, const struct guild *g, const struct role *r);
void dc_render_channel(struct buf *b, const char *key, const struct channel *c);
void dc_render_thread_member(struct buf *b, const char *key, const struct channel *c,
                             uint64_t user_id);
/* viewer (may be NULL) is whose own reactions are marked. */
void dc_render_message(struct buf *b, const char *key, struct world *w, const struct message *m,
                       const struct bot *viewer, unsigned how);
void dc_render_emoji(struct buf *b, const char *key, const struct emoji *e);
/* created: with members, channels and threads as the viewer gets them in GUILD_CREATE. */
void dc_render_guild(struct buf *b, const struct guild *g, const struct bot *viewer, bool created);
void dc_render_id(struct buf *b, const char *key, uint64_t id); /* as text; 0 writes null */
void dc_render_json(struct buf *b, const char *key, const json_t *value); /* NULL writes null */

#endif
