#!/usr/bin/env bash
# Agents on a model talk to dragoman-sim llm over HTTP: whole and streamed, on every wire, through overload and rate limits, and send
# nothing that the services would refuse.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm

agent() { printf '"%s": { "type": "%s", "model": "%s", "baseUrl": "%s", "apiKey": "sk-sim", "system": "Be kind."%s }' "$@"; }
cat >"$dir/config.json" <<CONFIG
{ "agents": {
    $(agent claude anthropic claude-sonnet-5-5 "$sim" ''),
    $(agent old anthropic claude-haiku-4-5 "$sim" ', "stream": false, "temperature": 0.5'),
    $(agent gpt openai gpt-5.4 "$sim/v1" ', "server": "openai"'),
    $(agent whole openai gpt-5.4-mini "$sim/v1" ', "stream": false, "server": "openai", "maxTokens": 1000') },
  "adapters": {
    "claude": { "type": "api", "agent": "claude" }, "old": { "type": "api", "agent": "old" },
    "gpt": { "type": "api", "agent": "gpt" }, "whole": { "type": "api", "agent": "whole" } } }
CONFIG
start

# ask ADAPTER TEXT ANSWER
ask() { contains "$(say "$1" "$2")" "$3"; }
fault() { curl -sSf "$sim/sim/faults" -d "$1" >/dev/null; }

for adapter in claude old gpt whole; do
        ask "$adapter" 'grüß dich 🎲' 'You said: '
        ask "$adapter" 'say A second turn.' 'A second turn.'
        # before the first byte: tried again
        fault '{"kind":"error","status":529}'
        ask "$adapter" 'say After overload.' 'After overload.'
        fault '{"kind":"flood","retry_after":0.05}'
        ask "$adapter" 'say After a limit.' 'After a limit.'
        # after it: the turn fails
        fault '{"kind":"cut_at","at":300,"method":"messages"}'
        fault '{"kind":"cut_at","at":300,"method":"chat"}'
        answer=$(say "$adapter" 'long 100')
        case "$answer" in *word100*) fail "a cut answer was taken for a whole one: $answer" ;; esac
        curl -sSf -X DELETE "$sim/sim/faults" >/dev/null
        ask "$adapter" 'say It goes on.' 'It goes on.'
done
every_call_was_valid
contains "$(curl -sS "$sim/sim/state")" '"refused":{}'
stop
