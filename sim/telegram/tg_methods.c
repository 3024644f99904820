#include "sim/telegram/tg_methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"

static const struct {
        const char *name;
        method_fn *fn;
} rows[] = {
        { "getUpdates", tg_updates_get },
        { "setWebhook", tg_webhook_set },
        { "deleteWebhook", tg_webhook_delete },
        { "getWebhookInfo", tg_webhook_info },
        { "sendMessage", method_send_message },
        { "sendPhoto", method_send_media },
        { "sendAudio", method_send_media },
        { "sendDocument", method_send_media },
        { "sendVideo", method_send_media },
        { "sendAnimation", method_send_media },
        { "sendVoice", method_send_media },
        { "sendVideoNote", method_send_media },
        { "sendSticker", method_send_media },
        { "sendMediaGroup", method_send_media_group },
        { "sendLocation", method_send_made },
        { "sendContact", method_send_made },
        { "sendVenue", method_send_made },
        { "sendDice", method_send_dice },
        { "forwardMessage", method_forward_message },
        { "copyMessage", method_copy_message },
        { "editMessageText", method_edit_text },
        { "editMessageCaption", method_edit_caption },
        { "editMessageReplyMarkup", method_edit_markup },
        { "editMessageMedia", method_edit_media },
        { "deleteMessage", method_delete_message },
        { "deleteMessages", method_delete_messages },
        { "setMessageReaction", method_react },
        { "sendChatAction", method_chat_action },
        { "answerCallbackQuery", method_answer_callback },
        { "getChat", method_get_chat },
        { "getChatMember", method_get_member },
        { "getChatAdministrators", method_get_admins },
        { "getChatMemberCount", method_count_members },
        { "leaveChat", method_leave },
        { "createForumTopic", method_create_topic },
        { "editForumTopic", method_change_topic },
        { "closeForumTopic", method_change_topic },
        { "reopenForumTopic", method_change_topic },
        { "deleteForumTopic", method_change_topic },
        { "getMe", method_get_me },
        { "setMyCommands", method_set_commands },
        { "getMyCommands", method_get_commands },
        { "deleteMyCommands", method_delete_commands },
        { "setMyName", method_set_text },
        { "setMyDescription", method_set_text },
        { "setMyShortDescription", method_set_text },
        { "getMyName", method_get_text },
        { "getMyDescription", method_get_text },
        { "getMyShortDescription", method_get_text },
        { "logOut", method_log_out },
        { "getFile", method_get_file },
        { "getUserProfilePhotos", method_get_photos },
};

/* By the method's place in the description, so that finding it costs nothing. */
static method_fn **by_number;

static void forget(void)
{
        free(by_number);
}

static void arrange(void)
{
        by_number = mem_array(tg_spec_method_count(), sizeof(*by_number));
        for (size_t i = 0; i < COUNT(rows); i++)
                by_number[tg_spec_method_number(tg_spec_method(rows[i].name))] = rows[i].fn;
        atexit(forget);
}

method_fn *tg_methods_find(const struct tg_spec_method *m)
{
        if (!by_number)
                arrange();
        return by_number[tg_spec_method_number(m)];
}
