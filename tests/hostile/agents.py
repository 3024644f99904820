"""Hostile agents: what a model's or webhook's server may answer, and what it may do with its reply URL."""
import gzip
import http.server
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from target import Closed, Target, Trial

MODEL_KEY, HOOK_KEY = "sk-hostile-model-key-0123456789", "hook-signing-secret-0123456789abcdef"
BOMB = gzip.compress(bytes(200 << 20), 9)  # 200 MB in 200 KB
SEEN = []  # headers and path of requests that a redirect led elsewhere


def texts(rng):
    return rng.choice(("", "\x00\x01\x1b[2J\x7f", "\u202e\u2066evil\u2069", "@everyone @here <@1> [x](javascript:alert(1))", "`" * 999,
                       "a" * 300000, "\ud83d\ude00" * 3000, "```\n" * 500, "[SILENT]", "/stop", "../" * 200, "\u0300" * 5000, "|" * 20000,
                       "> " * 4000, "*_" * 9000, "%s%n", "\ufeff\ufffe"))


def odd_json(rng):
    """Well-formed, but with members of the wrong type or size."""
    number = rng.choice((1e308, -1, 2 ** 70, 0.1, -2 ** 63))
    return rng.choice((
        {"reply": texts(rng), "cost": number, "usage": {"total_tokens": number}},
        {"parts": [texts(rng)[:200] for _ in range(rng.choice((1, 50, 3000)))]},
        {"reply": {"a": []}, "parts": "x"},
        {"parts": [None, 1, {"text": texts(rng)}, []]},
        {"choices": [{"message": {"content": texts(rng), "tool_calls": [{"id": 1}]}, "finish_reason": 7}],
         "usage": {"prompt_tokens": number, "completion_tokens": number, "prompt_tokens_details": {"cached_tokens": number}}},
        {"choices": "x", "error": {"message": texts(rng)[:3000], "code": number}},
        {"content": [{"type": "text", "text": texts(rng)}], "stop_reason": texts(rng)[:50], "usage": {"input_tokens": number}},
        {"error": texts(rng)[:2000], "files": [{"path": "/etc/passwd"}, {"path": "../../state/operator.key"}]},
        [], 1, "x", None, {"": {"": {"": number}}}))


def odd_task(rng):
    """A result of A2A: as it may be, or a little off."""
    part = rng.choice(({"text": texts(rng)}, {"raw": "!" * 5000, "filename": "../../state/operator.key"}, {"url": "file:///etc/passwd"},
                       {"url": "https://x/](javascript:alert(1))"}, {"data": odd_json(rng)}, {"kind": "file", "file": {"bytes": [1]}}, texts(rng)))
    state = rng.choice(("TASK_STATE_COMPLETED", "completed", "TASK_STATE_WORKING", "input-required", "TASK_STATE_AUTH_REQUIRED", "failed", texts(rng)[:99], 7))
    status = {"state": state, "timestamp": texts(rng)[:99], "message": {"messageId": "m", "role": "agent", "parts": [part]}}
    task = {"id": rng.choice(("t", texts(rng), None)), "contextId": rng.choice(("c", texts(rng), 5)), "status": status,
            "artifacts": rng.choice(([{"artifactId": "a", "parts": [part] * rng.choice((1, 40))}] * rng.choice((1, 300)), texts(rng), [[]])),
            "history": [{"messageId": texts(rng)[:99], "parts": [part]}]}
    return rng.choice(({"task": task}, {"kind": "task", **task}, {"message": {"parts": [part]}}, {"kind": "message", "parts": part}, task,
                       {"statusUpdate": {"taskId": "t", "status": status}}, {"artifactUpdate": {"artifact": task["artifacts"], "append": texts(rng)}},
                       {"tasks": [task, 3]}, odd_json(rng)))


