#!/usr/bin/env bash
# A built-in agent calls a program in DIR/tools, a module for Node and an MCP server; a new tool needs no restart, and the
# status names a broken one.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm
tool() { # NAME BODY
        mkdir -p "$dir/tools/$1"
        printf '#!/bin/sh\n%s\n' "$2" >"$dir/tools/$1/run.sh"
        chmod 700 "$dir/tools/$1/run.sh"
        printf '{ "description": "Test tool %s.", "command": ["./run.sh"] }' "$1" >"$dir/tools/$1/tool.json"
}
tool shout 'tr a-z A-Z'
mkdir -p "$dir/tools/broken" "$dir/tools/greet"
echo '{ "description": 5 }' >"$dir/tools/broken/tool.json"
cat >"$dir/tools/greet/index.mjs" <<'J'
export default { name: "greet", description: "Greets.", async execute(id, { name }) { return `Hello ${name}`; } };
J
cat >"$dir/config.json" <<CONFIG
{ "agents": { "helper": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$sim", "apiKey": "sk-sim", "sandbox": { "kind": "none" },
    "mcp": { "fake": { "command": "python3", "args": ["$top/tests/lib/fake_mcp.py"] } } } },
  "adapters": { "api": { "type": "api", "agent": "helper" } } }
CONFIG
invoke() { printf '{"when":{"user":"*%s*","round":0},"answer":{"call":"invoke_tool","arguments":{"label":"trying","tool":"%s","args":%s}}}' "$@"; }
curl -sSf "$sim/sim/scenario" -d "{\"rules\":[
        $(invoke loud shout '{"word":"quiet"}'),
        $(invoke hello greet '{"name":"Ann"}'),
        $(invoke repeat fake__echo '{"text":"from the server"}'),
        $(invoke late newcomer '{}'),
        {\"when\":{\"tool\":\"invoke_tool\"},\"answer\":\"It says: {result}\"}]}" >/dev/null
start

# ask TEXT ANSWER
ask() { contains "$(say api "$1")" "$2"; }
ask 'be loud' 'QUIET'
ask 'repeat please' 'from the server'
if node --version >/dev/null 2>&1; then ask 'say hello' 'Hello Ann'; fi
ask 'late one' "There is no custom tool 'newcomer'"
tool newcomer 'echo I am new'
listed() { "$DRAGOMAN" status --json --dir "$dir" | grep -q '"newcomer"'; }
await listed
ask 'late one again' 'I am new'

# the prompt names them, and no request was refused
contains "$(curl -sS "$sim/sim/calls?kind=messages&limit=1")" 'Test tool shout.'
every_call_was_valid
status=$("$DRAGOMAN" status --dir "$dir")
contains "$status" 'broken/tool.json:1: description'
contains "$status" 'custom tools, about'
stop
