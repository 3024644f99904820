#!/usr/bin/env bash
# grammY, telegraf and python-telegram-bot run unchanged against dragoman-sim telegram.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
sim=$build/dragoman-sim
work=$build/telegram-clients
token=100000001:dragoman-simulator-token
[ -x "$sim" ] || make -j2 BUILD="$build" "$sim" || exit 1
tools/install clients || exit 1

mkdir -p "$work"
cp tests/clients/telegram/{package.json,package-lock.json,.npmrc,*.mjs} "$work/" || exit 1
if ! cmp -s "$work/package-lock.json" "$work/.installed"; then
        (cd "$work" && npm ci --no-audit --no-fund >npm.log 2>&1) || { tail -20 "$work/npm.log"; exit 1; }
        cp "$work/package-lock.json" "$work/.installed"
fi

# A port that is free now, for the one client that cannot choose by itself.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# with_sim OPTION COMMAND...: a fresh simulator for each client
with_sim() {
        local out=$work/sim.out option=$1 pid rc
        shift
        rm -f "$out"
        "$sim" telegram --port 0 --no-limits --quiet --token $token $option >"$out" &
        pid=$!
        until [ -s "$out" ]; do kill -0 $pid && sleep 0.02 || return 1; done
        SIM_URL=$(head -n 1 "$out") SIM_TOKEN=$token HOOK_PORT=$(free_port) timeout 90 "$@"
        rc=$?
        kill $pid
        wait $pid || rc=1
        return $rc
}

status=0
with_sim '' node "$work/grammy.mjs" || status=1
# telegraf's buttons have a field of its own
with_sim --lax node "$work/telegraf.mjs" || status=1
with_sim '' /usr/bin/python3 tests/clients/telegram/ptb.py || status=1
exit $status
