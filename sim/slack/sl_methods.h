/*
 * methods: the simulated methods of the Web API, one function each. They answer by sl_call_set or
 * sl_call_fail.
 */
#ifndef SIM_SLACK_SL_METHODS_H
#define SIM_SLACK_SL_METHODS_H

#include "sim/slack/sl_call.h"

/* ---- sl_method_app.c ---- */
slack_method_fn sl_method_api_test, sl_method_auth_test, sl_method_open_connection,
        sl_method_team_info, sl_method_bot_info, sl_method_user_info;
/* ---- sl_method_chat.c ---- */
slack_method_fn sl_method_post, sl_method_post_ephemeral, sl_method_update, sl_method_delete,
        sl_method_permalink;
/* Sets the thread of m. 0, or -1 after sl_call_fail. */
int sl_method_set_thread(struct slack_call *c, struct slack_message *m, const char *thread_ts);
/* Posts m with all that follows: the journal's entry of this kind, and the events. */
void sl_method_posted(struct slack_call *c, struct slack_message *m, const char *kind);
/* ---- sl_method_stream.c ---- */
slack_method_fn sl_method_start_stream, sl_method_append_stream, sl_method_stop_stream;
/* Ends the stream of m if its time is over. */
void sl_method_expire_stream(const struct slack_call *c, struct slack_message *m);
/* ---- sl_method_conversations.c ---- */
slack_method_fn sl_method_channel_info, sl_method_channel_list, sl_method_channel_members,
        sl_method_channel_open, sl_method_channel_join, sl_method_channel_mark,
        sl_method_user_channels, sl_method_user_list;
/* ---- sl_method_history.c ---- */
slack_method_fn sl_method_history, sl_method_replies, sl_method_react, sl_method_unreact,
        sl_method_reactions, sl_method_pin, sl_method_unpin;
/* ---- sl_method_files.c ---- */
slack_method_fn sl_method_upload_url, sl_method_complete_upload, sl_method_file_info,
        sl_method_file_delete;
/* ---- sl_method_views.c ---- */
slack_method_fn sl_method_view_open, sl_method_view_push, sl_method_view_update,
        sl_method_view_publish, sl_method_set_status, sl_method_set_title, sl_method_set_prompts;

/* ---- sl_method_respond.c: a post to a response_url ---- */
extern const struct slack_method sl_method_respond;
/* The same in the ack of a command; response is borrowed. Does not count as a use of the URL. */
void sl_method_respond_in_ack(struct slack_world *w, const char *url, const json_t *response);

#endif
