#!/usr/bin/env bash
# Agents made with the official SDK of A2A answer: version 1.0, with streams and without, both versions, 0.3. Kills in the middle of a turn lose and repeat nothing.
platform=a2a
. "$(dirname "$0")/../clients/lib.sh"
work=$(realpath "$work")
. tests/e2e/lib.sh

# start_agent NAME MODE [VARIABLE=VALUE...]: its address is in $NAME_url
start_agent() {
        local out name=$1 mode=$2 url
        shift 2
        exec {out}< <(exec env "$@" node "$work/agent.mjs" "$mode" "$dir/$name" 2>"$dir/$name.err")
        helpers+=" $!"
        read -r url <&"$out"
        declare -g "${name}_url=$url"
}
start_agent new 1.0 TOKEN=far-key
start_agent plain 1.0 STREAM=no
start_agent both both
start_agent old 0.3

cat >"$dir/config.json" <<C
{ "agents": {
    "new": { "type": "a2a", "url": "$new_url", "apiKey": "far-key", "pollMs": 100 },
    "plain": { "type": "a2a", "url": "$plain_url", "pollMs": 100 },
    "both": { "type": "a2a", "url": "$both_url/.well-known/agent-card.json", "pollMs": 100 },
    "old": { "type": "a2a", "url": "$old_url/", "pollMs": 100 },
    "stranger": { "type": "a2a", "url": "$new_url", "apiKey": "another-key" } },
  "adapters": {
    "new": { "type": "api", "agent": "new", "rateLimit": { "turns": 0 } }, "plain": { "type": "api", "agent": "plain", "rateLimit": { "turns": 0 } },
    "both": { "type": "api", "agent": "both", "rateLimit": { "turns": 0 } }, "old": { "type": "api", "agent": "old", "rateLimit": { "turns": 0 } },
    "stranger": { "type": "api", "agent": "stranger" } } }
C
start
# how often the agent was given the message
times() { grep -c "\"text\":\"$2\"" "$dir/$1.log" || true; }
opens() { local url=$1_url; curl -sS "${!url}/open/$2" >/dev/null; }

for agent in new plain both old; do
        contains "$(say $agent hello)" '"text":"you said: hello (context)"'
        contains "$(say $agent pieces)" '"text":"one two three"'
        contains "$(say $agent 'ask me')" '"text":"which colour?"'
        contains "$(say $agent blue)" '"text":"you said: blue (context, same task)"'
        contains "$(say $agent 'after that')" '"text":"you said: after that (context)"'
        contains "$(say $agent fail)" 'The agent failed: the printer is on fire'
        contains "$(say $agent reject)" 'The agent declined this: not my job'
        contains "$(say $agent words)" '"text":"only these last words"'
        contains "$(say $agent message)" '"text":"a message, no task"'
        contains "$(say $agent files)" 'table.csv'
        # one context for all of it
        [ "$(grep -o '"context":"[^"]*"' "$dir/$agent.log" | sort -u | wc -l)" = 1 ] || fail "$agent has several contexts"
        contains "$(run status --json)" '"protocol"'
done
contains "$(say stranger hello)" 'refused our key'
contains "$(api '/api/v2/turns?agent=stranger')" "is refused with our key"

# each call has the trace of its turn
trace=$(say new traced | sed -n 's/.*"traceId":"\([0-9a-f]*\)".*/\1/p')
contains "$(cat "$dir/new.log")" "\"traceparent\":\"00-$trace-"
contains "$(run why "$trace")" new

# a turn that is stopped is cancelled there
post /api/v2/messages/inbound '{"instanceId":"new","chatId":"s","text":"wait stopped"}' >/dev/null
await grep -q 'wait stopped' "$dir/new.log"
post "/api/v2/turns/$(api '/api/v2/turns?state=running' | grep -o 'trn-[0-9]*' | head -1)/cancel" '{}' >/dev/null
await grep -q '"cancel":true' "$dir/new.log"

# killed while the task runs: it is found again, and its answer comes once
for agent in new plain both old; do
        post /api/v2/messages/inbound "{\"instanceId\":\"$agent\",\"chatId\":\"k\",\"text\":\"wait $agent\",\"externalId\":\"k-$agent\"}" >/dev/null
        await grep -q "wait $agent" "$dir/$agent.log"
done
knows_task() { api '/api/v2/events?type=agent.task&limit=100' | grep -q "\"turnId\":\"$1\""; }
for agent in new plain both old; do
        await knows_task "$(api "/api/v2/turns?state=running&agent=$agent" | grep -o 'trn-[0-9]*' | head -1)"
done
kill_daemon
start
for agent in new plain both old; do opens $agent $agent; done
for agent in new plain both old; do
        reply=$(post "/api/v2/messages/inbound?wait=${patience}000" "{\"instanceId\":\"$agent\",\"chatId\":\"k\",\"text\":\"wait $agent\",\"externalId\":\"k-$agent\"}")
        contains "$reply" '"status":"duplicate"'
        contains "$reply" '"text":"before after"'
        [ "$(times $agent "wait $agent")" = 1 ] || fail "$agent was given the message $(times $agent "wait $agent") times"
done

# a file goes through both directions: a client of ours sends it, and the agent gets it
body='{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"f1","role":"ROLE_USER","parts":[{"text":"read"},{"raw":"aGVsbG8=","filename":"a.txt","mediaType":"text/plain"}]}}}'
contains "$(post /a2a/new "$body")" 'you said: read'
contains "$(grep '"files":\[{' "$dir/new.log")" '"files":[{"name":"a.txt","n":5}]'
stop
! grep -q 'far-key' "$dir/log" || fail "the key is in the log"
