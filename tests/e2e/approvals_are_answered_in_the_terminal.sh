#!/usr/bin/env bash
# In a terminal a person answers the agent's questions at a prompt of their own, also those that an earlier session left open.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_sim llm

cat >"$dir/config.json" <<C
{ "agents": { "helper": { "type": "builtin", "model": "anthropic/claude-sonnet-5-5", "apiKey": "sk-sim", "baseUrl": "$sim",
    "sandbox": { "kind": "host" } } } }
C
chmod 600 "$dir/config.json"

python3 - "$DRAGOMAN" "$dir" <<'P'
import os, pty, re, select, sys, time

class Chat:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(NO_COLOR="1", TERM="xterm")
            os.execv(sys.argv[1], ["dragoman", "chat", sys.argv[2], "--listen", "127.0.0.1:0"])
        self.seen = ""

    def expect(self, pattern):
        """Reads until the pattern is there, and forgets everything up to its end."""
        deadline = time.time() + 60
        while not (found := re.search(pattern, self.seen)):
            if time.time() > deadline or not select.select([self.fd], [], [], 60)[0]:
                sys.exit(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
        before, self.seen = self.seen[:found.start()], self.seen[found.end():]
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def leave(self, keys):
        self.type(keys)
        self.expect("Good bye")
        if os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) != 0:
            sys.exit("the chat failed")

chat = Chat()
chat.expect("to leave")
chat.type("use bash: echo first\r")
chat.expect("apr-[0-9]+: yes or no")
chat.type("perhaps\r")
chat.expect("yes: allow it this once")
chat.expect("apr-[0-9]+: yes or no")
chat.type("yes\r")
chat.expect(r"Result of bash: [^\0]*first")
chat.expect("> ")
chat.type("use bash: echo second\r")
chat.expect("apr-[0-9]+: yes or no")
chat.type("no\r")
chat.expect("refused this")
chat.expect("> ")

# the answer of a command is shown once
chat.type("/new\r")
chat.expect("A new conversation begins")
if "A new conversation" in chat.expect("> "):
    sys.exit("the answer of /new was shown twice")

# two questions at once are asked one after the other
chat.type('calls bash {"command":"echo third"} bash {"command":"echo fourth"}\r')
chat.expect("apr-[0-9]+: yes or no")
chat.type("yes\r")
chat.expect("apr-[0-9]+: yes or no")
chat.type("yes\r")
chat.expect(r"Result of bash: [^\0]*fourth")
chat.expect("> ")

# Ctrl-C stops the turn and with it the question, which is not its answer
chat.type("use bash: echo fifth\r")
chat.expect("apr-[0-9]+: yes or no")
chat.type("\x03")
if "wants to" in chat.expect("· stopped"):
    sys.exit("the question was shown as the answer")
chat.expect("> ")

# left open, and asked again by the next session
chat.type("use bash: echo sixth > sixth.txt\r")
chat.expect("apr-[0-9]+: yes or no")
chat.leave("\x04")
chat = Chat()
chat.expect("Still open: helper wants to run a command")
chat.expect("apr-[0-9]+: yes or no")
chat.type("yes\r")
chat.expect("> ")
wanted = os.path.join(sys.argv[2], "workspace/channels/terminal/home/sixth.txt")
deadline = time.time() + 60
while not os.path.exists(wanted):
    if time.time() > deadline:
        sys.exit("the approved command did not run")
    time.sleep(0.05)
chat.leave("\x04")
P
