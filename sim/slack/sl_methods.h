/*
 * methods: the simulated methods of the Web API, one function each. They answer by sl_call_set or
 * sl_call_fail.
 */
#ifndef SIM_SLACK_SL_METHODS_H
#define SIM_SLACK_SL_METHODS_H

#include "sim/slack/sl_call.h"

slack_method_fn sl_method_api_test, sl_method_auth_test, sl_method_open_connection,
        sl_method_team_info, sl_method_bot_info;
slack_method_fn sl_method_user_info;
slack_method_fn sl_method_post;
slack_method_fn sl_method_channel_info;

#endif
