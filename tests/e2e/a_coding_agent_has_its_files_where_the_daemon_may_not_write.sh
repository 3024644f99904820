#!/usr/bin/env bash
# The daemon is confined to its own folder; an ACP agent that works elsewhere has files read and written for it in its sandbox.
. "$(dirname "$0")/lib.sh"

project=$(mktemp -d)
trap 'clean_up; rm -rf "$project"' EXIT
chmod 777 "$project"
cat >"$dir/config.json" <<J
{ "agents": { "coder": { "type": "acp", "command": ["python3", "$top/tests/lib/fake_acp.py"], "cwd": "$project", "files": true,
                         "sandbox": { "readOnly": ["$top/tests/lib"] } } },
  "adapters": { "box": { "type": "api", "agent": "coder" } } }
J
start
answer=$(say box 'slot fs/write_text_file {\"path\": \"'"$project"'/sub/made\", \"content\": \"by the agent\"}')
[ "$(cat "$project/sub/made")" = "by the agent" ] || fail "it was not written: $answer"
contains "$(say box 'slot fs/read_text_file {\"path\": \"'"$project"'/sub/made\"}')" "by the agent"
stop
