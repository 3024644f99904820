#!/usr/bin/env bash
# A turn of the built-in agent with three tool calls, killed in between: it goes on, runs nothing twice and answers once.
. "$(dirname "$0")/lib.sh"
start_sim llm
mkdir -p "$dir/tools/note"
cat >"$dir/tools/note/note.sh" <<END
#!/bin/sh
cat >>"$dir/worklog"
echo >>"$dir/worklog"
# the second call is still running when the daemon is killed
if grep -q two "$dir/worklog" && [ ! -e "$dir/killed" ]; then sleep 60; fi
echo '"noted"'
END
chmod 700 "$dir/tools/note/note.sh"
cat >"$dir/tools/note/tool.json" <<END
{ "description": "Notes a line.", "command": ["./note.sh"],
  "parameters": { "type": "object", "properties": { "line": { "type": "string" } }, "required": ["line"] } }
END
export ANTHROPIC_API_KEY=sk-sim ANTHROPIC_BASE_URL="$sim"
start
contains "$(cat "$dir/log")" "built-in agent on claude"
text='call invoke_tool {\"tool\":\"note\",\"args\":{\"line\":\"one\"}}
call invoke_tool {\"tool\":\"note\",\"args\":{\"line\":\"two\"}}
call invoke_tool {\"tool\":\"note\",\"args\":{\"line\":\"three\"}}
say all noted'
body=$(printf '%s' "$text" | sed ':a;N;$!ba;s/\n/\\n/g')
contains "$(post /api/v2/messages/inbound "{\"chatId\":\"c\",\"text\":\"$body\"}")" '"status":"stored"'
await grep -q two "$dir/worklog"
kill_daemon
touch "$dir/killed"
start
# what is written now waits for the turn, or joins it; its reply comes in any case
reply=$(post '/api/v2/messages/inbound?wait=60000' '{"chatId":"c","text":"say and you?"}')
contains "$reply" '"status":"done"'
for line in one two three; do
        [ "$(grep -c "\"$line\"" "$dir/worklog")" = 1 ] || fail "'$line' ran not once: $(cat "$dir/worklog")"
done
contains "$(curl -sS "$sim/sim/calls")" "may have happened in part"
every_call_was_valid
events=$(api '/api/v2/events?type=agent.*&limit=100')
for type in agent_start turn_start message_end tool_execution_start tool_execution_end turn_end agent_end; do
        contains "$events" "agent.$type"
done
stop
