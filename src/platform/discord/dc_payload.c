/* What a delivery looks like as a call of Discord's REST API: a row for each kind. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_send.h"
#include "platform/workspace.h"

#define UPLOAD_WAIT_MS 5000
#define TYPING_WAIT_MS 2000
#define NAME_MAX_CHARS 100

static struct discord *discord_of(const struct dc_send *s)
{
        return s->adapter->self;
}

/* ---- the parts of a call ---- */

static void set_call(struct dc_send *s, const char *method, const char *route, const char *a,
                     const char *b, const char *c)
{
        const char *const args[DC_ARGS_MAX] = { a, b, c };

        s->method = method;
        s->route = route;
        for (size_t i = 0; i < DC_ARGS_MAX; i++) {
                free(s->args[i]);
                s->args[i] = mem_strdup(args[i]);
        }
}

/* A draft's place is known to the road, other messages are named. */
static int take_message_id(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *id = d->target ? d->target : json_str(s->payload, "messageId", NULL);

        if (!dc_id_valid(id))
                return error_set(err, ERR_INVALID, "'%.40s' is no id of a Discord message",
                                 id ? id : "");
        s->message = mem_strdup(id);
        return 0;
}

static const char *place_of_message(const struct dc_send *s)
{
        return dc_place_of_message(discord_of(s), s->channel, s->thread, s->message);
}

static int add_text(struct dc_send *s, bool needed, bool replies, struct error *err)
{
        const struct discord *dc = discord_of(s);
        const char *text = json_str(s->payload, "text", "");

        if (needed && text[0] == '\0')
                return error_set(err, ERR_INVALID, "there is no text to send");
        json_object_set_new(s->body, "content", json_string(text));
        json_object_set_new(s->body, "allowed_mentions",
                            dc_allowed_mentions(text, replies && dc->conf->ping_on_reply));
        return 0;
}

static json_t *button(const json_t *wanted, struct error *err)
{
        const char *url = json_str(wanted, "url", NULL), *data = json_str(wanted, "data", "");
        const char *text = json_str(wanted, "text", data);
        size_t label = utf8_prefix(text, strlen(text), UTF8_CODE_POINTS, 80);

        if (url ? strlen(url) > 512
                : strlen(data) < 1 || utf8_length(data, strlen(data), UTF8_CODE_POINTS) > 100) {
                error_set(
                        err, ERR_INVALID,
                        "button '%.40s' needs data of 1 to 100 characters or a URL of at most 512",
                        text);
                return NULL;
        }
        if (url)
                return json_pack("{s:i, s:i, s:s%, s:s}", "type", 2, "style", 5, "label", text,
                                 label, "url", url);
        return json_pack("{s:i, s:i, s:s%, s:s}", "type", 2, "style", 1, "label", text, label,
                         "custom_id", data);
}

/* "buttons": [[{"text", "data" or "url"}, ...], ...]: rows of buttons below the message. */
static int add_buttons(struct dc_send *s, struct error *err)
{
        const json_t *rows = json_object_get(s->payload, "buttons");
        json_t *list;

        if (!rows)
                return 0;
        list = json_array();
        json_object_set_new(s->body, "components", list);
        if (json_array_size(rows) > 5)
                return error_set(err, ERR_INVALID, "a message has at most 5 rows of buttons");
        for (size_t i = 0; i < json_array_size(rows); i++) {
                const json_t *wanted = json_array_get(rows, i);
                json_t *row = json_array();

                json_array_append_new(list, json_pack("{s:i, s:o}", "type", 1, "components", row));
                if (json_array_size(wanted) > 5)
                        return error_set(err, ERR_INVALID, "a row has at most 5 buttons");
                for (size_t j = 0; j < json_array_size(wanted); j++) {
                        json_t *b = button(json_array_get(wanted, j), err);

                        if (!b)
                                return -1;
                        json_array_append_new(row, b);
                }
        }
        return 0;
}

/*
 * In a DM an answer needs no arrow to the question, unless somebody asks for it; to a command there
 * can be none.
 */
