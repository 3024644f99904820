#!/usr/bin/env bash
# Five variables and no file make an ambient agent. Each turn gets the current channel history; messages during a turn
# become one more turn; no reply posts nothing; typing starts only with an answer; a failed turn blocks nothing.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim discord
general=900000000000000002

# Logs each request and answers by its last message; "hold" waits for a file.
cat >"$dir/agent.py" <<'AGENT'
import http.server, json, os, sys, time
here = sys.argv[1]

class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = body["messages"][-1]["content"]
        body.update(path=self.path, key=self.headers.get("X-API-Key"))
        with open(here + "/asked", "a") as f:
            f.write(json.dumps(body) + "\n")
        for _ in range(6000):
            if last != "hold" or os.path.exists(here + "/go"):
                break
            time.sleep(0.01)
        text = "Want to lock in a time?" if "Catan" in last else "I can hear you." if "hello" in last else "No action needed."
        answer = json.dumps({"content": text}).encode()
        self.send_response(500 if last == "break" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(server.server_address[1], flush=True)
server.serve_forever()
AGENT
: >"$dir/asked"
python3 "$dir/agent.py" "$dir" >"$dir/port" &
helpers+=" $!"
await test -s "$dir/port"

says() { curl -sS "$sim/sim/send" -d "{\"from\":\"$1\",\"channel\":\"${3:-general}\",\"text\":\"$2\"}" >/dev/null; }
asked() { [ "$(wc -l <"$dir/asked")" -ge "$1" ]; }
# Checks the n-th request by a Python expression over r (the request) and m (its messages).
holds() { sed -n "$1p" "$dir/asked" | python3 -c "import json, sys; r = json.load(sys.stdin); m = r['messages']; sys.exit(not ($2))" || fail "request $1 is not '$2': $(sed -n "$1p" "$dir/asked")"; }
log() { api "/api/v2/trigger-logs?limit=100"; }
logged() { [ "$(log | grep -o "$1" | wc -l)" -ge "$2" ]; }
posts() { curl -sS "$sim/sim/messages?kind=$1&limit=1000" | grep -o "\"kind\":\"$1\"" | wc -l; }

export DISCORD_BOT_TOKEN=OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token DISCORD_API_BASE="$sim/api/v10" DISCORD_ADMIN_IDS=42
export API_BASE_URL="http://127.0.0.1:$(cat "$dir/port")" DISCORD_API_KEY=key-of-the-service DISCORD_CHANNEL_IDS="777,$general" MESSAGE_HISTORY_LIMIT=6
curl -sS "$sim/sim/channels" -d '{"name":"elsewhere"}' >/dev/null
says bob 'written before the start'
start
connected() { api /api/v2/instances/discord | grep -q '"connected"'; }
await connected

says ada 'nice weather'
await asked 1
holds 1 '(r["path"], r["key"], r["source"]) == ("/api/agent/chat", "key-of-the-service", "discord")
        and m[0]["type"] == "system" and "room" in m[0]["content"]
        and m[1]["content"] == "written before the start" and m[1]["name"].startswith("discord:")
        and m[2:] == [{"type": "human", "content": "nice weather", "name": "discord:42"}]'
await logged 'had nothing to say' 1
[ "$(posts message)" = 0 ] && [ "$(posts typing)" = 0 ] || fail "something was posted"

# the bot from a file, with a shorter debounce
stop
cat >"$dir/config.json" <<CONFIG
{ "adapters": { "discord": { "type": "discord", "botToken": "env:DISCORD_BOT_TOKEN", "apiBase": "$sim/api/v10", "admins": ["42"],
                             "channels": ["$general"], "debounceMs": 20 } } }
CONFIG
start
await connected

# messages during a turn become one more turn
says ada hold
await asked 2
for text in one two three; do says bob "$text"; done
await logged '"eventId"' 5
touch "$dir/go"
await asked 3
holds 3 '[x["content"] for x in m[-3:]] == ["one", "two", "three"] and len(m) == 7' # MESSAGE_HISTORY_LIMIT and the system prompt

# a failure is recorded but not posted, and the next message gets its turn
says carl 'break'
await logged '"status":"failed"' 1
[ "$(posts message)" = 0 ] || fail "a failure was posted"
before=$(wc -l <"$dir/asked")
says dora 'shall we play Catan again?'
await asked $((before + 1))
posted() { [ "$(posts message)" -ge "$1" ]; }
await posted 1
contains "$(curl -sS "$sim/sim/messages?kind=message")" 'Want to lock in a time?'
says dora 'yes'
await asked $((before + 2))
holds $((before + 2)) 'm[-2] == {"type": "ai", "content": "Want to lock in a time?"}'

# in other channels it answers only when addressed
says ada 'Catan?' elsewhere
await logged 'no rule matched' 1
curl -sS "$sim/sim/send" -d '{"text":"hello"}' >/dev/null
await posted 2
contains "$(curl -sS "$sim/sim/messages?kind=message")" 'I can hear you.'
[ "$(wc -l <"$dir/asked")" = $((before + 3)) ] || fail "there were more requests than messages"
every_call_was_valid
! grep -rq key-of-the-service "$dir/log" "$dir/state" || fail "the key was logged or stored"
stop
