/* Posts of the platforms themselves. They bring their own proof, which the platform checks; our key is not asked for. */
#include <string.h>

#include "api/api_private.h"
#include "platform/platform.h"

void channels_webhook(struct http_exchange *x)
{
        const char *platform = http_param(x, "platform"), *name = http_param(x, "adapter");
        struct adapter *a = adapters_find(api_of(x)->env.adapters, name);

        if (!a || strcmp(a->ops->name, platform) != 0 || !a->ops->webhook)
                reply_missing(x, "channel", name);
        else if (!a->self)
                reply_error(x, 503, "UNAVAILABLE", NULL, "adapter '%s' is not running", name);
        else
                a->ops->webhook(a, x);
}
