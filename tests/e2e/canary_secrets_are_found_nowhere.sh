#!/usr/bin/env bash
# Secrets in every place where a daemon has them (environment, files, keyring, a descriptor, tools, MCP servers, other channels) are found nowhere:
# not by an agent that searches its sandbox and tries every path, not in what the model was sent, not in what is stored, logged or answered.
# If root runs it, an ordinary user repeats it.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
export DRAGOMAN_E2E_KEY=canary-model-key DRAGOMAN_E2E_OTHER=canary-environment DRAGOMAN_E2E_TOOL=canary-tool-environment DRAGOMAN_E2E_MCP=canary-server-environment
export DRAGOMAN_E2E_MODULE=canary-module-environment
start_sim llm
curl -sSf "$sim/sim/keys" -d "{\"key\":\"$DRAGOMAN_E2E_KEY\"}" >/dev/null

# ---- the secrets ----

mkdir -p "$dir/tools/leak"
cat >"$dir/config.json" <<JSON
{ "agents": { "main": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "baseUrl": "$sim", "apiKey": "env:DRAGOMAN_E2E_KEY",
    "sandbox": { "hosts": ["example.org"] },
    "mcp": { "fake": { "command": "python3", "args": ["$top/tests/lib/fake_mcp.py"],
                       "env": { "SECRET": "env:DRAGOMAN_E2E_MCP", "WRITTEN": "canary-configuration" } } } } },
  "adapters": { "api": { "type": "api", "agent": "main" } } }
JSON
cat >"$dir/tools/leak/tool.json" <<'JSON'
{ "description": "Shows its secrets.", "command": ["python3", "leak.py"], "env": { "SECRET": "env:DRAGOMAN_E2E_TOOL", "WRITTEN": "canary-manifest" } }
JSON
cat >"$dir/tools/leak/leak.py" <<'PY'
import json, os, sys
how = json.load(sys.stdin)["how"]
secret = os.environ["SECRET"] + " " + os.environ["WRITTEN"]
if how == "names":
    print("HAS", sorted(os.environ))
elif how == "details":
    print(json.dumps({"text": "fine", "details": {"list": [secret], secret: 1}}))
elif how == "long":
    print((secret + "\n") * 5000)
elif how == "cut": # the last byte that is shown lies within the secret
    print("x" * (50 * 1024 - 10) + secret + "y" * 5000)
else:
    sys.exit("cannot log in as " + secret)
PY
mkdir "$dir/tools/module"
echo '{ "env": { "SECRET": "env:DRAGOMAN_E2E_MODULE" } }' >"$dir/tools/module/tool.json"
echo 'export default { name: "module", description: "Shows its secret.", async execute() { return JSON.stringify(process.env); } };' >"$dir/tools/module/index.mjs"
echo canary-of-tools >"$dir/tools/leak/notes.txt"
cat >"$dir/keyed.py" <<'PY'
import ctypes, os, sys
libc, key = ctypes.CDLL(None), b"canary-" + b"key"
libc.syscall(250, 1, key) # keyctl: join a new session
libc.syscall(248, b"user", key, key, len(key), -3) # add_key
os.execvp(sys.argv[1], sys.argv[1:])
PY
case $(uname -m) in x86_64) wrapper="python3 $dir/keyed.py" ;; esac
exec 7<"$dir/tools/leak/notes.txt" 8<"$dir"
start
exec 7<&- 8<&-

# says CHAT LINES: the model does what the lines say.
says() {
        post '/api/v2/messages/inbound?wait=60000' "$(python3 -c 'import json, sys; print(json.dumps({"instanceId": "api", "chatId": sys.argv[1], "text": sys.argv[2] + "\nsay Done."}))' "$1" "$2")" >"$dir/answer"
        contains "$(cat "$dir/answer")" Done.
        cat "$dir/answer" >>"$dir/answers"
}
says 1 'use bash: true'
says 2 'use bash: true'
echo canary-of-another-channel >"$dir/workspace/channels/api/2/notes.txt"
echo canary-of-state >"$dir/state/notes.txt"
echo canary-of-workspace >"$dir/workspace/notes.txt"
find "$dir/config.json" "$dir/tools" "$dir/state/operator.key" "$dir/workspace/notes.txt" "$dir/workspace/channels/api/2/notes.txt" -type f -exec sha256sum {} + >"$dir/before"

# ---- a search in the sandbox ----

