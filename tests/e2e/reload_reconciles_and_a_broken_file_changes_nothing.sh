#!/usr/bin/env bash
# SIGHUP starts new adapters, stops removed ones and leaves the rest connected; a broken file changes nothing.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
config() { printf '%s' "$1" >"$dir/config.json"; }
reload() {
        local before
        before=$(grep -c "$1" "$dir/log" || true)
        kill -HUP "$daemon_pid"
        await sh -c "[ \$(grep -c '$1' '$dir/log') -gt $before ]"
}

# the notify socket of systemd
python3 - "$dir/notify" >"$dir/notified" 2>&1 <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(600)
while True:
    said = s.recv(100).decode()
    print(said, flush=True)
    if said == "STOPPING=1":
        break
END
listener=$!
await test -S "$dir/notify"
export NOTIFY_SOCKET="$dir/notify"

config '{ "agents": { "echo": { "type": "echo", "prefix": "one " } }, "adapters": { "left": { "type": "api" } } }'
start
contains "$(say left hi)" '"text":"one hi"'

config '{ "agents": { "echo": { "type": "echo", "prefix": "two " } }, "adapters": { "right": { "type": "api" } } }'
reload 'configuration reloaded'
contains "$(say right hi)" '"text":"two hi"'
contains "$(post '/api/v2/messages/inbound' '{"instanceId":"left","text":"hi"}')" '"error"'
[ "$(grep -c 'adapter=api from' "$dir/log")" -eq 1 ] || fail "the api adapter did not stay connected"

config '{ "agents": { "echo": { "type": "echo", "prefx": "three " } } }'
reload 'configuration rejected'
contains "$(tail -3 "$dir/log")" "did you mean 'prefix'"
contains "$(say right hi)" '"text":"two hi"'

rm "$dir/config.json"
reload 'configuration rejected'
contains "$(tail -3 "$dir/log")" "there is no config.json"
contains "$(say right hi)" '"text":"two hi"'

config '{ "agents": { "echo": { "type": "echo", "prefix": "two " } }, "http": { "trustedProxy": ["10.0.0.1"] } }'
reload 'configuration reloaded'
contains "$(tail -5 "$dir/log")" "take effect after a restart"
for place in /tmp /var/tmp; do # the second is as long a list as the first
        before=$(grep -c 'take effect after a restart' "$dir/log")
        config '{ "agents": { "echo": { "type": "echo", "prefix": "two " } }, "http": { "trustedProxy": ["10.0.0.1"] }, "confinement": { "writable": ["'$place'"] } }'
        reload 'configuration reloaded'
        [ "$(grep -c 'take effect after a restart' "$dir/log")" -gt "$before" ] || fail "confinement.writable changed without a warning"
done
config '{ "agents": { "echo": { "type": "echo", "prefx": "three " } } }'

rc=0
message=$("$DRAGOMAN" run "$dir" --check 2>&1) || rc=$?
[ $rc -eq 78 ] || fail "--check answered $rc"
contains "$message" "config.json:1"
stop
wait $listener
[ "$(cat "$dir/notified")" = "READY=1
STOPPING=1" ] || fail "the service manager got: $(cat "$dir/notified")"
