#!/usr/bin/env bash
# TLS works, the commands insist on the certificate of the daemon, and plain HTTP is refused.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
. tests/lib/ports.sh
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dragoman.example -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
printf '{ "http": { "tlsCert": "%s/cert.pem", "tlsKey": "%s/key.pem" } }' "$dir" "$dir" >"$dir/config.json"
reserve_port port # another process will listen there later
"$DRAGOMAN" run "$dir" --listen "127.0.0.1:$port" 2>>"$dir/log" &
daemon_pid=$!
await test -s "$dir/state/http.addr"
addr=$(cat "$dir/state/http.addr")
await curl -skf "https://$addr/readyz"
contains "$("$DRAGOMAN" status "$dir")" healthy
contains "$("$DRAGOMAN" status "$dir")" "https://$addr"
contains "$(echo hello | "$DRAGOMAN" chat "$dir")" "You said: hello"
curl -sf "https://$addr/readyz" && fail "an unknown certificate was accepted by a client that verifies"
curl -s --max-time 5 "http://$addr/healthz" | grep -q '"ok"' && fail "plain HTTP was answered on a TLS port"
# a renewed certificate is used after a restart only, and that is logged
kill -HUP "$daemon_pid"
await grep -q "configuration reloaded" "$dir/log"
grep -q "takes effect after a restart" "$dir/log" && fail "an old certificate was called renewed"
openssl req -x509 -nodes -days 3 -subj /CN=dragoman.example -key "$dir/key.pem" -out "$dir/new.pem" 2>/dev/null
mv "$dir/new.pem" "$dir/cert.pem"
kill -HUP "$daemon_pid"
await grep -q "TLS certificate or key changed; takes effect after a restart" "$dir/log"
# commands refuse another certificate on the same port
stop
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dragoman.example -keyout "$dir/key2.pem" -out "$dir/cert2.pem" 2>/dev/null
openssl s_server -quiet -accept "$addr" -cert "$dir/cert2.pem" -key "$dir/key2.pem" -www >/dev/null 2>&1 &
daemon_pid=$!
await curl -skf "https://$addr/"
echo "$addr" >"$dir/state/http.addr"
rc=0
# hold the lock of the daemon, so that only the certificate differs
flock "$dir/state/lock" "$DRAGOMAN" status "$dir" >"$dir/out" 2>&1 || rc=$?
[ $rc -ne 0 ] || fail "the command accepted another certificate"
contains "$(cat "$dir/out")" "its TLS key is not the one in"
