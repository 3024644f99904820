#!/usr/bin/env bash
# A daemon that is connected to Discord, Slack and Telegram has less than 6 MB of memory of its own, once it is idle.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim discord
discord=$sim
start_sim slack
slack=$sim
start_sim telegram
cat >"$dir/config.json" <<END
{
  "adapters": {
    "dc": { "type": "discord", "botToken": "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token", "apiBase": "$discord/api/v10" },
    "sl": { "type": "slack", "botToken": "xoxb-simulator-token", "appToken": "xapp-simulator-token", "apiBase": "$slack/api" },
    "tg": { "type": "telegram", "botToken": "100000001:dragoman-simulator-token", "apiBase": "$sim" }
  },
  "agents": { "echo": { "type": "echo" } }
}
END
start
for name in dc sl tg; do await is $name '"connected"'; done
# pages of libraries that are needed for the start are given back a little later
small() {
        private=$(sed -n 's/^Private_\(Clean\|Dirty\): *\([0-9]*\) kB/\2/p' "/proc/$daemon_pid/smaps_rollup" | paste -sd+)
        [ $((private)) -gt 0 ] && [ $((private)) -lt 6144 ]
}
await small
echo "$((private)) kB private"
stop
