#!/usr/bin/env bash
# Everything the REST API can send, through the Telegram adapter, as the simulator sees it. Every call is valid.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$sim", "dm": "everyone",
                        "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
JSON
start
await is tg '"connected"'
curl -sS "$sim/sim/send" -d '{"from":42,"text":"hello"}' >/dev/null
next message '"text":"hello"'

contains "$(post /api/v2/messages/send '{"instanceId":"tg","to":"42","text":"Shall I?","buttons":[{"text":"Yes","data":"yes","row":1},{"text":"No","data":"no","row":1},{"text":"Manual","url":"https://example.org/"}]}')" '"status":"queued"'
next message '"callback_data":"yes"'
contains "$shown" '"url":"https://example.org/"'
id=$(printf '%s' "$shown" | sed -n 's/.*"message_id":\([0-9]*\).*/\1/p')

contains "$(post /api/v2/messages/edit "{\"instanceId\":\"tg\",\"to\":\"42\",\"messageId\":\"$id\",\"text\":\"I **did**.\"}")" '"status":"queued"'
next edit 'I did.'
contains "$(post /api/v2/messages/send/reaction '{"instanceId":"tg","to":"42","messageId":"1","emoji":"👀"}')" '"status":"queued"'
next reaction '👀'

printf 'a note' >"$dir/workspace/note.txt"
contains "$(post /api/v2/messages/send/media '{"instanceId":"tg","to":"42","path":"note.txt","mimeType":"text/plain","caption":"A *note*"}')" '"status":"queued"'
next message '"file_name":"note.txt"'
contains "$shown" '"caption":"A note"'
contains "$(post /api/v2/messages/send/media '{"instanceId":"tg","to":"42","path":"../state/operator.key"}')" 'inside the workspace'
contains "$(post /api/v2/messages/send '{"instanceId":"tg","to":"42","text":"x","buttons":[{"text":"?"}]}')" 'either data or url'
contains "$(post /api/v2/messages/edit '{"instanceId":"api","to":"c","messageId":"1","text":"x"}')" CAPABILITY_NOT_SUPPORTED

contains "$(post /api/v2/messages/delete "{\"instanceId\":\"tg\",\"to\":\"42\",\"messageId\":\"$id\"}")" '"status":"queued"'
next delete "$id"
# the same key is the same message
for i in 1 2; do api /api/v2/messages/send -H 'Idempotency-Key: once' -d '{"instanceId":"tg","to":"42","text":"only once"}' >"$dir/answer$i"; done
contains "$(cat "$dir/answer2")" duplicate
next message 'only once'
contains "$(post /api/v2/messages/send '{"instanceId":"tg","to":"42","text":"the end"}')" '"status":"queued"'
next message 'the end'
every_call_was_valid
stop