def odd_card(rng, base):
    url = rng.choice((base + "/rpc",) * 6 + ("http://169.254.169.254/", "https://localhost:1/", "file:///etc/passwd", texts(rng)))
    return rng.choice(({"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": rng.choice(("1.0", "0.3"))}],
                        "name": texts(rng), "capabilities": {"streaming": rng.random() < 0.7}},
                       {"url": url, "protocolVersion": "0.3.0", "capabilities": {"streaming": rng.random() < 0.7}},
                       odd_json(rng)))


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rng, base, elsewhere, stopped, asked = None, "", "", threading.Event(), {}
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def raw(self, data):
        self.close_connection = True
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            pass

    def endless(self, head, piece):
        self.raw(head)
        try:
            while not self.stopped.is_set():
                self.wfile.write(piece)
        except OSError:
            pass

    def answer(self):
        with self.lock:
            rng = self.rng
            kind, odd, garbage, status = rng.randrange(18), odd_json(rng), rng.randbytes(200), rng.choice((200, 204, 299, 400, 404, 418, 500, 999))
            if self.path.endswith("agent-card.json"):
                kind, odd = rng.choice((0, 0, 0, kind)), odd_card(rng, self.base)
            elif isinstance(self.asked, dict) and self.asked.get("jsonrpc"):
                odd = {"jsonrpc": "2.0", "id": rng.choice((self.asked["id"],) * 5 + (99,)),
                       **rng.choice(({"result": odd_task(rng)},) * 6 + ({"error": {"code": rng.choice((-32001, -32603, "x", 2 ** 70)), "message": texts(rng)}},))}
                kind = rng.choice((15, kind)) if "Stream" in str(self.asked.get("method")) else kind
        ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        sse = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        body = json.dumps(odd).encode()
        whole = lambda b: b"Content-Length: %d\r\n\r\n" % len(b) + b  # noqa: E731
        chunk = b'data: {"choices":[{"delta":{"content":"' + b"x" * 4000 + b'"}}]}\n\n'
        if kind < 6:
            self.raw(ok + whole(body))
        elif kind == 6:
            self.raw(ok + b"Content-Encoding: gzip\r\n" + whole(BOMB))
        elif kind == 7:
            self.endless(sse, chunk)
        elif kind == 8:
            self.endless(ok + b"Transfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"[" * 4096 + b"\r\n")
        elif kind == 9:
            self.raw(ok + whole(b"[" * 100000))
        elif kind == 10:
            self.raw(b"HTTP/1.1 307 X\r\nLocation: " + self.elsewhere.encode() + b"\r\nContent-Length: 0\r\n\r\n")
        elif kind == 11:
            self.endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 1000 + b"\r\n")
        elif kind == 12:
            self.raw(garbage)
        elif kind == 13:
            self.raw(b"HTTP/1.1 %d X\r\n" % status + (whole(body) if status != 204 else b"\r\n"))
        elif kind == 14:
            self.raw(ok + b"Content-Length: 99999999999\r\n\r\n{")
        elif kind == 15:
            self.raw(sse + b"data: " + body + b"\n\n" + b"data: {\n\n:\n\nevent: x\ndata: [DONE]\n\n" + garbage)
        elif kind == 16:
            self.raw(sse + b"data: " + b"y" * 3000000)
        else:
            self.raw(ok + b"Content-Length: 5\r\n\r\n" + b'{"reply":"\xff\xfe"}')

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        try:
            self.asked = json.loads(self.rfile.read(length))
        except ValueError:
            self.asked = {}
        if self.path.startswith("/elsewhere"):
            SEEN.append(str(self.headers) + self.path)
        self.answer()

    do_GET = do_HEAD = do_POST


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def serve(handler):
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def config(base):
    return {
        "http": {"listen": "127.0.0.1:0"},
        "limits": {"turnSeconds": 10, "turnAttempts": 1},
        "agents": {
            "echo": {"type": "echo"},
            "hook": {"type": "webhook", "url": base + "/hook", "secret": HOOK_KEY, "timeoutMs": 2000},
            "model": {"type": "openai", "baseUrl": base + "/v1", "model": "m", "apiKey": MODEL_KEY, "firstByteMs": 2000, "silenceMs": 2000},
            "claude": {"type": "anthropic", "baseUrl": base + "/v1", "model": "m", "apiKey": MODEL_KEY, "firstByteMs": 2000,
                       "silenceMs": 2000},
            "os": {"type": "agno", "url": base, "id": "a", "firstByteMs": 2000, "silenceMs": 2000},
            "far": {"type": "a2a", "url": base, "apiKey": MODEL_KEY, "timeoutMs": 3000, "firstByteMs": 2000, "silenceMs": 2000, "pollMs": 50,
                    "lateSeconds": 1},
            "chat": {"type": "agent-chat", "url": base, "apiKey": MODEL_KEY, "timeoutMs": 2000},
        },
        "defaultAgent": "echo",
        "adapters": {"api": {"type": "api"}},
    }


def fearless(settings):
    """Keeps asking agents however often they fail."""
    for agent in settings["agents"].values():
        if agent["type"] != "echo":
            agent.update(breakerFailures=0, retries=0)
    return settings


def answers(target, rng, size):
    trial = Trial("agents: bombs, endless streams, odd numbers, garbage", "each turn ends once, as an answer or a failure")
    names = ("hook", "model", "claude", "chat", "os", "far", "far")

    def ask(i):
        trial.count()
        try:
            status, _, body = target.ask("POST", "/v1/chat/completions",
                                         {"model": names[i % len(names)], "messages": [{"role": "user", "content": f"{i}"}]}, key=target.key, trial=trial)
            json.loads(body)
            trial.expect(status in (200, 409, 502, 503, 504), f"{names[i % len(names)]}: {status} {body[:200]!r}")
        except (Closed, ValueError) as e:
            trial.got(f"{names[i % len(names)]}: {e}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(size)))
    for text in SEEN:
        trial.expect(MODEL_KEY not in text, "a redirect to another origin carried the key")
    return trial


def reply_urls(target, rng, size):
    """Answers to turns of others: tokens of one turn, used for another, changed, repeated, late."""
    trial = Trial("agents: the reply URLs of other turns", "401, 404, 409 or 410; no message in the other chat")
    urls = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            turn = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            urls.append(turn["replyUrl"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server, base = serve(Hook)
    settings = config("http://127.0.0.1:9")
    settings["agents"]["hook"]["url"] = base
    victim = Target(target.binary, settings, [MODEL_KEY, HOOK_KEY])
    try:
        victim.start()
        with ThreadPoolExecutor(4) as pool:
            for i in range(4):
                pool.submit(victim.ask, "POST", "/v1/chat/completions",
                            {"model": "hook", "messages": [{"role": "user", "content": f"{i}"}]}, victim.key)
            end = time.monotonic() + 30
            while len(urls) < 4 and time.monotonic() < end:
                time.sleep(0.02)
            trial.expect(len(urls) == 4, f"only {len(urls)} reply URLs")
            paths = [u.split("/", 3)[3] for u in urls]
            forged = []
            for _ in range(size):
                mine, other = rng.sample(range(len(paths)), 2)
                left, token = paths[mine].split("?token=") if "?token=" in paths[mine] else (paths[mine], "")
                other_left = paths[other].split("?")[0]
                forged.append(rng.choice((
                    f"{other_left}?token={token}", f"{left}?token={token[:-1]}", f"{left}?token={token}x", f"{left}?token=", left,
                    f"{left}?token={token.swapcase()}", f"{left}?token={token}&token=x", f"{other_left}?token={token}%00",
                    f"api/v2/turns/trn-99999/reply?token={token}",
                    f"{left}?token={rng.getrandbits(256):x}")))
            for path in forged:
                trial.count()
                try:
                    status, _, body = victim.ask("POST", "/" + path, {"reply": "forged-" + "x" * rng.randrange(5)}, trial=trial)
                    trial.expect(status in (400, 401, 404, 405, 409, 410), f"{path}: {status} {body[:200]!r}")
                except Closed as e:
                    trial.got(f"{path}: {e}")
            for url in urls:  # let the turns end
                request = urllib.request.Request(url, b'{"reply":"done"}', {"Content-Type": "application/json"})
                try:
                    urllib.request.urlopen(request, timeout=20).read()
                except urllib.error.HTTPError as e:
                    trial.got(f"its own reply URL: {e.code}")
        _, _, events = victim.ask("GET", "/api/v2/events?limit=200", key=victim.key)
        trial.expect(b"forged-" not in events, "a forged reply was delivered")
        victim.stop(trial, 150)
        victim.remove()
    finally:
        victim.kill()
        server.shutdown()
    return trial


def run(lab):
    Agent.rng = lab.rng("agents")
    Agent.stopped = threading.Event()
    other, elsewhere = serve(Agent)
    Agent.elsewhere = elsewhere + "/elsewhere"
    server, base = serve(Agent)
    Agent.base = base
    target = Target(lab.binary, fearless(config(base)), [MODEL_KEY, HOOK_KEY])
    whole = Trial("the daemon under hostile agents", "keeps running, stops cleanly, leaks neither memory nor secrets")
    try:
        target.start()
        lab.part(answers, target, 210)
        whole.count()
        target.answers(whole)
        Agent.stopped.set()
        target.stop(whole, 300)
        lab.add(whole)
        if not whole.through:
            target.remove()
        lab.part(reply_urls, target, 200)
    finally:
        Agent.stopped.set()
        target.kill()
        server.shutdown()
        other.shutdown()
