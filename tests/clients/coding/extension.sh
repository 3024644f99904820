# Dragoman's extension in a real agent, for scripts in tests/e2e that set `agent` to pi or omp and source this: everything it promises,
# with a simulated model and the real daemon, which is killed in between.
. tests/e2e/lib.sh
. tests/lib/ports.sh
. tests/clients/coding/agents.sh
set -e

# At the same address every time; it must not keep the agent's input open.
start_daemon() { start --listen "127.0.0.1:$port" 9>&-; }
configure() {
        cat >"$dir/config.json" <<JSON
{ "agents": { "echo": { "type": "echo" } }, "adapters": { "api": { "type": "api" } } }
JSON
        reserve_port port
        start_daemon
        start_sim llm
        model=$sim
        coding_home "$dir/home" "$model/v1"
        mkdir -p "$dir/project"
        (umask 077 && run keys create laptop --scope sessions:write --rate 60000 --json | jq -r .key >"$dir/home/key")
        cat >"$dir/home/agent/discord-notify.json" <<JSON
{ "url": "http://$addr", "keyFile": "~/key", "pollSeconds": 1, "redact": ["hush-[0-9]+"],
  "policy": { "rules": [ { "name": "quick", "pattern": "echo quick", "action": "ask", "timeoutSeconds": 1, "reason": "is to be quick" },
                         { "name": "fixed", "pattern": "echo forbidden", "action": "deny" } ] } }
JSON
}

# The package as npm makes it, installed as the documentation says.
install_extension() {
        (cd extensions/discord-notify && npm pack --silent --pack-destination "$dir" >/dev/null)
        tar -xzf "$dir"/dragoman-discord-notify-*.tgz -C "$dir"
        case $agent in
        pi) env "${coding_env[@]}" "${pi[@]}" install "$dir/package" ;;
        omp) env "${coding_env[@]}" "${omp[@]}" plugin link "$dir/package" ;;
        esac >"$dir/install.log" 2>&1 </dev/null || fail "not installed: $(cat "$dir/install.log")"
}

# run_agent OPTION...: becomes the agent, in the project; its output is in the files out and err.
run_agent() {
        local program=("${pi[@]}" -a)
        [ "$agent" = pi ] || program=("${omp[@]}" --no-lsp --no-title)
        cd "$dir/project"
        exec env "${coding_env[@]}" "${program[@]}" --model fake/gpt-5.4 "$@" >"$dir/out" 2>"$dir/err"
}
start_rpc() {
        mkfifo "$dir/in"
        run_agent --mode rpc --no-session <"$dir/in" &
        agent_pid=$!
        helpers+=" $agent_pid"
        exec 9>"$dir/in"
}
tell_agent() { printf '%s\n' "$1" >&9; }
# prompt LINE...: the model does what the lines say.
prompt() { tell_agent "$(printf '%s\n' "$@" | jq -Rs '{type: "prompt", message: .}' -c)"; }
# A tool call that ends when the file go exists, and says what is given.
waiting() { echo "use bash: until [ -e $dir/go ]; do sleep 0.05; done; rm $dir/go; echo $1"; }

# events TYPE [FILTER]: the stored events, oldest first, of this session.
events() {
        api "/api/v2/events?type=session.$1&limit=100" | jq -c "[.items[].payload | select(.sessionId == \"$session\")] | reverse | .[] | ${2:-.}"
}
count() { events "$1" "select(${2:-true})" | wc -l; }
reaches() { [ "$(count "$1" "${3:-true}")" -ge "$2" ]; }
# happened TYPE N [FILTER]: waits for the Nth event.
happened() { await reaches "$@"; }
# The session that began last.
find_session() { session=$(api "/api/v2/sessions?limit=1" | jq -r '.items[0].sessionId') && [ "$session" != null ]; }
tell() { run steer "$session" "$@" --json | jq -r .id; }
state_of() { run sessions commands "$session" --json | jq -r ".items[] | select(.id == \"$1\") | .state"; }
has_arrived() { case $(state_of "$1") in delivered | seen) ;; *) false ;; esac; }
is_now() { [ "$(state_of "$1")" = "$2" ]; }
# decide N DECISION: the Nth question.
decide() {
        local id
        happened approval_request "$1"
        id=$(events approval_request .metadata.approval_id | sed -n "$1p" | tr -d '"')
        post "/api/v2/sessions/$session/commands" "{\"action\":\"decision\",\"approvalId\":\"$id\",\"decision\":\"$2\"}" >/dev/null
}
model_read() { curl -sS "$model/sim/calls?limit=1000" | grep -qF "$1"; }

