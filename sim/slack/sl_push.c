#include "sim/slack/sl_push.h"

#include <stdlib.h>

#include "base/mem.h"

struct slack_links {
        struct slack_world *world;
};

struct slack_links *sl_push_new(struct slack_world *w)
{
        struct slack_links *links = mem_zalloc(sizeof(*links));

        links->world = w;
        return links;
}

void sl_push_free(struct slack_links *links)
{
        free(links);
}

int sl_push_listen(struct slack_links *links, const struct ws_options *o, struct error *err)
{
        (void)links;
        (void)o;
        (void)err;
        return 0;
}

char *sl_push_ticket(struct slack_links *links, const char *app_id)
{
        (void)links;
        return mem_printf("ws://127.0.0.1:1/link/?app_id=%s", app_id);
}

unsigned sl_push_event(struct slack_world *w, json_t *event)
{
        (void)w;
        json_decref(event);
        return 0;
}

unsigned sl_push_interactive(struct slack_world *w, json_t *payload)
{
        return sl_push_event(w, payload);
}

unsigned sl_push_command(struct slack_world *w, json_t *payload)
{
        return sl_push_event(w, payload);
}
