#!/usr/bin/env bash
# People on Telegram steer a coding session: by command, and by plain messages in the chat that shows it. They see what becomes of
# each, strangers steer nothing, and no agent answers there. The person the session belongs to may steer it without being an admin.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "sessions": { "people": ["telegram:44"] },
  "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$sim", "admins": ["42"], "dm": ["everyone"],
                        "debounceMs": 0, "rateLimit": { "turns": 0 }, "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
JSON
says() { curl -sS "$sim/sim/send" -d "{\"from\":$1,\"text\":\"$2\"}" >/dev/null; }
report_event() { post /api/webhook/event "$1" | grep -qF '"status":"ok"'; }
polled() { api "/api/commands/poll?session_id=$1"; }
waits() { polled "$1" | grep -qF "$2"; }
acknowledge() { post "/api/commands/$(polled "$1" | grep -o '"command_id":"[^"]*"' | head -1 | cut -d'"' -f4)/ack" '{"status":"delivered"}'; }
no_longer_active() { run sessions | grep -qF 'no session is active'; }

start
await is tg '"connected"'
report_event '{"session_id":"0199-a","event_type":"session_start","metadata":{"program":"pi","title":"fix the build"}}'

# by command, from anywhere; a stranger does not even learn that there is one
says 42 /sessions
next message 'ses-1 fix the build'
says 43 /sessions
next message 'There is no active session that you may steer'
says 43 '/steer ses-1 rm everything'
next message 'there is no such session that you may steer'
says 44 '/followup 0199 then run the tests'
next message 'Queued for'
await waits 0199-a '"action":"followUp","content":"then run the tests"'
contains "$(polled 0199-a)" '"by":'
contains "$(acknowledge 0199-a)" '"duplicate":false'
says 42 /steer
next message 'Say which session'
says 42 '/steer ses-9 x'
next message "there is no session 'ses-9'"

# linked: a plain message steers, and shows what becomes of it
contains "$(post /api/sessions/0199-a/link '{"adapter":"tg","channel_id":43,"user_id":"43"}')" '"status":"ok"'
next message '💻 fix the build'
says 43 'use the other branch'
await waits 0199-a '"content":"use the other branch"'
id=$(polled 0199-a | grep -o '"command_id":"[^"]*"' | cut -d'"' -f4)
contains "$(post "/api/commands/$id/ack" '{"status":"delivered"}')" '"duplicate":false'
contains "$(post "/api/commands/$id/ack" '{"status":"seen"}')" '"state":"seen"'
next reaction '🤔' # Telegram has no ⏳, and no 📨
next reaction '🕊'
next reaction '👀'
contains "$(api '/api/v2/events?type=session.command.*')" '"by":"telegram:43"'
says 43 '/steer and quickly'
next message 'Queued for'
await waits 0199-a '"content":"and quickly"'
says 43 stop
await waits 0199-a '"content":"stop"'
says 43 /abort
next message 'Asked to stop'
await waits 0199-a '"action":"abort"'
says 43 '/notify errors 22:00-07:00'
next message 'Of sessions you hear: errors. Your quiet hours are 22:00-07:00'
says 43 /notify
next message 'Of sessions you hear: errors'

# what the agent could not take is said
id=$(polled 0199-a | grep -o '"command_id":"[^"]*"' | head -1 | cut -d'"' -f4)
post "/api/commands/$id/ack" '{"status":"failed","error":"no model is configured"}' >/dev/null
next message 'The agent could not take it: no model is configured'

# it survives a kill that the chat is linked; after its end the chat is an ordinary one
kill_daemon
start
await is tg '"connected"'
says 43 'after the kill'
await waits 0199-a '"content":"after the kill"'
report_event '{"session_id":"0199-a","event_type":"session_end"}'
await no_longer_active
next message 'Session Ended'
says 43 'hello'
next message 'hello'
contains "$(api "/api/v2/turns?limit=100")" '"items":['
[ "$(api '/api/v2/turns?limit=100' | grep -o '"id":"trn-' | wc -l)" -eq 1 ] || fail "an agent answered where a session was shown"
stop
