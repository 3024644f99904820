#!/usr/bin/env python3
"""An ACP agent that does what its prompt says, also what no agent should do.

Prompts are lines, each a word and its arguments; see the functions do_* below. Sessions are kept in a
file of the folder where it works, so that another process can load them; --state FILE counts starts
and prompts over restarts.
"""
import argparse, json, os, signal, sys, threading, time

options = argparse.ArgumentParser()
options.add_argument("--protocol", type=int, default=1)
options.add_argument("--no-load", action="store_true", help="cannot load sessions")
options.add_argument("--resume", action="store_true", help="can resume sessions")
options.add_argument("--load-fails", action="store_true", help="does not know any session")
options.add_argument("--login", action="store_true", help="wants authenticate")
options.add_argument("--mute", action="store_true", help="never answers initialize")
options.add_argument("--exit", type=int, help="ends at once, with this code")
options.add_argument("--banner", action="store_true", help="prints a banner, and a message before the first prompt")
options.add_argument("--images", action="store_true")
options.add_argument("--modes", action="store_true", help="has modes and a model option")
options.add_argument("--leaves", action="store_true", help="ends when its session is open, once the file STATE.go is there")
options.add_argument("--stays", action="store_true", help="does not end when stdin ends")
options.add_argument("--state", help="a file of counters")
args = options.parse_args()

KEPT = ".fake_acp.json"
out_lock = threading.Lock()
answers, arrived = {}, threading.Condition()
cancelled = threading.Event()
state = {"mode": "ask", "model": "small", "session": None, "ids": 0, "ignore_cancel": False}


def count(what):
    if not args.state:
        return
    try:
        with open(args.state, "a") as f:
            f.write(json.dumps({"what": what, "pid": os.getpid()}) + "\n")
    except OSError:
        pass  # outside of its sandbox


def kept():
    try:
        return json.load(open(KEPT))
    except (OSError, ValueError):
        return {}


def keep(session, prompts):
    all_sessions = kept()
    all_sessions[session] = prompts
    with open(KEPT + ".new", "w") as f:
        json.dump(all_sessions, f)
    os.rename(KEPT + ".new", KEPT)


def send(*messages):
    """In one piece, so that they arrive together."""
    with out_lock:
        sys.stdout.write("".join(json.dumps(dict(m, jsonrpc="2.0")) + "\n" for m in messages))
        sys.stdout.flush()


def raw(text):
    with out_lock:
        sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
        sys.stdout.buffer.flush()


def notice(**members):
    return {"method": "session/update", "params": {"sessionId": state["session"], "update": members}}


def update(**members):
    send(notice(**members))


def said(text, **more):
    return notice(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **more)


def say(text, **more):
    send(said(text, **more))


def request(method, params, request_id=None):
    """Its answer; None when the turn was cancelled meanwhile and no answer came."""
    if request_id is None:
        request_id = state["ids"]
        state["ids"] += 1
    send({"id": request_id, "method": method, "params": params})
    with arrived:
        arrived.wait_for(lambda: request_id in answers)
        return answers.pop(request_id)


OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


# ---- what prompts can say ----

def do_echo(rest):
    for word in rest.split():
        say(word + " ")


def do_tool(rest):
    say("Let me look.")
    update(sessionUpdate="tool_call", toolCallId="t1", title="", kind="execute", status="pending", rawInput={})
    update(sessionUpdate="tool_call_update", toolCallId="t1", title="run " + rest, rawInput={"command": rest})
    update(sessionUpdate="tool_call_update", toolCallId="t1", status="in_progress")
    update(sessionUpdate="tool_call_update", toolCallId="t1", status="completed",
           content=[{"type": "content", "content": {"type": "text", "text": "output of " + rest}}])
    say("It worked.")


def do_grows(rest):
    """A call whose arguments come in several messages, as the model writes them."""
    update(sessionUpdate="tool_call", toolCallId="g1", title="bash", kind="execute", status="pending", rawInput={"cwd": "/srv"})
    update(sessionUpdate="tool_call_update", toolCallId="g1", status="in_progress", title=rest,
           rawInput={"cwd": "/srv", "command": rest})
    update(sessionUpdate="tool_call_update", toolCallId="g1", status="completed", rawOutput={"output": "done"})


