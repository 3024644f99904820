#!/usr/bin/env bash
# Claude Code from npm as an agent over ACP: sandbox, streaming, tools, questions with buttons, a policy, /stop, kill -9 of it and of the daemon, idle end, /new.
kind=claude
. "$(dirname "$0")/../clients/acp/scenario.sh"
