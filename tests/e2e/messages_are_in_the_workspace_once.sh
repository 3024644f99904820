#!/usr/bin/env bash
# log.jsonl has each message once, also after kill -9 and a rebuild; `prompt` shows what an agent would see.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh

cat >"$dir/config.json" <<'CONFIG'
{ "agents": { "echo": { "type": "echo" }, "main": { "type": "builtin", "model": "anthropic/some", "apiKey": "sk-canary-1", "system": "Be brief." } },
  "defaultAgent": "echo",
  "adapters": { "a": { "type": "api", "agent": "echo" } } }
CONFIG
log=$dir/workspace/channels/a/room/log.jsonl
writes() { post '/api/v2/messages/inbound?wait=60000' "{\"instanceId\":\"a\",\"chatId\":\"room\",\"text\":\"$1\",\"sender\":{\"id\":\"u1\",\"username\":\"ann\",\"displayName\":\"Ann A.\"}}" >/dev/null; }
lines() { [ "$(wc -l <"$log")" -eq "$1" ]; }

start
for i in 1 2 3 4 5; do writes "message $i"; done
await lines 10
kill_daemon
printf '{"id":"torn' >>"$log" # as if it had been writing
start
writes "message 6"
await lines 12
[ "$(jq -r .id "$log" | sort | uniq -d | wc -l)" -eq 0 ] || fail "a message is there twice: $(cat "$log")"
[ "$(jq -r 'select(.sender.isBot | not) | .text' "$log" | tr '\n' ,)" = "message 1,message 2,message 3,message 4,message 5,message 6," ] ||
        fail "messages of people: $(cat "$log")"

# with a daemon: the prompt, but no rebuild
mkdir -p "$dir/workspace/skills/zip" "$dir/workspace/channels/a/room"
printf -- '---\nname: zip\ndescription: packs files\n---\n' >"$dir/workspace/skills/zip/SKILL.md"
echo "We meet on Mondays." >"$dir/workspace/MEMORY.md"
prompt=$("$DRAGOMAN" prompt a/room "$dir" --agent main --json)
for text in "Be brief." "@ann (Ann A.)" "<name>zip</name>" "We meet on Mondays." "/workspace/channels/a/room"; do
        contains "$(printf '%s' "$prompt" | jq -r .prompt)" "$text"
done
case $prompt in *sk-canary-1*) fail "the key is in the prompt" ;; esac
[ "$(printf '%s' "$prompt" | jq '([.parts[].bytes] | add) == .bytes')" = true ] || fail "the parts are not the whole"
code=0
"$DRAGOMAN" prompt a/room "$dir" 2>"$dir/err" || code=$?
[ "$code" -eq 1 ] && grep -q "agent 'echo' is of type echo" "$dir/err" || fail "prompt of an echo agent: $(cat "$dir/err")"
code=0
"$DRAGOMAN" workspace rebuild "$dir" 2>"$dir/err" || code=$?
[ "$code" -ne 0 ] && grep -q "stop it first" "$dir/err" || fail "rebuild beside a daemon: $(cat "$dir/err")"

# without one: the same file again
stop
cp "$log" "$dir/before"
rm "$log"
"$DRAGOMAN" workspace rebuild "$dir" >"$dir/out"
cmp "$log" "$dir/before" || fail "the rebuilt log differs"
"$DRAGOMAN" workspace rebuild "$dir" >"$dir/out"
cmp "$log" "$dir/before" || fail "the log rebuilt twice differs"
start
writes "message 7"
await lines 14
stop
