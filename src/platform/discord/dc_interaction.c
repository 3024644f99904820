/*
 * Slash commands, buttons, menus and forms as messages of the person who used them. The
 * interaction's token is a secret and stays out of the event.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"

#define DEPTH_MAX 3 /* command, group, subcommand */

enum { KIND_COMMAND = 2, KIND_COMPONENT = 3, KIND_FORM = 5 };
enum { COMMAND_USER = 2, COMMAND_MESSAGE = 3 };

/* ---- text ---- */

static void add_value(struct buf *out, const json_t *value)
{
        if (!json_is_string(value) && !json_is_integer(value) && !json_is_boolean(value))
                return;
        if (out->len > 0)
                buf_addch(out, ' ');
        if (json_is_string(value))
                buf_addstr(out, json_string_value(value));
        else if (json_is_integer(value))
                buf_addint(out, json_integer_value(value));
        else
                buf_addstr(out, json_is_true(value) ? "yes" : "no");
}

/* The names of subcommands, then the values. */
static void add_options(struct buf *out, const json_t *options, int depth)
{
        const json_t *option;
        size_t i;

        json_array_foreach(options, i, option) {
                json_t *below = json_object_get(option, "options");

                if (json_object_get(option, "value"))
                        add_value(out, json_object_get(option, "value"));
                else
                        add_value(out, json_object_get(option, "name"));
                if (below && depth < DEPTH_MAX)
                        add_options(out, below, depth + 1);
        }
}

/* The message or person on which a context menu command was used. */
static void add_target(struct buf *out, const json_t *data)
{
        const json_t *resolved = json_object_get(data, "resolved"),
                     *messages = json_object_get(resolved, "messages"),
                     *users = json_object_get(resolved, "users");
        const char *target = json_str(data, "target_id", "");

        if (json_int(data, "type", 1) == COMMAND_MESSAGE)
                add_value(out, json_object_get(json_object_get(messages, target), "content"));
        else if (json_int(data, "type", 1) == COMMAND_USER)
                add_value(out, json_object_get(json_object_get(users, target), "username"));
}

/* /ask is a message to the agent; other commands keep their name, which tells them apart. */
static const char *command_text(struct arena *a, const json_t *data)
{
        const char *name = json_str(data, "name", ""), *text;
        struct buf b;

        buf_init(&b, 0);
        add_options(&b, json_object_get(data, "options"), 1);
        add_target(&b, data);
        if (strcmp(name, "ask") == 0)
                text = arena_strdup(a, b.data);
        else
                text = arena_printf(a, "/%s%s%s", name, b.len > 0 ? " " : "", b.data);
        buf_release(&b);
        return text;
}

static const char *form_text(struct arena *a, const json_t *data)
{
        const json_t *rows = json_object_get(data, "components"), *row, *field;
        const char *text;
        struct buf b;
        size_t i, k;

        buf_init(&b, 0);
        json_array_foreach(rows, i, row) {
                json_array_foreach(json_object_get(row, "components"), k, field)
                        add_value(&b, json_object_get(field, "value"));
                add_value(&b, json_object_get(json_object_get(row, "component"), "value"));
        }
        text = arena_strdup(a, b.data);
        buf_release(&b);
        return text;
}

/* ---- the event ---- */

static void set_metadata(struct dc_event_reader *r, const json_t *d, const json_t *data)
{
        static const struct {
                const char *from, *to;
        } members[] = { { "name", "name" },
                        { "custom_id", "customId" },
                        { "values", "values" },
                        { "target_id", "targetId" },
                        { "options", "options" } };
        json_t *o = json_pack("{s:s, s:I}", "id", json_str(d, "id", ""), "type",
                              (json_int_t)json_int(d, "type", 0));

        for (size_t i = 0; i < COUNT(members); i++) {
                json_t *value = json_object_get(data, members[i].from);

                if (value)
                        json_object_set(o, members[i].to, value);
        }
        dc_event_set_metadata(r, "interaction", o);
}

/* A button or menu with DC_SAY is a message; other data is an event for rules and other software.
 */
static void read_component(const json_t *d, const json_t *data, struct incoming *in)
{
        const char *text = json_str(data, "custom_id", ""),
                   *message = json_str(json_object_get(d, "message"), "id", NULL),
                   *chosen = json_string_value(json_array_get(json_object_get(data, "values"), 0));

        if (chosen)
                text = chosen;
        in->id = in->reply_to = dc_id_valid(message) ? message : NULL;
        in->is_reply = true;
        if (strncmp(text, DC_SAY, strlen(DC_SAY)) == 0)
                in->text = text + strlen(DC_SAY);
        else
                in->type = "custom.discord.component";
}

void dc_interaction_read(struct dc_event_reader *r, json_t *d)
{
        const json_t *member = json_object_get(d, "member"), *data = json_object_get(d, "data"),
                     *user = member ? json_object_get(member, "user") : json_object_get(d, "user");
        const char *id = json_str(d, "id", NULL), *guild = json_str(d, "guild_id", NULL);
        int64_t kind = json_int(d, "type", 0);
        struct arena *arena = &r->content->arena;
        struct incoming *in;

        r->content->ignored = "not a command, button or form";
        if (!dc_id_valid(id) ||
            (kind != KIND_COMMAND && kind != KIND_COMPONENT && kind != KIND_FORM))
                return;
        in = dc_event_add(r, json_str(d, "channel_id", NULL), dc_id_valid(guild) ? guild : NULL, 1);
        if (!in)
                return;
        r->content->ignored = NULL;
        dc_event_set_sender(r, user, member, in);
        in->key = arena_printf(arena, "interaction:%s", id);
        in->id = id;
        in->time_ms = dc_id_time_ms(id);
        in->is_mention = in->is_command = true;
        in->is_awaited = kind != KIND_COMPONENT; /* a pressed button shows no placeholder */
        set_metadata(r, d, data);
        if (kind == KIND_COMPONENT) {
                read_component(d, data, in);
        } else if (kind == KIND_COMMAND) {
                in->text = command_text(arena, data);
                dc_event_set_metadata(r, "command", json_string(json_str(data, "name", "")));
        } else {
                in->text = form_text(arena, data);
        }
}
