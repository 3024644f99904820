#!/usr/bin/env bash
# The receiver takes the answer and hangs up: it is unknown, and only --force sends it again.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
coproc RECEIVER { exec python3 -u -c '
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1])
for _ in range(2):
    c, _a = s.accept(); c.settimeout(60); c.recv(65536); c.close(); print("hung up")
'; }
helpers+=" $RECEIVER_PID"
read -r port <&"${RECEIVER[0]}"
printf '{ "agents": { "echo": { "type": "echo" } }, "adapters": { "out": { "type": "api", "callbackIdempotent": false, "callbackUrl": "http://127.0.0.1:%s/" } } }' "$port" >"$dir/config.json"
start
contains "$(post /api/v2/messages/inbound '{"instanceId":"out","text":"hello"}')" stored
read -r -t $patience _ <&"${RECEIVER[0]}" || fail "the answer was never sent"
await sh -c "'$DRAGOMAN' dead-letters --dir '$dir' | grep -q unknown"
contains "$("$DRAGOMAN" dead-letters --dir "$dir")" "retry dlv-1 --force"
"$DRAGOMAN" dead-letters retry dlv-1 --dir "$dir" >/dev/null 2>&1 && fail "it was queued without --force"
read -r -t 1 _ <&"${RECEIVER[0]}" && fail "it was repeated"
"$DRAGOMAN" dead-letters retry dlv-1 --force --dir "$dir" >/dev/null || fail "it was not queued"
read -r -t $patience _ <&"${RECEIVER[0]}" || fail "it was not sent again"
stop
