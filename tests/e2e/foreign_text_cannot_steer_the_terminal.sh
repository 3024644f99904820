#!/usr/bin/env bash
# Whatever people, platforms and keys write, commands on a terminal show no control of theirs: neither escapes nor text direction.
. "$(dirname "$0")/lib.sh"

start
# ESC, a C1 introducer, DEL and every kind of direction control
bad='a\u001b[31mb\u009b2Jc\u007fd\u202ee\u2066f\u200fg\u061ch\u2028i'
post /api/v2/rules "{\"rule\":{\"name\":\"r$bad\",\"agent\":\"demo\",\"when\":{\"adapter\":\"api\"}}}" >"$dir/rule"
contains "$(cat "$dir/rule")" '"inForce"'
post '/api/v2/messages/inbound?wait=60000' "{\"instanceId\":\"api\",\"chatId\":\"c$bad\",\"text\":\"hello $bad\",\"sender\":{\"id\":\"u$bad\",\"displayName\":\"Ada $bad\"}}" >"$dir/inbound"
event=$(grep -o 'evt-[0-9]*' "$dir/inbound")
post /api/v2/keys "{\"name\":\"k$bad\",\"scopes\":[\"status:read\"]}" >/dev/null

python3 - "$DRAGOMAN" "$dir" "$event" <<'P'
import os, pty, re, sys
program, data, event = sys.argv[1:4]
own = re.compile(rb"\x1b\[(0|1|2|31|32|33)m")
# what utf8_is_control names, but newline, carriage return and tab
bad = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")

def run(*words):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(program, [program, *words, "--dir", data])
    out = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.waitpid(pid, 0)
    os.close(fd)
    return out

commands = [["why", event], ["status"], ["doctor"], ["events", "tail", "--type", "message.*", "--since", "evt-1", "--count", "1"], ["persons", "list"], ["rules", "list"], ["keys", "list"],
            ["access", "list"], ["dead-letters", "list"], ["approvals", "history"], ["route", "test", event], ["handover", "list"], ["pairing", "list"],
            ["why", "evt-\x1b[31m\u202e"], ["access", "deny", "x\u202e\x1b[2J"]]
shown = 0
for words in commands + [c + ["--json"] for c in commands]:
    out = run(*words)
    rest = own.sub(b"", out).decode("utf-8")
    found = bad.search(rest)
    if found:
        sys.exit("dragoman %s shows %r in: %r" % (" ".join(words), found.group(0), out))
    shown += "hello" in rest or "Ada" in rest
if shown < 3:
    sys.exit("too few of the commands showed what was written")
P
stop
