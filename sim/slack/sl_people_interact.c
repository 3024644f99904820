/*
 * People press buttons, use slash commands and fill in modals.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_push.h"

/* Who acts, for which app, with a fresh trigger. */
static json_t *payload_new(struct slack_app *a, struct slack_user *u, const char *type)
{
        char *trigger = sl_trigger_new(a->world, a, u);
        json_t *payload = json_pack(
                "{s:s,s:{s:s,s:s},s:{s:s,s:s,s:s,s:s},s:s,s:s,s:s,s:b,s:n}", "type", type, "team",
                "id", a->team->id, "domain", a->team->domain, "user", "id", u->id, "username",
                u->name, "name", u->name, "team_id", u->team->id, "api_app_id", a->id, "token",
                SL_PUSH_TOKEN, "trigger_id", trigger, "is_enterprise_install", 0, "enterprise");

        free(trigger);
        return payload;
}

/* ---- buttons ---- */

static bool is_wanted(const json_t *element, const json_t *request)
{
        const char *action = json_str(request, "action_id", NULL),
                   *value = json_str(request, "value", NULL),
                   *text = json_str(request, "text", NULL),
                   *label = json_str(json_object_get(element, "text"), "text", "");

        return json_str(element, "action_id", NULL) &&
               (!action || strcmp(action, json_str(element, "action_id", "")) == 0) &&
               (!value || strcmp(value, json_str(element, "value", "")) == 0) &&
               (!text || strcmp(text, label) == 0);
}

/* The element of these blocks that the request names; borrowed. NULL: none. */
static json_t *find_element(const json_t *blocks, const json_t *request, const json_t **block)
{
        json_t *element;
        size_t i, k;

        json_array_foreach(blocks, i, *block) {
                json_array_foreach(json_object_get(*block, "elements"), k, element) {
                        if (is_wanted(element, request))
                                return element;
                }
                element = json_object_get(*block, "accessory");
                if (element && is_wanted(element, request))
                        return element;
        }
        return NULL;
}

/* The same in a message; *attachment: the number of the one it is in, 0: none. */
static json_t *find_button(const struct slack_message *m, const json_t *request,
                           const json_t **block, size_t *attachment)
{
        json_t *element = find_element(m->blocks, request, block);
        const json_t *a;
        size_t i;

        *attachment = 0;
        json_array_foreach(m->attachments, i, a) {
                if (element)
                        break;
                element = find_element(json_object_get(a, "blocks"), request, block);
                *attachment = element ? i + 1 : 0;
        }
        return element;
}

/* What an app learns of a press. A menu has "selected", the value of an option. */
static json_t *action_of(const json_t *element, const json_t *block, const json_t *request)
{
        const char *selected = json_str(request, "selected", NULL);
        json_t *action = json_pack("{s:s,s:s,s:s}", "type", json_str(element, "type", "button"),
                                   "action_id", json_str(element, "action_id", ""), "block_id",
                                   json_str(block, "block_id", ""));
        char ts[SL_TS_SIZE + 4];

        snprintf(ts, sizeof(ts), "%lld.000000", (long long)(clock_wall_ms() / 1000));
        json_object_set_new(action, "action_ts", json_string(ts));
        if (json_object_get(element, "text"))
                json_object_set(action, "text", json_object_get(element, "text"));
        if (json_object_get(element, "value"))
                json_object_set(action, "value", json_object_get(element, "value"));
        if (selected)
                json_object_set_new(action, "selected_option",
                                    json_pack("{s:s}", "value", selected));
        return action;
}

/* The press of an element of a message. */
static void set_place(json_t *payload, const struct slack_message *m, struct slack_user *u)
{
        struct slack_world *w = m->app->world;
        char *url = sl_hook_new(w, m->app, m->channel, u, m);
        json_t *container = json_pack("{s:s,s:s,s:s,s:b}", "type", "message", "message_ts", m->ts,
                                      "channel_id", m->channel->id, "is_ephemeral", 0);

        if (m->thread_ts[0])
                json_object_set_new(container, "thread_ts", json_string(m->thread_ts));
        json_object_set_new(payload, "container", container);
        json_object_set_new(
                payload, "channel",
                json_pack("{s:s,s:s}", "id", m->channel->id, "name",
                          m->channel->kind == SLACK_IM ? "directmessage" : m->channel->name));
        json_object_set_new(payload, "message",
                            sl_render_message(w, m, SLACK_RENDER_PLAIN | SLACK_RENDER_METADATA));
        json_object_set_new(payload, "state", json_pack("{s:{}}", "values"));
        json_object_set_new(payload, "response_url", json_string(url));
        free(url);
}

int sl_people_interact_press(struct world *world, const json_t *request, struct buf *out,
                             struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_message *m = sl_people_find_message(w, request, err);
        struct slack_user *u = m ? sl_people_find_user(w, request, err) : NULL;
        const json_t *block = NULL, *element;
        size_t attachment = 0;
        json_t *payload;

        if (!u)
                return -1;
        element = m->app ? find_button(m, request, &block, &attachment) : NULL;
        if (!element)
                return error_set(err, ERR_MISSING,
                                 "the message has no such button; name it by 'action_id', 'value' "
                                 "or 'text'");
        payload = payload_new(m->app, u, "block_actions");
        set_place(payload, m, u);
        if (attachment > 0) {
                json_t *container = json_object_get(payload, "container");

                json_object_set_new(container, "type", json_string("message_attachment"));
                json_object_set_new(container, "attachment_id",
                                    json_integer((json_int_t)attachment));
                json_object_set_new(container, "is_app_unfurl", json_false());
        }
        json_object_set_new(payload, "actions",
                            json_pack("[o]", action_of(element, block, request)));
        jsonw_str(out, "channel", m->channel->id);
        jsonw_str(out, "trigger_id", json_str(payload, "trigger_id", ""));
        jsonw_int(out, "apps", sl_push_interactive(w, payload));
        return 0;
}

