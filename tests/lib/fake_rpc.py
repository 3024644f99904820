#!/usr/bin/env python3
"""pi or omp in RPC mode, as they were seen to behave: does what its prompt says, also what no agent should do.

Prompts are lines, each a word and its arguments; see the functions do_* below. A session is the file named by
--session (pi) or --resume (omp); --state FILE counts starts and prompts over restarts.
"""
import argparse, base64, json, os, signal, subprocess, sys, threading, time

options = argparse.ArgumentParser()
options.add_argument("--dialect", choices=["pi", "omp"], default="pi")
options.add_argument("--old", action="store_true", help="pi before agent_settled")
options.add_argument("--new", action="store_true", help="pi with disposition, omp with session_settled")
options.add_argument("--mute", action="store_true", help="answers nothing")
options.add_argument("--exit", type=int, help="ends at once, with this code")
options.add_argument("--banner", action="store_true", help="prints what is no JSON first")
options.add_argument("--crlf", action="store_true")
options.add_argument("--stays", action="store_true", help="does not end when stdin ends")
options.add_argument("--refuses", action="store_true", help="has no key for its model")
options.add_argument("--no-state", action="store_true", help="get_state fails")
options.add_argument("--asks-early", action="store_true", help="asks before any prompt")
options.add_argument("--blind", action="store_true", help="its model takes no pictures")
options.add_argument("--state", help="a file of counters")
# as the programs take them
options.add_argument("--mode", required=True)
options.add_argument("--session-dir", required=True)
options.add_argument("--session", "--resume", dest="session", required=True)
options.add_argument("--no-title", action="store_true")
options.add_argument("--model")
args = options.parse_args()
omp = args.dialect == "omp"
assert args.mode == "rpc"
if args.exit is not None:
    print("no such model, key", os.environ.get("KEY"), file=sys.stderr)
    sys.exit(args.exit)

lock = threading.RLock()
changed = threading.Condition(lock)
queue = []  # what people said while it ran
dialogs = {}
run = {"on": False, "abort": False, "texts": [], "protocol": 1, "ids": 0, "hold": False, "deaf": False, "jobs": 0, "images": []}


def count(what):
    if args.state:
        with open(args.state, "a") as f:
            f.write(json.dumps({"what": what, "pid": os.getpid()}) + "\n")


def raw(text):
    with lock:
        sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
        sys.stdout.buffer.flush()


def send(message):
    text = json.dumps(message, ensure_ascii=False)
    if omp and run["protocol"] == 2 and len(text) > 1 << 20:
        whole, size = text.encode(), 256 << 10
        parts = [whole[i:i + size] for i in range(0, len(whole), size)]
        run["ids"] += 1
        for i, part in enumerate(parts):
            raw(json.dumps({"type": "rpc_chunk", "chunkId": f"rpc-{run['ids']}", "index": i, "count": len(parts),
                            "byteLength": len(whole), "data": base64.b64encode(part).decode()}) + "\n")
        return
    raw(text + ("\r\n" if args.crlf else "\n"))


def usage(cost=0.001):
    return {"input": 100, "output": 10, "cacheRead": 50, "cacheWrite": 0, "totalTokens": 160,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost}}


def assistant(content, stop="stop", **more):
    return dict({"role": "assistant", "content": content, "model": "m", "usage": usage(), "stopReason": stop}, **more)


def update(event, message):
    if omp:  # the message so far, twice
        send({"type": "message_update", "assistantMessageEvent": dict(event, partial=message), "message": message})
    else:
        send({"type": "message_update", "usage": usage(), "assistantMessageEvent": event})


def stream(text, pieces):
    so_far = ""
    send({"type": "message_start", "message": assistant([])})
    update({"type": "text_start", "contentIndex": 0}, assistant([]))
    for piece in pieces:
        so_far += piece
        update({"type": "text_delta", "contentIndex": 0, "delta": piece}, assistant([{"type": "text", "text": so_far}]))
    update({"type": "text_end", "contentIndex": 0, "content": text}, assistant([{"type": "text", "text": text}]))


def say(text, pieces=None, **more):
    stream(text, pieces or [text[i:i + 5] for i in range(0, len(text), 5)])
    message = assistant([{"type": "text", "text": text}], **more)
    send({"type": "message_end", "message": message})
    send({"type": "turn_end", "message": message, "toolResults": []})


def announce(call, name, arguments):
    block = {"type": "toolCall", "id": call, "name": name, "arguments": arguments}
    update({"type": "toolcall_end", "contentIndex": 0, "toolCall": block}, assistant([block]))
    return assistant([block], "toolUse")


