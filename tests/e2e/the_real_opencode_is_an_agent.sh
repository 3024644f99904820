#!/usr/bin/env bash
# opencode from npm as an agent over ACP: sandbox, streaming, tools, questions with buttons, a policy, /stop, kill -9 of it and of the daemon, idle end, /new.
kind=opencode
. "$(dirname "$0")/../clients/acp/scenario.sh"
