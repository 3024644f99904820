#!/usr/bin/env bash
# The datagrams of systemd's protocol: ready, alive while the loop turns, stopping.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
python3 - "$dir/notify" >"$dir/told" <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(600)
while True:
    print(s.recv(100).decode(), flush=True)
END
sim_pid=$!
await test -S "$dir/notify"
export NOTIFY_SOCKET=$dir/notify WATCHDOG_USEC=100000
start
[ "$(head -1 "$dir/told")" = READY=1 ] || fail "not ready first: $(head -1 "$dir/told")"
told() { [ "$(grep -cx "$2" "$dir/told")" -ge "$1" ]; }
await told 3 WATCHDOG=1

# a daemon that stands still is silent
kill -STOP "$daemon_pid"
await grep -q '^State:.*stopped' "/proc/$daemon_pid/status"
before=$(wc -l <"$dir/told")
sleep 0.5
[ "$(wc -l <"$dir/told")" -le $((before + 1)) ] || fail "somebody else feeds the watchdog"
kill -CONT "$daemon_pid"
await told $((before + 2)) WATCHDOG=1
stop
await grep -qx STOPPING=1 "$dir/told"
