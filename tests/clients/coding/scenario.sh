# The real pi or omp as an agent of Dragoman, on simulated Discord with a simulated model. Set `kind` before sourcing.
. "$(dirname "${BASH_SOURCE[0]}")/agents.sh"
DRAGOMAN=$(realpath "$build")/dragoman SIMULATOR=$(realpath "$build")/dragoman-sim
[ -x "$DRAGOMAN" ] || make -j2 BUILD="$build" "$DRAGOMAN" || exit 1
. tests/e2e/lib.sh
start_sim llm
model=$sim
start_sim discord
coding_home "$dir/coding" "$model/v1"
declare -n program=$kind
agent=coder wire=chat shell=bash parameter=command
. tests/clients/started_agents.sh

# an extension that asks before a command that says "danger", and what to do instead of one that says "choose"
cat >"$dir/gate.ts" <<'TS'
export default function (pi: any) {
  pi.on("tool_call", async (e: any, ctx: any) => {
    if (e.toolName === "bash" && /choose/.test(e.input.command)) return { block: true, reason: "chosen: " + (await ctx.ui.select("Which colour?", ["red", "green"])) };
    if (e.toolName !== "bash" || !/danger/.test(e.input.command)) return;
    if (!(await ctx.ui.confirm("A dangerous command", e.input.command))) return { block: true, reason: "a person refused it" };
  });
}
TS
configure() {
        local environment words plain
        words=("${program[@]}" -e "$dir/gate.ts")
        plain=("${program[@]}")
        if [ $kind = omp ]; then
                words+=(--mode rpc-ui) # with the tool "ask"
                plain+=(--approval-mode always-ask)
        fi
        words=$(printf '"%s", ' "${words[@]}") plain=$(printf '"%s", ' "${plain[@]}")
        environment=$(printf '"%s", ' "${coding_env[@]}" | sed 's/=/": "/g')
        cat >"$dir/config.json" <<C
{ "agents": { "coder": { "type": "$kind", "command": [${words%, }], "model": "fake/gpt-5.4", "env": { ${environment%, } },
    "sandbox": { "kind": "host" }, "idleMinutes": $1 },
    "boxed": { "type": "$kind", "command": [${plain%, }], "model": "fake/gpt-5.4", "env": { "PI_OFFLINE": "1", "NO_PROXY": "none.invalid", "no_proxy": "none.invalid" },
    "policy": { "commands": { "tool": "bash", "decide": "allow" } },
    "sandbox": { "readOnly": ["$modules", "$dir/coding/agent/models.json:/home/agent/.$kind/agent/models.json"], "hosts": ["${model#http://}"] } } },
  "adapters": { "terminal": { "type": "cli", "agent": "boxed" }, "dc": { "type": "discord", "agent": "coder", "botToken": "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token", "apiBase": "$sim/api/v10", "dm": ["everyone"], "debounceMs": 0, "rateLimit": { "turns": 0 },
                        "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } } } }
C
}
configure 30
start
await is dc '"connected"'

# in a sandbox, which is the default: it sees its own folder, and reaches its model alone
contains "$(say terminal 'call bash {\"command\":\"cat '"$dir"'/state/operator.key; ls '"$dir"'; echo kept > kept; echo home=$HOME\"}\nsay From the box.')" 'From the box.'
contains "$(requests)" 'home=/home/agent'
case $(requests) in *"$(cat "$dir/state/operator.key")"*) fail "it could read the key" ;; esac
ls "$dir"/workspace/agents/boxed/*/work/kept >/dev/null

# it answers, and shows its work
says 'say Hello from the agent.'
await shows 'Hello from the agent.'
pid=$(agent_pid)
says 'call bash {\"command\":\"echo made > made.txt; echo the-output\"}\nsay It is made.'
await shows 'It is made.'
work=$(echo "$dir"/workspace/agents/coder/*/work)
[ "$(cat "$work/made.txt")" = made ] || fail "the command did not run in $work"
events=$(api '/api/v2/events?type=agent.*&limit=100')
contains "$events" agent.tool_execution_start
contains "$events" 'echo made > made.txt'
contains "$events" the-output
contains "$(run why trn-2)" 'tokens'

# a message joins the turn while a tool runs, and reaches the model
says 'call bash {\"command\":\"touch on; until [ -e go ]; do sleep 0.05; done; echo went\"}\nsay First part.'
await test -e "$work/on"
says 'say STEER-1 too.'
joined() { [ "$(api /api/v2/trigger-logs | grep -o '"turnId":"trn-4"' | wc -l)" = 2 ]; }
await joined
touch "$work/go"
await shows 'STEER-1 too.'
asked 'say STEER-1 too.' || fail "the model was not told"
[ "$(turns)" = 4 ] || fail "not 4 turns: $(run status)"

# a question of an extension is answered by a button
says 'call bash {\"command\":\"echo danger > one.txt\"}\nsay Asked once.'
await open_id
contains "$(shown)" 'A dangerous command'
press approve
await shows 'Asked once.'
[ -s "$work/one.txt" ] || fail "an approved command did not run"
says 'call bash {\"command\":\"echo danger > two.txt\"}\nsay Asked twice.'
await open_id
press refuse
await shows 'Asked twice.'
[ ! -e "$work/two.txt" ] || fail "a refused command ran"
asked 'a person refused it' || fail "the model was not told of the refusal"

# a question with a choice is answered by the next message
says 'call bash {\"command\":\"choose\"}\nsay It is chosen.'
await shows 'Which colour?'
contains "$(shown)" '2. green'
says 2
await shows 'It is chosen.'
asked 'chosen: green' || fail "the agent was not told of the choice"
if [ $kind = omp ]; then
        says 'call ask {\"questions\":[{\"id\":\"q\",\"question\":\"Which shape?\",\"options\":[{\"label\":\"round\"},{\"label\":\"square\"}]}]}\nsay It has a shape.'
        await shows 'Which shape?'
        says 'like an egg'
        await shows 'It has a shape.'
        asked 'like an egg' || fail "the agent was not told of the words"
fi

# /stop ends the run with its command; the process stays
naps
says /stop
await sleeps_no_more $seconds
tells 'After the stop.'
[ "$(agent_pid)" = "$pid" ] || fail "it was another process: $pid, $(agent_pid)"

# a killed process: the turn says so, the next one goes on with the session
naps
program_pid() {
        local file
        for file in $(grep -lz "^HOME=$dir/coding" /proc/[0-9]*/environ 2>/dev/null || true); do
                [ "$(cat "${file%environ}comm")" != $kind ] || basename "${file%/environ}"
        done
}
kill -9 "$(program_pid)"
await shows 'The agent was interrupted'
await sleeps_no_more $seconds
tells 'After the kill.'
contains "$(last_request)" 'Hello from the agent.'

# the daemon is killed in a turn: nothing of the agent is left, nothing is given twice, the session goes on
pid=$(agent_pid)
naps
kill_daemon
await gone "$pid"
await sleeps_no_more $seconds
configure 0.005
start
await is dc '"connected"'
await shows 'Sorry, I was interrupted'
tells 'After the crash.'
contains "$(last_request)" 'After the kill.'

# an idle process ends, and the next turn goes on with the session
await nobody
tells 'After a pause.'
contains "$(last_request)" 'After the crash.'

# /new is a new session
says /new
tells 'Begin again.'
case $(last_request) in *'After the kill'*) fail "it remembers what was said before /new" ;; esac
await no_zombie
stop
[ "$(shown | jq '[.items[] | select(.kind == "message" and .text == "After the crash.")] | length')" = 1 ] || fail "something was said twice"
nothing_is_left() { ! grep -sqz "$dir/coding" /proc/[0-9]*/environ; }
await nothing_is_left
