#!/usr/bin/env bash
# With the sandbox "host" every command asks: it runs once approved, once, also after kill -9; refused, changed and denied ones do not run.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm
says() { event=$(post /api/v2/messages/inbound "{\"instanceId\":\"terminal\",\"chatId\":\"room\",\"text\":\"$1\"}" | grep -o 'evt-[0-9]*'); }
ended() { run why "$event" | grep -q "trn-[0-9]* done"; }
asked() { await open_id; id=$(open_id); }
room=$dir/workspace/channels/terminal/room

cat >"$dir/config.json" <<C
{ "agents": { "helper": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "apiKey": "sk-sim", "baseUrl": "$sim",
    "sandbox": { "kind": "host" },
    "policy": { "files": { "tool": "write", "decide": "allow" }, "no-reboot": { "command": "reboot *", "decide": "deny" } } } } }
C
start

# approved after kill -9: it runs once
says 'use bash: echo once >> out.txt'
asked
contains "$(run approvals show "$id")" "echo once >> out.txt"
contains "$(run approvals show "$id")" "it runs on the host, outside a sandbox"
[ ! -e "$room/out.txt" ] || fail "it ran before it was approved"
kill_daemon
start
[ "$(open_id)" = "$id" ] || fail "the question is not open any more"
run approvals approve "$id" >/dev/null
await ended
[ "$(cat "$room/out.txt")" = once ] || fail "it ran otherwise: $(cat "$room/out.txt")"

# refused: it does not run, and the model gets the note
says 'use bash: echo never > never.txt'
asked
run approvals refuse "$id" --note "not today" >/dev/null
await ended
[ ! -e "$room/never.txt" ] || fail "a refused command ran"
contains "$(api "/api/v2/events?type=agent.*&limit=100")" "refused this: not today"

# a script that changed after the question is not run
says 'call write {\"path\":\"scratch/x.sh\",\"content\":\"echo good > x.txt\",\"label\":\"write\"}'
await ended
says 'use bash: bash scratch/x.sh'
asked
rm -f "$room/scratch/x.sh"
echo 'echo bad > x.txt' >"$room/scratch/x.sh"
run approvals approve "$id" >/dev/null
await ended
[ ! -e "$room/x.txt" ] || fail "a changed script ran"

# denied: it is refused without a question
says 'use bash: true; reboot now'
await ended
[ -z "$(open_id)" ] || fail "a denied command asked"

# always: not asked again, but only this
says 'use bash: ls'
asked
run approvals approve "$id" --always >/dev/null
await ended
says 'use bash: ls'
await ended
says 'use bash: ls -a'
asked
run approvals refuse "$id" >/dev/null
await ended
stop
