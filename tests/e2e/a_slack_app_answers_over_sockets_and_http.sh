#!/usr/bin/env bash
# A Slack app from two tokens in the environment alone: wrong tokens are named, people are answered over Socket Mode, a
# removed app stops the adapter and says what to do. The same app then answers over HTTP. Every call is valid.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim slack
echo '{ "agents": { "echo": { "type": "echo" } } }' >"$dir/config.json"
tell() { curl -sSf "$sim/sim/$1" -d "$2" >/dev/null; }

# without an app-level token, and with a token that Slack does not know
export SLACK_BOT_TOKEN=xoxb-unknown SLACK_API_BASE="$sim/api" SLACK_ADMIN_IDS=U0ADA SLACK_CHANNEL_IDS=C0GENERAL
launch
await is slack "mode 'socket' needs an app-level token: set SLACK_APP_TOKEN in the environment, or adapters.slack.appToken"
stop
export SLACK_APP_TOKEN=xapp-simulator-token
launch
await is slack 'Slack does not know this bot token (invalid_auth): put the one of OAuth & Permissions (xoxb-...) into'
stop

export SLACK_BOT_TOKEN=xoxb-simulator-token
start
await is slack '"connected"'
contains "$("$DRAGOMAN" doctor "$dir" || true)" 'adapter slack is connected as dragoman'
said=$(curl -sSf "$sim/sim/send" -d '{"from":"ada","text":"in a direct message"}' | jq -r .message_id)
next message 'in a direct message'
contains "$("$DRAGOMAN" why "$said" "$dir")" 'in a direct message'
tell send '{"from":"ada","channel":"general","text":"<@dragoman> in a channel"}'
next message 'in a channel'
contains "$shown" '"channel":"C0GENERAL"'
# a connection that is about to end is replaced before it does
tell gateway '{"action":"disconnect","reason":"warning","ms":200}'
tell send '{"from":"ada","channel":"general","text":"<@dragoman> during a refresh"}'
next message 'during a refresh'
tell command '{"from":"ada","channel":"general","name":"/dragoman","text":"help"}'
next ephemeral '/dragoman stop'
every_call_was_valid
# the app is removed: the adapter stops, and says what to do
tell gateway '{"action":"uninstall"}'
await is slack 'the app was removed or its token revoked'
contains "$("$DRAGOMAN" doctor "$dir" || true)" 'install it again'
stop

# over HTTP; the environment's tokens are not needed
unset SLACK_BOT_TOKEN SLACK_APP_TOKEN
tell apps '{"app":"dragoman","token_error":null,"app_token_error":null}'
cat >"$dir/config.json" <<END
{
  "http": { "publicUrl": "https://bot.example.org" },
  "adapters": { "acme": { "type": "slack", "mode": "http", "botToken": "xoxb-simulator-token", "apiBase": "$sim/api",
                          "signingSecret": "signing-A0SIM000001", "admins": ["U0ADA"], "channels": ["C0GENERAL"] } },
  "agents": { "echo": { "type": "echo" } }
}
END
start
await is acme '"connected"'
url=http://$addr/api/v2/channels/slack/acme/webhook
# Slack tests the address with a challenge
tell endpoint "{\"url\":\"$url\",\"interactive_url\":\"$url\",\"command_url\":\"$url\"}"
tell send '{"from":"ada","channel":"general","text":"<@dragoman> over HTTP"}'
next message 'over HTTP'
tell command '{"from":"ada","channel":"general","name":"/dragoman","text":"help"}'
next ephemeral '/dragoman stop'
every_call_was_valid
stop
