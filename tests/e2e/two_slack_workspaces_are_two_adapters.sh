#!/usr/bin/env bash
# Two workspaces with an app each: what is said in one is answered there, and the removal of one app leaves the other alone.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim slack
tell() { curl -sSf "$sim/sim/$1" -d "$2" >/dev/null; }
tell teams '{"id":"T2","name":"Other"}'
made=$(curl -sSf "$sim/sim/apps" -d '{"token":"xoxb-second","app_token":"xapp-second","team":"T2"}')
second=$(printf '%s' "$made" | sed 's/.*"app":"\([A-Z0-9]*\)".*/\1/')
helper=$(printf '%s' "$made" | sed 's/.*"user":"\([A-Z0-9]*\)".*/\1/')
tell users '{"id":"U0BOB","name":"bob","team":"T2"}'
tell channels '{"name":"lobby","team":"T2","members":["bob"]}'
cat >"$dir/config.json" <<END
{
  "adapters": {
    "lab": { "type": "slack", "botToken": "xoxb-simulator-token", "appToken": "xapp-simulator-token", "apiBase": "$sim/api",
             "channels": ["*"] },
    "other": { "type": "slack", "botToken": "xoxb-second", "appToken": "xapp-second", "apiBase": "$sim/api",
               "channels": ["*"] }
  },
  "agents": { "echo": { "type": "echo" } }
}
END
start
for name in lab other; do await is $name '"connected"'; done
contains "$(api /api/v2/instances/other)" "\"ownerIdentifier\":\"$helper\""
tell send '{"from":"ada","channel":"general","text":"<@dragoman> in the first"}'
next message 'in the first'
contains "$shown" '"app":"dragoman"'
tell send "{\"from\":\"bob\",\"channel\":\"lobby\",\"text\":\"<@$helper> in the second\"}"
next message 'in the second'
contains "$shown" "\"user\":\"$helper\""
tell gateway "{\"action\":\"uninstall\",\"app\":\"$second\"}"
await is other 'the app was removed or its token revoked'
tell send '{"from":"ada","channel":"general","text":"<@dragoman> still here"}'
next message 'still here'
every_call_was_valid
stop
