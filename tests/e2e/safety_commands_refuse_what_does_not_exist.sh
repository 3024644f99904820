#!/usr/bin/env bash
# access and pause: names are looked up, at a terminal the person is asked which is meant, and what is unknown is refused with a suggestion.
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

# at_terminal ANSWER COMMAND...: the command on a pseudo terminal, with one line typed at its question
at_terminal() {
        local answer=$1
        shift
        python3 - "$answer" "$DRAGOMAN" "$@" --dir "$dir" >"$dir/out" 2>&1 <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen, asked = b"", False
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:  # Linux: the other side is closed
        break
    if not piece:
        break
    seen += piece
    if not asked and (b"none) " in seen or b"[y/N] " in seen):
        asked = True
        os.write(fd, sys.argv[1].encode() + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.write(seen.decode())
sys.exit(status if asked else 99)
PY
}
declined() {
        local says=$1 rc=0
        shift
        at_terminal "$@" || rc=$?
        [ $rc -ne 0 ] && [ $rc -ne 99 ] || fail "'$*' ended with $rc: $(cat "$dir/out")"
        contains "$(cat "$dir/out")" "$says"
}
declined "none was chosen; nothing was changed" "" access deny Bob
contains "$(cat "$dir/out")" "telegram:43  Bob, @bob_one"
declined "'3' is not a number from 1 to 2" 3 access deny Bob
declined "'*' allows everyone" n access allow '*'
declined "none was chosen" "" pause tg/general
cli access list
contains "$(cat "$dir/out")" "there are no stored access rules"
at_terminal 2 access deny Bob || fail "no rule was stored: $(cat "$dir/out")"
second=$(sed -n 's/^ *2  \(telegram:4[34]\) .*/\1/p' "$dir/out")
cli access list
contains "$(cat "$dir/out")" "deny  $second on all adapters"
at_terminal 1 pause tg/general || fail "nothing was paused: $(cat "$dir/out")"
cli handover list
contains "$(cat "$dir/out")" "tg/4"
# programs get the candidates from the API, and no question
refused "'Bob' may be telegram:4" access deny Bob
contains "$(post /api/v2/access/rules '{"ruleType":"deny","platformUserId":"Bob"}')" '"candidates":[{"id":"telegram:4'

cli access deny @ADA
contains "$(cat "$dir/out")" telegram:42
cli access deny telegram:7
cli access deny @eva --force
cli access allow '*' --yes
cli pause tg/general --force
cli pause tg/42
stop
