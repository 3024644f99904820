/*
 * Modals, home tabs, and Assistant threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "sim/slack/sl_compose.h"
#include "sim/slack/sl_interactions.h"
#include "sim/slack/sl_methods.h"

#define MAX_STACK   3
#define MAX_PROMPTS 4
#define MAX_LOADING 10

/* ---- views ---- */

/* NULL after sl_call_fail. */
static const json_t *view_of(struct slack_call *c, const char *type)
{
        const json_t *view = json_object_get(c->args, "view");
        char problem[SL_SPEC_PROBLEM_SIZE] = "";
        const char *error = sl_compose_check_view(view, problem);

        if (!error && type && strcmp(json_str(view, "type", ""), type) != 0) {
                snprintf(problem, sizeof(problem), "view must be of type %s", type);
                error = "invalid_arguments";
        }
        if (!error)
                return view;
        c->base.valid = false;
        snprintf(c->problem, sizeof(c->problem), "%s", problem);
        sl_call_fail_because(c, error, "%s", problem);
        return NULL;
}

/* NULL after sl_call_fail. A trigger opens one view, within seconds. */
static const struct slack_trigger *use_trigger(struct slack_call *c)
{
        struct slack_trigger *t = sl_trigger_find(c->world, sl_call_text(c, "trigger_id"));

        if (!t || t->app != c->app)
                sl_call_fail(c, "invalid_trigger_id");
        else if (t->used)
                sl_call_fail(c, "exchanged_trigger_id");
        else if (clock_mono_ms() - t->made_ms > c->world->settings.trigger_ms)
                sl_call_fail(c, "expired_trigger_id");
        else {
                t->used = true;
                return t;
        }
        return NULL;
}

static int answer_view(struct slack_call *c, const char *kind, const struct slack_view *v)
{
        json_t *shown = sl_render_view(v);
        struct buf *b = sl_call_record(c, kind, NULL);
        char *text = json_text(shown);

        jsonw_str(b, "user", v->user->id);
        jsonw_raw(b, "view", text);
        journal_close(c->world->base.sent);
        free(text);
        sl_call_set_new(c, "view", shown);
        return 0;
}

int sl_method_view_open(struct slack_call *c)
{
        const json_t *view = view_of(c, "modal");
        const struct slack_trigger *t = view ? use_trigger(c) : NULL;

        if (!t)
                return -1;
        return answer_view(c, "view", sl_view_open(c->world, c->app, t->user, view, NULL));
}

int sl_method_view_push(struct slack_call *c)
{
        const json_t *view = view_of(c, "modal");
        const struct slack_trigger *t = view ? use_trigger(c) : NULL;
        const struct slack_view *top = t ? sl_view_top(c->world, t->user) : NULL;
        int depth = 0;

        if (!t)
                return -1;
        if (!top || top->app != c->app)
                return sl_call_fail(c, "not_found");
        for (const struct slack_view *v = top; v; v = sl_view_find(c->world, v->previous_id))
                depth++;
        if (depth >= MAX_STACK)
                return sl_call_fail(c, "push_limit_reached");
        return answer_view(c, "view", sl_view_open(c->world, c->app, t->user, view, top));
}

static struct slack_view *named_view(struct slack_call *c)
{
        const char *external = sl_call_text(c, "external_id");
        struct slack_view *v = sl_view_find(c->world, sl_call_text(c, "view_id"));

        if (v || !external)
                return v;
        for (v = c->world->views; v; v = v->next) {
                if (strcmp(json_str(v->view, "external_id", ""), external) == 0)
                        return v;
        }
        return NULL;
}

int sl_method_view_update(struct slack_call *c)
{
        const json_t *view = view_of(c, NULL);
        struct slack_view *v = named_view(c);
        const char *hash = sl_call_text(c, "hash");

        if (!view)
                return -1;
        if (!v || v->app != c->app)
                return sl_call_fail(c, "not_found");
        if (hash && strcmp(hash, v->hash) != 0)
                return sl_call_fail(c, "hash_conflict");
        sl_view_change(v, view);
        return answer_view(c, "view_update", v);
}

