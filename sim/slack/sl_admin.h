/*
 * admin: the control API's requests that change the world: teams, users, channels, apps.
 */
#ifndef SIM_SLACK_SL_ADMIN_H
#define SIM_SLACK_SL_ADMIN_H

#include "sim/control.h"

control_fn sl_admin_team, sl_admin_user, sl_admin_channel, sl_admin_app, sl_admin_stop_stream;

#endif
