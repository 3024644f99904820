#!/usr/bin/env bash
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start
rc=0
message=$("$DRAGOMAN" run "$dir" --listen 127.0.0.1:0 2>&1) || rc=$?
[ $rc -ne 0 ] || fail "a second daemon started on the same folder"
contains "$message" "only one daemon"
[ -s "$dir/state/http.addr" ] || fail "the refused process removed the address of the running one"
api /api/v2/status >/dev/null || fail "the first daemon is gone"
stop

rc=0
message=$("$DRAGOMAN" run "$dir" --listen 0.0.0.0:0 2>&1) || rc=$?
[ $rc -eq 78 ] || fail "an open address without TLS was answered with $rc"
contains "$message" "trustedProxy"
[ "$(stat -c %a "$dir/state")" = 700 ] || fail "state is readable for others"
[ "$(stat -c %a "$dir/state/operator.key")" = 600 ] || fail "the key is readable for others"

# a readable state folder is made private, with a warning
chmod 755 "$dir/state"
start
[ "$(stat -c %a "$dir/state")" = 700 ] || fail "state stayed readable for others"
contains "$(cat "$dir/log")" "it is private now"
stop

# a missing script is a configuration error
printf '{ "agents": { "s": { "type": "script", "file": "nowhere.txt" } } }' >"$dir/config.json"
rc=0
message=$("$DRAGOMAN" run "$dir" --listen 127.0.0.1:0 2>&1) || rc=$?
[ $rc -eq 78 ] || fail "a missing script was answered with $rc"
contains "$message" "nowhere.txt"

printf '{}' >"$dir/config.json"
# a process at the address of a killed daemon does not get the key
start
kill_daemon
python3 - "$addr" >"$dir/received" 2>&1 <<'END' &
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((host, int(port)))
s.listen()
s.settimeout(600)
print("listening", flush=True)
while True:
    print(s.accept()[0].recv(1000), flush=True)
END
daemon_pid=$!
await grep -q listening "$dir/received"
rc=0
"$DRAGOMAN" status "$dir" >/dev/null 2>&1 || rc=$?
[ $rc -eq 69 ] || fail "status of a killed daemon answered $rc"
[ "$(cat "$dir/received")" = listening ] || fail "the other process received: $(cat "$dir/received")"