def tool(command, call="call_1", name="bash", during=None, output=None, error=False, details=None):
    """A call as one message, its run, and its result."""
    send({"type": "message_end", "message": announce(call, name, {"command": command})})
    send({"type": "tool_execution_start", "toolCallId": call, "toolName": name, "args": {"command": command}})
    send({"type": "tool_execution_update", "toolCallId": call, "toolName": name, "args": {}, "partialResult": {"content": []}})
    if during:
        during()
    result = {"content": [{"type": "text", "text": output or "output of " + command}]}
    if details:
        result["details"] = details
    error = error or run["abort"]
    send({"type": "tool_execution_end", "toolCallId": call, "toolName": name, "result": result, "isError": error})
    send({"type": "message_end", "message": dict(result, role="toolResult", toolCallId=call, isError=error)})


def ask(method, **members):
    run["ids"] += 1
    dialog = f"ui-{run['ids']}"
    send(dict({"type": "extension_ui_request", "id": dialog, "method": method}, **members))
    with changed:
        wait = members.get("timeout")
        if not changed.wait_for(lambda: dialog in dialogs, wait / 1000 if wait else None):
            return {"timed out": True}
        return dialogs.pop(dialog)


def wait_until(condition):
    with changed:
        changed.wait_for(lambda: condition() or run["abort"])


# ---- what prompts can say ----

def do_echo(rest):
    say(rest)


def do_tool(rest):
    say("Let me look.")
    tool(rest)


def do_fails(rest):
    tool(rest, call="call_f", output="it broke", error=True)


def do_mark(rest):
    count("did " + rest)


def do_nap(rest):
    time.sleep(int(rest) / 1000)


def do_steered(rest):
    """A tool that runs until a message comes; the message is said."""
    count("waiting")
    tool("sleep", call="call_s", during=lambda: wait_until(lambda: queue))


def do_forever(rest):
    count("waiting")
    tool("sleep", call="call_w", during=lambda: wait_until(lambda: False))


def do_late(rest):
    """The next prompt is read, and handled only when the run has ended."""
    run["hold"] = True
    count("waiting")
    wait_until(lambda: run["hold"] == "held")


def do_error(rest):
    stream("", ["half "])
    send({"type": "message_end", "message": assistant([], "error", errorMessage=rest or "529 overloaded")})


def do_retry(rest):
    do_error("529 overloaded")
    send({"type": "agent_end", "messages": [], "willRetry": True, "isTerminal": False})
    send({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1, "errorMessage": "529 overloaded"})
    send({"type": "agent_start"})
    say(rest or "better")


def do_partial(rest):
    """The message as a whole is another one than its pieces."""
    say(rest, pieces=["some", "thing ", "else"])


def do_cut(rest):
    say(rest, stop="length")


def do_aborted(rest):
    send({"type": "message_end", "message": assistant([], "aborted")})


def do_compact(rest):
    send({"type": "auto_compaction_start" if omp else "compaction_start", "reason": "threshold"})


def do_confirm(rest):
    title, _, text = rest.partition("|")
    say(json.dumps({k: v for k, v in ask("confirm", title=title, message=text).items() if k not in ("type", "id")}))


def do_timeout(rest):
    say("yes" if ask("confirm", title="quick", message=rest, timeout=300).get("confirmed") else "no")


def do_select(rest):
    answer = ask("select", title="Which?", options=rest.split(","))
    say(answer.get("value", "cancelled"))


def do_own(rest):
    """omp's tool "ask": one of the options is an editor."""
    answer = ask("select", title="Which?", options=rest.split(",") + ["Other (type your own)"]).get("value", "cancelled")
    say(ask("editor", title="Custom answer").get("value", "cancelled") if answer.startswith("Other") else answer)


def do_patient(rest):
    """Goes on by itself after a while."""
    say(ask("input", title="Name?", timeout=int(rest)).get("value", "nobody"))


def do_allow(rest):
    """omp asks before it runs a tool."""
    message = announce("call_a", "bash", {"command": rest})
    announce("call_b", "bash", {"command": "ls"})
    answer = ask("select", title="Allow tool: bash\nCommand: " + rest, options=["Approve", "Deny"])
    send({"type": "message_end", "message": message})
    say(answer.get("value", "cancelled"))


def do_input(rest):
    say(ask("input", title=rest, placeholder="x").get("value", "cancelled"))


def do_editor(rest):
    say(ask("editor", title=rest, prefill="x").get("value", "cancelled"))


def do_leftopen(rest):
    """Fails before its question is answered."""
    send({"type": "extension_ui_request", "id": "l1", "method": "confirm", "title": "t", "message": "m"})
    do_error(rest)