def do_fails(rest):
    update(sessionUpdate="tool_call_update", toolCallId="t2", title="break", kind="other", status="failed",
           rawOutput={"output": "it broke"})


def do_unfinished(rest):
    update(sessionUpdate="tool_call", toolCallId="t3", title="endless", kind="other", status="in_progress")


def do_ask(rest, request_id=None, options=OPTIONS):
    """A permission before any tool_call, as some agents do."""
    answer = request("session/request_permission", {
        "sessionId": state["session"], "options": options,
        "toolCall": {"toolCallId": "p1", "title": rest, "kind": "execute", "rawInput": {"command": rest}}}, request_id)
    outcome = answer.get("result", {}).get("outcome", {})
    say(f"{outcome.get('outcome')} {outcome.get('optionId', '')}".strip() + ". ")


def do_asktext(rest):
    do_ask(rest, "perm-x")


def do_askalways(rest):
    do_ask(rest, None, OPTIONS[:1] + OPTIONS[2:])


def do_askedit(rest):
    answer = request("session/request_permission", {
        "sessionId": state["session"], "options": OPTIONS,
        "toolCall": {"toolCallId": "e1", "title": "edit " + rest, "kind": "edit", "locations": [{"path": rest}],
                     "content": [{"type": "diff", "path": rest, "oldText": "a", "newText": "b"}]}})
    say(str(answer.get("result", {}).get("outcome", {}).get("optionId")))


def do_askraw(rest):
    """About this tool call."""
    answer = request("session/request_permission", {
        "sessionId": state["session"], "options": OPTIONS, "toolCall": {"toolCallId": "r1", **json.loads(rest)}})
    say(str(answer.get("result", {}).get("outcome", {}).get("optionId")) + " ")


def do_withdraw(rest):
    """Asks, and takes the question back."""
    send({"id": "w1", "method": "session/request_permission", "params": {
        "sessionId": state["session"], "options": OPTIONS,
        "toolCall": {"toolCallId": "w", "title": "x", "kind": "execute", "rawInput": {"command": rest}}}})
    time.sleep(0.2)
    send({"method": "$/cancel_request", "params": {"requestId": "w1"}})
    with arrived:
        arrived.wait_for(lambda: "w1" in answers)
        say(str(answers.pop("w1").get("error", {}).get("code")))


def do_request(rest):
    method, _, params = rest.partition(" ")
    answer = request(method, json.loads(params or "{}"))
    say(json.dumps(answer.get("result", answer.get("error")), sort_keys=True))


def do_slot(rest):
    """A request with this session's id filled in."""
    method, _, params = rest.partition(" ")
    answer = request(method, dict(json.loads(params or "{}"), sessionId=state["session"]))
    say(json.dumps(answer.get("result", answer.get("error")), sort_keys=True))


def do_terminal(rest):
    made = request("terminal/create", {"sessionId": state["session"], "command": "sh", "args": ["-c", rest]})
    if "error" in made:
        say(json.dumps(made["error"]))
        return
    name = {"sessionId": state["session"], "terminalId": made["result"]["terminalId"]}
    end = request("terminal/wait_for_exit", name)
    output = request("terminal/output", name)
    request("terminal/release", name)
    say(f"{output['result']['output']}|{end['result'].get('exitCode')}|{output['result']['truncated']}")


def do_limited(rest):
    made = request("terminal/create", {"sessionId": state["session"], "command": "seq 1000", "outputByteLimit": int(rest)})
    name = {"sessionId": state["session"], "terminalId": made["result"]["terminalId"]}
    request("terminal/wait_for_exit", name)
    output = request("terminal/output", name)["result"]
    say(f"{len(output['output'])} {output['truncated']}. ")


def do_prints(rest):
    """More than anybody keeps."""
    made = request("terminal/create", {"sessionId": state["session"], "command": "sh",
                                       "args": ["-c", f"head -c {rest} /dev/zero | tr '\\0' x; exit 3"]})
    name = {"sessionId": state["session"], "terminalId": made["result"]["terminalId"]}
    end = request("terminal/wait_for_exit", name)["result"]
    output = request("terminal/output", name)["result"]
    say(f"{len(output['output'])} {output['truncated']} {end.get('exitCode')}")


