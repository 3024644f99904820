#!/usr/bin/env bash
# The datagrams of systemd's protocol: READY, WATCHDOG while the loop runs, STOPPING.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
python3 - "$dir/notify" >"$dir/notified" <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(600)
while True:
    print(s.recv(100).decode(), flush=True)
END
helpers+=" $!"
await test -S "$dir/notify"
export NOTIFY_SOCKET=$dir/notify WATCHDOG_USEC=100000
start
[ "$(head -1 "$dir/notified")" = READY=1 ] || fail "not ready first: $(head -1 "$dir/notified")"
notified() { [ "$(grep -cx "$2" "$dir/notified")" -ge "$1" ]; }
await notified 3 WATCHDOG=1

# a stopped daemon sends nothing
kill -STOP "$daemon_pid"
await grep -q '^State:.*stopped' "/proc/$daemon_pid/status"
before=$(wc -l <"$dir/notified")
sleep 0.5
[ "$(wc -l <"$dir/notified")" -le $((before + 1)) ] || fail "another process feeds the watchdog"
kill -CONT "$daemon_pid"
await notified $((before + 2)) WATCHDOG=1
stop
await grep -qx STOPPING=1 "$dir/notified"