def do_withdraw(rest):
    send({"type": "extension_ui_request", "id": "w1", "method": "confirm", "title": "t", "message": "m"})
    send({"type": "extension_ui_request", "id": "w2", "method": "cancel", "targetId": "w1"})
    say("withdrawn")


def do_notify(rest):
    send({"type": "extension_ui_request", "id": "n1", "method": "notify", "message": rest, "notifyType": "info"})


def do_widgets(rest):
    for method in ("setStatus", "setWidget", "setTitle", "set_editor_text", "not_yet_invented"):
        send({"type": "extension_ui_request", "id": "w", "method": method, "text": "x"})


def do_job(rest):
    """omp: the command goes on in the background, and its end begins a run."""
    tool(rest, call="call_j", details={"async": {"state": "running", "jobId": "bg_1", "type": "bash"}})
    run["jobs"] += 1


def do_stuck(rest):
    """After the run another one begins by itself, and never ends."""
    run["stuck"] = True


def do_goeson(rest):
    """After the run another one begins by itself, and ends when the file STATE.go is there."""
    run["goes_on"] = True


def do_huge(rest):
    say("x" * (int(rest) << 10), pieces=["x" * (int(rest) << 10)])


def do_cumulative(rest):
    say("".join(f"word{i} " for i in range(int(rest))), pieces=[f"word{i} " for i in range(int(rest))])


def do_noise(rest):
    raw("Warning: this is no JSON\n\n{broken\n[1,2]\n\xff\n")
    for message in ({"type": "not_yet_invented", "x": [1]}, {"type": 7}, {}, {"type": "response", "id": "nobody", "success": True},
                    {"type": "message_end"}, {"type": "message_end", "message": {"role": "assistant", "content": 7}},
                    {"type": "tool_execution_start"}, {"type": "tool_execution_end", "result": []},
                    {"type": "message_update", "assistantMessageEvent": 1}, {"type": "extension_ui_request", "method": 3}):
        send(message)


def do_line(rest):
    raw('{"type":"x","y":"' + "y" * (int(rest) << 10) + '"}\n')


def do_separators(rest):
    say("a\u2028b\u2029c")


def do_recall(rest):
    try:
        lines = [json.loads(line)["prompt"] for line in open(args.session)]
    except OSError:
        lines = []
    say("I know: " + " | ".join(lines[:-1]))


def do_model(rest):
    say(str(args.model))


def do_cwd(rest):
    say(os.getcwd())


def do_exit(rest):
    print("it broke, with key", os.environ.get("KEY"), file=sys.stderr)
    sys.stderr.flush()
    os._exit(int(rest or 3))


def do_kill(rest):
    os.kill(os.getpid(), signal.SIGKILL)


