#!/usr/bin/env bash
# grammY, telegraf and python-telegram-bot run unchanged against dragoman-sim telegram.
platform=telegram
. "$(dirname "$0")/../clients/lib.sh"
token=100000001:dragoman-simulator-token

# A port that is free now, for the one client that cannot choose by itself.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

status=0
with_sim $token '' node "$work/grammy.mjs" || status=1
# telegraf's buttons have a field of its own
with_sim $token --lax node "$work/telegraf.mjs" || status=1
HOOK_PORT=$(free_port) with_sim $token '' /usr/bin/python3 tests/clients/telegram/ptb.py || status=1
exit $status
