#!/usr/bin/env bash
# A coding agent elsewhere reports with a key of its own and fetches what people tell it. What was answered is there after
# kill -9, nothing is stored or delivered twice, another key sees nothing, and what is no event is refused.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
# configure SECONDS: how long a command waits.
configure() {
        cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } }, "adapters": { "api": { "type": "api" } }, "sessions": { "commandSeconds": $1 } }
JSON
}
# new_key NAME: prints the text of a new key.
new_key() { run keys create "$1" --scope sessions:write --json | sed -n 's/.*"key": "\([^"]*\)".*/\1/p'; }
# as KEY PATH [OPTION...]: the answer's body, and its status at the end.
as() { curl -sS --max-time 60 -w ' %{http_code}' -H "x-api-key: $1" "http://$addr$2" "${@:3}"; }
report_event() { as "$1" /api/webhook/event --data-binary "$2"; }
command_id() { as "$laptop" "/api/commands/poll?session_id=$1" | grep -o '"command_id":"[^"]*"' | head -1 | cut -d'"' -f4; }
acknowledge() { as "$1" "/api/commands/$2/ack" -d "{\"status\":\"$3\"}"; }
state_is() { run sessions commands "$1" --json | grep -qF "\"state\": \"$2\""; }

configure 3600
start
laptop=$(new_key laptop)
other=$(new_key other)
contains "$(run sessions)" 'no session is active'
first='{"session_id":"0199-a","event_type":"session_start","content":"","metadata":{"cwd":"/src","program":"pi","title":"fix the build"},"timestamp":"2026-11-18T10:00:00Z","event_id":"e1"}'
contains "$(report_event "$laptop" "$first")" '"accepted":1,"duplicates":0} 200'
contains "$(run sessions)" 'fix the build'
queued=$(run steer 0199-a 'Use the other branch.' --json)
contains "$queued" '"state": "queued"'

# what was answered survives, and is not stored again
kill_daemon
start
contains "$(report_event "$laptop" "$first")" '"accepted":0,"duplicates":1} 200'
contains "$(report_event "$laptop" "[$first,{\"session_id\":\"0199-a\",\"event_type\":\"turn_end\",\"event_id\":\"e2\",\"metadata\":{\"usage\":{\"totalTokens\":700,\"cost\":0.5}}}]")" \
        '"accepted":1,"duplicates":1} 200'
contains "$(run sessions show 0199)" '1 turns, 700 tokens, $0.5000'

# the command is there, once: the second acknowledgement is a duplicate, also after another kill
contains "$(as "$laptop" '/api/commands/poll?session_id=0199-a')" '"content":"Use the other branch."'
id=$(command_id 0199-a)
contains "$(acknowledge "$other" "$id" delivered)" ' 404'
contains "$(acknowledge "$laptop" "$id" delivered)" '"duplicate":false} 200'
kill_daemon
start
contains "$(acknowledge "$laptop" "$id" delivered)" '"duplicate":true} 200'
contains "$(as "$laptop" '/api/commands/poll?session_id=0199-a')" '[] 200'
contains "$(acknowledge "$laptop" "$id" seen)" '"state":"seen","duplicate":false} 200'
contains "$(run sessions commands ses-1)" 'seen'

# the journal says of which session, who, what, and which question
contains "$(report_event "$laptop" '{"session_id":"0199-a","event_type":"approval_request","content":"rm -rf build","metadata":{"approval_id":"a7"}}')" ' 200'
journal=$(run events tail --since evt-0 --type 'session.*' --count 6)
contains "$journal" ' ses-1 by the operator  Use the other branch.'
contains "$journal" ' 0199-a a7  rm -rf build'

# by stream: what waits, then what follows
run steer ses-1 'first' --follow-up >/dev/null
curl -sSN --max-time $patience -H "x-api-key: $laptop" "http://$addr/api/commands/stream?session_id=0199-a" >"$dir/stream" 2>/dev/null &
helpers+=" $!"
await grep -qF '"action":"followUp","content":"first"' "$dir/stream"
run steer ses-1 --abort >/dev/null
await grep -qF '"action":"abort"' "$dir/stream"

# what nobody fetches expires, which everybody sees; also while the daemon was down
configure 1
stop
start
id=$(run steer ses-1 'too late' --json | sed -n 's/.*"id": "\([^"]*\)".*/\1/p')
kill_daemon
start
await state_is ses-1 expired
contains "$(acknowledge "$laptop" "$id" delivered)" ' 409'
contains "$(api '/api/v2/events?type=session.command.expired')" '"by":"the operator"'

# another key sees nothing
for path in '/api/commands/poll?session_id=0199-a' '/api/commands?session_id=0199-a' /api/v2/sessions/ses-1 /api/v2/sessions/0199-a/commands; do
        contains "$(as "$other" "$path")" ' 404'
done
contains "$(report_event "$other" "$first")" ' 404'
contains "$(as "$other" /api/v2/sessions/0199-a/commands -d '{"content":"x"}')" ' 404'
contains "$(as "$other" /api/sessions/0199-a/link -d '{"adapter":"api","channel_id":"c"}')" ' 404'
contains "$(as no-such-key /api/webhook/event -d "$first")" ' 401'

# what is no event is refused whole
for body in '' '{' 'null' '[]' '{"session_id":"x"}' '{"session_id":"x","event_type":"Not This"}' '[{"session_id":"x","event_type":"ok"},7]'; do
        contains "$(report_event "$laptop" "$body")" ' 400'
done
many=$(printf '{"session_id":"x","event_type":"ok"},%.0s' $(seq 200))
contains "$(report_event "$laptop" "[${many}7]")" ' 400'
head -c 5000000 /dev/zero | tr '\0' x >"$dir/huge"
contains "$(report_event "$laptop" "@$dir/huge")" ' 413'
contains "$(api /api/v2/sessions/x)" 'NOT_FOUND'
contains "$(report_event "$laptop" "[${many%,}]")" '"accepted":200,"duplicates":0} 200'
contains "$(as "$laptop" /webhook/omp-event -d '{"session_id":"0199-a","event_type":"session_end","content":""}')" ' 200'
contains "$(run steer 0199-a late 2>&1 || true)" 'has ended'
stop
