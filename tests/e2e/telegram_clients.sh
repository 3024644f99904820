#!/usr/bin/env bash
# grammY, telegraf and python-telegram-bot run unchanged against dragoman-sim telegram; grammY reads Dragoman's cards, topics and a whole
# coding session.
platform=telegram
. "$(dirname "$0")/../clients/lib.sh"
token=100000001:dragoman-simulator-token

. tests/lib/ports.sh

status=0
with_sim $token '' node "$work/grammy.mjs" || status=1
[ -x "$build/dragoman" ] || make -j2 BUILD="$build" "$build/dragoman" || exit 1
DRAGOMAN=$build/dragoman with_sim $token '' node "$work/observer.mjs" || status=1
# telegraf adds a field of its own to buttons
with_sim $token --lax node "$work/telegraf.mjs" || status=1
reserve_port hook_port # python-telegram-bot cannot choose a free port
HOOK_PORT=$hook_port with_sim $token '' /usr/bin/python3 tests/clients/telegram/ptb.py || status=1
exit $status
