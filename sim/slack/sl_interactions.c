/*
 * What lets an app answer a press or a command: trigger_ids, which open modals for a few seconds,
 * and response_urls, which take a few messages.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "sim/slack/sl_interactions.h"

#define KEEP 1000

/* So that a long run does not fill the memory. */
static void forget_old(struct slack_world *w)
{
        int64_t now = clock_mono_ms();
        const char *key;
        void *value;

        for (size_t i = 0; w->triggers.count > KEEP && map_each(&w->triggers, &i, &key, &value);) {
                struct slack_trigger *t = value;

                if (now - t->made_ms <= w->settings.trigger_ms)
                        continue;
                map_remove(&w->triggers, key);
                free(t);
        }
        for (size_t i = 0; w->hooks.count > KEEP && map_each(&w->hooks, &i, &key, &value);) {
                struct slack_hook *h = value;

                if (now - h->made_ms <= w->settings.response_ms)
                        continue;
                map_remove(&w->hooks, key);
                free(h);
        }
}

char *sl_trigger_new(struct slack_world *w, struct slack_app *a, struct slack_user *u)
{
        struct slack_trigger *t = mem_zalloc(sizeof(*t));
        char secret[25], *id = mem_printf("%" PRIu64 ".%" PRId64 ".%s", ++w->next_id,
                                          clock_wall_ms(), id_random_text(secret, 24));

        forget_old(w);
        *t = (struct slack_trigger){ .app = a, .user = u, .made_ms = clock_mono_ms() };
        map_put(&w->triggers, id, t);
        return id;
}

char *sl_hook_new(struct slack_world *w, struct slack_app *a, struct slack_channel *c,
                  struct slack_user *u, const struct slack_message *m)
{
        struct slack_hook *h = mem_zalloc(sizeof(*h));
        char secret[25];

        *h = (struct slack_hook){ .app = a, .channel = c, .user = u, .made_ms = clock_mono_ms() };
        if (m) {
                memcpy(h->ts, m->ts, sizeof(h->ts));
                memcpy(h->thread_ts, m->thread_ts, sizeof(h->thread_ts));
        }
        map_put(&w->hooks, id_random_text(secret, 24), h);
        return mem_printf("%s/actions/%s/%" PRIu64 "/%s", w->base_url, a->team->id, ++w->next_id,
                          secret);
}

struct slack_trigger *sl_trigger_find(const struct slack_world *w, const char *id)
{
        return id ? map_get(&w->triggers, id) : NULL;
}

struct slack_hook *sl_hook_find(const struct slack_world *w, const char *secret)
{
        return secret ? map_get(&w->hooks, secret) : NULL;
}

void sl_interactions_release(struct slack_world *w)
{
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&w->triggers, &i, &key, &value);)
                free(value);
        map_release(&w->triggers);
        for (size_t i = 0; map_each(&w->hooks, &i, &key, &value);)
                free(value);
        map_release(&w->hooks);
}
