#!/usr/bin/env bash
# One daemon is an agent of another one, over A2A: streamed, asked back, stopped; each killed in the middle of a turn, or both, and answered once.
. "$(dirname "$0")/lib.sh"
far=$(mktemp -d)
trap 'kill -9 $far_pid 2>/dev/null || true; rm -rf "$far"; clean_up' EXIT
far_pid=

start_far() {
        rm -f "$far/state/http.addr"
        "$DRAGOMAN" run "$far" --listen "127.0.0.1:${far_port:-0}" 2>>"$far/log" &
        far_pid=$!
        await test -s "$far/state/http.addr"
        far_addr=$(cat "$far/state/http.addr")
        far_port=${far_addr##*:}
}
kill_far() {
        kill -9 "$far_pid"
        wait "$far_pid" 2>/dev/null || true
}
far_api() { curl -sS -H "x-api-key: $(cat "$far/state/operator.key")" "http://$far_addr$1"; }

cat >"$far/config.json" <<'C'
{ "agents": { "stage": { "type": "script", "file": "stage.txt" } }, "adapters": { "api": { "type": "api", "rateLimit": { "turns": 0 } } } }
C
cat >"$far/stage.txt" <<'S'
when tidy*
    ask asker 60000 rm -r drafts
    say Tidied.
when careful*
    ask asker 60000 rm -r drafts
    wait 1500
    say Tidied with care.
when fail*
    fail refused It is broken.
when hang*
    hang
when slow*
    piece "One. "
    wait 1500
    piece "Two."
when *
    say You said: {text}
S
start_far
far_key=$("$DRAGOMAN" keys create near --scope a2a:write --json --dir "$far" | python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])')
cat >"$dir/config.json" <<C
{ "agents": { "far": { "type": "a2a", "url": "http://$far_addr/a2a/stage", "apiKey": "$far_key", "repeatable": true, "pollMs": 200 } },
  "adapters": { "api": { "type": "api", "rateLimit": { "turns": 0 } } } }
C
start
contains "$(say api hello)" '"text":"You said: hello"'
contains "$(run why evt-3)" 'there it is task evt-'
contains "$(say api 'slow one')" '"text":"One. Two."'
contains "$(say api 'fail now')" 'It is broken.'
# what it asks a person is asked here, and answered here
contains "$(say api 'tidy up')" 'rm -r drafts'
contains "$(say api yes)" '"text":"Tidied."'
# a turn that is stopped here is stopped there
far_has() { far_api "$1" | grep -q "$2"; }
post /api/v2/messages/inbound '{"chatId":"h","text":"hang on"}' >/dev/null
await far_has '/api/v2/turns?state=running' trn-
post "/api/v2/turns/$(api '/api/v2/turns?state=running' | grep -o 'trn-[0-9]*' | head -1)/cancel" '{}' >/dev/null
await far_has '/api/v2/turns?state=cancelled' trn-

# nobody, the far one, this one, both
kill_and_start() {
        case $1 in far | both) kill_far ;; esac
        case $1 in near | both) kill_daemon ;; esac
        case $1 in far | both) start_far ;; esac
        case $1 in near | both) start ;; esac
}
for round in none far near both; do
        text="slow $round"
        post /api/v2/messages/inbound "{\"chatId\":\"$round\",\"text\":\"$text\",\"externalId\":\"$round\"}" >/dev/null
        await far_has '/api/v2/events?type=message.received&limit=100' "$text"
        kill_and_start "$round"
        reply=$(post "/api/v2/messages/inbound?wait=${patience}000" "{\"chatId\":\"$round\",\"text\":\"$text\",\"externalId\":\"$round\"}")
        contains "$reply" '"text":"One. Two."'
        [ "$(far_api '/api/v2/events?type=message.received&limit=100' | grep -o "\"text\":\"$text\"" | wc -l)" = 1 ] || fail "'$text' arrived not once"
        [ "$(api "/api/v2/chats/api/$round/messages" | grep -o 'One. Two.' | wc -l)" = 1 ] || fail "'$text' was answered not once: $(api "/api/v2/chats/api/$round/messages")"
done
# the same when the answer to a question has just arrived there
far_yes() { far_api '/api/v2/events?type=message.received&limit=100' | grep -o '"text":"yes"' | wc -l; }
arrived=$(far_yes)
far_got_it() { [ "$(far_yes)" = "$arrived" ]; }
for round in none far near both; do
        contains "$(post "/api/v2/messages/inbound?wait=${patience}000" "{\"chatId\":\"ask-$round\",\"text\":\"careful\"}")" 'rm -r drafts'
        yes="{\"chatId\":\"ask-$round\",\"text\":\"yes\",\"externalId\":\"yes-$round\"}"
        post /api/v2/messages/inbound "$yes" >/dev/null
        arrived=$((arrived + 1))
        await far_got_it
        kill_and_start "$round"
        contains "$(post "/api/v2/messages/inbound?wait=${patience}000" "$yes")" '"text":"Tidied with care."'
        far_got_it || fail "the answer arrived $(far_yes) times, not $arrived"
done
stop
kill -TERM "$far_pid"
wait "$far_pid" || fail "the far daemon ended with $?"
