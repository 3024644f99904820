#!/usr/bin/env bash
# The agents of docs/AGENTS-HOWTO.md, as printed there, answer through the daemon and refuse unsigned requests.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
. tests/lib/ports.sh

# The code block after "<!-- file: NAME -->".
extract() { awk -v mark="<!-- file: $1 -->" '$0 == mark { found = 1; next } found && /^```/ { if (inside) exit; inside = 1; next } inside' docs/AGENTS-HOWTO.md >"$dir/$1"; }
lines() { wc -l <"$dir/$1"; }

extract agent.py
extract agent.mjs
[ "$(lines agent.py)" -eq 10 ] || fail "agent.py has $(lines agent.py) lines"
[ "$(lines agent.mjs)" -eq 11 ] || fail "agent.mjs has $(lines agent.mjs) lines"

reserve_port python_port
SECRET=s3cret-of-mine-42 PORT=$python_port python3 "$dir/agent.py" 2>"$dir/agent.py.log" &
helpers+=" $!"
reserve_port node_port
SECRET=s3cret-of-mine-42 PORT=$node_port node "$dir/agent.mjs" 2>"$dir/agent.mjs.log" &
helpers+=" $!"
await curl -s -o /dev/null "http://127.0.0.1:$python_port/"
await curl -s -o /dev/null "http://127.0.0.1:$node_port/"

cat >"$dir/config.json" <<CONFIG
{ "agents": {
    "python": { "type": "webhook", "url": "http://127.0.0.1:$python_port/", "secret": "s3cret-of-mine-42" },
    "node": { "type": "webhook", "url": "http://127.0.0.1:$node_port/", "secret": "s3cret-of-mine-42" },
    "stranger": { "type": "webhook", "url": "http://127.0.0.1:$node_port/", "secret": "another long secret" } },
  "adapters": { "p": { "type": "api", "agent": "python" }, "n": { "type": "api", "agent": "node" }, "s": { "type": "api", "agent": "stranger" } } }
CONFIG
start
for adapter in p n; do
        contains "$(say $adapter 'grüß dich 🎲')" '"text":"You said: grüß dich 🎲"'
done
contains "$(say s hi)" 'did not accept the request (HTTP 401)'
for port in $python_port $node_port; do
        code=$(curl -s -o /dev/null -w '%{http_code}' -d '{"text":"hi"}' -H "X-Dragoman-Signature: t=1,v1=$(printf '0%.0s' $(seq 64))" "http://127.0.0.1:$port/")
        [ "$code" = 401 ] || fail "a forged request was answered with $code"
done
for agent in python node; do
        contains "$(post "/api/v2/agents/$agent/health" '')" '"healthy":true'
done
stop
