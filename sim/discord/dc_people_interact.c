/*
 * People use slash commands, buttons, menus and forms.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_interactions.h"
#include "sim/discord/dc_people.h"

/* ---- slash commands ---- */

static json_t *find_named(const json_t *list, const char *name)
{
        json_t *at;
        size_t i;

        json_array_foreach(list, i, at) {
                if (strcmp(json_str(at, "name", ""), name) == 0)
                        return at;
        }
        return NULL;
}

/* Turns {"question":"why"} into the list of the API. An object is a subcommand. */
static json_t *options_of(const json_t *request, const json_t *described)
{
        json_t *out = json_array(), *value;
        const char *name;

        json_object_foreach((json_t *)request, name, value) {
                const json_t *row = find_named(described, name);
                int type = json_is_integer(value)   ? 4
                           : json_is_boolean(value) ? 5
                           : json_is_real(value)    ? 10
                                                    : 3;

                if (json_is_object(value))
                        json_array_append_new(
                                out, json_pack("{s:s,s:I,s:o}", "name", name, "type",
                                               (json_int_t)json_int(row, "type", 1), "options",
                                               options_of(value, json_object_get(row, "options"))));
                else
                        json_array_append_new(out,
                                              json_pack("{s:s,s:I,s:O}", "name", name, "type",
                                                        (json_int_t)json_int(row, "type", type),
                                                        "value", value));
        }
        return out;
}

/* Takes over data. */
static int make(struct bot *b, enum interaction_type type, struct channel *c, struct user *from,
                json_t *data, const struct message *on, struct buf *out)
{
        unsigned sessions;
        const struct interaction *i = dc_interaction_make(b, type, c, from, data, on, &sessions);

        dc_render_id(out, "interaction", i->id);
        jsonw_str(out, "token", i->token);
        dc_render_id(out, "channel", i->channel->id);
        jsonw_int(out, "sessions", sessions);
        return 0;
}

int dc_people_interact_command(struct world *w, const json_t *request, struct buf *out,
                               struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);
        struct bot *b = dc_people_find_bot(w, request, err);
        struct user *from = dc_people_find_user(w, request);
        const char *name = json_str(request, "name", "");
        bool completes = json_flag(request, "autocomplete", false);
        const json_t *command = NULL;
        char id[DC_ID_SIZE];
        json_t *data;

        if (!c || !b)
                return -1;
        if (c->guild)
                command = find_named(
                        json_object_get(b->guild_commands, dc_id_text(c->guild->id, id)), name);
        if (!command)
                command = find_named(b->commands, name);
        if (!command)
                return error_set(err, ERR_MISSING, "the bot has no command '%s'", name);
        if (c->guild)
                dc_guild_add_member(c->guild, from);
        data = json_pack("{s:O,s:s,s:I}", "id", json_object_get(command, "id"), "name", name,
                         "type", (json_int_t)json_int(command, "type", 1));
        json_object_set_new(data, "options",
                            options_of(json_object_get(request, "options"),
                                       json_object_get(command, "options")));
        return make(b, completes ? INTERACTION_AUTOCOMPLETE : INTERACTION_COMMAND, c, from, data,
                    NULL, out);
}

/* ---- buttons and menus ---- */

/* The component with this custom_id or label, at any depth; NULL: none. */
static const json_t *find_component(const json_t *list, const char *custom_id)
{
        const json_t *at, *below;
        size_t i;

        json_array_foreach(list, i, at) {
                const char *label = json_str(at, "label", "");

                if (strcmp(json_str(at, "custom_id", ""), custom_id) == 0 ||
                    (*label && strcmp(label, custom_id) == 0))
                        return at;
                if ((below = find_component(json_object_get(at, "components"), custom_id)))
                        return below;
        }
        return NULL;
}

int dc_people_interact_press(struct world *w, const json_t *request, struct buf *out,
                             struct error *err)
{
        struct message *m = dc_people_find_message(w, request, err);
        const char *id = json_str(request, "custom_id", "");
        struct user *from = dc_people_find_user(w, request);
        struct bot *b = m ? dc_world_bot_by_name(w, m->author->username) : NULL;
        const json_t *component = m ? find_component(m->components, id) : NULL;
        json_t *data;

        if (!m)
                return -1;
        if (!b || !component || json_flag(component, "disabled", false))
                return error_set(err, ERR_MISSING, "the message has no button or menu '%s'", id);
        data = json_pack("{s:s,s:I}", "custom_id", json_str(component, "custom_id", ""),
                         "component_type", (json_int_t)json_int(component, "type", 2));
        if (json_is_array(json_object_get(request, "values")))
                json_object_set(data, "values", json_object_get(request, "values"));
        return make(b, INTERACTION_COMPONENT, m->channel, from, data, m, out);
}

/* ---- forms ---- */

/* {"custom_id":"form","values":{"name":"Ada"}} */
int dc_people_interact_modal(struct world *w, const json_t *request, struct buf *out,
                             struct error *err)
{
        struct channel *c = dc_people_find_channel(w, request, err);
        struct bot *b = dc_people_find_bot(w, request, err);
        json_t *rows = json_array(), *value, *data;
        const char *name;

        json_object_foreach(json_object_get(request, "values"), name, value)
                json_array_append_new(rows,
                                      json_pack("{s:i,s:[{s:i,s:s,s:O}]}", "type", 1, "components",
                                                "type", 4, "custom_id", name, "value", value));
        if (!c || !b) {
                json_decref(rows);
                return -1;
        }
        data = json_pack("{s:s,s:o}", "custom_id", json_str(request, "custom_id", ""), "components",
                         rows);
        return make(b, INTERACTION_MODAL, c, dc_people_find_user(w, request), data, NULL, out);
}
