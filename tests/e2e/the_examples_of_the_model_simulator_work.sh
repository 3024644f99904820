#!/usr/bin/env bash
# The commands of docs/SIMULATORS.md, section Models, work as printed there, and so does a scenario from a file.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh

# The indented blocks of the section that are commands.
awk '/^## / { inside = ($0 == "## Models") } inside && /^    curl/ { block = 1 } !/^    / { block = 0 } block { print substr($0, 5) }' \
        docs/SIMULATORS.md >"$dir/examples.sh"
[ "$(grep -c '^curl' "$dir/examples.sh")" -ge 4 ] || fail "the examples were not found"
start_sim llm
sed "s|^curl http://127.0.0.1:8083|curl -sSf $sim|" "$dir/examples.sh" >"$dir/run.sh"
printed=$(bash -e "$dir/run.sh")
contains "$printed" '"text":"Hello."'
contains "$printed" '"content":"Hello."'
contains "$printed" '"kind":"cut_at"'

chat() { curl -sS "$1/v1/chat/completions" -H 'Authorization: Bearer sk-sim' -d "{\"model\":\"gpt-5.4\",\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}"; }
contains "$(chat "$sim" 'how is the weather')" '"content":"Let me look."'
contains "$(chat "$sim" 'are you busy')" Overloaded
every_call_was_valid

echo '{"rules":[{"when":{"user":"*name*"},"answer":"I have none."}]}' >"$dir/scenario.json"
start_sim llm --scenario "$dir/scenario.json"
contains "$(chat "$sim" 'your name?')" '"content":"I have none."'

echo '{"rules":[{"when":{"who":"x"}}]}' >"$dir/scenario.json"
complaint=$("$SIMULATOR" llm --port 0 --scenario "$dir/scenario.json" 2>&1) && fail "a wrong scenario was accepted"
contains "$complaint" "scenario.json': rule 1: 'when' has no member 'who'"
