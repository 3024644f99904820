#!/usr/bin/env bash
# People on Telegram ask for reminders, by command of any agent and by the tool of the built-in one. The daemon is killed before
# their time; after the restart each arrives once and says that it is late. Lists, cancelling and the command line work meanwhile.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm
model=$sim
start_sim telegram
adapter() {
        printf '"%s": { "type": "telegram", "botToken": "%s", "apiBase": "%s", "agent": "%s", "dm": ["everyone"], "debounceMs": 0, "rateLimit": { "turns": 0 },
                 "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } }' "$@"
}
configure() {
        cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" },
              "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$model", "apiKey": "sk-sim" } },
  "schedule": { "timezone": "Europe/Berlin" },
  "adapters": { $(adapter tg 100000001:dragoman-simulator-token "$sim" "$1") } }
JSON
}
says() { curl -sS "$sim/sim/send" -d "{\"from\":$1,\"text\":\"$2\"}" >/dev/null; }
shown_count() { curl -sS "$sim/sim/messages?kind=message&limit=1000" | grep -o "$1" | wc -l; }
# Waits until the schedule with this text is in this state.
is_in() { run schedule all --json | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin)["items"] if r["text"] == sys.argv[1]]
sys.exit(not rows or any(r["state"] != sys.argv[2] for r in rows))' "$1" "$2"; }
# The daemon was down for two hours: what is active was due then.
was_due_long_ago() { python3 -c '
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE schedules SET at_ms = ?1, next_ms = ?1 WHERE state = ?2 AND kind = ?3",
           (int(time.time() * 1000) - 7200000, "active", "one-shot"))
db.commit()' "$dir/state/main.db"; }

configure echo
start
contains "$(run schedule)" "nothing is scheduled"
says 42 '/remind'
next message '/remind tomorrow 9:00 call mum'
says 42 '/remind soon tea'
next message 'That did not work'
says 42 '/remind 1s quick tea'
next message 'I will remind you'
contains "$shown" '(Europe/Berlin): quick tea'
next message 'quick tea'
case $shown in *late:*) fail "it was not late: $shown" ;; esac
await is_in 'quick tea' done

# asked for by command, and by the tool of an agent; killed before their time
says 42 '/remind 1h slow tea'
next message 'slow tea'
says 42 '/remind every monday 20:00 take out the bins'
next message 'take out the bins'
says 42 '/reminders'
next message 'slow tea'
contains "$shown" 'take out the bins'
configure main
stop
start
says 43 'call remind {\"when\":\"in 30 minutes\",\"text\":\"call mum\"}\ncall schedule_list {}\nsay I will.'
next message 'I will.'
contains "$(requests)" 'Europe/Berlin'
contains "$(run schedule next)" 'call mum'
contains "$(run cron list)" 'take out the bins'
kill_daemon
was_due_long_ago
start
next message 'it was due' # of two chats, in any order
next message 'it was due'
await is_in 'slow tea' done
await is_in 'call mum' done
late=$(curl -sS "$sim/sim/messages?kind=message&limit=1000" | grep -o '(late: it was due[^)]*2 hours ago)' | wc -l)
[ "$late" -eq 2 ] || fail "$late of 2 reminders say that they are late"

# a kill right after the delivery repeats nothing
kill_daemon
start
says 42 'say Still here.'
next message 'Still here.'
[ "$(shown_count 'it was due')" -eq 2 ] || fail "a reminder was sent twice"

# an agent wakes itself; what it reads then says who asked
says 43 'call remind {\"when\":\"1s\",\"text\":\"look\\nsay I looked.\",\"wake\":true}\nsay Later.'
next message 'Later.'
next message 'I looked.'
contains "$(requests)" 'Asked for by User 43: look'

# the operator
id=$(run schedule --json | grep -o '"id": "sch-[0-9]*"' | grep -o 'sch-[0-9]*' | head -1)
contains "$(run schedule show "$id")" 'take out the bins'
contains "$(run schedule run "$id")" "$id runs now"
next message 'take out the bins'
await sh -c "\"$DRAGOMAN\" schedule history $id --dir \"$dir\" | grep -q done"
contains "$(run schedule add 'in 1s' 'From the shell.' --to tg/42)" 'From the shell.'
next message 'From the shell.'
says 42 '/reminders cancel all'
next message '1 reminder is cancelled.'
contains "$(run schedule)" 'nothing is scheduled'
run schedule cancel "$id" >"$dir/out" 2>&1 && fail "it was cancelled twice"
contains "$(cat "$dir/out")" 'cancelled already'
every_call_was_valid
stop
