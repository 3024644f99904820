#!/usr/bin/env bash
# 20,000 messages from Telegram over TLS to a model and back fill the caches; after that, memory grows neither at 50
# messages a second nor at 1,000.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
built=$(dirname "$DRAGOMAN")
for program in dragoman-sim bench/bench_llm bench/bench_chat; do
        [ -x "$built/$program" ] || fail "there is no $built/$program; make all bench-bins"
done

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
"$built/dragoman-sim" telegram --port 0 --quiet --no-limits --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem" \
        </dev/null >"$dir/sim" &
helpers+=" $!"
"$built/bench/bench_llm" >"$dir/llm" &
helpers+=" $!"
await test -s "$dir/sim"
await test -s "$dir/llm"
cat >"$dir/config.json" <<EOF
{ "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$(cat "$dir/sim")",
    "caFile": "$dir/cert.pem", "dm": "everyone", "rateLimit": { "turns": 0 },
    "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } },
  "agents": { "fox": { "type": "openai", "baseUrl": "$(cat "$dir/llm")", "model": "fox" } } }
EOF
start

# Anonymous memory only: RSS also counts pages of shared libraries, which depend on the page cache.
own_kb() { awk '/^RssAnon:/ { print $2 }' "/proc/$daemon_pid/status"; }
people_write() {
        "$built/bench/bench_chat" "$(cat "$dir/sim")" --ca "$dir/cert.pem" "$@" >"$dir/result" &
        helpers+=" $!"
        wait $! || fail "not every message was answered once: $(cat "$dir/result")"
        echo "$* -> $(own_kb) KB, $(cat "$dir/result")"
}
people_write --chats 40 --messages 20000 # fills the caches, with more chats than later
before=$(own_kb)
people_write --chats 20 --rate 50 --seconds 20
people_write --chats 20 --rate 1000 --messages 20000
grown=$(($(own_kb) - before))
# A leak of 128 bytes a message is over 2,000 KB, less what fits into memory freed by the first 20,000.
[ $grown -le 1000 ] || fail "21,000 messages after the first 20,000 made memory grow by $grown KB, from $before KB"
stop
