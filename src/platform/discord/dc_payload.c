/* Builds the REST call of a delivery: a function and a row for each kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/discord/dc_embed.h"
#include "platform/discord/dc_send.h"

#define SUPPRESS_NOTIFICATIONS (1 << 12) /* a flag of messages */
#define UPLOAD_WAIT_MS         5000
#define TYPING_WAIT_MS         2000
#define NAME_MAX_CHARS         100
#define USERS_MAX              100 /* Discord's limit */

/* ---- emoji and mentions ---- */

char *dc_payload_emoji(const char *emoji)
{
        size_t n = strlen(emoji);

        if (n > 4 && emoji[0] == '<' && emoji[n - 1] == '>') { /* <:name:id> or <a:name:id> */
                const char *colon = strchr(emoji, ':');

                if (colon)
                        return mem_strndup(colon + 1, n - 2 - (size_t)(colon - emoji));
        }
        return mem_strdup(emoji);
}

static bool has(const json_t *list, const char *id, size_t n)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *known = json_string_value(json_array_get(list, i));

                if (strlen(known) == n && memcmp(known, id, n) == 0)
                        return true;
        }
        return false;
}

json_t *dc_payload_mentions(const char *text, bool replied_user)
{
        json_t *users = json_array();

        for (const char *p = text; p && (p = strstr(p, "<@")); p++) {
                const char *id = p + 2 + (p[2] == '!'); /* <@123> or <@!123> */
                size_t n = strspn(id, "0123456789");

                if (n > 0 && n <= 20 && id[n] == '>' && (p == text || p[-1] != '\\') &&
                    json_array_size(users) < USERS_MAX && !has(users, id, n))
                        json_array_append_new(users, json_stringn(id, n));
        }
        return json_pack("{s:[], s:o, s:b}", "parse", "users", users, "replied_user", replied_user);
}

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

static int take_message_id(struct dc_send *s, const struct delivery *d, struct error *err)
{
        char *id = mem_strdup(d->target ? d->target : json_str(s->payload, "messageId", NULL));

        free(s->message);
        s->message = id;
        if (dc_id_valid(id))
                return 0;
        return error_set(err, ERR_INVALID, "'%.40s' is not a Discord message id", id ? id : "");
}

static void set_message_call(struct dc_send *s, const char *method, const char *route,
                             const char *c)
{
        set_call(s, method, route,
                 dc_destination_of_message(s->dc, s->channel, s->thread, s->message), s->message,
                 c);
}

static int add_text(struct dc_send *s, bool needed, bool replies, struct error *err)
{
        const char *text = json_str(s->payload, "text", "");
        json_t *card = dc_embed_make(s->payload);

        if (needed && text[0] == '\0' && !card)
                return error_set(err, ERR_INVALID, "there is no text to send");
        if (card)
                json_object_set_new(s->body, "embeds", json_pack("[o]", card));
        json_object_set_new(s->body, "content", json_string(text));
        json_object_set_new(s->body, "allowed_mentions",
                            dc_payload_mentions(text, replies && s->dc->conf->ping_on_reply));
        return 0;
}

void dc_payload_card_as_text(struct dc_send *s)
{
        char *text = dc_embed_text(s->payload);

        json_object_del(s->body, "embeds");
        json_object_set_new(s->body, "content", json_string(text));
        free(text);
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
        return json_pack("{s:i, s:i, s:s%, s:s}", "type", 2, "style", url ? 5 : 1, "label", text,
                         label, url ? "url" : "custom_id", url ? url : data);
}

/* "buttons": [[{"text", "data" or "url"}, ...], ...] */
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

/* False: the command has no placeholder. */
static bool take_placeholder(struct dc_send *s, const char *command, const char *method)
{
        if (!command || !dc_deferred_claim(s->dc, command))
                return false;
        s->interaction = mem_strdup(command);
        set_call(s, method, DC_PLACEHOLDER_ROUTE, NULL, NULL, NULL);
        return true;
}

/* A text or the caption of a file. d NULL: instead of a lost placeholder. */
static int make_message(struct dc_send *s, const struct delivery *d, struct error *err)
{
        bool in_turn = !d || d->turn > 0, needs_text = d && d->kind == DELIVER_SEND;
        bool begins_thread = s->thread && s->reply_to && strcmp(s->thread, s->reply_to) == 0,
             replies = false;
        char nonce[ADAPTER_NONCE_SIZE + 1]; /* Discord takes 25 characters */

        if (!take_placeholder(s, s->reply_to, "PATCH")) {
                set_call(s, "POST", "/channels/{channel_id}/messages",
                         dc_destination_channel(s->dc, s->channel, s->thread), NULL, NULL);
                /* point at the question, except in a DM and after a command */
                replies = dc_id_valid(s->reply_to) && !begins_thread &&
                          !dc_deferred_knows(s->dc, s->reply_to) &&
                          !(in_turn && dc_destination_is_dm(s->dc, s->channel));
                if (replies)
                        json_object_set_new(s->body, "message_reference",
                                            json_pack("{s:s, s:b}", "message_id", s->reply_to,
                                                      "fail_if_not_exists", false));
                adapter_nonce(s->adapter, s->delivery, s->created_ms, nonce);
                json_object_set_new(s->body, "nonce", json_string(nonce));
                json_object_set_new(s->body, "enforce_nonce", json_true());
                if (json_flag(s->payload, "silent", false))
                        json_object_set_new(s->body, "flags", json_integer(SUPPRESS_NOTIFICATIONS));
                dc_send_add_nonce(s->dc, nonce);
        }
        if (add_text(s, needs_text, replies, err) < 0)
                return -1;
        return add_buttons(s, err);
}

