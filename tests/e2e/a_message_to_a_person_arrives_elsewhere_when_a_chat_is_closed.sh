#!/usr/bin/env bash
# A person on two platforms gets a message on the other one, once: when they blocked the bot on the first, when that platform is down, and when its
# adapter is gone. Quiet hours put it off, the daily cap refuses it, and a reminder asked for arrives where it was asked. Who has only written in a
# server gets a direct message.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim discord
discord=$sim
start_sim telegram
telegram=$sim telegram_pid=${helpers##* }
# where it is about noon: no day ends during the test
zone=$(printf 'Etc/GMT%+d' $((10#$(date -u +%H) - 12)))
config() { # the adapter on Telegram, or nothing
        cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "schedule": { "fallbackSeconds": 1, "timezone": "$zone" },
  "adapters": { $1 "dc": { "type": "discord", "botToken": "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token", "apiBase": "$discord/api/v10",
                           "dm": "everyone", "channels": ["*"], "debounceMs": 0, "pace": { "perSecond": 0, "perChatPerSecond": 0 } } } }
JSON
}
config "\"tg\": { \"type\": \"telegram\", \"botToken\": \"100000001:dragoman-simulator-token\", \"apiBase\": \"$telegram\", \"dm\": \"everyone\",
        \"debounceMs\": 0, \"pace\": { \"perSecond\": 0, \"perChatPerSecond\": 0, \"perGroupPerMinute\": 0 } },"
# Each simulator counts its own actions.
discord_seen=0 telegram_seen=0
on() {
        if [ "$1" = discord ]; then sim=$discord seen=$discord_seen; else sim=$telegram seen=$telegram_seen; fi
        shift
        "$@"
        if [ "$sim" = "$discord" ]; then discord_seen=$seen; else telegram_seen=$seen; fi
}
says() { curl -sSf "$sim/sim/send" -d "{\"from\":$1,\"text\":\"$2\"}" >/dev/null; }
cli() { "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 || fail "'$*': $(cat "$dir/out")"; }
printed() { contains "$(cat "$dir/out")" "$1"; }
# done_ticks N: so many messages of the schedule have arrived
done_ticks() {
        local n
        n=$(for i in $(seq 1 "$1"); do run schedule history "sch-$i" --json; done | grep -c '"state": "done"')
        [ "$n" = "$1" ]
}

done_ticks_of() { run schedule history "$1" --json | grep -q '"state": "done"'; }

start
on discord says '"ada"' hello
on discord next message '"text":"hello"'
on telegram says 42 hello
on telegram next message '"text":"hello"'
account=$(run persons list --json | grep -o 'discord:[0-9]*' | head -1)
cli persons link telegram:42 "$account"
person=$(run persons search 42 --json | grep -o '"id": "per-[0-9]*"' | grep -o 'per-[0-9]*' | head -1)

# the latest chat comes first
cli send "$person" 'The build is green.'
printed 'sch-1 queued'
on telegram next message '"text":"The build is green."'

curl -sSf "$telegram/sim/block" -d '{"user":42,"blocked":true}' >/dev/null
cli send telegram:42 'The build is red.'
on discord next message 'The build is red.'
await done_ticks 2
cli schedule history sch-2
printed 'sent to dc/'
cli dead-letters
printed 'no dead letters'

# Telegram does not answer any more
kill "$telegram_pid"
cli send "$person" 'It is still red.'
on discord next message 'It is still red.'
await done_ticks 3

# the adapter is gone
config ''
kill -HUP "$daemon_pid"
await grep -q 'configuration reloaded' "$dir/log"
cli send "$person" 'It is green again.'
on discord next message 'It is green again.'
await done_ticks 4

# after a kill, nothing is repeated
kill_daemon
start
cli persons set "$person" --quiet-hours 11:00-15:00 --daily-cap 5
cli send "$person" 'By the way.'
printed 'sch-5 deferred until'
if run send "$person" 'And again.' >"$dir/out" 2>&1; then fail "the cap holds nothing back"; fi
printed 'gets no more than 5 unasked messages a day (their dailyCap)'
on discord says '"ada"' '/remind 1s tea'
on discord next message 'tea'
on discord next message '⏰ tea'
contains "$(curl -sS "$discord/sim/messages?after=$discord_seen&kind=message")" '"items":[]'

# somebody who has only written in a server
curl -sSf "$discord/sim/send" -d '{"from":"bob","channel":"general","text":"<@dragoman> good morning"}' >/dev/null
on discord next message 'good morning'
cli send "$(run persons list --json | grep -o 'discord:[0-9]*' | grep -v "$account" | head -1)" 'Only for you.'
on discord next message 'Only for you.'
await done_ticks_of sch-7
stop
