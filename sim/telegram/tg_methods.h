/*
 * methods: the functions behind the table in methods.c, by file.
 */
#ifndef SIM_TELEGRAM_TG_METHODS_H
#define SIM_TELEGRAM_TG_METHODS_H

#include "sim/telegram/tg_call.h"

/* send.c */
method_fn method_send_message, method_send_media, method_send_media_group, method_send_made,
        method_send_dice, method_forward_message, method_copy_message;
/* change.c: what becomes of messages */
method_fn method_edit_text, method_edit_caption, method_edit_markup, method_edit_media,
        method_delete_message, method_delete_messages, method_react, method_chat_action,
        method_answer_callback;
/* chats.c */
method_fn method_get_chat, method_get_member, method_get_admins, method_count_members, method_leave,
        method_create_topic, method_change_topic;
/* profile.c: the bot itself */
method_fn method_get_me, method_set_commands, method_get_commands, method_delete_commands,
        method_set_text, method_get_text, method_log_out, method_get_file, method_get_photos;

#endif
