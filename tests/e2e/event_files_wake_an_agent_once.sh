#!/usr/bin/env bash
# Files of the operator and of the agent itself wake the agent in its chat, once, also when the daemon was down at the time; a check with
# nothing to say asks no model, and a broken file is set aside with a note.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_agent_on_discord
events=$dir/workspace/events

says 'say Hello.'
next message Hello.
channel=$(printf '%s' "$shown" | sed -n 's/.*"channel_id":"\([0-9]*\)".*/\1/p' | head -1)

# the operator's files
echo "{\"type\":\"immediate\",\"channelId\":\"dc/$channel\",\"text\":\"A ticket.\\nsay From a file.\"}" >"$events/ticket.json"
next message 'From a file.'
await test -f "$events/done/ticket.json"
contains "$(requests)" '[EVENT:ticket.json:immediate:immediate] A ticket.'
echo '{"type":"immediate","channelId":"cd/1","text":"x"}' >"$events/typo.json"
await test -s "$events/broken/typo.json.txt"
contains "$(cat "$events/broken/typo.json.txt")" "there is no adapter 'cd'"
echo "{\"type\":\"immediate\",\"channelId\":\"dc/$channel\",\"text\":\"x\",\"agent\":\"mian\"}" >"$events/agent.json"
await test -s "$events/broken/agent.json.txt"
contains "$(cat "$events/broken/agent.json.txt")" "there is no agent 'mian'"
ln -s /etc/hostname "$events/link.json" # the confined daemon cannot move it
await test -s "$events/broken/link.json.txt"
rm -f "$events/link.json"
contains "$(run schedule history sch-999 2>&1 || true)" "there is no schedule 'sch-999'"

# the agent's own: it is found when the turn has ended
says 'call write {\"path\":\"events/later.json\",\"content\":\"{\\\"type\\\":\\\"immediate\\\",\\\"text\\\":\\\"Now.\\\\nsay Woken by myself.\\\"}\"}\nsay Planned.'
next message Planned.
next message 'Woken by myself.'
await test -f "$dir/workspace/channels/dc/$channel/events/done/later.json"

# checks run in the sandbox of the agent
asked=$(requests | jq '.items | length')
echo "{\"type\":\"immediate\",\"channelId\":\"dc/$channel\",\"text\":\"say Never.\",\"check\":\"ls events/done >/dev/null\"}" >"$events/silent.json"
await sh -c "'$DRAGOMAN' schedule all --json --dir '$dir' | grep -q silent.json"
silent=$(run schedule all --json | jq -r '[.. | objects | select(.name? == "silent.json") | .id][0]')
await sh -c "'$DRAGOMAN' schedule history $silent --json --dir '$dir' | grep -q '\"quiet\"'"
[ "$(requests | jq '.items | length')" -eq "$asked" ] || fail "a silent check asked the model"
echo "{\"type\":\"immediate\",\"channelId\":\"dc/$channel\",\"text\":\"Mail?\\nsay There is mail.\",\"check\":\"pwd; echo 3 new\"}" >"$events/mail.json"
next message 'There is mail.'
contains "$(requests)" "/workspace/channels/dc/$channel\\n3 new\\n"

# due while the daemon was down: late, and once
kill_daemon
echo "{\"type\":\"one-shot\",\"channelId\":\"dc/$channel\",\"text\":\"Exam.\\nsay Better late.\",\"at\":\"$(date -u -d '-10 minutes' +%Y-%m-%dT%H:%M:%SZ)\"}" >"$events/exam.json"
start
next message 'Better late.'
contains "$(requests)" '(late: '
await test -f "$events/done/exam.json"
stop
mv "$events/done/exam.json" "$events/exam.json"
start
await test -f "$events/done/exam.json"
says 'say The end.'
next message 'The end.'
every_call_was_valid
