#!/usr/bin/env bash
# Slack's own web client, socket client and Bolt (over Socket Mode and HTTP) run unchanged against dragoman-sim slack; beside
# Dragoman, they see its cards, buttons, threads and a whole coding session.
platform=slack
. "$(dirname "$0")/../clients/lib.sh"
token=xoxb-simulator-token

status=0
with_sim $token '' node "$work/web.mjs" || status=1
with_sim $token '' node "$work/socket.mjs" || status=1
with_sim $token '' node "$work/bolt.mjs" || status=1

# Bolt and the web client watch Dragoman: attachments, buttons, threads
[ -x "$build/dragoman" ] || make -j2 BUILD="$build" "$build/dragoman" || exit 1
observer=xoxb-observer-token
DRAGOMAN=$build/dragoman OBSERVER_TOKEN=$observer with_sim $token "--token $observer" node "$work/observer.mjs" || status=1

# The same over TLS, for the Web API and Socket Mode, with a self-signed certificate.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null || exit 1
NODE_EXTRA_CA_CERTS=$work/cert.pem with_sim $token "--tls-cert $work/cert.pem --tls-key $work/key.pem" \
        node "$work/bolt.mjs" || status=1
exit $status
