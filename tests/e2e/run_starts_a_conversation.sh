#!/usr/bin/env bash
# The first steps of a newcomer: the committed tree in an empty folder, ./run, and a conversation without account or key.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
unset ANTHROPIC_API_KEY OPENAI_API_KEY
git archive HEAD | tar -x -C "$dir"
cd "$dir"
rc=0
# nproc honours OMP_NUM_THREADS: two jobs
printf 'hello\nhow are you\n' | OMP_NUM_THREADS=2 timeout 280 ./run --listen 127.0.0.1:0 >out 2>log || rc=$?
[ $rc -eq 0 ] || fail "./run ended with $rc"
contains "$(cat out)" "You said: hello"
contains "$(cat out)" "You said: how are you"
[ -s data/state/operator.key ] || fail "./data was not made"
[ ! -e data/state/http.addr ] || fail "the daemon still runs"
