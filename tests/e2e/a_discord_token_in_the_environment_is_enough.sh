#!/usr/bin/env bash
# A bot from the environment alone: its name is shown, people are answered, tools work, commands arrive over signed HTTP,
# the operator gets messages, and an unknown token is reported. Every call is valid.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim discord
general=900000000000000002
echo '{ "agents": { "echo": { "type": "echo" } } }' >"$dir/config.json"
tool() { post "/api/v2/instances/discord/tools/$1" "{\"arguments\":$2}"; }

export DISCORD_BOT_TOKEN=some.wrong.token DISCORD_API_BASE="$sim/api/v10"
launch
await is discord 'Discord does not know this bot token'
stop

export DISCORD_BOT_TOKEN=OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token DISCORD_ADMIN_IDS=42 DISCORD_CHANNEL_IDS=$general
start
await is discord '"connected"'
contains "$(api /api/v2/instances/discord)" '"profileName":"dragoman"'
contains "$("$DRAGOMAN" doctor "$dir" || true)" 'adapter discord is connected as dragoman'
# opens the DM of an operator who never wrote
contains "$(post /api/v2/messages/send '{"instanceId":"discord","to":"operator","text":"I am back"}')" '"status":"queued"'
next message '"text":"I am back"'
curl -sS "$sim/sim/send" -d '{"channel":"general","text":"<@dragoman> hello"}' >/dev/null
next message '"text":"hello"'

contains "$(tool discord_whoami '{}')" '"operators":["42"]'
contains "$(tool discord_list_channels '{}')" "\"id\":\"$general\""
read_back=$(tool discord_read "{\"channel_id\":\"$general\",\"limit\":1}")
contains "$read_back" '"text":"hello"'
id=$(printf '%s' "$read_back" | sed -n 's/.*"messages":\[{"id":"\([0-9]*\)".*/\1/p')
contains "$(tool discord_edit "{\"channel_id\":\"$general\",\"message_id\":\"$id\",\"content\":\"hello **you**\"}")" '"status":"queued"'
next edit 'hello **you**'
contains "$(tool discord_create_thread "{\"channel_id\":\"$general\",\"message_id\":\"$id\",\"name\":\"A talk\"}")" '"status":"queued"'
next thread '"A talk"'
contains "$(tool discord_send "{\"channel_id\":\"$id\",\"content\":\"in the thread, @everyone\"}")" '"status":"queued"'
next message 'in the thread'
contains "$shown" "\"channel\":\"$id\""
contains "$shown" '"mention_everyone":false'
contains "$(tool discord_dm '{"user_id":"42","content":"psst"}')" '"status":"queued"'
next message '"text":"psst"'

# commands over HTTP: Discord first probes the address with a good and a wrong signature
curl -sS "$sim/sim/bots" -d "{\"bot\":\"dragoman\",\"interactions_url\":\"http://$addr/api/v2/channels/discord/discord/interactions\"}" >/dev/null
curl -sS "$sim/sim/command" -d '{"channel":"general","name":"ask","options":{"text":"signed"}}' >/dev/null
next interaction_edit '"text":"signed"'
contains "$(curl -sS "$sim/sim/messages?kind=endpoint")" '"what":"probe","status":401'
every_call_was_valid
stop
