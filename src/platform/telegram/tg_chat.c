/*
 * Chats that changed their id: a group that becomes a supergroup gets a new one, and Telegram
 * mentions it once.
 */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

const char *tg_chat_id(const struct telegram *tg, const char *chat)
{
        return json_str(json_object_get(tg->saved, "moved"), chat, chat);
}

void tg_chat_moved(struct telegram *tg, const char *from, const char *to)
{
        json_t *moved = json_object_get(tg->saved, "moved");

        if (strcmp(tg_chat_id(tg, from), to) == 0 || strcmp(from, to) == 0)
                return;
        if (!json_is_object(moved)) {
                moved = json_object();
                json_object_set_new(tg->saved, "moved", moved);
        }
        json_object_set_new(moved, from, json_string(to));
        log_info("a group became a supergroup and has a new id",
                 LOG_S("adapter", tg->adapter->name), LOG_S("from", from), LOG_S("to", to));
        adapter_file_write(tg->adapter, tg->saved);
}
