#!/usr/bin/env bash
# 20,000 messages from Telegram over TLS to a model and back fill the caches; after that, neither 50 messages a second nor
# 1,000 make memory grow.
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

# The program's own memory. RSS would also count the pages of shared libraries, which come and go with the kernel's page cache.
own_kb() { awk '/^RssAnon:/ { print $2 }' "/proc/$daemon_pid/status"; }
people_write() {
        "$built/bench/bench_chat" "$(cat "$dir/sim")" --ca "$dir/cert.pem" "$@" >"$dir/result" &
        helpers+=($!)
        wait $! || fail "not every message was answered once: $(cat "$dir/result")"
        echo "$* -> $(own_kb) KB, $(cat "$dir/result")"
}
people_write --chats 40 --messages 20000 # fills the caches, with more at a time than later
before=$(own_kb)
people_write --chats 20 --rate 50 --seconds 20
people_write --chats 20 --rate 1000 --messages 20000
grown=$(($(own_kb) - before))
# 128 bytes kept of each message make 2,000 KB and more, though some of them find room among what the first 20,000 left free.
[ $grown -le 1000 ] || fail "21,000 messages after the first 20,000 made memory grow by $grown KB, from $before KB"
stop
