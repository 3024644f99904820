#!/usr/bin/env bash
# The built-in agent uses tools through Anthropic Messages, chat completions and Responses; the second turn reads the cache; no request is refused.
. "$(dirname "$0")/lib.sh"

start_sim llm
cat >"$dir/config.json" <<END
{ "agents": {
    "messages":  { "type": "builtin", "model": "anthropic/claude-sonnet-4-5", "baseUrl": "$sim", "apiKey": "sk-sim", "thinking": "low",
                   "sandbox": { "kind": "none" } },
    "chat":      { "type": "builtin", "model": "openai/gpt-5.4", "baseUrl": "$sim/v1", "apiKey": "sk-sim", "sandbox": { "kind": "none" } },
    "responses": { "type": "builtin", "model": "gpt-5.4", "wire": "responses", "baseUrl": "$sim/v1", "apiKey": "sk-sim", "thinking": "low",
                   "sandbox": { "kind": "none" } } } }
END
chmod 600 "$dir/config.json"
curl -sSf "$sim/sim/scenario" -d '{"rules": [
  {"when": {"user": "*", "round": 0}, "answer": [{"thinking": "I look."}, "Looking.",
    {"call": "write", "arguments": {"label": "write", "path": "a.txt", "content": "hello"}},
    {"call": "read", "arguments": {"label": "read", "path": "a.txt"}}]},
  {"when": {"user": "*"}, "answer": ["It says hello."]}]}' >/dev/null
start

for agent in messages chat responses; do
        for turn in 1 2; do
                answer=$(post /v1/chat/completions '{"model": "'$agent'", "user": "'$agent'", "messages": [{"role": "user", "content": "What is in a.txt?"}]}')
                contains "$answer" 'It says hello.'
        done
done
every_call_was_valid

# All but the first request of a conversation find nearly all of the one before in the cache.
curl -sS "$sim/sim/messages?kind=answer&limit=100" >"$dir/answers"
python3 - "$dir/answers" <<'END' || fail "the cache was not read: $(cat "$dir/answers")"
import json, sys
before, counts = {}, {}
for a in json.load(open(sys.argv[1]))["items"]:
    wire, usage = a["operation"], a["usage"]
    if wire in before:
        assert usage["cache_read"] >= 0.9 * before[wire], a
    before[wire] = usage["input"]
    counts[wire] = counts.get(wire, 0) + 1
assert counts == {"messages": 4, "chat": 4, "responses": 4}, counts
END
stop
