#!/usr/bin/env bash
# Two daemons poll with the same Telegram token: each gets a part, and each says so.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
other=
trap '[ -z "$other" ] || kill -9 "$other" 2>/dev/null || true; clean_up' EXIT
start_sim telegram
export TELEGRAM_BOT_TOKEN=100000001:dragoman-simulator-token
mkdir "$dir/second"
printf '{ "adapters": { "tg": { "type": "telegram", "botToken": "env:TELEGRAM_BOT_TOKEN", "apiBase": "%s", "dm": "everyone" } } }' "$sim" |
        tee "$dir/config.json" >"$dir/second/config.json"
start
"$DRAGOMAN" run "$dir/second" --listen 127.0.0.1:0 2>>"$dir/log" &
other=$!
shows() { "$DRAGOMAN" "$1" "$2" | grep -q "degraded.*another process polls with this bot token"; }
for data in "$dir" "$dir/second"; do
        await shows status "$data"
        await shows doctor "$data"
done
contains "$(curl -sS "http://$addr/readyz")" '"ready":true,"status":"degraded"'
contains "$(api /api/v2/status)" '"status":"degraded"'
contains "$(cat "$dir/log")" "adapter degraded"
kill -TERM "$other"
wait "$other" || true
other=
stop
