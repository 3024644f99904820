/*
 * Updates of the Bot API from bytes. Every event has a key and a channel, every attachment a kind;
 * the same bytes give the same keys; text is valid UTF-8. The HTML stripper and file names get the
 * bytes unchanged.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"
#include "road/channel_folder.h"

static const struct tg_self self = { .id = 42, .username = "TestBot" };

static void check_event(const struct incoming *in)
{
        if (!in->type || !in->key || !*in->key || !in->channel || !*in->channel)
                abort();
        if (in->text && !utf8_valid(in->text, strlen(in->text)))
                abort();
        if (in->raw_text && strlen(in->raw_text) < strlen(in->text))
                abort();
}

static void check_update(json_t *json)
{
        struct tg_update u = { 0 }, again = { 0 };
        const struct intake_content *c = &u.base.content;

        tg_update_read(&u, &self, json);
        tg_update_read(&again, &self, json);
        if (c->event_count != again.base.content.event_count ||
            (c->event_count == 0 && !c->ignored))
                abort();
        for (size_t i = 0; i < c->event_count; i++) {
                check_event(&c->events[i]);
                if (strcmp(c->events[i].key, again.base.content.events[i].key) != 0)
                        abort();
        }
        for (size_t i = 0; i < c->attachment_count; i++)
                if (!c->attachments[i].kind)
                        abort();
        tg_update_release(&u);
        tg_update_release(&again);
}

static void check_text(const char *text)
{
        char *plain = tg_text_plain(text), *name = channel_folder_safe_name(text);

        if (strlen(plain) > strlen(text) || strchr(name, '/') || name[0] == '.')
                abort();
        free(plain);
        free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        json_t *update = json_read((const char *)data, n, NULL);
        char *text = mem_strndup((const char *)data, n);

        if (update)
                check_update(update);
        check_text(text);
        json_decref(update);
        free(text);
        return 0;
}
