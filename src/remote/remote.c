#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "remote/remote_private.h"

static const struct setting *const tables[] = { remote_settings, NULL };

void remote_set_conf(struct remote *r, const struct remote_conf *conf)
{
        const struct setting_list *people = &conf->people;

        settings_release(tables, &r->conf);
        r->conf = *conf;
        r->conf.adapter = mem_strdup(conf->adapter);
        r->conf.channel = mem_strdup(conf->channel);
        r->conf.people = (struct setting_list){ mem_array(people->count, sizeof(char *)),
                                                people->count, people->set };
        for (size_t i = 0; i < people->count; i++)
                r->conf.people.items[i] = mem_strdup(people->items[i]);
        remote_wake(r);
}

const struct remote_conf *remote_get_conf(const struct remote *r)
{
        return &r->conf;
}

struct remote *remote_open(const struct remote_env *env, const struct remote_conf *conf,
                           struct error *err)
{
        struct remote *r = mem_zalloc(sizeof(*r));

        r->env = *env;
        session_expiry_open(r);
        session_progress_open(r);
        session_views_open(r);
        remote_set_conf(r, conf);
        if (session_index_open(r, err) < 0) {
                remote_close(r);
                return NULL;
        }
        return r;
}

void remote_start(struct remote *r)
{
        r->started = true;
        session_expiry_look(r);
        session_index_start(r);
        session_progress_start(r);
        session_views_start(r);
}

void remote_wake(struct remote *r)
{
        session_expiry_look(r);
}

void remote_quiesce(struct remote *r)
{
        r->quiet = true;
        timer_stop(r->timer);
}

void remote_close(struct remote *r)
{
        if (!r)
                return;
        r->quiet = true;
        session_expiry_close(r);
        session_views_close(r);
        session_progress_close(r);
        session_index_close(r);
        settings_release(tables, &r->conf);
        free(r);
}

void remote_get_stats(const struct remote *r, struct remote_stats *out)
{
        *out = r->stats;
        out->linked = session_index_chats(r);
        out->views = r->views.count;
}

bool remote_trusts(const struct remote *r, const char *platform, const char *user)
{
        int64_t person = r->env.person_of && platform && user
                                 ? r->env.person_of(r->env.arg, platform, user)
                                 : 0;
        char *account = platform && user ? mem_printf("%s:%s", platform, user) : NULL;
        char name[32] = "";
        bool yes = false;

        if (person > 0)
                snprintf(name, sizeof(name), "per-%lld", (long long)person);
        for (size_t i = 0; account && !yes && i < r->conf.people.count; i++) {
                const char *who = r->conf.people.items[i];

                yes = strcmp(who, account) == 0 || strcmp(who, name) == 0;
        }
        free(account);
        return yes;
}
