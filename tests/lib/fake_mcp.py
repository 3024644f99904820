#!/usr/bin/env python3
"""An MCP server that misbehaves on request, over stdio or (with --http) streamable HTTP.

Tools are named after what they do. --state FILE counts starts and calls over restarts.
"""
import argparse, base64, json, os, sys, threading, time

options = argparse.ArgumentParser()
options.add_argument("--http", action="store_true")
options.add_argument("--modern", action="store_true", help="2026-07-28 only")
options.add_argument("--version", default="2025-11-25")
options.add_argument("--mute", action="store_true", help="never answer initialize")
options.add_argument("--refuse", action="store_true", help="refuse every handshake")
options.add_argument("--exit", type=int, help="end at once, with this code")
options.add_argument("--pages", type=int, default=1)
options.add_argument("--bad-page", type=int, help="refuse this page once, then say that the list has changed")
options.add_argument("--describe", default="Repeats its arguments.")
options.add_argument("--state")
options.add_argument("--sse", action="store_true", help="answer by event streams")
options.add_argument("--no-session", action="store_true")
options.add_argument("--no-get", action="store_true")
options.add_argument("--gone", type=int, default=404, help="status for an unknown session")
options.add_argument("--token")
args = options.parse_args()

lock = threading.RLock()
seen = {"lists": 0, "cancelled": [], "initialized": 0, "gets": [], "deletes": 0, "sessions": 0, "headers": {}}
extra = []
answers = {}  # of the client, by id
answered = threading.Condition(lock)


def count(key):
    """Counts in the state file, over restarts."""
    if not args.state:
        return 0
    with lock:
        try:
            state = json.load(open(args.state))
        except (OSError, ValueError):
            state = {}
        state[key] = state.get(key, 0) + 1
        with open(args.state + ".new", "w") as f:
            json.dump(state, f)
        os.rename(args.state + ".new", args.state)
        return state[key]


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def tool_list():
    plain = {"type": "object"}
    reads = {"annotations": {"readOnlyHint": True}}
    tools = [
        {"name": "echo", "description": args.describe, "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
        {"name": "dies", "description": "Ends the server.", "inputSchema": plain},
        {"name": "dies.once", "description": "Ends the server the first time.", "inputSchema": plain, **reads},
        {"name": "destroys", "description": "d", "inputSchema": plain, "annotations": {"destructiveHint": True}},
        {"name": "bad_schema", "description": "x", "inputSchema": ["no"]},
    ]
    for name in ("silent", "progress", "asks", "seen", "rich", "structured", "big", "env", "grow", "wrong", "junk", "question", "sad", "cut", "forgets"):
        tools.append({"name": name, "description": f"Tool {name}.", "inputSchema": plain})
    tools.append({"name": "region", "description": "r", "inputSchema": {"type": "object", "properties": {
        "where": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}}}})
    return tools + extra


class Peer:
    """The connection a request came by: send() takes a message."""

    def __init__(self, send):
        self.send = send


