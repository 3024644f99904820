#!/usr/bin/env bash
# Agents on a model work over HTTP with a mock that others wrote (npm @copilotkit/aimock): streamed and whole, on the wires of both vendors,
# and the built-in agent with tools.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
platform=llm
. tests/clients/lib.sh
set -e
coproc MOCK { exec node "$work/aimock.mjs" 2>"$dir/mock.log"; }
helpers+=" $MOCK_PID"
read -r mock <&"${MOCK[0]}" || fail "the mock did not start: $(cat "$dir/mock.log")"

cat >"$dir/config.json" <<CONFIG
{ "agents": {
    "claude": { "type": "anthropic", "model": "claude-sonnet-4-5", "baseUrl": "$mock", "apiKey": "env:MOCK_KEY" },
    "whole": { "type": "anthropic", "model": "claude-sonnet-4-5", "baseUrl": "$mock", "apiKey": "env:MOCK_KEY", "stream": false },
    "gpt": { "type": "openai", "model": "gpt-5.4", "baseUrl": "$mock/v1", "apiKey": "env:MOCK_KEY" },
    "once": { "type": "openai", "model": "gpt-4o", "baseUrl": "$mock/v1", "apiKey": "env:MOCK_KEY", "stream": false },
    "messages": { "type": "builtin", "model": "anthropic/claude-sonnet-4-5", "baseUrl": "$mock", "apiKey": "env:MOCK_KEY", "thinking": "low",
                  "sandbox": { "kind": "none" } },
    "chat": { "type": "builtin", "model": "openai/gpt-5.4", "baseUrl": "$mock/v1", "apiKey": "env:MOCK_KEY", "sandbox": { "kind": "none" } },
    "responses": { "type": "builtin", "model": "gpt-5.4", "wire": "responses", "baseUrl": "$mock/v1", "apiKey": "env:MOCK_KEY", "thinking": "low",
                   "sandbox": { "kind": "none" } } },
  "adapters": {
    "messages": { "type": "api", "agent": "messages" }, "chat": { "type": "api", "agent": "chat" }, "responses": { "type": "api", "agent": "responses" },
    "claude": { "type": "api", "agent": "claude" }, "whole": { "type": "api", "agent": "whole" },
    "gpt": { "type": "api", "agent": "gpt" }, "once": { "type": "api", "agent": "once" } } }
CONFIG
export MOCK_KEY=sk-mock
start

for adapter in claude whole gpt once messages chat responses; do
        contains "$(say $adapter 'hello there')" '"text":"Hello from a mock, grüß dich 🎲."'
done
for adapter in messages chat responses; do # calls, and their results back
        contains "$(say $adapter 'how is the weather')" '"text":"It is sunny."'
done
contains "$(say claude 'are you busy')" '"text":"Not busy any more."' # refused once
for adapter in claude gpt messages chat responses; do
        answer=$(say $adapter 'a broken one')
        case "$answer" in *'the end'*) fail "a cut answer was taken for a whole one: $answer" ;; esac
        contains "$(say $adapter 'hello again')" '"text":"Hello from a mock'
done
stop
