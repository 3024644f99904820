#!/usr/bin/env bash
# On Slack the answer is one short message, what the agent did is in its thread, and a kill changes neither.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm
model=$sim
start_sim slack
cat >"$dir/config.json" <<JSON
{ "agents": { "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$model", "apiKey": "sk-sim" } },
  "adapters": { "sl": { "type": "slack", "botToken": "xoxb-simulator-token", "appToken": "xapp-simulator-token", "apiBase": "$sim/api",
                        "channels": ["*"], "dm": ["*"], "debounceMs": 0, "rateLimit": { "turns": 0 } } } }
JSON
start
await is sl '"connected"'

# says TEXT: in a channel, written as in JSON.
says() { curl -sSf "$sim/sim/send" -d "{\"from\":\"ada\",\"channel\":\"general\",\"text\":\"<@dragoman> $1\"}" >/dev/null; }
shows() { curl -sS "$sim/sim/messages?limit=1000" | grep -qF "$1"; }
count() { curl -sS "$sim/sim/history?channel=general" | grep -oF "$1" | wc -l; }

says 'use bash: echo $((6*7))\ncall read {\"path\":\"none.txt\"}\nsay The answer is here.'
await shows 'The answer is here.'
await shows 'tokens in'
messages=$(curl -sS "$sim/sim/messages?limit=1000")
# the message that became the answer, and where the posts are
main=$(printf '%s' "$messages" | python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
main = next(m["message_id"] for m in items if m["kind"] == "edit" and m["text"] == "The answer is here.")
posts = [m for m in items if m["kind"] == "message" and m["message_id"] != main]
print(len(posts), all(m.get("thread_ts") == main for m in posts))')
test "$main" = "3 True" || fail "expected 3 posts in the thread of the answer, got '$main' in: $messages"
contains "$messages" '✅ *bash*'
contains "$messages" 'command: echo $((6*7))'
contains "$messages" '42'
contains "$messages" '❌ *read*'

# one post for each round, though the daemon dies between them
seconds=$((2000000 + $$))
says "use bash: echo before\\nuse bash: sleep $seconds\\nsay Survived."
await shows 'command: echo before'
await sleeps $seconds
kill_daemon
await sleeps_no_more $seconds
start
await shows 'Survived.'
await shows 'Interrupted by a restart'
test "$(count 'command: echo before')" -eq 1 || fail "a round is shown $(count 'command: echo before') times"
every_call_was_valid
stop
