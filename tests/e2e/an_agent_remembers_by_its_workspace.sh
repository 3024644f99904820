#!/usr/bin/env bash
# The prompt of a built-in agent has its memory, its skills and what it remembers of mom; the prompt of the second
# turn is that of the first, and log.jsonl and context.jsonl have what happened.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm

mom=$dir/mom
mkdir -p "$mom/C42" "$dir/workspace/skills/zip"
cat >"$mom/C42/context.jsonl" <<'CONTEXT'
{"type":"session","version":3,"id":"0a1b2c3d-0000-4000-8000-000000000000","timestamp":"2026-11-15T02:51:01.000Z","cwd":"/"}
{"type":"message","id":"ea6dcfc1","parentId":null,"timestamp":"2026-11-15T02:51:01.050Z","message":{"role":"user","content":[{"type":"text","text":"[mario]: the password of the printer is 4711"}],"timestamp":1794711061050}}
{"type":"message","id":"ea6dcfc2","parentId":"ea6dcfc1","timestamp":"2026-11-15T02:51:01.104Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"of another service"},{"type":"toolCall","id":"toolu_1","name":"bash","arguments":{"label":"noting","command":"true"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"toolUse","timestamp":1794711061104}}
{"type":"message","id":"ea6dcfc3","parentId":"ea6dcfc2","timestamp":"2026-11-15T02:51:01.204Z","message":{"role":"toolResult","toolCallId":"toolu_1","toolName":"bash","content":[{"type":"text","text":"noted"}],"isError":false,"timestamp":1794711061204}}
{"type":"message","id":"ea6dcfc4","parentId":"ea6dcfc3","timestamp":"2026-11-15T02:51:01.304Z","message":{"role":"assistant","content":[{"type":"text","text":"I will remember."}],"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","timestamp":1794711061304}}
CONTEXT
cat >"$dir/config.json" <<CONFIG
{ "agents": { "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$sim", "apiKey": "sk-sim", "sandbox": { "kind": "none" } } },
  "adapters": { "a": { "type": "api", "agent": "main" } } }
CONFIG
"$DRAGOMAN" import mom "$mom" "$dir" --adapter a 2>/dev/null | grep -q "4 messages of 1 session" || fail "import"
echo "The printer is on floor 3." >"$dir/workspace/MEMORY.md"
printf -- '---\nname: zip\ndescription: packs files\n---\n' >"$dir/workspace/skills/zip/SKILL.md"
channel=$dir/workspace/channels/a/C42
start

ask() { contains "$(post '/api/v2/messages/inbound?wait=60000' "{\"instanceId\":\"a\",\"chatId\":\"C42\",\"text\":\"$1\",\"sender\":{\"id\":\"u1\",\"username\":\"ann\"}}")" "$2"; }
ask 'say First.' 'First.'
ask 'say Second.' 'Second.'
calls=$(curl -sS "$sim/sim/calls?kind=messages")
for text in "floor 3" "<name>zip</name>" "@ann" "printer is 4711" "noted" "I will remember."; do contains "$calls" "$text"; done
case $calls in *"of another service"*) fail "thinking of another service was sent" ;; esac
every_call_was_valid
contains "$(curl -sS "$sim/sim/state")" '"refused":{}'

# both turns had the same prompt, and `prompt` shows it
systems=$(printf '%s' "$calls" | jq -c '[.. | .system? // empty | if type == "array" then map(.text) | join("") else . end]')
[ "$(printf '%s' "$systems" | jq 'length >= 2 and (unique | length) == 1')" = true ] || fail "system prompts: $systems"
"$DRAGOMAN" prompt a/C42 "$dir" --json 2>/dev/null | jq -r .prompt >"$dir/shown"
printf '%s' "$systems" | jq -r '.[0]' >"$dir/sent"
diff -u "$dir/sent" "$dir/shown" || fail "the prompt command shows something else"

written() { [ "$(jq -r 'select(.type == "message") | .message.role' "$channel/context.jsonl" | tr '\n' ,)" = "user,assistant,toolResult,assistant,user,assistant,user,assistant," ]; }
await written
jq -e -s '.[0].type == "session" and ([.[1:][].parentId] == [null, .[1:-1][].id])' "$channel/context.jsonl" >/dev/null || fail "no chain: $(cat "$channel/context.jsonl")"
logged() { [ "$(jq -r .text "$channel/log.jsonl" | tr '\n' ,)" = "say First.,First.,say Second.,Second.," ]; }
await logged
stop
