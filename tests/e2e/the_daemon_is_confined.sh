#!/usr/bin/env bash
# The daemon writes only in its directory, starts nothing from its own threads and dumps no memory; what it starts is free and gets no descriptor.
. "$(dirname "$0")/lib.sh"

outside=$(mktemp -d)
trap 'clean_up; rm -rf "$outside"' EXIT
mkdir "$outside/allowed"
cat >"$dir/secret.sh" <<'S'
#!/bin/sh
ls /proc/self/fd | tr '\n' ' ' >>"$1/fds"
echo >>"$1/fds"
echo 0123456789abcdef
S
chmod 755 "$dir/secret.sh"
configure() {
        cat >"$dir/config.json" <<J
{ "confinement": $1,
  "agents": { "hook": { "type": "webhook", "url": "http://127.0.0.1:9/", "secret": "cmd:./secret.sh $outside" } } }
J
}
reported() { "$DRAGOMAN" status --dir "$dir" --json | sed -n "s/.*\"$1\": \"\(.*\)\".*/\1/p"; }
of_process() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$daemon_pid/status"; }

configure "{ \"writable\": [\"$outside/allowed\"] }"
start 3</dev/null 4</dev/null
writes=$(reported writes)
calls=$(reported calls)
dumps=$(reported coreDumps)
# a kernel without them is reported, and so is a build for a sanitizer
[ "$writes" = on ] || [ -n "$(reported writesWhy)" ] || fail "no reason for writes: $writes"
[ "$calls" = on ] || [ -n "$(reported callsWhy)" ] || fail "no reason for calls: $calls"
contains "$("$DRAGOMAN" status --dir "$dir")" confinement
if [ "$calls" = on ]; then
        [ "$(of_process Seccomp)" = 2 ] || fail "there is no filter"
        [ "$(of_process NoNewPrivs)" = 1 ] || fail "it could gain rights"
        contains "$("$DRAGOMAN" doctor --dir "$dir" || true)" "confined"
fi
[ "$dumps" = off ] || grep -qaE '__[at]san_init' "$DRAGOMAN" || fail "it may dump core"
if [ "$dumps" = off ]; then
        grep -Eq '^Max core file size +0 +0 ' "/proc/$daemon_pid/limits" || fail "it may dump core"
fi
# a command for a secret, again with everything open: it writes where it likes
exec 5<>/dev/null
before=$(wc -l <"$outside/fds") # of the start, and of doctor
kill -HUP "$daemon_pid"
await sh -c "[ \$(wc -l <'$outside/fds') -gt $before ]"
# 3 is of ls itself
[ "$(sort -u "$outside/fds")" = "0 1 2 3 " ] || fail "children got descriptors: $(cat "$outside/fds")"
# the operator may name any place, and the daemon writes where it may
contains "$(post /api/v2/backup "{\"path\":\"$outside/allowed/copy.db\"}")" copy.db
[ -s "$outside/allowed/copy.db" ] || fail "no copy in the writable place"
if [ "$writes" = on ]; then
        # the error says where it may write, and who can write elsewhere
        refused=$(post /api/v2/backup "{\"path\":\"$outside/copy.db\"}")
        contains "$refused" "state/backups"
        contains "$refused" "confinement.writable ($outside/allowed)"
        contains "$refused" "dragoman backup --to"
        mkdir "$outside/allowed-not"
        contains "$(post /api/v2/backup "{\"path\":\"$outside/allowed-not/copy.db\"}")" "confinement.writable"
        contains "$(post /api/v2/backup "{\"path\":\"$outside/none/copy.db\"}")" "its folder does not exist"
        [ ! -e "$outside/copy.db" ] || fail "it wrote outside of its directory"
fi
# the command moves its copy itself
"$DRAGOMAN" backup --dir "$dir" --to "$outside/moved.db" >/dev/null
[ "$(head -c 15 "$outside/moved.db")" = "SQLite format 3" ] || fail "no copy was moved"
contains "$(post '/api/v2/messages/inbound' '{"instanceId":"api","chatId":"c","text":"hello"}')" stored
stop

# it is switched off by the setting alone, which is reported
configure '{ "enabled": false, "coreDumps": true }'
start
[ "$(reported writes)$(reported calls)$(reported coreDumps)" = offoffon ] || fail "it is confined: $("$DRAGOMAN" status --dir "$dir")"
contains "$(reported writesWhy)" "confinement.enabled is false"
contains "$("$DRAGOMAN" doctor --dir "$dir" || true)" "core dumps"
stop

# a place that does not exist is a mistake of the configuration
configure '{ "writable": ["/no/such/place"] }'
rc=0
"$DRAGOMAN" run "$dir" --listen 127.0.0.1:0 >"$dir/out" 2>&1 || rc=$?
[ $rc -eq 78 ] || [ "$writes" != on ] || fail "a missing place ended with $rc: $(cat "$dir/out")"
