#!/usr/bin/env bash
# The commands of docs/A2A.md work as printed there: an agent of others answers in a chat, and software of others asks one of ours.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
. tests/lib/ports.sh

# The code block after "<!-- MARK -->", in a list.
extract() { awk -v mark="<!-- $1 -->" '{ sub(/^   /, "") } $0 == mark { found = 1; next } found && /^```/ { if (inside) exit; inside = 1; next } inside' docs/A2A.md; }
# run_commands MARK: beside a folder "data", as a reader does; the daemon runs already.
run_commands() {
        extract "$1" | sed -e '/^dragoman run/d' -e "s|http://127.0.0.1:8420|http://$addr|" >"$dir/commands.sh"
        [ -s "$dir/commands.sh" ] || fail "the commands '$1' were not found"
        ln -sfn "$dir" "$dir/beside/data"
        (cd "$dir/beside" && PATH=$(dirname "$(realpath "$DRAGOMAN")"):$PATH KEY=${friend:-} bash -eu ../commands.sh 2>&1) || fail "the commands '$1' failed"
}
mkdir "$dir/beside"

# their agent in your chats
extract 'file: agent.py' >"$dir/agent.py"
reserve_port port
PORT=$port python3 "$dir/agent.py" 2>"$dir/agent.py.log" &
helpers+=" $!"
await curl -s -o /dev/null "http://127.0.0.1:$port/"
extract 'file: config.json' | sed "s|http://127.0.0.1:9100|http://127.0.0.1:$port|" >"$dir/config.json"
start
printed=$(run_commands 'run: far')
contains "$printed" 'You said: grüß dich'
contains "$printed" "decided: for agent 'far'"
contains "$printed" "agent 'far' was asked by message"
contains "$(run status --json)" Repeater
contains "$(api '/api/v2/events?type=agent.task')" '"agent":"far"'
stop

# your agent for others
rm -rf "$dir/state" "$dir/config.json"
start
create=$(sed -n 's/^ *dragoman keys create/keys create/p' docs/A2A.md)
friend=$(run $create --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])')
printed=$(run_commands 'run: ask')
contains "$printed" '"supportedInterfaces"'
contains "$printed" 'TASK_STATE_COMPLETED'
contains "$printed" 'You said: hello'
printed=$(run_commands 'run: look')
contains "$printed" '"result":{"id":"evt-3"'
contains "$printed" 'evt-3: answered'
# closed by default
[ "$(curl -s -o /dev/null -w '%{http_code}' "http://$addr/a2a/demo/.well-known/agent-card.json")" = 401 ] || fail "the card is open"
stop
