#!/usr/bin/env bash
# A minute at 50 messages a second, from Telegram over TLS to a model and back: memory does not grow after the start.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
built=$(dirname "$DRAGOMAN")
for program in dragoman-sim bench/bench_llm bench/bench_chat; do
        [ -x "$built/$program" ] || fail "there is no $built/$program; make all bench-bins"
done
helpers=()
stop_helpers() {
        kill "${helpers[@]}" 2>/dev/null || true
        clean_up
}
trap stop_helpers EXIT

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
"$built/dragoman-sim" telegram --port 0 --quiet --no-limits --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem" \
        </dev/null >"$dir/sim" &
helpers+=($!)
"$built/bench/bench_llm" >"$dir/llm" &
helpers+=($!)
await test -s "$dir/sim"
await test -s "$dir/llm"
cat >"$dir/config.json" <<EOF
{ "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$(cat "$dir/sim")",
    "caFile": "$dir/cert.pem", "dm": "everyone", "rateLimit": { "turns": 0 },
    "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } },
  "agents": { "fox": { "type": "openai", "baseUrl": "$(cat "$dir/llm")", "model": "fox" } } }
EOF
start

rss_kb() { awk '/^VmRSS:/ { print $2 }' "/proc/$daemon_pid/status"; }
"$built/bench/bench_chat" "$(cat "$dir/sim")" --ca "$dir/cert.pem" --chats 20 --rate 50 --seconds 62 >"$dir/result" &
driver=$!
helpers+=($driver)
sleep 20
early=$(rss_kb)
sleep 40
late=$(rss_kb)
wait $driver || fail "not every message was answered once: $(cat "$dir/result")"
echo "RSS at 20 s: $early KB, at 60 s: $late KB; $(cat "$dir/result")"
[ $((late * 100)) -le $((early * 115)) ] || fail "RSS grew from $early KB to $late KB"
stop
