#!/usr/bin/env bash
# OpenAI's client runs unchanged against the daemon: models, whole and streamed answers, errors, keys.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
platform=openai
. tests/clients/lib.sh
set -e

cat >"$dir/config.json" <<'C'
{ "agents": { "stage": { "type": "script", "file": "stage.txt" } }, "adapters": { "api": { "type": "api" } } }
C
cat >"$dir/stage.txt" <<'S'
when bad*
    fail refused It is broken.
when slow*
    piece "One. "
    wait 20
    piece "Two. "
    piece "Three."
when *
    say You said: {text}
S
start
make_key() { "$DRAGOMAN" keys create "$1" --scope "$2" --adapter api --json --dir "$dir" | python3 -c 'import json, sys; print(json.load(sys.stdin)["key"])'; }
BASE_URL=http://$addr/v1 API_KEY=$(make_key asker chat:write,models:read) READER_KEY=$(make_key reader read) \
        timeout 120 node "$work/client.mjs" || fail "the client failed"
stop
