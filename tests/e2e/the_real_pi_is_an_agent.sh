#!/usr/bin/env bash
# pi from npm as an agent: streaming, tools, steering, questions with buttons, /stop, kill -9 of it and of the daemon, idle end, /new.
kind=pi
. "$(dirname "$0")/../clients/coding/scenario.sh"
