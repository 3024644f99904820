#!/usr/bin/env bash
# Each command against a running daemon, as text and as JSON, with its exit codes; and without a daemon.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh

# json PATH COMMAND...: the value at PATH (such as .status.status) in what the command prints with --json
json() {
        local path=$1
        shift
        "$DRAGOMAN" "$@" --dir "$dir" --json | python3 -c '
import json, sys
value = json.load(sys.stdin)
for part in sys.argv[1].split(".")[1:]:
    value = value[int(part)] if part.isdigit() else value[part]
print(value)' "$path"
}
# exits CODE COMMAND...
exits() {
        local wanted=$1 rc=0
        shift
        "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 || rc=$?
        [ $rc -eq "$wanted" ] || fail "'$*' ended with $rc, not $wanted: $(cat "$dir/out")"
}
equal() { [ "$1" = "$2" ] || fail "expected '$2', got '$1'"; }

cat >"$dir/config.json" <<'C'
{ "agents": { "stage": { "type": "script", "file": "stage.txt" } },
  "adapters": { "api": { "type": "api", "callbackUrl": "http://127.0.0.1:9/none" },
                "resting": { "type": "api", "enabled": false } } }
C
printf 'when bad*\n    fail refused It is broken.\nwhen *\n    say You said: {text}\n' >"$dir/stage.txt"
start
event=$(json .eventId chat <<<"hello")
bad=$(json .turnId chat <<<"bad luck") || true # the exit code is that of an unanswered message

exits 0 status
contains "$(cat "$dir/out")" "terminal"
equal "$(json .running status)" True
equal "$(json .status.status status)" healthy
exits 0 why "$event"
contains "$(cat "$dir/out")" "answered"
equal "$(json .event.id why "$event")" "$event"
exits 1 why evt-999999
exits 0 route test "$event"
equal "$(json .decision.agent route test "$event")" stage
exits 0 route replay --since 1h
contains "$(cat "$dir/out")" "no decision would change"
sed 's/^{ /{ "rules": [{ "name": "quiet", "when": { "text": "^hello" }, "mode": "off" }, { "name": "rest" }],/' \
        "$dir/config.json" >"$dir/other.json"
exits 0 route replay --since 1h --config "$dir/other.json"
contains "$(cat "$dir/out")" "now: no agent: rule 'quiet' says off"
equal "$(json .summary.onlyBefore route replay --since 1h --config "$dir/other.json")" 1
exits 78 route replay --config "$dir/missing.json"
exits 64 route replay --since yesterday
equal "$(json .status chat <<<"/status")" done
contains "$(json .text chat <<<"/help")" "/stop"

exits 0 sessions
contains "$(cat "$dir/out")" "no session is active"
post /api/webhook/event '{"session_id":"s-1","event_type":"session_start"}' >/dev/null
equal "$(json .items.0.sessionId sessions)" s-1
equal "$(json .id sessions show s-1)" ses-1
exits 1 sessions show s-2
equal "$(json .state steer s-1 "go left")" queued
exits 0 steer ses-1 --abort
contains "$(cat "$dir/out")" "waits for ses-1"
equal "$(json .items.1.content sessions commands ses-1)" "go left"

delivery=$(json .deliveryId send terminal/room "a word" --idempotency-key once)
equal "$(json .deliveryId send terminal/room "a word" --idempotency-key once)" "$delivery"
equal "$(json .status send terminal/room "a word" --idempotency-key once)" duplicate
exits 1 send nobody/room "a word"
exits 1 send nowhere "a word"

equal "$(json .items.0.id dead-letters)" "$bad"
exits 0 dead-letters
contains "$(cat "$dir/out")" "$bad"
exits 0 dead-letters retry "$bad"
exits 1 dead-letters retry dlv-999999

equal "$(json .items approvals)" "[]"
equal "$(json .items approvals rules)" "[]"
exits 0 approvals history
contains "$(cat "$dir/out")" "there are no approvals"
exits 1 approvals approve apr-999999
exits 1 approvals forget apl-999999
exits 64 approvals refuse apr-1 --always

equal "$(json .items schedule)" "[]"
exits 0 schedule next
contains "$(cat "$dir/out")" "nothing is scheduled"
scheduled=$(json .id schedule add "every monday 20:00" "bins" --to terminal/room --timezone Europe/Berlin)
equal "$(json .items.0.cron schedule)" "0 20 * * 1"
equal "$(json .items.0.id cron next)" "$scheduled"
exits 0 schedule show "$scheduled"
contains "$(cat "$dir/out")" "zone     Europe/Berlin"
exits 0 schedule history "$scheduled"
contains "$(cat "$dir/out")" "it has not been due yet"
equal "$(json .state schedule cancel "$scheduled")" cancelled
exits 1 schedule cancel "$scheduled"
exits 1 schedule run sch-999999
exits 1 schedule add soon tea --to terminal/room
contains "$(cat "$dir/out")" "tomorrow 9:00"
exits 1 schedule add 1h tea --to nobody/room
exits 64 schedule add 1h tea

