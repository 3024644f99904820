/* Stands for dc_inbound.c until that is there; its own object comes first in the library, and then this file goes. */
#include <stdlib.h>

#include "base/mem.h"
#include "platform/discord/dc_inbound.h"

struct dc_inbound {
        struct dc_inbound_hooks hooks;
};

struct dc_inbound *dc_inbound_new(const struct dc_inbound_options *options,
                                  const struct dc_inbound_hooks *hooks)
{
        struct dc_inbound *in = mem_zalloc(sizeof(*in));

        (void)options;
        in->hooks = *hooks;
        hooks->up(hooks->ctx);
        return in;
}

void dc_inbound_free(struct dc_inbound *in)
{
        free(in);
}

void dc_inbound_interaction(struct dc_inbound *in, const json_t *interaction,
                            void (*stored)(void *arg, bool ok), void *arg)
{
        (void)in;
        (void)interaction;
        stored(arg, false);
}

bool dc_inbound_place(const struct dc_inbound *in, const char *channel, struct dc_place *out)
{
        (void)in;
        (void)channel;
        (void)out;
        return false;
}

const char *dc_inbound_user_named(const struct dc_inbound *in, const char *username)
{
        (void)in;
        (void)username;
        return NULL;
}
