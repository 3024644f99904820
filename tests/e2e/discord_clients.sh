#!/usr/bin/env bash
# discord.js and discord.py run unchanged against dragoman-sim discord, and its answers match Discord's description; beside
# Dragoman, discord.js sees buttons, scheduled events, embeds, threads and a whole coding session.
platform=discord
. "$(dirname "$0")/../clients/lib.sh"
token=OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token

status=0
with_sim $token '' node "$work/discordjs.mjs" || status=1
with_sim $token '' /usr/bin/python3 tests/clients/discord/dpy.py || status=1
with_sim $token '' python3 tests/clients/discord/answers.py || status=1

# discord.js watches Dragoman: buttons, scheduled events, embeds, threads, a session
[ -x "$build/dragoman" ] || make -j2 BUILD="$build" "$build/dragoman" || exit 1
observer=OTAwMDAwMDAwMDAwMDAwMDAx.observer.token
DRAGOMAN=$build/dragoman OBSERVER_TOKEN=$observer with_sim $token "--token $observer" node "$work/observer.mjs" || status=1

# discord.py over TLS, for the API and the gateway, with a self-signed certificate.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null || exit 1
SSL_CERT_FILE=$work/cert.pem with_sim $token "--tls-cert $work/cert.pem --tls-key $work/key.pem" \
        /usr/bin/python3 tests/clients/discord/dpy.py || status=1
exit $status
