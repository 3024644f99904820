#!/usr/bin/env bash
# A model that fails after a tool has run: another built-in agent goes on from the steps, and the tool does not run again.
. "$(dirname "$0")/lib.sh"
start_sim llm
mkdir -p "$dir/tools/note"
printf '#!/bin/sh\ncat >>"%s/worklog"\necho >>"%s/worklog"\necho "{}"\n' "$dir" "$dir" >"$dir/tools/note/note.sh"
chmod 700 "$dir/tools/note/note.sh"
cat >"$dir/tools/note/tool.json" <<END
{ "description": "Notes a line.", "command": ["./note.sh"],
  "parameters": { "type": "object", "properties": { "line": { "type": "string" } }, "required": ["line"] } }
END
cat >"$dir/config.json" <<END
{ "defaultAgent": "first", "agents": {
    "first": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "apiKey": "sk-sim", "baseUrl": "$sim",
               "sandbox": { "kind": "none" }, "failover": ["plain", "second"] },
    "plain": { "type": "openai", "model": "gpt-5.4", "apiKey": "sk-sim", "baseUrl": "$sim/v1" },
    "second": { "type": "builtin", "model": "gpt-5.4", "wire": "openai", "apiKey": "sk-sim", "baseUrl": "$sim/v1",
                "sandbox": { "kind": "none" } } } }
END
chmod 600 "$dir/config.json"
# Anthropic's service refuses the key as soon as a tool has answered
curl -sS "$sim/sim/scenario" -d '{"rules":[{"when":{"wire":"messages","tool":"invoke*"},"error":{"status":401}}]}' >/dev/null
start
text='call invoke_tool {\"tool\":\"note\",\"args\":{\"line\":\"one\"}}\nsay noted'
reply=$(post '/api/v2/messages/inbound?wait=60000' "{\"chatId\":\"c\",\"text\":\"$text\"}")
contains "$reply" '"status":"done"'
contains "$reply" '"text":"noted"'
[ "$(grep -c one "$dir/worklog")" = 1 ] || fail "the tool ran not once: $(cat "$dir/worklog")"
contains "$(api '/api/v2/turns')" '"second"'
# an agent that cannot go on from the steps was not asked
case $(curl -sS "$sim/sim/calls?kind=chat") in *invoke_tool*) ;; *) fail "the second agent did not see the steps" ;; esac
contains "$(curl -sS "$sim/sim/calls?valid=false&kind=chat")" '"items":[]'
stop