# The pattern is not itself a secret: this text is in the transcript.
cat >"$dir/workspace/channels/api/1/search.sh" <<'SH'
found="canary-[a-z]"
env | grep -a "$found"
cat /proc/*/environ /proc/*/cmdline /proc/keys /proc/*/mountinfo 2>/dev/null | grep -a "$found"
for d in /*; do
        case $d in /usr | /bin | /lib* | /sbin | /proc) ;; *) timeout 20 grep -rasD skip -- "$found" "$d" ;; esac
done
for f in /proc/[0-9]*/fd/*; do
        case $(readlink "$f") in '' | pipe:* | socket:* | anon_inode:* | /dev/null | /proc/* | */search.sh) ;; *) echo "OPEN $f $(readlink "$f")" ;; esac
done
python3 -c 'import ctypes; c = ctypes.CDLL(None); print("KEYS", c.syscall(250, 0, -3, 0), c.syscall(249, b"user", b"canary-" + b"key", None, 0), c.syscall(250, 11, -3, 0, 0))'
echo CHANNELS $(ls /workspace/channels/api)
SH
chmod 644 "$dir/workspace/channels/api/1/search.sh"
says 1 'use bash: sh search.sh; echo SEARCHED'
requests() { curl -sS "$sim/sim/calls?kind=messages&limit=1000"; }
contains "$(requests)" 'KEYS -1 -1 -1\nCHANNELS 1\nSEARCHED'
case $(requests) in *OPEN\ /proc*) fail "a descriptor reached the sandbox" ;; esac

# ---- paths of the file tools ----

says 1 'use bash: ln -s /proc/self/environ environ; ln -s ../2/notes.txt other; ln -sn ../../../.. up; mkfifo pipe; mkdir -p skills; ln -sn ../../../../../tools skills/tools; rm -f MEMORY.md; ln -s ../../../config.json MEMORY.md; echo LINKED'
lines=
for path in environ other up/config.json up/state/operator.key pipe skills/tools/leak/notes.txt MEMORY.md ../2/notes.txt /workspace/channels/api/2/notes.txt \
        /workspace/notes.txt /workspace/../config.json ../../../../state/operator.key /proc/self/environ /etc/shadow "$dir/config.json" "$dir/tools/leak/leak.py"; do
        lines+="calls read {\"path\":\"$path\"} edit {\"path\":\"$path\",\"oldText\":\"c\",\"newText\":\"d\"} write {\"path\":\"$path\",\"content\":\"x\"}"$'\n'
done
says 1 "${lines%$'\n'}"
sha256sum --quiet -c "$dir/before"

# ---- tools and servers that show their own secrets ----

for how in names details long cut fails; do
        says 4 "call invoke_tool {\"tool\":\"leak\",\"args\":{\"how\":\"$how\"}}"
done
says 4 'call invoke_tool {"tool":"fake__env","args":{}}'
says 4 'call invoke_tool {"tool":"module","args":{}}' # an error without Node
contains "$(requests)" "HAS ['HOME', 'LANG'"

# ---- what is left of it ----

requests >"$dir/requests"
api '/api/v2/events?limit=1000' >"$dir/events"
stop
python3 - "$dir" <<'PY'
import json, os, re, sqlite3, sys
folder = sys.argv[1]
planted = {"config.json", "keyed.py", "tools/leak/tool.json", "tools/leak/notes.txt", "state/notes.txt", "workspace/notes.txt", "workspace/channels/api/2/notes.txt"}
secret = re.compile(rb"canary-[a-z]|" + re.escape(open(folder + "/state/operator.key", "rb").read().strip()))
db = sqlite3.connect(folder + "/state/main.db")
rows = 0
for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
    for row in db.execute(f'select * from "{table}"'):
        rows += 1
        assert not secret.search(repr(row).encode()), f"{table}: {row}"
assert rows > 100, rows
results = [b for c in json.load(open(folder + "/requests"))["items"] for m in c["request"].get("messages", []) if isinstance(m["content"], list)
           for b in m["content"] if b["type"] == "tool_result"]
refused = {b["tool_use_id"] for b in results if b.get("is_error")}
assert len(refused) >= 3 * 16, f"only {len(refused)} calls were refused"
for top, _, names in os.walk(folder):
    for name in names:
        path = os.path.join(top, name)
        if os.path.relpath(path, folder) in planted | {"state/operator.key"} or not os.path.isfile(path) or os.path.islink(path):
            continue
        found = secret.search(open(path, "rb").read())
        assert not found, f"{path} has {found}"
PY
as_user() { HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
if [ "$(id -u)" = 0 ] && as_user test -x "$DRAGOMAN"; then # a checkout of root's own is closed to others
        as_user "$top/tests/e2e/$(basename "$0")"
fi
