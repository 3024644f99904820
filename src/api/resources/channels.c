/*
 * Posts of the platforms themselves. They bring their own proof, which the platform checks; our key
 * is not asked for.
 */
#include <string.h>

#include "api/core/api_private.h"
#include "platform/platform.h"

static struct adapter *adapter_of(const struct http_exchange *x)
{
        return adapters_find(api_of(x)->env.adapters, http_param(x, "adapter"));
}

bool channels_admit(struct http_exchange *x)
{
        const char *name = http_param(x, "adapter");
        struct adapter *a = adapter_of(x);

        if (!a || strcmp(a->ops->name, http_param(x, "platform")) != 0 || !a->ops->webhook) {
                reply_missing(x, "channel", name);
                return false;
        }
        if (!a->self) {
                reply_error(x, 503, "UNAVAILABLE", NULL, "adapter '%s' is not running", name);
                return false;
        }
        return !a->ops->webhook_admits || a->ops->webhook_admits(a, x);
}

void channels_webhook(struct http_exchange *x)
{
        struct adapter *a;

        /* while the body was on its way a reload may have changed the adapter */
        if (!channels_admit(x))
                return;
        a = adapter_of(x);
        a->ops->webhook(a, x);
}