static bool add_reply(struct dc_send *s, const struct delivery *d)
{
        bool begins_the_thread = s->thread && s->reply_to && strcmp(s->thread, s->reply_to) == 0;

        if (!dc_id_valid(s->reply_to) || begins_the_thread ||
            dc_reply_is(discord_of(s), s->reply_to) ||
            (d->turn > 0 && dc_is_dm(discord_of(s), s->channel)))
                return false;
        json_object_set_new(
                s->body, "message_reference",
                json_pack("{s:s, s:b}", "message_id", s->reply_to, "fail_if_not_exists", false));
        return true;
}

/*
 * The same for every attempt of a delivery, another one for every other delivery, also of another
 * database.
 */
static void add_nonce(struct dc_send *s)
{
        char text[160], digest[SHA256_HEX_SIZE];

        snprintf(text, sizeof(text), "%.80s %" PRId64 " %" PRId64, s->adapter->name, s->delivery,
                 s->created_ms);
        crypto_sha256_hex(text, strlen(text), digest);
        digest[DC_NONCE_SIZE] = '\0';
        json_object_set_new(s->body, "nonce", json_string(digest));
        dc_duplicate_bot_sent(&discord_of(s)->duplicate, digest, clock_wall_ms());
        json_object_set_new(s->body, "enforce_nonce", json_true());
}

/* ---- the kinds ---- */

/*
 * What Discord shows for a command while we seem to think. False: there is no such place (any
 * more).
 */
static bool take_place_of(struct dc_send *s, const char *command, const char *method)
{
        const char *application, *token;

        if (!command || !dc_reply_token(discord_of(s), command, &application, &token))
                return false;
        s->interaction = mem_strdup(command);
        set_call(s, method, DC_PLACE_OF_COMMAND, application, token, NULL);
        return true;
}

static int make_message(struct dc_send *s, const struct delivery *d, bool needs_text,
                        struct error *err)
{
        bool replies = false;

        if (s->afresh || !take_place_of(s, s->reply_to, "PATCH")) {
                set_call(s, "POST", "/channels/{channel_id}/messages",
                         dc_place(discord_of(s), s->channel, s->thread), NULL, NULL);
                replies = add_reply(s, d);
                add_nonce(s);
        }
        if (add_text(s, needs_text, replies, err) < 0)
                return -1;
        return add_buttons(s, err);
}

static int make_send(struct dc_send *s, const struct delivery *d, struct error *err)
{
        return make_message(s, d, true, err);
}

static int make_edit(struct dc_send *s, const struct delivery *d, struct error *err)
{
        if (take_message_id(s, d, err) < 0 || add_text(s, true, false, err) < 0)
                return -1;
        set_call(s, "PATCH", "/channels/{channel_id}/messages/{message_id}", place_of_message(s),
                 s->message, NULL);
        return add_buttons(s, err);
}

static int make_delete(struct dc_send *s, const struct delivery *d, struct error *err)
{
        if (take_message_id(s, d, err) < 0)
                return -1;
        set_call(s, "DELETE", "/channels/{channel_id}/messages/{message_id}", place_of_message(s),
                 s->message, NULL);
        return 0;
}

/*
 * Without its token there is nothing one can do: Discord takes the place away after a quarter of an
 * hour.
 */
static int make_withdraw(struct dc_send *s, const struct delivery *d, struct error *err)
{
        if (take_message_id(s, d, err) < 0)
                return -1;
        s->needless = !take_place_of(s, s->message, "DELETE");
        return 0;
}

/* Discord shows by itself how it goes with a command; there is no message to react to. */
static int make_reaction(struct dc_send *s, const struct delivery *d, const char *method,
                         struct error *err)
{
        char *emoji;

        if (take_message_id(s, d, err) < 0)
                return -1;
        s->needless = dc_reply_is(discord_of(s), s->message);
        emoji = dc_emoji(json_str(s->payload, "emoji", ""));
        set_call(s, method,
                 "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me",
                 place_of_message(s), s->message, emoji);
        free(emoji);
        return 0;
}

