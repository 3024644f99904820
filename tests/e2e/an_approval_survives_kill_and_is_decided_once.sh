#!/usr/bin/env bash
# A turn asks; the daemon is killed; the question is still open, decided on the command line, and the turn goes on.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
refused() { ! run "$@" >"$dir/out" 2>&1 || fail "'$*' was accepted"; }
answered() { [ "$(api '/api/v2/events?type=message.sent&limit=100' | grep -o "$1" | wc -l)" -ge "$2" ]; }

printf '{ "agents": { "stage": { "type": "script", "file": "stage.txt" } } }' >"$dir/config.json"
printf 'when clean\n  ask admins 3600000 rm -r drafts\n  say All is clean.\nwhen *\n  say You said: {text}\n' >"$dir/stage.txt"
start
contains "$(run approvals)" "no approval is open"
post /api/v2/messages/inbound '{"instanceId":"terminal","chatId":"room","text":"clean"}' >/dev/null
await open_id
id=$(open_id)
contains "$(run approvals)" "rm -r drafts"
contains "$(run approvals show "$id")" "bound to {\"command\":\"rm -r drafts\"}"
contains "$(run approvals show "$id")" "always   would write the rule"
contains "$(run status)" "1 approval waits for a person"
contains "$(api /metrics)" "dragoman_approvals_open 1"
contains "$(run why trn-1)" "waits for an approval: '$id' (do something)"

kill_daemon
start
[ "$(open_id)" = "$id" ] || fail "the question is not open any more"
answered "All is clean" 1 && fail "it went on by itself"

refused approvals approve apr-9999
refused approvals list --always
contains "$(run approvals approve "$id" --always --note "for once")" approved
await answered "All is clean" 1
refused approvals refuse "$id"
contains "$(cat "$dir/out")" "was approved by the operator, also in future: for once"
contains "$(run approvals history)" "by the operator"
contains "$(run why trn-1)" "$id approved by the operator: for once"

contains "$(run approvals rules)" "rm -r drafts"
contains "$(run approvals rules --json)" '"apl-1"'
contains "$(run approvals forget apl-1)" "apl-1 is removed"
contains "$(run approvals rules)" "there are no rules"

# in the terminal's chat the operator is an admin: a plain "no" answers the only question
post /api/v2/messages/inbound '{"instanceId":"terminal","chatId":"room","text":"clean"}' >/dev/null
await open_id
post /api/v2/messages/inbound '{"instanceId":"terminal","chatId":"room","text":"no"}' >/dev/null
await answered "It was not allowed" 1
contains "$(run approvals history)" refused

# a shutdown does not wait for people
post /api/v2/messages/inbound '{"instanceId":"terminal","chatId":"room","text":"clean"}' >/dev/null
await open_id
stop
