#!/usr/bin/env bash
# access and pause: names are looked up, and what is unknown is refused with a suggestion.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim telegram
cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } },
  "adapters": { "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$sim", "dm": "everyone",
                        "debounceMs": 0 } } }
JSON
# refused TEXT COMMAND...: the command fails and says so
refused() {
        local says=$1
        shift
        "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 </dev/null && fail "'$*' was accepted"
        contains "$(cat "$dir/out")" "$says"
}
cli() { "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 </dev/null || fail "'$*': $(cat "$dir/out")"; }
start
meet() {
        curl -sS "$sim/sim/users" -d "{\"id\":$1,\"first_name\":\"$2\",\"username\":\"$3\"}" >/dev/null
        curl -sS "$sim/sim/send" -d "{\"from\":$1,\"text\":\"I am $3\"}" >/dev/null
        next message "I am $3"
}
meet 42 Ada ada
meet 43 Bob bob_one
meet 44 Bob bob_two

refused "nobody called '@eva' has written yet" access deny @eva
refused "did you mean telegram:42 (Ada, @ada)?" access deny @ad
refused "'Bob' may be telegram:4" access deny Bob
refused "there is no platform 'telegarm' (did you mean 'telegram'?)" access deny telegarm:7
refused "there is no person 'per-99'" access allow per-99
refused "'*' allows everyone; --yes confirms it" access allow '*'
refused "nothing has been said in 'tg/general'; there is tg/4" pause tg/general
cli access list
contains "$(cat "$dir/out")" "there are no stored access rules"

cli access deny @ADA
contains "$(cat "$dir/out")" telegram:42
cli access deny telegram:7
cli access deny @eva --force
cli access allow '*' --yes
cli pause tg/general --force
cli pause tg/42
stop
