/*
 * Topics of forums. Their ids are those of the messages about their creation.
 *
 * Telegram sends no updates of the bot's own messages, except of what it did to a chat, such as
 * creating a topic. So a topic whose creation got no answer is found by its name and a later id
 * than was known before; and when no update waits any more, it was not created. What came is kept
 * in the state file, because Telegram forgets an update once it is confirmed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/adapter_file.h"
#include "platform/telegram/telegram.h"

#define TABLE      "topics" /* "CHAT:ID" -> name */
#define TOPICS_MAX 32       /* that are remembered */

static void forget_oldest(struct telegram *tg)
{
        json_t *known = json_object_get(tg->saved, TABLE);

        while (json_object_size(known) >= TOPICS_MAX)
                json_object_del(known, json_object_iter_key(json_object_iter(known)));
}

void tg_topic_update(struct telegram *tg, const json_t *message)
{
        static const char *const changes[] = { "forum_topic_edited", "forum_topic_closed",
                                               "forum_topic_reopened" };
        const json_t *created = json_object_get(message, "forum_topic_created");
        int64_t id = json_int(message, "message_id", 0);
        bool is_change = created != NULL;
        char chat[24], key[48];

        for (size_t i = 0; i < COUNT(changes); i++)
                is_change = is_change || json_object_get(message, changes[i]);
        if (!is_change || id <= 0)
                return;
        snprintf(chat, sizeof(chat), "%" PRId64,
                 json_int(json_object_get(message, "chat"), "id", 0));
        tg_ids_note(tg, chat, id, json_int(message, "date", 0));
        if (!created)
                return;
        snprintf(key, sizeof(key), "%s:%" PRId64, chat, id);
        forget_oldest(tg);
        adapter_file_set(tg->adapter, tg->saved, TABLE, key, json_str(created, "name", ""));
        tg_reconcile_progress(tg);
}

/* Is it a topic of this chat? */
static bool parse_key(const char *key, const char *chat, int64_t *id)
{
        size_t n = strlen(chat);

        return strncmp(key, chat, n) == 0 && key[n] == ':' && tg_ids_parse(key + n + 1, id);
}

int64_t tg_topic_find(const struct telegram *tg, const char *chat, const char *name, int64_t after)
{
        const char *key;
        json_t *value;
        int64_t id;

        json_object_foreach(json_object_get(tg->saved, TABLE), key, value) {
                if (parse_key(key, chat, &id) && id > after && json_is_string(value) &&
                    strcmp(json_string_value(value), name) == 0)
                        return id;
        }
        return 0;
}

int64_t tg_topic_newest(const struct telegram *tg, const char *chat)
{
        int64_t newest = 0, id;
        const char *key;
        json_t *value;

        json_object_foreach(json_object_get(tg->saved, TABLE), key, value) {
                if (parse_key(key, chat, &id) && id > newest)
                        newest = id;
        }
        return newest;
}

char *tg_topic_name(const json_t *payload)
{
        const char *name = json_str(payload, "name", "");
        size_t n;

        name += strspn(name, " \t\r\n");
        n = utf8_prefix(name, strcspn(name, "\r\n"), UTF8_UTF16, TG_TOPIC_NAME_MAX);
        while (n > 0 && strchr(" \t", name[n - 1]))
                n--;
        return n > 0 ? mem_strndup(name, n) : NULL;
}