def do_killed(rest):
    made = request("terminal/create", {"sessionId": state["session"], "command": "sleep", "args": ["1000"],
                                       "env": [{"name": "A", "value": "b"}]})
    name = {"sessionId": state["session"], "terminalId": made["result"]["terminalId"]}
    request("terminal/kill", name)
    say(f"killed by {request('terminal/wait_for_exit', name)['result'].get('signal')}")


def do_leaves(rest):
    """Leaves a command running."""
    note = json.dumps({"what": "left", "pid": 0}).replace("0}", "'$$'}")
    request("terminal/create", {"sessionId": state["session"], "command": "sh",
                                "args": ["-c", f"echo '{note}' >>{args.state}; exec sleep {rest}"]})
    while b"left" not in open(args.state, "rb").read():
        time.sleep(0.01)


def do_plan(rest):
    update(sessionUpdate="plan", entries=[{"content": "read", "priority": "high", "status": "completed"},
                                          {"content": "write", "priority": "high", "status": "in_progress"}])


def do_think(rest):
    update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})


def do_cost(rest):
    update(sessionUpdate="usage_update", used=1000, size=200000, cost={"amount": float(rest), "currency": "USD"})


def do_usage(rest):
    """The turn ends with it."""
    state["usage"] = json.loads(rest)


def do_unknown(rest):
    update(sessionUpdate="nothing_known", content=[1, 2, 3])
    update(sessionUpdate="tool_call", title="no id")
    send({"method": "vendor/thing", "params": [1]})
    send({"method": "session/update", "params": None})
    send({"method": "session/update", "params": {"sessionId": "other", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "not ours"}}}})
    send({"id": 999, "result": {}})
    send({"id": "1", "error": "odd"})


def do_messages(rest):
    say("one", messageId="m1")
    say("two", messageId="m2")


def do_hang(rest):
    cancelled.wait()


def do_deaf(rest):
    """Does not end when it is cancelled."""
    state["ignore_cancel"] = True
    cancelled.wait()
    time.sleep(3600)


def do_die(rest):
    sys.stderr.write("a line\nout of cheese\n")
    sys.stderr.flush()
    os._exit(int(rest or 3))


def do_kill(rest):
    os.kill(os.getpid(), signal.SIGKILL)


def do_huge(rest):
    update(sessionUpdate="available_commands_update", availableCommands=["x" * int(rest)])


def do_garbage(rest):
    raw("npm notice: a new version\n\n   \n[1, 2]\n\"text\"\n{\"jsonrpc\": \"2.0\", \n{}\n")
    raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"' + state["session"].encode() +
        b'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bad \xff byte"}}}}\r\n')


def do_partial(rest):
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": state["session"],
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": rest}}}}) + "\n"
    for i in range(0, len(line), 7):
        raw(line[i:i + 7])
        time.sleep(0.002)


def do_flood(rest):
    for _ in range(int(rest)):
        update(sessionUpdate="available_commands_update", availableCommands=["x" * 100000])


def do_long(rest):
    say("x" * int(rest))


def do_late(rest):
    """Says something behind the end of the turn, and before the next one."""
    state["late"] = True


def do_memory(rest):
    say(" | ".join(kept().get(state["session"], [])))


def do_env(rest):
    say(" ".join(f"{n}={os.environ.get(n)}" for n in rest.split()))


def do_where(rest):
    say(f"cwd={os.getcwd()} home={os.environ.get('HOME')} mode={state['mode']} model={state['model']} uid={os.getuid()}")


def do_shell(rest):
    say(os.popen("(" + rest + ") 2>&1").read().strip())