static int make_unreact(struct dc_send *s, const struct delivery *d, struct error *err)
{
        return make_reaction(s, d, "DELETE", err);
}

/* Without an emoji all of ours would be meant: Discord has no call for that. */
static int make_react(struct dc_send *s, const struct delivery *d, struct error *err)
{
        if (json_str(s->payload, "emoji", "")[0] == '\0')
                return error_set(err, ERR_INVALID, "a reaction needs an emoji");
        return make_reaction(s, d, "PUT", err);
}

static int make_type(struct dc_send *s, const struct delivery *d, struct error *err)
{
        (void)d;
        (void)err;
        set_call(s, "POST", "/channels/{channel_id}/typing",
                 dc_place(discord_of(s), s->channel, s->thread), NULL, NULL);
        return 0;
}

/* The first line of the name, at most as long as Discord takes. */
static json_t *thread_name(const char *wanted)
{
        size_t line = strcspn(wanted, "\r\n"),
               n = utf8_prefix(wanted, line, UTF8_CODE_POINTS, NAME_MAX_CHARS);

        return n > 0 ? json_stringn(wanted, n) : json_string("conversation");
}

/* {"messageId": where it begins, "name"}: the thread has the message's id. */
static int make_thread(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *name = json_str(s->payload, "name", json_str(s->payload, "text", ""));

        if (take_message_id(s, d, err) < 0)
                return -1;
        json_object_set_new(s->body, "name", thread_name(name));
        json_object_set_new(s->body, "auto_archive_duration", json_integer(1440));
        set_call(s, "POST", "/channels/{channel_id}/messages/{message_id}/threads",
                 place_of_message(s), s->message, NULL);
        return 0;
}

/* {"path": in the workspace, "name", "mime", "text": the caption} */
static int make_upload(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *path = json_str(s->payload, "path", ""), *slash = strrchr(path, '/');

        s->file = workspace_file(s->adapter->dir, path, err);
        if (!s->file)
                return -1;
        s->file_name = mem_strdup(json_str(s->payload, "name", slash ? slash + 1 : path));
        s->file_mime = mem_strdup(json_str(s->payload, "mime", "application/octet-stream"));
        json_object_set_new(s->body, "attachments",
                            json_pack("[{s:s, s:s}]", "id", "0", "filename", s->file_name));
        return make_message(s, d, false, err);
}

/* clang-format off */
static const struct dc_kind kinds[] = {
        [DELIVER_SEND]            = { true,  DC_NORMAL, 0,              make_send     },
        [DELIVER_EDIT]            = { false, DC_NORMAL, 0,              make_edit     },
        [DELIVER_DELETE]          = { false, DC_NORMAL, 0,              make_delete   },
        [DELIVER_REACT]           = { false, DC_IDLE,   0,              make_react    },
        [DELIVER_UNREACT]         = { false, DC_IDLE,   0,              make_unreact  },
        [DELIVER_THREAD]          = { false, DC_NORMAL, 0,              make_thread   },
        [DELIVER_TYPE]            = { false, DC_IDLE,   TYPING_WAIT_MS, make_type     },
        [DELIVER_UPLOAD]          = { true,  DC_NORMAL, UPLOAD_WAIT_MS, make_upload   },
        [DELIVER_CANCEL_DEFERRED] = { false, DC_NORMAL, 0,              make_withdraw },
};
/* clang-format on */

const struct dc_kind *dc_kind_of(enum delivery_kind kind)
{
        return &kinds[kind];
}

int dc_make_afresh(struct dc_send *s, struct error *err)
{
        const struct delivery d = { .channel = s->channel, .thread = s->thread, .turn = 1 };

        free(s->interaction);
        free(s->reply_to);
        s->interaction = s->reply_to = NULL; /* an interaction is no message one could point at */
        s->afresh = true;
        return make_message(s, &d, false, err);
}