def call(peer, mid, params):
    name, arguments, token = params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken")
    count("call " + name)
    if name == "echo":
        return text(arguments.get("text", arguments))
    if name == "silent":
        return None
    if name == "dies":
        why = "boom, out of memory"
        if "variable" in arguments: # longer than what is shown of it
            why = os.environ[arguments["variable"]] + "0" * 194
        sys.stderr.write("starting\n" + why + "\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "dies.once":
        if count("deaths") == 1:
            os._exit(4)
        return text("alive")
    if name == "progress":
        for i in range(4):
            peer.send({"jsonrpc": "2.0", "method": "notifications/progress",
                       "params": {"progressToken": token, "progress": i + 1, "total": 4, **({"message": "step 2"} if i == 1 else {})}})
            time.sleep(0.4)
        return text("done")
    if name == "asks":
        got = []
        for rid, method in ((0, "roots/list"), ("p", "ping"), (7, "sampling/createMessage")):
            with lock:
                answers.pop(rid, None)
            peer.send({"jsonrpc": "2.0", "id": rid, "method": method, "params": {}})
            with lock:
                while rid not in answers:
                    answered.wait()
                a = answers.pop(rid)
            got.append([method, a.get("error", {}).get("code", a.get("result"))])
        return text(got)
    if name == "seen":
        with lock:
            return text(seen)
    if name == "rich":
        return {"content": [
            {"type": "text", "text": "line\u2028separated"},
            {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG....").decode()},
            {"type": "image", "mimeType": "image/tiff", "data": base64.b64encode(b"II*.").decode()},
            {"type": "audio", "mimeType": "audio/wav", "data": "!!!"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
            {"type": "resource", "resource": {"uri": "demo://1", "mimeType": "application/gzip", "blob": base64.b64encode(b"\x1f\x8b").decode()}},
            {"type": "resource", "resource": {"uri": "demo://2", "text": "inside"}},
            {"type": "text", "text": "for the user", "annotations": {"audience": ["user"]}},
            {"type": "hologram", "x": 1}]}
    if name == "structured":
        return {"content": [], "structuredContent": {"t": 21}}
    if name == "big":
        return text("x" * (17 << 20))
    if name == "env":
        return text(dict(os.environ))
    if name == "grow":
        extra.append({"name": f"grown{len(extra)}", "description": "g", "inputSchema": {"type": "object"}})
        for _ in range(5):
            peer.send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "wrong":
        raise ValueError("no such town")
    if name == "sad":
        return {**text("cannot do that"), "isError": True}
    if name == "junk":
        peer.send("this is not JSON")
        peer.send([])
        peer.send({"jsonrpc": "2.0", "id": 99999, "result": {}})
        peer.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "other", "progress": 1}})
        return text("fine")
    if name == "question":
        if args.modern:
            return {"resultType": "input_required", "requestState": "s1",
                    "inputRequests": {"name": {"method": "elicitation/create", "params": {"message": "who?"}}}}
        return text("not asked")
    if name == "region":
        with lock:
            return text({"headers": seen["headers"]})
    raise KeyError(name)


