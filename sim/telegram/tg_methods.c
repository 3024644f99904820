#include "sim/telegram/tg_methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"

static const struct tg_method_row method_updates[] = {
        { "getUpdates", tg_updates_get },
        { "setWebhook", tg_webhook_set },
        { "deleteWebhook", tg_webhook_delete },
        { "getWebhookInfo", tg_webhook_info },
        { 0 },
};

static const struct tg_method_row *const tables[] = {
        method_updates, tg_method_send, tg_method_edit, tg_method_chat, tg_method_profile,
};

/* Indexed by the method's number in the description. */
static method_fn **by_number;

static void release(void)
{
        free(by_number);
}

method_fn *tg_methods_find(const struct tg_spec_method *m)
{
        if (!by_number) {
                by_number = mem_array(tg_spec_method_count(), sizeof(*by_number));
                for (size_t i = 0; i < COUNT(tables); i++) {
                        for (const struct tg_method_row *row = tables[i]; row->name; row++)
                                by_number[tg_spec_method_number(tg_spec_method(row->name))] =
                                        row->run;
                }
                atexit(release);
        }
        return by_number[tg_spec_method_number(m)];
}
