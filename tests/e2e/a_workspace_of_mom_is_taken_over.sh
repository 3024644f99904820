#!/usr/bin/env bash
# `dragoman import mom` takes over files, logs and what the agent remembers; it can be repeated, and refuses to work beside a daemon.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh

cat >"$dir/config.json" <<'CONFIG'
{ "agents": { "main": { "type": "builtin", "model": "anthropic/some", "apiKey": "none" } } }
CONFIG
mom=$dir/mom
mkdir -p "$mom/C42/attachments" "$mom/skills/zip"
echo "We are a small team." >"$mom/MEMORY.md"
echo "Mario likes tables." >"$mom/C42/MEMORY.md"
printf -- '---\ndescription: packs files\n---\n' >"$mom/skills/zip/SKILL.md"
printf PNG >"$mom/C42/attachments/1794711061042_my_pic.png"
cat >"$mom/C42/log.jsonl" <<'LOG'
{"date":"2026-11-15T02:51:01.042Z","ts":"1794711061.042248","user":"U1","userName":"mario","displayName":"Mario Z","text":"look","attachments":[{"original":"my pic.png","local":"C42/attachments/1794711061042_my_pic.png"}],"isBot":false}
{"date":"2026-11-15T02:51:01.104Z","ts":"1794711061.059005","user":"bot","text":"final answer","attachments":[],"isBot":true}
LOG
cat >"$mom/C42/context.jsonl" <<'CONTEXT'
{"type":"session","version":3,"id":"0a1b2c3d-0000-4000-8000-000000000000","timestamp":"2026-11-15T02:51:01.000Z","cwd":"/"}
{"type":"message","id":"ea6dcfc1","parentId":null,"timestamp":"2026-11-15T02:51:01.050Z","message":{"role":"user","content":[{"type":"text","text":"[2026-11-15 03:50:58+01:00] [mario]: look"}],"timestamp":1794711061050}}
{"type":"message","id":"ea6dcfc2","parentId":"ea6dcfc1","timestamp":"2026-11-15T02:51:01.104Z","message":{"role":"assistant","content":[{"type":"text","text":"final answer"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","timestamp":1794711061104}}
CONTEXT
channel=$dir/workspace/channels/slack/C42

[ "$("$DRAGOMAN" import mom "$mom" "$dir" --dry-run --json 2>/dev/null | jq -c '[.channels, .files, .lines, .messages]')" = "[1,4,2,2]" ] || fail "dry run"
[ ! -e "$dir/workspace" ] || fail "a dry run wrote something"
"$DRAGOMAN" import mom "$mom" "$dir" >"$dir/out" 2>"$dir/err" || fail "import: $(cat "$dir/err")"
contains "$(cat "$dir/out")" "1 channel, 4 files copied"
contains "$(cat "$dir/out")" "2 messages of 1 session remembered"
cmp "$mom/C42/MEMORY.md" "$channel/MEMORY.md"
cmp "$mom/C42/attachments/1794711061042_my_pic.png" "$channel/attachments/1794711061042_my_pic.png"
[ "$(jq -r '[.id, .sender.username, .text] | join(" ")' "$channel/log.jsonl" | tr '\n' ,)" = "1794711061.042248 mario look,1794711061.059005 mom final answer," ] ||
        fail "log: $(cat "$channel/log.jsonl")"
[ -f "$channel/$(jq -r '.attachments[0].localPath // empty' "$channel/log.jsonl" | head -1)" ] || fail "the attachment is not where the log says"

# once more: nothing new
[ "$("$DRAGOMAN" import mom "$mom" "$dir" --json 2>/dev/null | jq -c '[.files, .same, .differ, .sessions]')" = "[0,4,0,0]" ] || fail "the second import did something"

prompt=$("$DRAGOMAN" prompt slack/C42 "$dir" 2>/dev/null)
for text in "We are a small team." "Mario likes tables." "<name>zip</name>"; do contains "$prompt" "$text"; done
"$DRAGOMAN" workspace rebuild "$dir" >"$dir/out"
contains "$(cat "$dir/out")" "1 session written"
[ "$(jq -r 'select(.type == "message") | .message.role' "$channel/context.jsonl" | tr '\n' ,)" = "user,assistant," ] || fail "context: $(cat "$channel/context.jsonl")"
[ "$(wc -l <"$channel/log.jsonl")" -eq 2 ] || fail "rebuild lost lines of mom"

start
code=0
"$DRAGOMAN" import mom "$mom" "$dir" 2>"$dir/err" || code=$?
[ "$code" -ne 0 ] && grep -q "stop it first" "$dir/err" || fail "import beside a daemon: $(cat "$dir/err")"
stop
code=0
"$DRAGOMAN" import mom "$dir/state" "$dir" 2>"$dir/err" || code=$?
[ "$code" -eq 1 ] && grep -q "has no channels" "$dir/err" || fail "import of something else: $(cat "$dir/err")"

# the channels belong to the adapter of Slack, whatever its name
token='"type": "slack", "botToken": "xoxb-1", "appToken": "xapp-1"'
echo "{ \"agents\": { \"main\": { \"type\": \"builtin\", \"model\": \"anthropic/some\", \"apiKey\": \"none\" } }, \"adapters\": { \"acme\": { $token } } }" >"$dir/config.json"
"$DRAGOMAN" import mom "$mom" "$dir" >/dev/null 2>&1 || fail "import for the adapter 'acme'"
cmp "$mom/C42/MEMORY.md" "$dir/workspace/channels/acme/C42/MEMORY.md"
sed -i "s/\"acme\"/\"other\": { ${token/xoxb-1/xoxb-2} }, \"acme\"/" "$dir/config.json"
code=0
"$DRAGOMAN" import mom "$mom" "$dir" 2>"$dir/err" || code=$?
[ "$code" -eq 1 ] && grep -q "choose one with --adapter" "$dir/err" || fail "import with two adapters of Slack: $(cat "$dir/err")"
