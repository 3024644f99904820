/*
 * Any text as an agent's answer and as a header of Discord: only ids are notified, and paths keep
 * their form.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_rate_limit.h"
#include "platform/discord/dc_send.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_mentions(const char *text)
{
        json_t *mentions = dc_payload_mentions(text, false), *id;
        size_t i;

        if (!mentions || json_array_size(json_object_get(mentions, "parse")) > 0 ||
            json_array_size(json_object_get(mentions, "users")) > 100)
                abort();
        json_array_foreach(json_object_get(mentions, "users"), i, id)
                if (!dc_id_valid(json_string_value(id)))
                        abort();
        json_decref(mentions);
}

/* Whatever the braces hold, the path has as many parts as the template. */
static void check_route(const char *text)
{
        struct dc_request q = {
                .method = "PUT",
                .route = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me",
                .args = { "1", "2", text }
        };
        struct error err = { 0 };
        struct buf path, major;
        unsigned parts = 0;

        buf_init(&path, 0);
        buf_init(&major, 0);
        if (dc_call_path(&q, &path, &major, &err) == 0) {
                for (const char *p = path.data; *p; p++)
                        parts += *p == '/';
                if (parts != 7 || strpbrk(path.data, "?# \r\n") || strcmp(major.data, "1") != 0)
                        abort();
        }
        q.args[2] = "x";
        q.args[1] = text;
        buf_clear(&path);
        if (dc_call_path(&q, &path, &major, &err) == 0 && !dc_id_valid(text))
                abort();
        buf_release(&path);
        buf_release(&major);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        char *text = mem_strndup((const char *)data, n), *emoji = dc_payload_emoji(text);

        check_mentions(text);
        check_route(text);
        check_route(emoji);
        if (dc_rate_limit_ms(text) < -1)
                abort();
        free(emoji);
        free(text);
        return 0;
}
