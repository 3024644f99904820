# Shared by the end-to-end scripts: a daemon in a new folder, and a client for its API.
set -eu
umask 022 # the daemon refuses files that others may write
# a real bot token in the environment would connect
unset DISCORD_BOT_TOKEN SLACK_BOT_TOKEN SLACK_APP_TOKEN TELEGRAM_BOT_TOKEN API_BASE_URL DISCORD_API_KEY
top=$(cd "$(dirname "$0")/../.." && pwd)
DRAGOMAN=${DRAGOMAN:-$top/build/dragoman}
SIMULATOR=${SIMULATOR:-$(dirname "$DRAGOMAN")/dragoman-sim}
dir=$(mktemp -d)
daemon_pid=
helpers= # other processes that end with the script
wrapper=${wrapper:-}
# Seconds to wait for what must happen; a slow machine is no failure.
patience=60

clean_up() {
        [ -z "$daemon_pid" ] || kill -9 "$daemon_pid" 2>/dev/null || true
        for pid in $helpers; do kill "$pid" 2>/dev/null || true; done
        rm -rf "$dir"
}
trap clean_up EXIT

report() {
        echo "FAILED: $*" >&2
        [ ! -f "$dir/log" ] || tail -30 "$dir/log" >&2
}
fail() {
        report "$@"
        exit 1
}
# report where a script failed or hung
set -E
trap 'report "line $LINENO: $BASH_COMMAND"' ERR
trap 'fail "out of time, in: $BASH_COMMAND"' TERM

# Waits until a command succeeds.
await() {
        local end=$((SECONDS + patience))
        until "$@" >/dev/null 2>&1; do
                [ $SECONDS -lt $end ] || fail "waited $patience s for: $*"
                sleep 0.02
        done
}

# Starts the daemon; its bots may be refused.
launch() {
        rm -f "$dir/state/http.addr"
        $wrapper "$DRAGOMAN" run "$dir" --listen 127.0.0.1:0 "$@" 2>>"$dir/log" &
        daemon_pid=$!
        await test -s "$dir/state/http.addr"
        addr=$(cat "$dir/state/http.addr")
        key=$(cat "$dir/state/operator.key")
}

start() {
        launch "$@"
        await curl -sf "http://$addr/readyz"
}

stop() {
        kill -TERM "$daemon_pid"
        local rc=0
        wait "$daemon_pid" || rc=$?
        daemon_pid=
        [ $rc -eq 0 ] || fail "the daemon ended with $rc"
}

kill_daemon() {
        kill -9 "$daemon_pid"
        wait "$daemon_pid" 2>/dev/null || true
        daemon_pid=
}

# start_sim NAME [OPTION...]: $sim is the address of this simulator. There may be several.
start_sim() {
        local out
        exec {out}< <(exec "$SIMULATOR" "$@" --port 0 --quiet --no-limits 2>&1)
        helpers+=" $!"
        read -r sim <&"$out"
        exec {out}<&-
}
seen=0
# next KIND TEXT: the next action of this kind by the bot, $shown, must contain the text.
next() {
        shown=$(curl -sS "$sim/sim/messages?after=$seen&wait=${patience}000&kind=$1&limit=1")
        seen=$(printf '%s' "$shown" | sed -n 's/.*"seq":\([0-9]*\).*/\1/p' | head -1)
        contains "$shown" "$2"
}
# The built-in agent on Discord ("dc"): $model is the address of the simulated model, $sim that of Discord.
start_agent_on_discord() {
        start_sim llm
        model=$sim
        start_sim discord
        cat >"$dir/config.json" <<JSON
{ "agents": { "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$model", "apiKey": "sk-sim" } },
  "adapters": { "dc": { "type": "discord", "botToken": "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token", "apiBase": "$sim/api/v10", "dm": ["everyone"], "debounceMs": 0, "rateLimit": { "turns": 0 },
                        "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
JSON
        start
        await is dc '"connected"'
}
# says TEXT: a direct message to the bot, written as in JSON. Scripts with several people have their own.
says() { curl -sS "$sim/sim/send" -d "{\"from\":42,\"text\":\"$1\"}" >/dev/null; }
# All requests to the model, with what the tools answered.
requests() { curl -sS "$model/sim/calls?kind=messages&limit=1000"; }
every_call_was_valid() { contains "$(curl -sS "$sim/sim/calls?valid=false")" '"items":[]'; }

api() { curl -sS --max-time 100 -H "x-api-key: $key" "http://$addr$1" "${@:2}"; }
post() { api "$1" -H 'Content-Type: application/json' -d "$2"; }
# say ADAPTER TEXT: sends a message, written as in JSON, and prints the response with the answer.
say() { post "/api/v2/messages/inbound?wait=${patience}000" "{\"instanceId\":\"$1\",\"text\":\"$2\"}"; }
# is ADAPTER TEXT: does its state contain the text?
is() { api "/api/v2/instances/$1" | grep -qF "$2"; }
run() { "$DRAGOMAN" "$@" --dir "$dir"; }
# The id of the approval that is open.
open_id() { run approvals list --json | grep -o '"id": "apr-[0-9]*"' | grep -o 'apr-[0-9]*'; }
# sleeps SECONDS: is there a process with this argument? The pattern does not match the grep's own.
sleeps() { grep -sqzx "0*$1" /proc/[0-9]*/cmdline; }
sleeps_no_more() { ! sleeps "$1"; }
contains() { case "$1" in *"$2"*) ;; *) fail "expected '$2' in: $1" ;; esac; }
