#!/usr/bin/env bash
# Start, messages, stream, retries, backup, reload and stop under valgrind: no errors, no leaks.
cd "$(dirname "$0")/../.."
log=$(mktemp)
wrapper="valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --log-file=$log"
. tests/e2e/lib.sh
trap 'clean_up; rm -f "$log"' EXIT
printf '%s' '{ "agents": { "echo": { "type": "echo" } }, "adapters": { "out": { "type": "api", "callbackUrl": "http://127.0.0.1:9/none" } } }' >"$dir/config.json"
start
for i in 1 2 3; do contains "$(post '/api/v2/messages/inbound?wait=60000' "{\"chatId\":\"c$i\",\"text\":\"hello $i\"}")" "hello $i"; done
contains "$(post /api/v2/messages/inbound '{"text":')" VALIDATION
contains "$(post /api/v2/messages/inbound '{"instanceId":"out","text":"no receiver"}')" stored
contains "$(api '/api/v2/events?limit=5')" message.sent
curl -sN --max-time $patience -H "x-api-key: $key" "http://$addr/api/v2/events/stream?after=0" >"$dir/stream" &
reader=$!
await grep -q message.received "$dir/stream"
kill $reader
contains "$(api /api/v2/why/evt-3)" summary
contains "$(post /api/v2/backup '{}')" backups
kill -HUP $daemon_pid
await grep -q reloaded "$dir/log"
kill -TERM $daemon_pid
rc=0
wait $daemon_pid || rc=$?
daemon_pid=
[ $rc -eq 0 ] || { cat "$log"; fail "exit $rc under valgrind"; }
