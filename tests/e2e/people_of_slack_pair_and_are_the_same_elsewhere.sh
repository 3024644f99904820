#!/usr/bin/env bash
# Pairing in a direct message, an account linked with one on Telegram, and access that follows the person; joins are explained.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
telegram=$sim
start_sim slack
slack=$sim
cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "adapters": { "sl": { "type": "slack", "botToken": "xoxb-simulator-token", "appToken": "xapp-simulator-token", "apiBase": "$slack/api",
                        "dm": "pairing", "channels": ["C0GENERAL"], "debounceMs": 0, "rateLimit": { "turns": 0 },
                        "pace": { "perSecond": 0, "perChatPerSecond": 0 } },
                "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$telegram", "dm": "pairing",
                        "debounceMs": 0, "rateLimit": { "turns": 0 },
                        "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
JSON
# Each simulator counts its own actions.
slack_seen=0 telegram_seen=0
on() {
        if [ "$1" = slack ]; then sim=$slack seen=$slack_seen; else sim=$telegram seen=$telegram_seen; fi
        shift
        "$@"
        if [ "$sim" = "$slack" ]; then slack_seen=$seen; else telegram_seen=$seen; fi
}
says() { curl -sSf "$sim/sim/send" -d "{\"from\":$1,\"text\":\"$2\"}" >/dev/null; }
code_of() { printf '%s' "$shown" | grep -o '[A-Z2-9]\{4\}-[A-Z2-9]\{4\}' | head -1; }
cli() { "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 || fail "'$*': $(cat "$dir/out")"; }
explained() { "$DRAGOMAN" why "$dir" | grep -qF "$1"; }

start
on slack says '"ada"' hello
on slack next message 'I do not know you yet'
cli pairing approve "$(code_of)"
on slack says '"ada"' again
on slack next message '"text":"again"'
cli persons search ada
contains "$(cat "$dir/out")" slack:U0ADA

# the account on Telegram becomes the same person, whom the pairing does not cover there
on telegram says 42 hello
on telegram next message 'I do not know you yet'
on slack says '"ada"' '<@dragoman> /link'
on slack next message 'Your code is'
on telegram says 42 "/link $(code_of)"
on telegram next message 'are linked now'
cli access allow per-1
on telegram says 42 'it is me'
on telegram next message '"text":"it is me"'
cli access deny slack:U0ADA
on slack says '"ada"' 'and here?'
await explained "denies 'slack:U0ADA'"

# joins are stored, and why says that no rule names them
on slack curl -sSf "$slack/sim/members" -d '{"from":"carol","channel":"general"}' -o "$dir/out"
await explained "event 'custom.slack.channel_join' triggers only by a rule that names it"
on slack every_call_was_valid
stop
