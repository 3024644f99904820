#!/usr/bin/env bash
# With wrong tokens the daemon runs, and doctor and /readyz say that it does not work.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
export TELEGRAM_BOT_TOKEN=4711:wrong RIGHT=100000001:dragoman-simulator-token
adapter() { printf '"%s": { "type": "telegram", "botToken": "%s", "apiBase": "%s", "dm": "everyone" }' "$1" "$2" "$sim"; }
printf '{ "adapters": { %s } }' "$(adapter one env:TELEGRAM_BOT_TOKEN)" >"$dir/config.json"
launch
await grep -q "does not know this bot token" "$dir/log"
ready=$(curl -sS -w '%{http_code}' "http://$addr/readyz")
contains "$ready" '"ready":false,"status":"not ready","why":"one: Telegram does not know this bot token'
contains "$ready" 503
rc=0
"$DRAGOMAN" doctor "$dir" >"$dir/out" || rc=$?
[ $rc -eq 1 ] || fail "doctor exited with $rc"
contains "$(cat "$dir/out")" "fail  adapter one is error: Telegram does not know this bot token"

# a bot that works beside one that is refused: ready, but degraded
printf '{ "adapters": { %s, %s } }' "$(adapter one env:TELEGRAM_BOT_TOKEN)" "$(adapter two env:RIGHT)" >"$dir/config.json"
kill -HUP "$daemon_pid"
await curl -sf "http://$addr/readyz"
contains "$(curl -sS "http://$addr/readyz")" '"ready":true,"status":"degraded","why":null'
rc=0
"$DRAGOMAN" doctor "$dir" >"$dir/out" || rc=$?
[ $rc -eq 1 ] || fail "doctor exited with $rc"
stop
