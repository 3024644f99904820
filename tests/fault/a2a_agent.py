#!/usr/bin/env python3
"""
An agent that speaks A2A and dies on request: a2a_agent.py PORT LOG [STEP@N]

/new streams in version 1.0, /plain does not stream, /old streams in 0.3. Its tasks are in LOG, so they go on when it is started again: a line when it
was given a message, one when the work is done. It knows no message twice: what is sent again is another task. It dies the N-th time it reaches STEP:
received, given, told (the client knows the task), worked.
"""
import http.server
import json
import os
import sys
import threading
import time

PORT, LOG = int(sys.argv[1]), sys.argv[2]
STEP, _, COUNT = (sys.argv[3] if len(sys.argv) > 3 else "").partition("@")
NAP = 0.03
LOCK = threading.Condition()
TASKS = {}  # id -> {"id", "message", "text", "done"}
PASSED = {"n": 0}


def pass_step(step):
    if step != STEP:
        return
    with LOCK:
        PASSED["n"] += 1
        if PASSED["n"] == int(COUNT):
            os._exit(9)


def write(**line):
    with LOCK:
        os.write(FILE, (json.dumps(line) + "\n").encode())


def work(task):
    time.sleep(NAP)
    pass_step("worked")
    write(done=task["id"])
    with LOCK:
        task["done"] = True
        LOCK.notify_all()


def begin(message, text):
    with LOCK:
        task = {"id": f"task-{len(TASKS) + 1}", "message": message, "text": text, "done": False}
        TASKS[task["id"]] = task
    write(given=message, task=task["id"], text=text)
    threading.Thread(target=work, args=(task,), daemon=True).start()
    return task


def restore():
    if not os.path.exists(LOG):
        return
    with open(LOG, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f if line.endswith("\n")]
    for line in lines:
        if "given" in line:
            TASKS[line["task"]] = {"id": line["task"], "message": line["given"], "text": line["text"], "done": False}
        else:
            TASKS[line["done"]]["done"] = True
    for task in TASKS.values():
        if not task["done"]:
            threading.Thread(target=work, args=(task,), daemon=True).start()


class Form:
    """The objects of a version."""

    def __init__(self, old):
        self.old = old

    def state(self, task):
        name = "completed" if task["done"] else "working"
        return {"state": name if self.old else "TASK_STATE_" + name.upper()}

    def part(self, text):
        return {"kind": "text", "text": text} if self.old else {"text": text}

    def artifact(self, task):
        return {"artifactId": "a", "parts": [self.part("done " + task["text"])]}

    def task(self, task):
        message = {"messageId": task["message"], "role": "user" if self.old else "ROLE_USER", "parts": [self.part(task["text"])]}
        return {**({"kind": "task"} if self.old else {}), "id": task["id"], "contextId": "c", "status": self.state(task),
                "artifacts": [self.artifact(task)] if task["done"] else [], "history": [message]}

    def wrapped(self, task):
        return self.task(task) if self.old else {"task": self.task(task)}

    def update(self, task, what, value):
        body = {"taskId": task["id"], "contextId": "c", what: value}
        if self.old:
            return {"kind": what + "-update", "final": what == "status", **body}
        return {what + "Update": body}


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name, url = self.path.split("/")[1], f"http://127.0.0.1:{PORT}/{self.path.split('/')[1]}/rpc"
        if name == "old":
            card = {"protocolVersion": "0.3.0", "url": url}
        else:
            card = {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
        self.answer({"name": name, "capabilities": {"streaming": name != "plain"}, **card})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        form, method, params = Form(self.path.startswith("/old")), request["method"], request["params"]
        if method in ("SendMessage", "SendStreamingMessage", "message/stream"):
            pass_step("received")
            task = begin(params["message"]["messageId"], params["message"]["parts"][0]["text"])
            pass_step("given")
            if method == "SendMessage":
                self.reply(form.wrapped(task))
            else:
                self.stream(form, task)
        elif method == "ListTasks":
            with LOCK:
                tasks = list(TASKS.values())
            self.reply({"tasks": [form.task(t) for t in reversed(tasks)][: params["pageSize"]], "nextPageToken": ""})
        elif params["id"] not in TASKS:
            self.answer({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no such task"}})
        elif method in ("SubscribeToTask", "tasks/resubscribe"):
            self.stream(form, TASKS[params["id"]])
        else:
            self.reply(form.task(TASKS[params["id"]]))

    def stream(self, form, task):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.event(form.wrapped(task))
        pass_step("told")
        with LOCK:
            LOCK.wait_for(lambda: task["done"])
        self.event(form.update(task, "artifact", form.artifact(task)))
        self.event(form.update(task, "status", form.state(task)))
        self.close_connection = True

    def event(self, result):
        self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\n\n".encode())
        self.wfile.flush()

    def reply(self, result):
        self.answer({"jsonrpc": "2.0", "id": 1, "result": result})

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    allow_reuse_address = True

    def handle_error(self, *_):
        pass  # the daemon was killed


restore()
FILE = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
Server(("127.0.0.1", PORT), Agent).serve_forever()
