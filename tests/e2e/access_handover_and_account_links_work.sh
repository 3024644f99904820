#!/usr/bin/env bash
# Pairing, a handover and account links on Telegram, across a restart.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$sim", "dm": "pairing",
                        "debounceMs": 0, "rateLimit": { "turns": 0 },
                        "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
JSON
says() { curl -sS "$sim/sim/send" -d "{\"from\":$1,\"text\":\"$2\"}" >/dev/null; }
code_of() { printf '%s' "$shown" | grep -o '[A-Z2-9]\{4\}-[A-Z2-9]\{4\}' | head -1; }
# decided REASON COUNT: waits until so many messages were decided with this reason.
has_decided() { [ "$(api '/api/v2/trigger-logs?limit=100' | grep -o "$1" | wc -l)" -ge "$2" ]; }
decided() { await has_decided "$1" "$2"; }
cli() { "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 || fail "'$*': $(cat "$dir/out")"; }

start
says 42 hello
next message 'I do not know you yet'
cli pairing list
contains "$(cat "$dir/out")" "$(code_of)"
cli pairing approve "$(code_of | tr 'A-Z-' 'a-z ')"
says 42 again
next message '"text":"again"'

cli pause tg/42 --reason 'a refund'
says 42 'are you there?'
decided 'the agent is paused here since' 1
cli send tg/42 'Ann here.'
next message 'Ann here.'
stop
start
says 42 'still there?'
decided 'the agent is paused here since' 2
cli resume tg/42
says 42 thanks
next message '"text":"thanks"'

cli persons search 42
contains "$(cat "$dir/out")" telegram:42
cli persons set per-1 --timezone Europe/Berlin --quiet-hours 22:00-07:00 --daily-cap 5 --reach-at tg
contains "$(cat "$dir/out")" 'Europe/Berlin, quiet 22:00-07:00, at most 5 a day, reached at tg'
says 42 /link
next message 'Your code is'
says 43 "/link $(code_of)"
next message 'are linked now'
says 43 hello
next message 'I do not know you yet'
cli access allow per-1
says 43 'hello again'
next message '"text":"hello again"'
cli access deny telegram:42
says 43 'me too?'
decided "denies 'telegram:42'" 1
cli persons unlink telegram:43
cli send tg/per-1 'You are out.'
next message 'You are out.'
every_call_was_valid
stop
