/* Builds the call of a delivery: a function and a row for each kind. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_blocks.h"
#include "platform/slack/sl_card.h"
#include "platform/slack/sl_emoji.h"
#include "platform/slack/sl_send.h"

#define UPLOAD_WAIT_MS 5000

bool sl_payload_is_for_one(struct slack *sl, const struct delivery *d, const json_t *payload)
{
        return d->kind == DELIVER_SEND && json_str(payload, "onlyFor", NULL) &&
               !sl_destination_is_dm(sl, d->channel);
}

static int add_text(struct sl_send *s, struct error *err)
{
        const char *text = json_str(s->payload, "text", "");
        json_t *blocks;

        if (json_object_get(s->payload, "card"))
                return s->plain ? sl_card_add_plain(s->args, s->payload, err)
                                : sl_card_add(s->args, s->payload, err);
        if (text[0] == '\0')
                return error_set(err, ERR_INVALID, "there is no text to send");
        if (sl_blocks_make(text, json_object_get(s->payload, "buttons"), s->plain, &blocks, err) <
            0)
                return -1;
        json_object_set_new(s->args, "text", json_string(text));
        if (blocks) /* an edit without blocks removes those of the older text */
                json_object_set_new(s->args, "blocks", blocks);
        return 0;
}

bool sl_payload_make_plain(struct sl_send *s)
{
        struct error err = { 0 };

        if (s->plain || (json_array_size(json_object_get(s->args, "blocks")) == 0 &&
                         json_array_size(json_object_get(s->args, "attachments")) == 0))
                return false;
        s->plain = true;
        json_object_del(s->args, "blocks");
        return add_text(s, &err) == 0;
}

static int take_message(struct sl_send *s, const struct delivery *d, const char *key,
                        struct error *err)
{
        const char *ts = d->target ? d->target : json_str(s->payload, "messageId", NULL);

        if (!sl_ts_valid(ts))
                return error_set(err, ERR_INVALID,
                                 "'%.40s' is not the ts of a Slack message, such as "
                                 "1700000000.000100",
                                 ts ? ts : "");
        s->message = mem_strdup(ts);
        json_object_set_new(s->args, key, json_string(ts));
        return 0;
}

/* Where read-back finds it again: in the message, invisible to people. */
void sl_payload_add_metadata(const struct sl_send *s, json_t *args)
{
        char key[ADAPTER_NONCE_SIZE + 1];

        adapter_nonce(s->adapter, s->delivery, s->created_ms, key);
        json_object_set_new(
                args, "metadata",
                json_pack("{s:s, s:{s:s}}", "event_type", SL_METADATA, "event_payload", "id", key));
}

static int make_message(struct sl_send *s, const struct delivery *d, struct error *err)
{
        s->only_for_one = sl_payload_is_for_one(s->sl, d, s->payload);
        s->method = s->only_for_one ? "chat.postEphemeral" : "chat.postMessage";
        if (s->only_for_one)
                json_object_set(s->args, "user", json_object_get(s->payload, "onlyFor"));
        else
                sl_payload_add_metadata(s, s->args);
        if (s->thread) {
                json_object_set_new(s->args, "thread_ts", json_string(s->thread));
                if (!s->only_for_one && json_flag(s->payload, "broadcast", false))
                        json_object_set_new(s->args, "reply_broadcast", json_true());
        }
        return add_text(s, err);
}

static int make_upload(struct sl_send *s, const struct delivery *d, struct error *err)
{
        s->method = "files.getUploadURLExternal";
        s->upload = sl_upload_new(s, d, err);
        return s->upload ? 0 : -1;
}

static int make_edit(struct sl_send *s, const struct delivery *d, struct error *err)
{
        s->method = "chat.update";
        return take_message(s, d, "ts", err) < 0 ? -1 : add_text(s, err);
}

static int make_delete(struct sl_send *s, const struct delivery *d, struct error *err)
{
        s->method = "chat.delete";
        return take_message(s, d, "ts", err);
}

static int make_reaction(struct sl_send *s, const struct delivery *d, struct error *err)
{
        const char *emoji = json_str(s->payload, "emoji", ""),
                   *target = d->target ? d->target : json_str(s->payload, "messageId", "");
        char name[100];

        if (!*emoji)
                return error_set(err, ERR_INVALID, "a reaction needs an emoji");
        if (sl_emoji_name(emoji, name, sizeof(name)) < 0)
                return error_set(err, ERR_INVALID,
                                 "'%.40s' has no name in Slack that we know: write its name, such "
                                 "as 'eyes'",
                                 emoji);
        if (d->turn > 0 && !sl_ts_valid(target))
                return 0; /* a command cannot be reacted to */
        s->method = d->kind == DELIVER_REACT ? "reactions.add" : "reactions.remove";
        json_object_set_new(s->args, "name", json_string(name));
        return take_message(s, d, "timestamp", err);
}

/* A thread exists as soon as somebody writes in it; its id is the ts of its first message. */
static int make_thread(struct sl_send *s, const struct delivery *d, struct error *err)
{
        return take_message(s, d, "ts", err);
}

/*
 * Slack shows no placeholder for a command, and closes no threads; sl_assistant.c shows that
 * somebody types.
 */
static int make_nothing(struct sl_send *s, const struct delivery *d, struct error *err)
{
        (void)s;
        (void)d;
        (void)err;
        return 0;
}

/* clang-format off */
const struct sl_send_kind sl_payload_kinds[] = {
        /*                            creates priority   wait_ms         make          */
        [DELIVER_SEND]            = { true,   SL_NORMAL, 0,              make_message  },
        [DELIVER_EDIT]            = { false,  SL_NORMAL, 0,              make_edit     },
        [DELIVER_DELETE]          = { false,  SL_NORMAL, 0,              make_delete   },
        [DELIVER_REACT]           = { false,  SL_IDLE,   0,              make_reaction },
        [DELIVER_UNREACT]         = { false,  SL_IDLE,   0,              make_reaction },
        [DELIVER_THREAD]          = { false,  SL_NORMAL, 0,              make_thread   },
        [DELIVER_TYPE]            = { false,  SL_IDLE,   0,              make_nothing  },
        [DELIVER_UPLOAD]          = { true,   SL_NORMAL, UPLOAD_WAIT_MS, make_upload   },
        [DELIVER_CANCEL_DEFERRED] = { false,  SL_NORMAL, 0,              make_nothing  },
        [DELIVER_CHANGE_THREAD]   = { false,  SL_NORMAL, 0,              make_nothing  },
};
/* clang-format on */
