/*
 * The modals that people see, a stack for each, and their home tabs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/slack/sl_world.h"

struct slack_view *sl_view_find(const struct slack_world *w, const char *id)
{
        struct slack_view *v = id ? w->views : NULL;

        while (v && strcmp(v->id, id) != 0)
                v = v->next;
        return v;
}

struct slack_view *sl_view_top(const struct slack_world *w, const struct slack_user *u)
{
        struct slack_view *v = w->views;

        while (v && (v->user != u || strcmp(json_str(v->view, "type", ""), "modal") != 0))
                v = v->next;
        return v;
}

static void renew_hash(struct slack_view *v)
{
        char secret[13];

        free(v->hash);
        v->hash = mem_printf("1700000000.%s", id_random_text(secret, 12));
}

struct slack_view *sl_view_open(struct slack_world *w, struct slack_app *a, struct slack_user *u,
                                const json_t *view, const struct slack_view *on)
{
        struct slack_view *v = mem_zalloc(sizeof(*v));

        sl_world_id(w, 'V', v->id);
        v->app = a;
        v->user = u;
        v->view = json_deep_copy(view);
        renew_hash(v);
        memcpy(v->root_id, on ? on->root_id : v->id, sizeof(v->root_id));
        if (on)
                memcpy(v->previous_id, on->id, sizeof(v->previous_id));
        v->next = w->views;
        w->views = v;
        return v;
}

void sl_view_change(struct slack_view *v, const json_t *view)
{
        json_decref(v->view);
        v->view = json_deep_copy(view);
        renew_hash(v);
}

static void view_free(struct slack_view *v)
{
        json_decref(v->view);
        free(v->hash);
        free(v);
}

void sl_view_close(struct slack_world *w, struct slack_view *v, bool all)
{
        char root[SL_ID_SIZE];

        memcpy(root, v->root_id, sizeof(root));
        for (struct slack_view **at = &w->views, *one; (one = *at);) {
                if (one != v && !(all && strcmp(one->root_id, root) == 0)) {
                        at = &one->next;
                        continue;
                }
                *at = one->next;
                view_free(one);
                if (!all)
                        return;
        }
}

int sl_view_respond(struct slack_world *w, struct slack_view *v, const json_t *response,
                    struct error *err)
{
        const char *action = json_str(response, "response_action", NULL);
        const json_t *view = json_object_get(response, "view");

        if (!action || strcmp(action, "clear") == 0) {
                sl_view_close(w, v, action != NULL);
                return 0;
        }
        if (strcmp(action, "errors") == 0)
                return json_object_size(json_object_get(response, "errors")) > 0
                               ? 0
                               : error_set(err, ERR_INVALID, "'errors' must name a block");
        if (!json_is_object(view))
                return error_set(err, ERR_INVALID, "'view' must be a view");
        if (strcmp(action, "update") == 0)
                sl_view_change(v, view);
        else if (strcmp(action, "push") == 0)
                sl_view_open(w, v->app, v->user, view, v);
        else
                return error_set(err, ERR_INVALID,
                                 "'response_action' must be clear, errors, update or push");
        return 0;
}

void sl_views_release(struct slack_world *w)
{
        while (w->views) {
                struct slack_view *v = w->views;

                w->views = v->next;
                view_free(v);
        }
}
