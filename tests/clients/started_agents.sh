# For scenarios of agents that Dragoman starts: what the model was asked, what people see on simulated Discord, and what they do there.
# Set $model, $sim (Discord), `agent` (its name in the configuration), `wire` (as /sim/calls names it), and `shell` and `parameter`, its tool that
# runs commands and that tool's parameter.
requests() { curl -sS "$model/sim/calls?kind=$wire&limit=1000"; }
asked() { requests | grep -qF "$1"; }
last_request() { requests | jq -c '[.items[].request | select(.tools)][-1]'; }
shown() { curl -sS "$sim/sim/messages?limit=1000"; }
shows() { shown | grep -qF "$1"; }
processes() { api /api/v2/agents | jq -c ".items[] | select(.name == \"$agent\") | .processes"; }
agent_pid() { processes | jq '.list[].pid | select(. > 0)'; }
nobody() { [ -z "$(agent_pid)" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }
turns() { run status --json | jq '.. | .turnsDone? // empty'; } # that are done
# No child of the daemon has ended without being collected.
no_zombie() { ! ps -o stat= --ppid "$daemon_pid" | grep -q Z; }
# A turn in which a command runs until it is ended. The model is told apart from the message: it would read it again from there.
seconds=$((2000000 + $$))
naps() {
        curl -sSf "$model/sim/next" -d "{\"when\":{\"user\":\"*Please wait.\"},
                \"answer\":[{\"call\":\"$shell\",\"arguments\":{\"$parameter\":\"/bin/sleep $seconds\"}}]}" >/dev/null
        says 'Please wait.'
        await sleeps $seconds
}
# tells TEXT: the model's answer to the next message.
tells() {
        curl -sSf "$model/sim/next" -d "{\"when\":{\"user\":\"*Please tell.\"},\"answer\":\"$1\"}" >/dev/null
        says 'Please tell.'
        await shows "$1"
}
# press LABEL: the button of the open question
press() {
        local id message
        id=$(open_id)
        await shows "$id"
        message=$(shown | grep -o "\"message_id\":\"[0-9]*\",\"text\":\"[^\"]*$id" | head -1 | grep -o '[0-9]\{10,\}' | head -1)
        curl -sSf "$sim/sim/press" -d "{\"from\":42,\"message_id\":\"$message\",\"custom_id\":\"say:/$1 $id\"}" >/dev/null
}