def do_orphan(rest):
    """Leaves a process behind that left its group and its session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            count("orphan")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.execvp("sleep", ["sleep", rest])
        os._exit(0)
    os.wait()
    time.sleep(0.1)
    say("left one")


def do_memoryhog(rest):
    state["hog"] = bytearray(os.urandom(1 << 20)) * int(rest)
    say("hogging")
    cancelled.wait()


def do_sleep(rest):
    cancelled.wait(float(rest))


class Stop(Exception):
    def __init__(self, reason):
        self.reason = reason


class Fail(Exception):
    pass


def do_stop(rest):
    raise Stop(rest)


def do_error(rest):
    raise Fail(rest)


def do_breaks(rest):
    """The process behind the agent is gone: it knows its sessions no more."""
    state["broken"] = True
    raise Fail("it exited unexpectedly")


# ---- the protocol ----

def run_prompt(request_id, params):
    text = "\n".join(b["text"] for b in params["prompt"] if b["type"] == "text")
    kinds = [b["type"] for b in params["prompt"]]
    prompts = kept().get(state["session"], []) + [text]
    keep(state["session"], prompts)
    count("prompt " + text[:60])
    reason, error = "end_turn", None
    try:
        for line in text.split("\n"):
            word, _, rest = line.strip().partition(" ")
            if word == "blocks":
                say(" ".join(kinds))
            elif word == "wholly":
                say(text)
            elif "do_" + word in globals():
                globals()["do_" + word](rest)
            if cancelled.is_set():
                reason = "cancelled"
                break
    except Stop as stop:
        reason = stop.reason
    except Fail as fail:
        error = {"code": -32603, "message": "Internal error", "data": {"details": str(fail)}}
    end = {"id": request_id, "error": error} if error else {"id": request_id, "result": {"stopReason": reason, "usage": state.pop("usage", {
        "totalTokens": 130, "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 10})}}
    send(end, *([said("too late")] if state.pop("late", False) else []))


def opened():
    result = {}
    if args.modes:
        result["modes"] = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
        result["configOptions"] = [{"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
                                    "options": [{"value": "small", "name": "S"}, {"value": "large", "name": "L"}]}]
    return result


def open_session(request_id, result):
    if args.leaves:
        count("leaves")
        while not os.path.exists(args.state + ".go"):
            time.sleep(0.01)
    send({"id": request_id, "result": result})
    if args.leaves:
        os._exit(4)


def handle(message):
    method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        with arrived:
            answers[request_id] = message
            arrived.notify_all()
    elif method == "initialize":
        if args.mute:
            return
        send({"id": request_id, "result": {
            "protocolVersion": args.protocol,
            "agentCapabilities": {"loadSession": not args.no_load, "promptCapabilities": {"image": args.images},
                                  "sessionCapabilities": {"resume": {}} if args.resume else {}},
            "authMethods": [{"id": "token", "name": "Token"}]}})
    elif method == "authenticate":
        state["logged_in"] = params.get("methodId") == "token"
        send({"id": request_id, "result": {}} if state["logged_in"] else
             {"id": request_id, "error": {"code": -32602, "message": "no such method"}})
    elif args.login and not state.get("logged_in"):
        send({"id": request_id, "error": {"code": -32000, "message": "Authentication required"}})
    elif method == "session/new":
        state["session"] = "s-" + os.urandom(6).hex()
        keep(state["session"], [])
        count("new")
        if args.banner:
            say("Welcome to the fake agent!")
        open_session(request_id, dict(opened(), sessionId=state["session"]))
    elif method in ("session/load", "session/resume"):
        if args.load_fails or params["sessionId"] not in kept():
            send({"id": request_id, "error": {"code": -32002, "message": "Resource not found"}})
            return
        state["session"] = params["sessionId"]
        count(method)
        if method == "session/load":
            say("this was said before")
        open_session(request_id, opened())
    elif method == "session/set_mode":
        state["mode"] = params["modeId"]
        send({"id": request_id, "result": {}})
    elif method == "session/set_config_option":
        state["model"] = params["value"]
        send({"id": request_id, "result": {"configOptions": []}})
    elif method == "session/prompt" and state.get("broken"):
        send({"id": request_id, "error": {"code": -32002, "message": "Resource not found"}})
    elif method == "session/prompt":
        cancelled.clear()
        threading.Thread(target=run_prompt, args=(request_id, params), daemon=True).start()
    elif method == "session/cancel":
        count("cancel")
        if not state["ignore_cancel"]:
            cancelled.set()
    elif request_id is not None:
        send({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})


count("start")
if args.exit is not None:
    sys.stderr.write("cannot start today\n")
    sys.exit(args.exit)
if args.banner:
    raw("Fake agent 1.0\n")
for line in sys.stdin:
    handle(json.loads(line))
if args.stays:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)
os._exit(0)
