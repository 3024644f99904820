#include "road/turn/reply_policy.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

static const char *const mode_names[] = {
        [MODE_REPLY] = "reply",
        [MODE_THREAD] = "thread",
        [MODE_AMBIENT] = "ambient",
        [MODE_SILENT] = "silent",
};

const char *reply_mode_name(enum reply_mode mode)
{
        return mode_names[mode];
}

bool reply_mode_parse(const char *name, enum reply_mode *out)
{
        for (size_t i = 0; i < COUNT(mode_names); i++) {
                if (strcmp(mode_names[i], name) == 0) {
                        *out = (enum reply_mode)i;
                        return true;
                }
        }
        return false;
}

bool reply_mode_answers(enum reply_mode mode)
{
        return mode == MODE_REPLY || mode == MODE_THREAD;
}

void reply_policy_copy(struct reply_policy *to, const struct reply_policy *from, struct arena *a)
{
        const char **phrases = NULL;

        if (from->no_reply_count > 0)
                phrases = arena_alloc(a, from->no_reply_count * sizeof(*phrases));
        for (size_t i = 0; i < from->no_reply_count; i++)
                phrases[i] = arena_strdup(a, from->no_reply[i]);
        *to = *from;
        to->prompt = arena_strdup(a, from->prompt);
        to->no_reply = phrases;
}

static void add_number(struct buf *b, const char *key, int64_t value)
{
        if (value > 0)
                jsonw_int(b, key, value);
}

char *reply_policy_write(const struct reply_policy *p)
{
        struct buf b;

        if (p->mode == MODE_REPLY && !p->prompt && p->no_reply_count == 0 && p->thread_chars == 0 &&
            p->part_delay_ms == 0 && p->slow_ms == 0)
                return NULL;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "mode", reply_mode_name(p->mode));
        jsonw_opt(&b, "prompt", p->prompt);
        add_number(&b, "channelMessages", p->channel_messages);
        if (p->no_reply_count > 0) {
                jsonw_open_member(&b, "noReply", '[');
                for (size_t i = 0; i < p->no_reply_count; i++)
                        jsonw_str(&b, NULL, p->no_reply[i]);
                jsonw_close(&b, ']');
        }
        add_number(&b, "noReplyChars", p->no_reply_chars);
        add_number(&b, "threadChars", p->thread_chars);
        add_number(&b, "partDelayMs", p->part_delay_ms);
        add_number(&b, "slowMs", p->slow_ms);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

void reply_policy_read(struct reply_policy *p, const char *text, struct arena *a)
{
        json_t *json = text ? json_loads(text, 0, NULL) : NULL;
        /* "recall" and "silence" were written before schema step 17 */
        const json_t *list = json_object_get(json, "noReply");
        const char **phrases;

        if (!list)
                list = json_object_get(json, "silence");
        *p = (struct reply_policy){
                .prompt = arena_strdup(a, json_str(json, "prompt", NULL)),
                .channel_messages = json_int(json, "channelMessages", json_int(json, "recall", 0)),
                .no_reply_count = json_array_size(list),
                .no_reply_chars = json_int(json, "noReplyChars", 0),
                .thread_chars = json_int(json, "threadChars", 0),
                .part_delay_ms = json_int(json, "partDelayMs", 0),
                .slow_ms = json_int(json, "slowMs", 0),
        };
        if (!reply_mode_parse(json_str(json, "mode", ""), &p->mode))
                p->mode = MODE_REPLY;
        if (p->no_reply_count > 0) {
                phrases = arena_alloc(a, p->no_reply_count * sizeof(*phrases));
                for (size_t i = 0; i < p->no_reply_count; i++) {
                        const char *phrase = json_string_value(json_array_get(list, i));

                        phrases[i] = arena_strdup(a, phrase ? phrase : "");
                }
                p->no_reply = phrases;
        }
        json_decref(json);
}