/* The home tab of a person, made once. */
int sl_method_view_publish(struct slack_call *c)
{
        const json_t *view = view_of(c, "home");
        struct slack_user *u = sl_user_find(c->world, sl_call_text(c, "user_id"));
        const char *hash = sl_call_text(c, "hash");
        struct slack_view *v = c->world->views;

        if (!view)
                return -1;
        if (!u)
                return sl_call_fail(c, "user_not_found");
        while (v && (v->app != c->app || v->user != u ||
                     strcmp(json_str(v->view, "type", ""), "home") != 0))
                v = v->next;
        if (v && hash && strcmp(hash, v->hash) != 0)
                return sl_call_fail(c, "hash_conflict");
        if (v)
                sl_view_change(v, view);
        else
                v = sl_view_open(c->world, c->app, u, view, NULL);
        return answer_view(c, "home", v);
}

/* ---- Assistant threads ---- */

/* What is known of the thread; NULL after sl_call_fail. */
static json_t *thread_of(struct slack_call *c, struct slack_channel **channel)
{
        const char *ts = sl_call_text(c, "thread_ts");
        json_t *about;

        *channel = sl_call_member_of(c, "channel_id");
        if (!*channel)
                return NULL;
        /* prompts of the agent view are those of the direct messages themselves */
        if (!ts && (*channel)->kind == SLACK_IM && strstr(c->method->name, "Prompts"))
                ts = "";
        else if (!ts || !sl_message_find(*channel, ts)) {
                sl_call_fail(c, "invalid_thread_ts");
                return NULL;
        }
        about = map_get(&(*channel)->assistant, ts);
        if (!about) {
                about = json_object();
                map_put(&(*channel)->assistant, ts, about);
        }
        return about;
}

static struct buf *record(const struct slack_call *c, const char *kind,
                          const struct slack_channel *channel)
{
        struct buf *b = sl_call_record(c, kind, channel);

        jsonw_opt(b, "thread_ts", sl_call_text(c, "thread_ts"));
        return b;
}

/* Empty removes it. */
int sl_method_set_status(struct slack_call *c)
{
        struct slack_channel *channel;
        json_t *about;
        const char *status = json_str(c->args, "status", "");

        if (json_array_size(json_object_get(c->args, "loading_messages")) > MAX_LOADING)
                return sl_call_fail_because(c, "invalid_arguments", "too many loading_messages");
        about = thread_of(c, &channel);
        if (!about)
                return -1;
        json_object_set_new(about, "status", json_string(status));
        jsonw_str(record(c, "status", channel), "status", status);
        journal_close(c->world->base.sent);
        return 0;
}

int sl_method_set_title(struct slack_call *c)
{
        struct slack_channel *channel;
        json_t *about = thread_of(c, &channel);
        const char *title = json_str(c->args, "title", "");

        if (!about)
                return -1;
        json_object_set_new(about, "title", json_string(title));
        jsonw_str(record(c, "title", channel), "title", title);
        journal_close(c->world->base.sent);
        return 0;
}

int sl_method_set_prompts(struct slack_call *c)
{
        struct slack_channel *channel;
        json_t *prompts = json_object_get(c->args, "prompts"), *about = thread_of(c, &channel);
        const json_t *prompt;
        char *text;
        size_t i;

        if (!about)
                return -1;
        if (!json_is_array(prompts) || json_array_size(prompts) > MAX_PROMPTS)
                return sl_call_fail_because(c, "invalid_arguments", "at most %d prompts",
                                            MAX_PROMPTS);
        json_array_foreach(prompts, i, prompt) {
                if (!*json_str(prompt, "title", "") || !*json_str(prompt, "message", ""))
                        return sl_call_fail_because(c, "invalid_arguments",
                                                    "a prompt needs a title and a message");
        }
        json_object_set(about, "prompts", prompts);
        text = json_text(prompts);
        jsonw_raw(record(c, "prompts", channel), "prompts", text);
        journal_close(c->world->base.sent);
        free(text);
        return 0;
}