def answer(peer, message):
    """The result of a request, {"error"}, or None for silence."""
    method, params, mid = message["method"], message.get("params", {}), message["id"]
    if method == "initialize":
        count("starts")
        if args.mute:
            return None
        if args.modern or args.refuse:
            return {"error": {"code": -32022, "message": "unsupported protocol version", "data": {"supported": ["2026-07-28"]}}}
        known = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
        version = params["protocolVersion"] if args.version in known and params["protocolVersion"] == args.version else args.version
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}, "resources": {}}, "serverInfo": {"name": "fake", "version": "1"}}}
    if method == "server/discover" and args.modern:
        meta = params.get("_meta", {})
        if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28" or "io.modelcontextprotocol/clientCapabilities" not in meta:
            return {"error": {"code": -32602, "message": "no envelope"}}
        return {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}}
    if args.refuse:
        return {"error": {"code": -32601, "message": "method not found"}}
    if args.modern and "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
        return {"error": {"code": -32602, "message": "no envelope"}}
    if method == "subscriptions/listen":
        return None
    if method == "tools/list":
        with lock:
            seen["lists"] += 1
        tools, page = tool_list(), int(params.get("cursor", 0))
        if page == args.bad_page:
            args.bad_page = None
            threading.Timer(0.1, peer.send, ({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},)).start()
            return {"error": {"code": -32603, "message": "no such page"}}
        size = -(-len(tools) // args.pages)
        result = {"tools": tools[page * size:(page + 1) * size]}
        if page + 1 < args.pages:
            result["nextCursor"] = str(page + 1)
        return {"result": result}
    if method == "resources/read":
        if params.get("uri") != "demo://2":
            return {"error": {"code": -32002, "message": "resource not found"}}
        return {"result": {"contents": [{"uri": "demo://2", "mimeType": "text/plain", "text": "what is inside"}]}}
    if method == "tools/call":
        try:
            result = call(peer, mid, params)
        except (ValueError, KeyError) as e:
            return {"error": {"code": -32602, "message": str(e)}}
        return None if result is None else {"result": result}
    return {"error": {"code": -32601, "message": "method not found"}}


def take(peer, message, respond):
    """One message of the client."""
    if "method" not in message:
        with lock:
            answers[message["id"]] = message
            answered.notify_all()
    elif "id" not in message:
        with lock:
            if message["method"] == "notifications/cancelled":
                seen["cancelled"].append(message["params"]["requestId"])
            if message["method"] == "notifications/initialized":
                seen["initialized"] += 1
    else:
        got = answer(peer, message)
        if got is not None:
            # `result` comes before `jsonrpc`, as real servers do
            respond({**got, "jsonrpc": "2.0", "id": message["id"]})


def stdio():
    def send(message):
        line = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        with lock:
            sys.stdout.buffer.write(line.encode() + b"\n")
            sys.stdout.buffer.flush()

    peer = Peer(send)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        threading.Thread(target=take, args=(peer, message, send), daemon=True).start()


def http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    sessions, replay = set(), {}
    stream = {"send": None}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def plain(self, status, body=None, headers=()):
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            if data:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def start_events(self, headers=()):
            self.send_response(200)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def event(self, message, eid=None):
            with lock:
                head = f"id: {eid}\n" if eid else ""
                data = "" if message is None else (message if isinstance(message, str) else json.dumps(message))
                self.wfile.write(f"{head}data: {data}\n\n".encode())
                self.wfile.flush()

        def refused(self, session):
            if args.token and self.headers.get("Authorization") != f"Bearer {args.token}":
                self.plain(401, {"error_description": "who are you?"})
                return True
            if session and not args.no_session and not args.modern and self.headers.get("Mcp-Session-Id") not in sessions:
                self.plain(args.gone, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}})
                return True
            return False

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = json.loads(body)
            method = message.get("method")
            if len(self.headers.get_all("Content-Type")) != 1 or "text/event-stream" not in self.headers.get("Accept", ""):
                return self.plain(406)
            if self.refused(method != "initialize"):
                return
            with lock:
                seen["headers"] = {k.lower(): v for k, v in self.headers.items() if k.lower().startswith("mcp-")}
            if args.modern and method != "initialize" and self.headers.get("Mcp-Method") != method:
                return self.plain(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32020, "message": "headers and body disagree"}})
            if "id" not in message or not method:
                self.plain(202)
                return take(None, message, None)
            if method == "tools/call" and message["params"]["name"] == "forgets":
                sessions.clear()
                return self.plain(200, {"jsonrpc": "2.0", "id": message["id"], "result": text("forgotten")})
            headers = []
            if method == "initialize" and not args.modern and not args.no_session:
                with lock:
                    seen["sessions"] += 1
                sid = f"session-{seen['sessions']}"
                sessions.add(sid)
                headers.append(("Mcp-Session-Id", sid))
            if method == "tools/call" and message["params"]["name"] == "cut":
                # the stream breaks; the answer is there when asked for the second time
                self.start_events()
                replay[f"e-{message['id']}"] = [0, {"jsonrpc": "2.0", "id": message["id"], "result": text("resumed")}]
                with lock:
                    self.wfile.write(b"retry: 300\n")
                    seen["cut"] = time.monotonic()
                return self.event(None, f"e-{message['id']}")
            if args.modern and method == "initialize":
                return self.plain(400, {"jsonrpc": "2.0", "id": message["id"], **answer(None, message)})
            if not args.sse:
                peer = Peer(lambda m: stream["send"] and stream["send"](m))
                got = answer(peer, message)
                if got is None:
                    time.sleep(3600)
                return self.plain(200, {**got, "jsonrpc": "2.0", "id": message["id"]}, headers)
            self.start_events(headers)
            self.event(None, "first")
            take(Peer(self.event), message, self.event)

        def do_GET(self):
            if self.refused(True):
                return
            last = self.headers.get("Last-Event-ID")
            with lock:
                seen["gets"].append(last)
            if args.no_get or args.modern:
                return self.plain(405)
            if last in replay:
                replay[last][0] += 1
                if replay[last][0] == 1:
                    seen["waited"] = "as told" if time.monotonic() - seen["cut"] >= 0.299 else "too short"
                self.start_events()
                if replay[last][0] > 1:
                    self.event(replay[last][1])
                return
            ready = threading.Event()

            def send(message):
                if not ready.is_set():  # the headers come only with the first event
                    self.start_events()
                    ready.set()
                self.event(message)

            stream["send"] = send
            time.sleep(3600)

        def do_DELETE(self):
            count("deletes")
            sessions.discard(self.headers.get("Mcp-Session-Id"))
            self.plain(200)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # ends with the test


if args.exit is not None:
    count("starts")
    sys.stderr.write("cannot find my configuration\n")
    sys.exit(args.exit)
http() if args.http else stdio()
