#!/usr/bin/env bash
# OpenAI's client runs unchanged against the daemon: models, whole and streamed answers, errors, keys.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
work=${BUILD:-build}/openai-client
tools/install clients || exit 1
mkdir -p "$work"
cp tests/clients/openai/{package.json,package-lock.json,.npmrc,client.mjs} "$work/"
if ! cmp -s "$work/package-lock.json" "$work/.installed"; then
        (cd "$work" && npm ci --no-audit --no-fund >npm.log 2>&1) || { tail -20 "$work/npm.log"; exit 1; }
        cp "$work/package-lock.json" "$work/.installed"
fi

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
