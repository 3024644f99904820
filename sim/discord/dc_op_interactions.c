#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/discord/dc_interactions.h"
#include "sim/discord/dc_ops.h"
#include "sim/discord/dc_world_events.h"

static void record(const struct call *c, const char *kind, const struct interaction *i,
                   const json_t *answer, const struct message *m)
{
        struct buf *b = dc_call_record(c, kind, i->channel);

        dc_render_id(b, "interaction", i->id);
        if (answer) {
                jsonw_int(b, "type", json_int(answer, "type", 0));
                dc_render_json(b, "data", json_object_get(answer, "data"));
        }
        if (m) {
                dc_render_id(b, "message_id", m->id);
                jsonw_str(b, "text", m->content);
                jsonw_bool(b, "ephemeral", (m->flags & MESSAGE_FLAG_EPHEMERAL) != 0);
                dc_render_message(b, "message", c->world, m, c->bot, RENDER_ALONE);
        }
        journal_close(c->world->base.sent);
        if (m)
                dc_call_print(c, m);
}

/* ---- the first answer ---- */

static struct message *make_message(struct interaction *i)
{
        struct message *m = dc_message_new(i->world, i->channel, i->bot->user);
        struct buf b;

        m->type = i->type == INTERACTION_COMMAND ? MESSAGE_COMMAND : MESSAGE_DEFAULT;
        m->application_id = i->bot->application_id;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        dc_render_id(&b, "id", i->id);
        jsonw_int(&b, "type", i->type);
        dc_render_user(&b, "user", i->user);
        jsonw_raw(&b, "authorizing_integration_owners", "{}");
        jsonw_opt(&b, "name", json_str(i->data, "name", NULL));
        jsonw_close(&b, '}');
        m->interaction = json_read(b.data, b.len, NULL);
        buf_release(&b);
        return m;
}

/* Ephemeral messages are stored, so they can be edited, but no event announces them. */
static void post_message(struct world *w, struct message *m)
{
        if (m->flags & MESSAGE_FLAG_EPHEMERAL)
                dc_message_post(w, m);
        else
                dc_world_event_message(w, m);
}

static int answer_message(struct call *c, struct interaction *i, const json_t *data, bool loading)
{
        struct message *m = make_message(i);

        if (loading)
                m->flags = MESSAGE_FLAG_LOADING |
                           (json_int(data, "flags", 0) & MESSAGE_FLAG_EPHEMERAL);
        else if (dc_compose(c, m, data, false) != 0) {
                dc_message_free(m);
                return -1;
        }
        post_message(c->world, m);
        i->original_id = m->id;
        return 0;
}

static int update_pressed(struct call *c, struct interaction *i, const json_t *data)
{
        struct message *m = dc_message_find(i->channel, i->message_id);

        if (!m)
                return dc_call_fail(c, 404, 10008, "Unknown Message");
        if (dc_compose(c, m, data, true) != 0)
                return -1;
        dc_world_event_edit(c->world, m);
        i->original_id = m->id;
        return 0;
}

static bool answer_fits(const struct interaction *i, int type)
{
        switch (type) {
        case CALLBACK_MESSAGE:
        case CALLBACK_DEFER:
                return i->type != INTERACTION_AUTOCOMPLETE;
        case CALLBACK_DEFER_UPDATE:
        case CALLBACK_UPDATE:
                return i->message_id != 0;
        case CALLBACK_CHOICES:
                return i->type == INTERACTION_AUTOCOMPLETE;
        case CALLBACK_MODAL:
                return i->type == INTERACTION_COMMAND || i->type == INTERACTION_COMPONENT;
        default:
                return false;
        }
}

int dc_op_interaction_answer(struct call *c, struct interaction *i, const json_t *answer)
{
        const json_t *data = json_object_get(answer, "data");
        int type = (int)json_int(answer, "type", 0), rc = 0;

        if (i->answered)
                return dc_call_fail(c, 400, 40060, "Interaction has already been acknowledged.");
        if (!answer_fits(i, type))
                return dc_call_invalid(c, "type", "BASE_TYPE_CHOICES",
                                       "this interaction takes other answers");
        if (type == CALLBACK_MESSAGE || type == CALLBACK_DEFER)
                rc = answer_message(c, i, data, type == CALLBACK_DEFER);
        else if (type == CALLBACK_UPDATE)
                rc = update_pressed(c, i, data);
        else if (type == CALLBACK_DEFER_UPDATE)
                i->original_id = i->message_id;
        if (rc != 0)
                return -1;
        i->answered = type;
        record(c, "interaction_answer", i, answer, dc_message_find(i->channel, i->original_id));
        return 0;
}

