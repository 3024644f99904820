#include "platform/slack/sl_cache.h"

#include <stdlib.h>

#include "base/mem.h"
#include "platform/slack/slack.h"

struct sl_cache {
        struct slack *sl;
};

struct sl_cache *sl_cache_new(struct slack *sl)
{
        struct sl_cache *c = mem_zalloc(sizeof(*c));

        c->sl = sl;
        return c;
}

void sl_cache_free(struct sl_cache *c)
{
        free(c);
}

const struct sl_user *sl_cache_user(struct sl_cache *c, const char *id)
{
        (void)c;
        (void)id;
        return NULL;
}

const struct sl_channel *sl_cache_channel(struct sl_cache *c, const char *id)
{
        (void)c;
        (void)id;
        return NULL;
}

void sl_cache_find_user(struct sl_cache *c, const char *id, sl_user_fn *done, void *arg)
{
        (void)c;
        done(arg, &(struct sl_user){ .id = id, .username = id, .name = id });
}

void sl_cache_find_channel(struct sl_cache *c, const char *id, sl_channel_fn *done, void *arg)
{
        (void)c;
        done(arg, &(struct sl_channel){ .id = id, .is_dm = id[0] == 'D', .members = -1 });
}

void sl_cache_put_user(struct sl_cache *c, const json_t *user)
{
        (void)c;
        (void)user;
}

void sl_cache_put_channel(struct sl_cache *c, const json_t *channel)
{
        (void)c;
        (void)channel;
}

void sl_cache_forget_channel(struct sl_cache *c, const char *id)
{
        (void)c;
        (void)id;
}

const char *sl_cache_user_named(struct sl_cache *c, const char *name, size_t n)
{
        (void)c;
        (void)name;
        (void)n;
        return NULL;
}

const char *sl_cache_channel_named(struct sl_cache *c, const char *name)
{
        (void)c;
        (void)name;
        return NULL;
}