int dc_payload_for_channel(struct dc_send *s, struct error *err)
{
        free(s->interaction);
        free(s->command);
        s->command = s->reply_to;
        s->interaction = s->reply_to = NULL;
        return make_message(s, NULL, err);
}

/* {"path": in the workspace, "name", "mime", "text": the caption} */
static int make_upload(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *path = json_str(s->payload, "path", ""), *slash = strrchr(path, '/');

        if (adapter_file_to_send(s->adapter, path, &s->file, err) < 0)
                return -1;
        s->file_name = mem_strdup(json_str(s->payload, "name", slash ? slash + 1 : path));
        s->file_mime = mem_strdup(json_str(s->payload, "mime", "application/octet-stream"));
        json_object_set_new(s->body, "attachments",
                            json_pack("[{s:s, s:s}]", "id", "0", "filename", s->file_name));
        return make_message(s, d, err);
}

static int make_edit(struct dc_send *s, const struct delivery *d, struct error *err)
{
        bool deletes = d->kind == DELIVER_DELETE;

        if (take_message_id(s, d, err) < 0 || (!deletes && add_text(s, true, false, err) < 0))
                return -1;
        set_message_call(s, deletes ? "DELETE" : "PATCH",
                         "/channels/{channel_id}/messages/{message_id}", NULL);
        if (json_object_get(s->body, "embeds")) /* those of the older card go with it */
                json_object_set_new(s->body, "components", json_array());
        return deletes ? 0 : add_buttons(s, err);
}

/* Without its token Discord drops the placeholder after 15 minutes. */
static int make_cancel_deferred(struct dc_send *s, const struct delivery *d, struct error *err)
{
        if (take_message_id(s, d, err) < 0)
                return -1;
        s->needless = !take_placeholder(s, s->message, "DELETE");
        return 0;
}

/* Commands cannot be reacted to; Discord shows their progress itself. */
static int make_reaction(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *wanted = json_str(s->payload, "emoji", "");
        char *emoji;

        if (d->kind == DELIVER_REACT && !*wanted)
                return error_set(err, ERR_INVALID, "a reaction needs an emoji");
        if (take_message_id(s, d, err) < 0)
                return -1;
        s->needless = dc_deferred_knows(s->dc, s->message);
        emoji = dc_payload_emoji(wanted);
        set_message_call(s, d->kind == DELIVER_REACT ? "PUT" : "DELETE",
                         "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me",
                         emoji);
        free(emoji);
        return 0;
}

static int make_type(struct dc_send *s, const struct delivery *d, struct error *err)
{
        (void)d;
        (void)err;
        set_call(s, "POST", "/channels/{channel_id}/typing",
                 dc_destination_channel(s->dc, s->channel, s->thread), NULL, NULL);
        return 0;
}

/* {"messageId": where it begins, "name"}: the thread gets the message's id. */
static int make_thread(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const char *name = json_str(s->payload, "name", json_str(s->payload, "text", ""));
        size_t n = utf8_prefix(name, strcspn(name, "\r\n"), UTF8_CODE_POINTS, NAME_MAX_CHARS);

        if (take_message_id(s, d, err) < 0)
                return -1;
        json_object_set_new(s->body, "name",
                            n > 0 ? json_stringn(name, n) : json_string("conversation"));
        json_object_set_new(s->body, "auto_archive_duration", json_integer(1440));
        set_message_call(s, "POST", "/channels/{channel_id}/messages/{message_id}/threads", NULL);
        return 0;
}

/* {"name", "closed"}: an archived thread stays readable, and is reopened by what is written there.
 */
static int make_change_thread(struct dc_send *s, const struct delivery *d, struct error *err)
{
        const json_t *closed = json_object_get(s->payload, "closed");
        const char *name = json_str(s->payload, "name", "");
        size_t n = utf8_prefix(name, strcspn(name, "\r\n"), UTF8_CODE_POINTS, NAME_MAX_CHARS);

        (void)d;
        if (!dc_id_valid(s->thread))
                return error_set(err, ERR_INVALID, "'%.40s' is not the id of a Discord thread",
                                 s->thread ? s->thread : "");
        if (n > 0)
                json_object_set_new(s->body, "name", json_stringn(name, n));
        if (json_is_boolean(closed))
                json_object_set_new(s->body, "archived", json_boolean(json_is_true(closed)));
        s->message = mem_strdup(s->thread); /* its id, for the result */
        s->needless = json_object_size(s->body) == 0;
        set_call(s, "PATCH", "/channels/{channel_id}", s->thread, NULL, NULL);
        return 0;
}

/* clang-format off */
const struct dc_send_kind dc_payload_kinds[] = {
        /*                            creates priority   wait_ms         make                 */
        [DELIVER_SEND]            = { true,   DC_NORMAL, 0,              make_message         },
        [DELIVER_EDIT]            = { false,  DC_NORMAL, 0,              make_edit            },
        [DELIVER_DELETE]          = { false,  DC_NORMAL, 0,              make_edit            },
        [DELIVER_REACT]           = { false,  DC_IDLE,   0,              make_reaction        },
        [DELIVER_UNREACT]         = { false,  DC_IDLE,   0,              make_reaction        },
        [DELIVER_THREAD]          = { false,  DC_NORMAL, 0,              make_thread          },
        [DELIVER_TYPE]            = { false,  DC_IDLE,   TYPING_WAIT_MS, make_type            },
        [DELIVER_UPLOAD]          = { true,   DC_NORMAL, UPLOAD_WAIT_MS, make_upload          },
        [DELIVER_CANCEL_DEFERRED] = { false,  DC_NORMAL, 0,              make_cancel_deferred },
        [DELIVER_CHANGE_THREAD]   = { false,  DC_NORMAL, 0,              make_change_thread   },
};
/* clang-format on */
