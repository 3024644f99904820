#!/usr/bin/env bash
# Commands of the built-in agent run in a sandbox of the confined daemon: secrets of the daemon are found nowhere, hosts are journaled, status and
# doctor say where commands run, nothing survives kill -9, and without bubblewrap they are refused with what mends it.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm
export DRAGOMAN_E2E_KEY=sk-sim DRAGOMAN_E2E_CANARY=canary-e2e-5150
configure() {
        cat >"$dir/config.json" <<JSON
{ "agents": { "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$sim", "apiKey": "env:DRAGOMAN_E2E_KEY",
                        "sandbox": { "kind": "$1"$2 } } },
  "adapters": { "api": { "type": "api", "agent": "main" } } }
JSON
}
# runs COMMAND in the chat $chat; $requests is what the model got
chat=1
runs() {
        post '/api/v2/messages/inbound?wait=60000' "$(python3 -c 'import json, sys; print(json.dumps({"instanceId": "api", "chatId": sys.argv[1], "text": "use bash: %s\nsay Done." % sys.argv[2]}))' "$chat" "$1")" >"$dir/answer"
        contains "$(cat "$dir/answer")" Done.
        requests=$(curl -sS "$sim/sim/calls?kind=messages&limit=1000")
}

configure bwrap ', "hosts": ["example.org"]'
exec 7</
start
await sh -c "'$DRAGOMAN' status --dir '$dir' | grep -q 'commands run in bwrap'"
contains "$("$DRAGOMAN" doctor --dir "$dir" || true)" 'commands of agent main run in bwrap'

# a secret in the environment, in a descriptor, and in another chat
chat=2
runs 'echo canary-of-another-chat >secret.txt; echo WROTE-IT'
contains "$requests" 'WROTE-IT'
chat=1
runs 'grep -las "canary-[e]2e" /proc/*/environ /proc/*/cmdline; env | grep "canary-[e]2e"; ls /proc/self/fd | tr "\n" -; grep -rls "canary-[o]f" /workspace /tmp /home /etc /dev/shm; echo SEARCHED'
contains "$requests" '0-1-2-3-SEARCHED'
case $requests in *canary-e2e-5150*) fail "a secret reached the model" ;; esac
! grep -rqa canary-e2e-5150 "$dir" || fail "a secret was written: $(grep -rla canary-e2e-5150 "$dir")"

runs 'curl -s http://example.net/; echo ASKED'
contains "$requests" 'may not reach example.net:80'
await sh -c "curl -s -H 'x-api-key: $key' 'http://$addr/api/v2/events?type=agent.network_request' | grep -q '\"host\":\"example.net\",\"port\":80,\"allowed\":false'"

# nothing survives the daemon
seconds=$((1000000 + $$))
say api "call bash {\\\"command\\\":\\\"(setsid sleep $seconds &); sleep $seconds\\\",\\\"background\\\":true}\nsay Started." >/dev/null
await sleeps $seconds
kill_daemon
await sleeps_no_more $seconds

# on the host only when it says so
configure host ''
start
await sh -c "'$DRAGOMAN' status --dir '$dir' | grep -q 'commands run in no sandbox'"
contains "$("$DRAGOMAN" doctor --dir "$dir" || true)" 'without a sandbox'
stop

# and never instead
configure bwrap ''
mkdir "$dir/bin"
printf '#!/bin/sh\necho "bwrap: Creating new namespace failed: Operation not permitted" >&2\nexit 1\n' >"$dir/bin/bwrap"
chmod 755 "$dir/bin/bwrap" "$dir"
PATH=$dir/bin:$PATH start
await sh -c "'$DRAGOMAN' status --dir '$dir' | grep -q 'commands are refused: .*user.max_user_namespaces'"
contains "$("$DRAGOMAN" doctor --dir "$dir" || true)" 'agent main refuses commands'
runs 'echo HELLO-FROM-$((40 + 2))'
contains "$requests" 'this machine forbids user namespaces'
case $requests in *HELLO-FROM-42*) fail "a command ran elsewhere" ;; esac
stop

configure chroot ''
! "$DRAGOMAN" config check --dir "$dir" >"$dir/out" 2>&1 || fail "a wrong kind was accepted"
contains "$(cat "$dir/out")" "'chroot' is no sandbox"
