#!/usr/bin/env bash
# The official SDK of A2A is a client of the daemon, in versions 1.0 and 0.3: messages, streams, tasks, lists, keys; and a task goes on after a kill.
platform=a2a
. "$(dirname "$0")/../clients/lib.sh"
work=$(realpath "$work")
. tests/e2e/lib.sh

cat >"$dir/config.json" <<'C'
{ "a2a": { "publish": ["dragoman"] },
  "agents": { "stage": { "type": "script", "file": "stage.txt", "description": "Says what you said." } },
  "adapters": { "api": { "type": "api", "rateLimit": { "turns": 0 } } },
  "rules": [ { "name": "never", "when": { "text": "^skip" }, "agent": "stage", "mode": "off" }, { "name": "all", "agent": "stage" } ] }
C
cat >"$dir/stage.txt" <<'S'
when bad*
    fail refused It is broken.
when slow*
    piece "One. "
    wait 200
    piece "Two. "
    piece "Three."
when hang*
    hang
when survive*
    piece "lost "
    hang
when *
    say You said: {text}
S
start
make_key() { run keys create "$1" --scope a2a:write --adapter api --agent stage --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])'; }
export BASE_URL=http://$addr API_KEY=$(make_key one) OTHER_KEY=$(make_key two)
timeout 120 node "$work/client.mjs" || fail "the client failed"

# the client of docs/A2A.md
awk '{ sub(/^   /, "") } $0 == "<!-- file: ask.mjs -->" { found = 1; next } found && /^```/ { if (inside) exit; inside = 1; next } inside' docs/A2A.md |
        sed "s|http://127.0.0.1:8420|$BASE_URL|" >"$work/ask.mjs"
contains "$(KEY=$API_KEY timeout 60 node "$work/ask.mjs" hello)" 'You said: hello'

# killed while a task is streamed; the client that comes back with the same message gets the same task, which ran once more and no message twice
timeout 60 node "$work/client.mjs" send "survive this" message-1 >"$dir/stream" 2>&1 &
client=$!
await grep -q 'lost' "$dir/stream"
task=$(sed -n 's/.*"task":{"id":"\([^"]*\)".*/\1/p' "$dir/stream" | head -1)
kill_daemon
wait $client || true
sed -i 's/^    hang$/    say I am still here./; s/^    piece "lost ".*$//' "$dir/stage.txt"
start
BASE_URL=http://$addr timeout 60 node "$work/client.mjs" send "survive this" message-1 >"$dir/again"
contains "$(cat "$dir/again")" "\"task\":{\"id\":\"$task\""
contains "$(tail -1 "$dir/again")" completed
got=$(BASE_URL=http://$addr node "$work/client.mjs" get "$task")
contains "$got" '"state":"completed"'
contains "$got" 'I am still here.'
[ "$(api '/api/v2/events?type=message.received&limit=100' | grep -o 'survive this' | wc -l)" -ge 1 ] || fail "no message"
[ "$(run why "$task" --json | grep -c '"turnId"')" -ge 1 ] || fail "why does not know the task"
[ "$(api "/api/v2/trigger-logs?limit=100" | grep -o "\"eventId\":\"$task\"" | wc -l)" = 1 ] || fail "not one decision"
stop
