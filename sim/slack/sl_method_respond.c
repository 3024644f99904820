/*
 * Posts to a response_url: up to five messages within half an hour, and changes of the message with
 * the pressed button. No token is needed: the address is the secret.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "sim/slack/sl_compose.h"
#include "sim/slack/sl_interactions.h"
#include "sim/slack/sl_methods.h"

static int refuse(struct slack_call *c, const char *error)
{
        c->status = 404;
        return sl_call_fail(c, error);
}

/* The message of the pressed button changes or goes. */
static int change_original(struct slack_call *c, struct slack_hook *h, bool gone)
{
        struct slack_message *m = h->ts[0] ? sl_message_find(h->channel, h->ts) : NULL;
        json_t *previous;
        struct buf *b;

        if (!m || m->tombstone)
                return refuse(c, "message_not_found");
        previous = sl_render_message(c->world, m, SLACK_RENDER_METADATA);
        if (!gone && sl_compose(c, m, false) != 0) {
                json_decref(previous);
                return -1;
        }
        b = sl_call_record(c, gone ? "delete" : "edit", h->channel);
        if (gone)
                jsonw_str(b, "ts", m->ts);
        else
                sl_compose_record(c, b, m);
        jsonw_bool(b, "response_url", true);
        journal_close(c->world->base.sent);
        if (gone) {
                json_decref(previous);
                sl_event_delete(c->world, m);
        } else {
                sl_event_changed(c->world, m, previous);
        }
        return 0;
}

static int post_new(struct slack_call *c, struct slack_hook *h)
{
        bool shown = strcmp(json_str(c->args, "response_type", "ephemeral"), "in_channel") == 0;
        struct slack_message *m = sl_message_new(h->channel, c->app->user, NULL);
        struct buf *b;

        m->app = c->app;
        if (sl_compose(c, m, false) != 0 ||
            sl_method_set_thread(c, m, sl_call_text(c, "thread_ts")) != 0) {
                sl_message_free(m);
                return -1;
        }
        if (shown) {
                sl_method_posted(c, m, "message");
                return 0;
        }
        b = sl_call_record(c, "ephemeral", h->channel);
        jsonw_str(b, "user", h->user->id);
        sl_compose_record(c, b, m);
        jsonw_bool(b, "response_url", true);
        journal_close(c->world->base.sent);
        sl_message_free(m);
        return 0;
}

static int respond(struct slack_call *c)
{
        struct slack_hook *h = sl_hook_find(c->world, http_param(c->x, "secret"));

        if (!h || clock_mono_ms() - h->made_ms > c->world->settings.response_ms)
                return refuse(c, h ? "expired_url" : "invalid_url");
        if (h->uses >= c->world->settings.response_uses)
                return refuse(c, "used_url");
        h->uses++;
        c->app = h->app;
        c->plain = true;
        if (sl_call_flag(c, "delete_original", false))
                return change_original(c, h, true);
        if (sl_call_flag(c, "replace_original", false))
                return change_original(c, h, false);
        return post_new(c, h);
}

void sl_method_respond_in_ack(struct slack_world *w, const char *url, const json_t *response)
{
        const char *slash = url ? strrchr(url, '/') : NULL;
        struct slack_hook *h = slash ? sl_hook_find(w, slash + 1) : NULL;
        struct slack_call c = { .world = w,
                                .app = h ? h->app : NULL,
                                .method = &sl_method_respond,
                                .args = json_deep_copy(response),
                                .out = json_object(),
                                .status = 200 };

        if (h && post_new(&c, h) != 0) {
                struct buf *b = journal_open(w->link_log, "bad_response", 0);

                jsonw_str(b, "error", c.error);
                jsonw_str(b, "why", c.problem);
                journal_close(w->link_log);
        }
        json_decref(c.args);
        json_decref(c.out);
        json_decref(c.messages);
}

const struct slack_method sl_method_respond = { "response_url", respond, 0, NULL };