printf '{ "when": { "text": "psst" }, "mode": "off" }' >"$dir/rule.json"
exits 0 rules set hush "$dir/rule.json" --position -1
contains "$(cat "$dir/out")" "rule 'hush' is in force"
equal "$(json .items.0.rule.when.text rules)" psst
equal "$(json .position rules show hush)" -1
exits 0 rules off hush
equal "$(json .items.0.inForce rules list)" False
exits 0 rules on hush
printf '{ "wen": {} }' >"$dir/rule.json"
exits 1 rules set hush "$dir/rule.json"
contains "$(cat "$dir/out")" "unknown key 'wen' (did you mean 'when'?)"
exits 0 rules remove hush
exits 1 rules remove hush
exits 64 rules set hush "$dir/rule.json" --position far

exits 0 access allow telegram:7 --adapter api --reason "a tester"
equal "$(json .items.0.platformUserId access)" telegram:7
exits 0 access
contains "$(cat "$dir/out")" "acr-1    allow telegram:7 on api: a tester"
exits 0 access check api 7
exits 0 access remove acr-1
exits 1 access remove acr-1
exits 1 access allow telegram:7 --adapter nobody
exits 64 access check api
exits 0 persons
contains "$(cat "$dir/out")" "there are no persons yet"
exits 0 persons search ann
exits 1 persons show per-1
exits 1 persons link telegram:1 discord:2
exits 1 persons set per-1 --timezone Europe/Berlin
exits 64 persons set per-1 --daily-cap x
exits 64 persons merge per-1
exits 0 pairing list
contains "$(cat "$dir/out")" "there are no pairings"
exits 1 pairing approve ABCD-2345
exits 1 pairing revoke pair-1

exits 0 pause terminal/room --reason "a refund"
equal "$(json .items.0.reason handover list)" "a refund"
exits 0 handover
contains "$(cat "$dir/out")" "terminal/room paused since"
exits 0 resume terminal/room
exits 1 resume terminal/room
equal "$(json .items handover)" "[]"
exits 64 pause nowhere

shop=$(json .key keys create shop --scope events:read,messages:write --adapter terminal)
exits 1 keys create shop
exits 1 keys create other --scope everything
equal "$(json .items.0.adapters.0 keys)" terminal
exits 0 keys list
contains "$(cat "$dir/out")" "events:read,messages:write on terminal"
ask() { curl -sS -o /dev/null -w '%{http_code}' -H "x-api-key: $shop" "http://$(cat "$dir/state/http.addr")$1"; }
equal "$(ask /api/v2/events)" 200
equal "$(ask /api/v2/turns)" 403
exits 0 keys revoke shop
equal "$(ask /api/v2/events)" 401
exits 1 keys revoke shop

exits 0 events tail --since "$event" --count 2
[ "$(wc -l <"$dir/out")" -ge 2 ] || fail "events tail printed $(cat "$dir/out")"
exits 0 events consumers
contains "$(cat "$dir/out")" "dispatch  at evt-"
copy=$(json .path backup --to "$dir/copy.db")
[ "$(head -c 15 "$copy")" = "SQLite format 3" ] || fail "the backup '$copy' is no database"
exits 1 backup --to "$dir/copy.db"
exits 0 doctor
contains "$(cat "$dir/out")" "1 agent, "
contains "$(cat "$dir/out")" "ok    adapter resting is disabled"
equal "$(json .ok doctor)" True
exits 0 config check
contains "$(cat "$dir/out")" "1 agent, 0 rules"
stop

# commands that read the database work without a daemon
exits 0 why "$event"
equal "$(json .items.0.id dead-letters)" "$bad"
equal "$(json .items.0.turn.id dead-letters)" "$bad"
# and when the daemon ends between two pages
python3 - "$bad" >"$dir/state/http.addr" <<'P' &
import http.server, json, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.end_headers()
        self.wfile.write(json.dumps({"items": [{"id": sys.argv[1]}], "meta": {"hasMore": True, "cursor": "trn-9"}}).encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
server.timeout = 30
print("127.0.0.1:%d" % server.server_port, flush=True)
server.handle_request()
P
await test -s "$dir/state/http.addr"
# hold the lock of the daemon, so that the commands ask it
equal "$(flock "$dir/state/lock" "$DRAGOMAN" dead-letters --dir "$dir" --json | grep -c "\"id\": \"$bad\"")" 2 # of the letter and its turn
rm "$dir/state/http.addr"
exits 0 events consumers --json
contains "$(cat "$dir/out")" '"missed": 0'
for command in "send terminal/room word" "events tail" "dead-letters retry $bad" approvals backup status; do exits 69 $command; done
exits 0 doctor
printf '{ "htpp": {} }' >"$dir/config.json"
exits 78 config check
exits 78 doctor
exits 78 run
