/*
 * Slash commands, global and of one guild: stored as sent, with an id and a version.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_ops.h"

#define MAX_COMMANDS 100

/* The list of the path, borrowed; NULL after dc_call_fail. */
static json_t *find_list(struct call *c)
{
        const char *guild = http_param(c->x, "guild_id");
        json_t *list;

        if (dc_call_id(c, "application_id") != c->bot->application_id) {
                dc_call_fail(c, 403, 20012,
                             "You are not authorized to perform this action on this application");
                return NULL;
        }
        if (!guild)
                return c->bot->commands;
        if (!dc_call_guild(c))
                return NULL;
        list = json_object_get(c->bot->guild_commands, guild);
        if (!list) {
                list = json_array();
                json_object_set_new(c->bot->guild_commands, guild, list);
        }
        return list;
}

static json_t *find(const json_t *list, const char *key, const char *value, size_t *at)
{
        for (*at = 0; *at < json_array_size(list); (*at)++) {
                json_t *command = json_array_get(list, *at);

                if (strcmp(json_str(command, key, ""), value) == 0)
                        return command;
        }
        return NULL;
}

/* A command to store; it takes the id of `old`. */
static json_t *make(struct call *c, const json_t *wanted, const json_t *old)
{
        json_t *out = json_deep_copy(wanted);
        char id[DC_ID_SIZE];
        const char *guild = http_param(c->x, "guild_id");

        if (old)
                json_object_set(out, "id", json_object_get(old, "id"));
        else
                json_object_set_new(out, "id", json_string(dc_id_text(dc_id_new(c->world), id)));
        json_object_set_new(out, "version", json_string(dc_id_text(dc_id_new(c->world), id)));
        json_object_set_new(out, "application_id",
                            json_string(dc_id_text(c->bot->application_id, id)));
        if (guild)
                json_object_set_new(out, "guild_id", json_string(guild));
        if (!json_object_get(out, "type"))
                json_object_set_new(out, "type", json_integer(1));
        if (!json_object_get(out, "default_member_permissions"))
                json_object_set_new(out, "default_member_permissions", json_null());
        if (!json_object_get(out, "nsfw"))
                json_object_set_new(out, "nsfw", json_false());
        if (!json_is_string(json_object_get(out, "description")))
                json_object_set_new(out, "description", json_string(""));
        return out;
}

static void record(const struct call *c, const json_t *list)
{
        struct buf *b = dc_call_record(c, "commands", NULL);
        const char *guild = http_param(c->x, "guild_id");

        if (guild)
                jsonw_str(b, "guild", guild);
        dc_render_json(b, "commands", list);
        journal_close(c->world->base.sent);
}

static int answer(struct call *c, const json_t *value)
{
        dc_render_json(&c->out, NULL, value);
        return 0;
}

/* Rules the description lacks: names are lower case, chat commands have a description. */
static int check(struct call *c, const json_t *command)
{
        const char *name = json_str(command, "name", "");

        if (json_int(command, "type", 1) != 1)
                return 0;
        for (const char *p = name; *p; p++) {
                if ((*p >= 'A' && *p <= 'Z') || *p == ' ')
                        return dc_call_invalid(c, "name", "APPLICATION_COMMAND_INVALID_NAME",
                                               "Command name is invalid");
        }
        if (!*json_str(command, "description", ""))
                return dc_call_invalid(c, "description", "BASE_TYPE_REQUIRED",
                                       "This field is required");
        return 0;
}

static int list_commands(struct call *c)
{
        const json_t *list = find_list(c);

        return list ? answer(c, list) : -1;
}

static int set_commands(struct call *c)
{
        json_t *list = find_list(c), *wanted, *fresh;
        size_t i, at;

        if (!list)
                return -1;
        if (json_array_size(c->args) > MAX_COMMANDS)
                return dc_call_fail(c, 400, 30032,
                                    "Maximum number of application commands reached (100)");
        json_array_foreach(c->args, i, wanted) {
                if (check(c, wanted) != 0)
                        return -1;
        }
        fresh = json_array();
        json_array_foreach(c->args, i, wanted)
                json_array_append_new(
                        fresh,
                        make(c, wanted, find(list, "name", json_str(wanted, "name", ""), &at)));
        json_array_clear(list);
        json_array_extend(list, fresh);
        json_decref(fresh);
        record(c, list);
        return answer(c, list);
}

static int create_command(struct call *c)
{
        json_t *list = find_list(c), *old;
        size_t at;

        if (!list || check(c, c->args) != 0)
                return -1;
        old = find(list, "name", json_str(c->args, "name", ""), &at);
        c->status = old ? 200 : 201;
        if (old)
                json_array_set_new(list, at, make(c, c->args, old));
        else
                json_array_append_new(list, make(c, c->args, NULL));
        record(c, list);
        return answer(c, json_array_get(list, old ? at : json_array_size(list) - 1));
}

/* The command of the path; NULL after dc_call_fail. */
static json_t *find_command(struct call *c, json_t **list, size_t *at)
{
        json_t *command = (*list = find_list(c))
                                  ? find(*list, "id", http_param(c->x, "command_id"), at)
                                  : NULL;

        if (*list && !command)
                dc_call_fail(c, 404, 10063, "Unknown application command");
        return command;
}

static int get_command(struct call *c)
{
        json_t *list;
        size_t at;
        const json_t *command = find_command(c, &list, &at);

        return command ? answer(c, command) : -1;
}

static int update_command(struct call *c)
{
        json_t *list;
        size_t at;
        json_t *command = find_command(c, &list, &at);

        if (!command)
                return -1;
        json_object_update(command, c->args);
        record(c, list);
        return answer(c, command);
}

static int delete_command(struct call *c)
{
        json_t *list;
        size_t at;

        if (!find_command(c, &list, &at))
                return -1;
        json_array_remove(list, at);
        record(c, list);
        return dc_call_no_content(c);
}

const struct dc_op_row dc_op_commands[] = {
        { "list_application_commands", list_commands },
        { "bulk_set_application_commands", set_commands },
        { "create_application_command", create_command },
        { "get_application_command", get_command },
        { "update_application_command", update_command },
        { "delete_application_command", delete_command },
        { "list_guild_application_commands", list_commands },
        { "bulk_set_guild_application_commands", set_commands },
        { "create_guild_application_command", create_command },
        { "get_guild_application_command", get_command },
        { "update_guild_application_command", update_command },
        { "delete_guild_application_command", delete_command },
        { 0 },
};