def do_spawn(rest):
    """Leaves a program behind that is in no group of ours."""
    child = subprocess.Popen(["setsid", "sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    count("spawned %d" % child.pid)
    say("spawned")


def do_deaf(rest):
    run["deaf"] = True
    do_forever("")


def do_images(rest):
    say(" ".join(i["mimeType"] + " " + i["data"] for i in run["images"]) + " " + run["text"].split("\n", 1)[-1])


def do_env(rest):
    say(" ".join(sorted(os.environ)))


def perform(text):
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word.startswith("["):  # "[Ann] echo hello", of a group
            word, _, rest = rest.partition(" ")
        function = globals().get("do_" + word)
        if function and not run["abort"]:
            function(rest)


# ---- runs ----

def user_message(text):
    send({"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})


def queue_update():
    if not omp:
        send({"type": "queue_update", "steering": list(queue), "followUp": []})


def work(text):
    send({"type": "agent_start"})
    send({"type": "turn_start"})
    while True:
        user_message(text)
        with open(args.session, "a") as f:
            f.write(json.dumps({"prompt": text}) + "\n")
        perform(text)
        with changed:
            if run["abort"] or not queue:
                break
            text = queue.pop(0)
        queue_update()
        say("heard: " + text)
    if run["abort"]:
        send({"type": "message_end", "message": assistant([], "aborted" if omp else "error",
                                                         errorMessage="This operation was aborted")})
    with changed:
        aborted = run["abort"]
        send({"type": "agent_end", "messages": [{"role": "user", "content": text}] * 3, **({"isTerminal": True} if omp else {"willRetry": False})})
        if not omp and not args.old:
            send({"type": "agent_settled", **({"aborted": aborted} if args.new else {})})
        if omp and args.new:
            send({"type": "session_settled"})
        run["on"] = run["abort"] = False
        changed.notify_all()
    if run.pop("stuck", False):
        send({"type": "agent_start"})
    if run.pop("goes_on", False):
        with lock:
            run["on"] = True
        send({"type": "agent_start"})
        count("goes on")
        while not os.path.exists(args.state + ".go"):
            time.sleep(0.01)
        end_by_itself()
    if run["jobs"] and not aborted:
        run["jobs"] -= 1
        time.sleep(0.2)
        begin_by_itself()


def begin_by_itself():
    with lock:
        run["on"] = True
    send({"type": "agent_start"})
    send({"type": "message_end", "message": {"role": "custom", "customType": "async-result", "content": "done",
                                             "details": {"jobs": [{"jobId": "bg_1"}]}}})
    say("the job is done")
    end_by_itself()


def end_by_itself():
    with changed:
        send({"type": "agent_end", "messages": [], "isTerminal": True})
        if not omp:
            send({"type": "agent_settled"})
        run["on"] = False
        changed.notify_all()


def respond(message, **members):
    answer = dict({"type": "response", "command": message.get("type"), "success": True}, **members)
    if "id" in message:
        answer["id"] = message["id"]
    send(answer)


def on_prompt(message):
    text = message["message"]
    count("prompt")
    if args.refuses:
        if omp:
            respond(message)
        respond(message, success=False, error="No API key found for provider x")
        return
    if text.startswith("/notify "):  # a command of an extension
        send({"type": "extension_ui_request", "id": "n", "method": "notify", "message": text[8:]})
        respond(message, **({"data": {"disposition": "handled"}} if args.new and not omp else {}))
        if omp:
            send({"type": "prompt_result", "id": message.get("id"), "agentInvoked": False})
        return
    with changed:
        if run["hold"] is True and run["on"]:
            run["hold"] = "held"
            changed.notify_all()
            changed.wait_for(lambda: not run["on"])
            run["hold"] = False
        if run["on"]:
            if message.get("streamingBehavior") not in ("steer", "followUp"):
                respond(message, success=False, error="Agent is already processing.")
                return
            queue.append(text)
            count("steer " + message["streamingBehavior"])
            queue_update()
            changed.notify_all()
            respond(message)
            return
        run["on"], run["text"], run["images"] = True, text, message.get("images", [])
    respond(message, **({"data": {"disposition": "started"}} if args.new and not omp else {}))
    threading.Thread(target=work, args=(text,), daemon=True).start()


def on_abort(message):
    count("abort")
    with changed:
        if run["deaf"]:
            return
        run["abort"] = run["on"]
        changed.notify_all()
        changed.wait_for(lambda: not run["on"])
    respond(message)


def on_state(message):
    if args.no_state:
        respond(message, success=False, error="there is no state")
        return
    lines = 0
    try:
        lines = len(open(args.session).readlines())
    except OSError:
        pass
    with lock:
        respond(message, data={"model": {"id": "m", "input": ["text"] if args.blind else ["text", "image"]}, "isStreaming": run["on"], "isCompacting": False, "messageCount": lines, "sessionFile": args.session,
                               "sessionId": "s", "queuedMessageCount" if omp else "pendingMessageCount": len(queue)})


def handle(message):
    kind = message.get("type")
    if kind == "extension_ui_response":
        with changed:
            dialogs[message["id"]] = message
            changed.notify_all()
    elif kind == "prompt":
        on_prompt(message)
    elif kind == "abort":
        threading.Thread(target=on_abort, args=(message,), daemon=True).start()
    elif kind == "get_state":
        on_state(message)
    elif kind == "clear_queue" and not omp:
        with lock:
            cleared, queue[:] = list(queue), []
        respond(message, data={"steering": cleared, "followUp": []})
    elif kind == "negotiate_protocol" and omp:
        respond(message, data={"protocolVersion": 2})
        run["protocol"] = 2
    else:
        respond(message, success=False, error=f"Unknown command: {kind}")


signal.signal(signal.SIGTERM, signal.SIG_IGN if args.stays else signal.SIG_DFL)
count("start")
os.makedirs(os.path.dirname(args.session), exist_ok=True)
if args.banner:
    raw("Welcome to the agent!\n")
if omp and not args.mute:
    send({"type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2]})
    send({"type": "extension_ui_request", "id": "s1", "method": "setWidget", "widgetKey": "x"})
    send({"type": "available_commands_update", "commands": [{"name": "x"}]})
if args.asks_early:
    threading.Thread(target=lambda: count("early " + json.dumps(ask("confirm", title="t", message="m"))), daemon=True).start()
for line in sys.stdin.buffer:
    if args.mute:
        continue
    try:
        message = json.loads(line)
    except ValueError as error:
        send({"type": "response", "command": "parse", "success": False, "error": str(error)})
        continue
    handle(message)
while args.stays:
    time.sleep(60)
os._exit(0)