static void write_response(struct call *c, const struct interaction *i)
{
        const struct message *m = dc_message_find(i->channel, i->original_id);
        struct buf *b = &c->out;

        jsonw_open(b, '{');
        jsonw_open_member(b, "interaction", '{');
        dc_render_id(b, "id", i->id);
        jsonw_int(b, "type", i->type);
        if (m)
                dc_render_id(b, "response_message_id", m->id);
        jsonw_bool(b, "response_message_loading", m && (m->flags & MESSAGE_FLAG_LOADING));
        jsonw_bool(b, "response_message_ephemeral", m && (m->flags & MESSAGE_FLAG_EPHEMERAL));
        jsonw_close(b, '}');
        jsonw_open_member(b, "resource", '{');
        jsonw_int(b, "type", i->answered);
        if (m)
                dc_render_message(b, "message", c->world, m, i->bot, RENDER_PLAIN);
        jsonw_close(b, '}');
        jsonw_close(b, '}');
}

static int interaction_callback(struct call *c)
{
        struct interaction *i =
                dc_interaction_find(c->world, http_param(c->x, "interaction_token"));

        if (!i || i->id != dc_call_id(c, "interaction_id") ||
            (!i->answered && clock_mono_ms() - i->made_ms > c->world->settings.ack_ms))
                return dc_call_fail(c, 404, 10062, "Unknown interaction");
        c->bot = i->bot;
        if (dc_op_interaction_answer(c, i, c->args) != 0)
                return -1;
        if (!strchr("1tT", json_str(c->query, "with_response", "f")[0]))
                return dc_call_no_content(c);
        write_response(c, i);
        return 0;
}

/* ---- follow-ups ---- */

/* The interaction of the token in the path; NULL after dc_call_fail. */
static struct interaction *find(struct call *c)
{
        struct interaction *i = dc_interaction_find(c->world, http_param(c->x, "webhook_token"));

        if (!i || i->bot->application_id != dc_call_id(c, "webhook_id") || !i->answered) {
                dc_call_fail(c, 404, i ? 10062 : 10015,
                             i ? "Unknown interaction" : "Unknown Webhook");
                return NULL;
        }
        if (clock_mono_ms() - i->made_ms > INTERACTION_TOKEN_MS) {
                dc_call_fail(c, 401, 50027, "Invalid Webhook Token");
                return NULL;
        }
        c->bot = i->bot;
        return i;
}

static struct message *find_message(struct call *c, const struct interaction *i)
{
        const char *id = http_param(c->x, "message_id");
        struct message *m = dc_message_find(i->channel, id ? dc_id_parse(id) : i->original_id);

        if (!m)
                dc_call_fail(c, 404, 10008, "Unknown Message");
        return m;
}

static int answer_with(struct call *c, const struct message *m)
{
        dc_render_message(&c->out, NULL, c->world, m, c->bot, RENDER_PLAIN);
        return 0;
}

static int follow_up(struct call *c)
{
        struct interaction *i = find(c);
        struct message *m;

        if (!i)
                return -1;
        m = make_message(i);
        m->type = MESSAGE_DEFAULT;
        if (dc_compose(c, m, c->args, false) != 0) {
                dc_message_free(m);
                return -1;
        }
        post_message(c->world, m);
        record(c, "follow_up", i, NULL, m);
        return answer_with(c, m);
}

static int get_follow_up(struct call *c)
{
        const struct interaction *i = find(c);
        const struct message *m = i ? find_message(c, i) : NULL;

        return m ? answer_with(c, m) : -1;
}

static int update_follow_up(struct call *c)
{
        struct interaction *i = find(c);
        struct message *m = i ? find_message(c, i) : NULL;
        bool loading;

        if (!m)
                return -1;
        loading = (m->flags & MESSAGE_FLAG_LOADING) != 0;
        if (dc_compose(c, m, c->args, true) != 0)
                return -1;
        if (loading)
                m->flags &= ~(int64_t)MESSAGE_FLAG_LOADING;
        if (!(m->flags & MESSAGE_FLAG_EPHEMERAL))
                dc_world_event_edit(c->world, m);
        record(c, "interaction_edit", i, NULL, m);
        return answer_with(c, m);
}

static int delete_follow_up(struct call *c)
{
        struct interaction *i = find(c);
        struct message *m = i ? find_message(c, i) : NULL;

        if (!m)
                return -1;
        record(c, "interaction_delete", i, NULL, m);
        dc_world_event_delete(c->world, m);
        return dc_call_no_content(c);
}

const struct dc_op_row dc_op_interactions[] = {
        { "create_interaction_response", interaction_callback },
        { "execute_webhook", follow_up },
        { "get_original_webhook_message", get_follow_up },
        { "update_original_webhook_message", update_follow_up },
        { "delete_original_webhook_message", delete_follow_up },
        { "get_webhook_message", get_follow_up },
        { "update_webhook_message", update_follow_up },
        { "delete_webhook_message", delete_follow_up },
        { 0 },
};