works_in_print_mode() {
        local said
        run_agent -p "$(waiting 'key=hush-42'; echo 'say done')" --no-session </dev/null &
        agent_pid=$!
        helpers+=" $agent_pid"
        await find_session
        happened tool_call 1
        said=$(tell 'say STEER-42')
        await has_arrived "$said"
        touch "$dir/go"
        wait "$agent_pid" || fail "the agent ended with $?: $(cat "$dir/err")"
        happened turn_end 1 '.content | test("STEER-42")' # omp may answer once more, when the tool's result follows
        model_read 'say STEER-42' || fail "the model has not read it"
        happened session_end 1
        is_now "$said" seen || fail "it is $(state_of "$said")"
        contains "$(events session_start)" "\"program\":\"$agent\""
        contains "$(events tool_call)" "until [ -e $dir/go ]"
        contains "$(events turn_end .metadata.final | tail -1)" true
        contains "$(run sessions show "$session")" ' tokens'
        case "$(events tool_call)$(events tool_result)" in *hush-42*) fail "a secret was reported" ;; esac
}

is_steered() {
        local said
        prompt "$(waiting "$(printf '\\0 \\360\\237')")" 'say first'
        await find_session_other_than "${session-}"
        happened tool_call 1
        said=$(run steer "$session" 'say FOLLOW-7' --follow-up --json | jq -r .id)
        await has_arrived "$said"
        touch "$dir/go"
        await is_now "$said" seen
        happened turn_end 1 .metadata.final
        model_read 'say FOLLOW-7' || fail "the model has not read it"

        prompt 'use bash: /bin/sleep 4242' 'say never'
        happened tool_call 2
        await sleeps 4242
        run steer "$session" --abort >/dev/null
        happened turn_end 1 '.metadata.outcome == "aborted"'
        await sleeps_no_more 4242
}
find_session_other_than() { find_session && [ "$session" != "$1" ]; }

asks_people() {
        local folder
        for folder in allowed denied desk; do mkdir "$dir/project/$folder"; done
        prompt "use bash: rm -rf allowed" 'say so'
        decide 1 allow
        happened turn_end 1 '.content | test("^so")'
        [ ! -e "$dir/project/allowed" ] || fail "the permitted call was not run"

        prompt "use bash: rm -rf denied" 'say no'
        decide 2 deny
        happened turn_end 1 '.content | test("^no")'
        [ -e "$dir/project/denied" ] || fail "the refused call was run"
        contains "$(events tool_result .content | tail -1)" 'refused it'

        prompt "use bash: rm -rf desk" 'say desk'
        happened approval_request 3
        await answer_dialog
        happened approval_resolved 1 '.metadata.by == "desk" and .metadata.decision == "allow"'
        happened turn_end 1 '.content | test("^desk")'
        [ ! -e "$dir/project/desk" ] || fail "the call permitted at the desk was not run"

        prompt 'use bash: echo quick' 'say late'
        happened approval_resolved 1 '.metadata.by == "timeout" and .metadata.decision == "deny"'
        happened turn_end 1 '.content | test("^late")'

        prompt 'use bash: echo forbidden' 'say over'
        happened turn_end 1 '.content | test("^over")'
        contains "$(events tool_result '[.content, .metadata.blocked]' | tail -1)" 'true'
}
# Says yes to the newest dialog of the agent.
answer_dialog() {
        local id
        id=$(jq -r 'select(.type == "extension_ui_request" and .method == "confirm") | .id' "$dir/out" 2>/dev/null | tail -1)
        [ -n "$id" ] && [ "$id" != "${answered-}" ] || return 1
        answered=$id
        tell_agent "{\"type\":\"extension_ui_response\",\"id\":\"$id\",\"confirmed\":true}"
}

# The daemon is killed while a tool runs, and while a question waits; the agent works on.
outlives_the_gateway() {
        local said before questions
        before=$(count tool_result)
        prompt "$(waiting survived)" 'use bash: echo second' 'say back'
        happened tool_call 1 ".content | test(\"survived\")"
        kill_daemon
        touch "$dir/go"
        await grep -qF survived "$dir/out"
        await model_read 'echo second'
        start_daemon
        happened tool_result $((before + 2))
        happened turn_end 1 '.content | test("^back")'

        questions=$(count approval_request)
        mkdir "$dir/project/later"
        prompt 'use bash: rm -rf later' 'say later'
        happened approval_request $((questions + 1))
        kill_daemon
        start_daemon
        decide $((questions + 1)) allow
        happened turn_end 1 '.content | test("^later")'
        [ ! -e "$dir/project/later" ] || fail "the permitted call was not run"
        said=$(tell 'say STEER-AGAIN')
        await is_now "$said" seen
}

begins_another_session() {
        local old=$session said
        tell_agent '{"type":"new_session"}'
        await find_session_other_than "$old"
        [ "$(count session_start)" = 1 ] || fail "the new session was announced more than once"
        said=$(tell 'say NEW-1')
        await is_now "$said" seen
        happened turn_end 1 '.content | test("NEW-1")'
        session=$old happened session_end 1
        exec 9>&-
        wait "$agent_pid" || fail "the agent ended with $?: $(tail -5 "$dir/err")"
        happened session_end 1
}