/* ---- slash commands ---- */

int sl_people_interact_command(struct world *world, const json_t *request, struct buf *out,
                               struct error *err)
{
        static const char *const names[] = {
                [SLACK_IM] = "directmessage", [SLACK_PRIVATE] = "privategroup"
        };
        struct slack_world *w = sl_world_of(world);
        struct slack_app *a = sl_people_find_app(w, request, err);
        struct slack_channel *c = a ? sl_people_find_channel(w, request, err) : NULL;
        struct slack_user *u = c ? sl_people_find_user(w, request, err) : NULL;
        const char *name = json_str(request, "name", NULL), *place;
        char *trigger, *url, *command;

        if (!u)
                return -1;
        if (!name || !*name)
                return error_set(err, ERR_INVALID, "a command needs a 'name'");
        place = c->kind == SLACK_IM || c->kind == SLACK_PRIVATE ? names[c->kind] : c->name;
        trigger = sl_trigger_new(w, a, u);
        url = sl_hook_new(w, a, c, u, NULL);
        command = mem_printf("%s%s", *name == '/' ? "" : "/", name);
        jsonw_str(out, "channel", c->id);
        jsonw_str(out, "trigger_id", trigger);
        jsonw_int(out, "apps",
                  sl_push_command(w,
                                  json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}",
                                            "token", SL_PUSH_TOKEN, "team_id", a->team->id,
                                            "team_domain", a->team->domain, "channel_id", c->id,
                                            "channel_name", place, "user_id", u->id, "user_name",
                                            u->name, "command", command, "text",
                                            json_str(request, "text", ""), "api_app_id", a->id,
                                            "is_enterprise_install", "false", "response_url", url,
                                            "trigger_id", trigger)));
        free(command);
        free(url);
        free(trigger);
        return 0;
}

/* ---- modals ---- */

/* What the person entered: "values" has a text for an action_id or a block_id. */
static json_t *state_of(const json_t *blocks, const json_t *values)
{
        json_t *state = json_object();
        const json_t *block;
        size_t i;

        json_array_foreach(blocks, i, block) {
                const json_t *element = json_object_get(block, "element");
                const char *action = json_str(element, "action_id", NULL),
                           *id = json_str(block, "block_id", action);
                const char *text =
                        action ? json_str(values, action, json_str(values, id, NULL)) : NULL;

                if (!action)
                        continue;
                json_object_set_new(state, id,
                                    json_pack("{s:{s:s,s:s?}}", action, "type",
                                              json_str(element, "type", "plain_text_input"),
                                              "value", text));
        }
        return json_pack("{s:o}", "values", state);
}

/* {"values":{"name":"Ada"}} submits what this person sees on top; {"close":true} closes it. */
int sl_people_interact_modal(struct world *world, const json_t *request, struct buf *out,
                             struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_user *u = sl_people_find_user(w, request, err);
        struct slack_view *v = u ? sl_view_top(w, u) : NULL;
        bool closes = json_flag(request, "close", false), notify;
        json_t *payload, *view;

        if (!u)
                return -1;
        if (!v)
                return error_set(err, ERR_MISSING, "'%s' sees no modal", u->name);
        notify = json_flag(v->view, "notify_on_close", false);
        view = sl_render_view(v);
        json_object_set_new(
                view, "state",
                state_of(json_object_get(v->view, "blocks"), json_object_get(request, "values")));
        payload = payload_new(v->app, u, closes ? "view_closed" : "view_submission");
        json_object_set_new(payload, "view", view);
        if (closes)
                json_object_set_new(payload, "is_cleared", json_false());
        else
                json_object_set_new(payload, "response_urls", json_array());
        jsonw_str(out, "view", v->id);
        if (closes)
                sl_view_close(w, v, false);
        if (closes && !notify) {
                json_decref(payload);
                return 0;
        }
        jsonw_int(out, "apps", sl_push_interactive(w, payload));
        return 0;
}

/* ---- what the app answers in its ack ---- */

static void answer_view(struct slack_world *w, struct slack_view *v, const json_t *response)
{
        struct error err = { 0 };
        struct buf *b = journal_open(w->base.sent, "view_response", 0);
        char *text = response ? json_text(response) : NULL;

        jsonw_str(b, "view", v->id);
        jsonw_str(b, "action", json_str(response, "response_action", "close"));
        if (text)
                jsonw_raw(b, "response", text);
        free(text);
        if (sl_view_respond(w, v, response, &err) != 0)
                jsonw_str(b, "problem", err.text);
        journal_close(w->base.sent);
}

void sl_people_answered(struct slack_app *a, const json_t *payload, const json_t *response)
{
        struct slack_world *w = a->world;
        struct slack_view *v =
                sl_view_find(w, json_str(json_object_get(payload, "view"), "id", NULL));

        if (strcmp(json_str(payload, "type", ""), "view_submission") == 0 && v)
                answer_view(w, v, response);
        else if (json_str(payload, "command", NULL) && response)
                sl_method_respond_in_ack(w, json_str(payload, "response_url", NULL), response);
}
