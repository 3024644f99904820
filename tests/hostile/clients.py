"""Hostile HTTP clients: bytes that no honest program sends, and requests for what a key does not open."""
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from target import Closed, Target, Trial

WORKERS = 8
PUBLIC = ("/healthz", "/readyz", "/api/openapi.json")
BOT, HOOK, CALLBACK = "8012345:AAHostileBotTokenOfTelegram", "hook-secret-0123456789abcdef", "callback-secret-0123456789"
INTERACTIONS = "/api/v2/channels/discord/dc/interactions"


def config():
    return {
        "http": {"listen": "127.0.0.1:0", "requestSeconds": 40, "idleSeconds": 40, "maxBodyBytes": 262144,
                 "maxBodiesBytes": 8388608},
        "agents": {"echo": {"type": "echo"}, "other": {"type": "echo"}},
        "defaultAgent": "echo",
        "adapters": {
            "api": {"type": "api"},
            "secret": {"type": "api", "agent": "other", "callbackUrl": "http://127.0.0.1:9/x",
                       "callbackSecret": CALLBACK},
            "tg": {"type": "telegram", "botToken": BOT, "apiBase": "http://127.0.0.1:9", "admins": ["1"]},
            "dc": {"type": "discord", "botToken": "a.b." + HOOK, "apiBase": "http://127.0.0.1:9",
                   "publicKey": "ab" * 32, "admins": ["1"]},
        },
    }


def each(jobs, fn, workers=WORKERS):
    """Runs fn on all jobs, some at a time."""
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fn, jobs))


# ---- bytes ----

def ambiguous(rng, host, key):
    """A head that two programs may read in two ways, whatever follows."""
    name = rng.choice(("Content-Length", "content-length", "CONTENT-LENGTH"))
    coding = rng.choice(("Transfer-Encoding", "transfer-encoding", "TRANSFER-ENCODING"))
    n = rng.choice((0, 1, 5, 40, 400))
    lengths = (f"+{n}", f"-{n}", f"0x{n:x}", f"{n},{n}", f"{n}, {n + 1}", f"{n} {n}", f"{n}.0", f"{n}e0", "", f"{n}_0",
               f"{n}\x0b", f"{n};a", f"'{n}'", "9" * 20, f"{n} ", f"{n}\t", f"０{n}")
    codings = ("chunked ", "chunked\t", "chunked,", ",chunked", "chunked, chunked", "gzip, chunked", "chunked, identity",
               "identity", "xchunked", "chunkedx", "chunked;q=1", '"chunked"', "\x0bchunked", "chunked\x0c", "cow", "",
               "chun\tked", "Chunked, gzip", "chunked\xa0")
    kinds = (
        [f"{name}: {n}", f"{coding}: chunked"],
        [f"{coding}: chunked", f"{name}: {n}"],
        [f"{name}: {n}", f"{name}: {n + 6}"],
        [f"{name}: {n}", f"{name}: {n}"],
        [f"{name}: {rng.choice(lengths)}"],
        [f"{coding}: {rng.choice(codings)}"],
        [f"{coding}: chunked", f"{coding}: {rng.choice(codings + ('chunked',))}"],
        [f"{name}{rng.choice((' ', chr(9), chr(0), chr(11)))}: {n}"],
        [f"{coding}{rng.choice((' ', chr(9), chr(0)))}: chunked"],
        [f"{coding}:\r\n{rng.choice((' ', chr(9)))}chunked"],
        [f"X: a\r\n{rng.choice((' ', chr(9)))}{coding}: chunked"],
        [f"X: a\r{coding}: chunked"],
        [f"X: a\n{coding}: chunked"],
        [f"X: a{chr(0)}b", f"{name}: {n}"],
        [f"{chr(0)}X: a", f"{name}: {n}"],
        [f" {name}: {n}"],
        [f": {n}"],
        ["nonsense"],
        [f"Host: {host}", f"{name}: {n}"],
        [f"Expect: {rng.choice(('100-continue ', '200-ok', '100-continue, x', ''))}", f"{name}: {n}"],
        [f"{rng.choice(('X Y', 'X(Y', 'X@', 'Xü'))}: a", f"{name}: {n}"],
    )
    lines = [f"Host: {host}", *rng.choice(kinds)]
    if rng.random() < 0.5:
        lines.insert(1, f"x-api-key: {key}")  # so that the body would be read
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(1, len(lines) + 1), f"X-{rng.randrange(999)}: {rng.randrange(10 ** 9)}")
    line = f"{rng.choice(('POST', 'PUT', 'GET', 'DELETE'))} {rng.choice(('/healthz', '/api/v2/messages/inbound', '/x'))} HTTP/1.1"
    return (line + "\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def smuggling(target, rng, size):
    trial = Trial("HTTP: requests read in two ways", "refused at once; what follows is never read as a request")
    jobs = []
    for i in range(size):
        inner = f"GET /healthz HTTP/1.1\r\nHost: {target.host}\r\nx-request-id: smuggled-{i}\r\n\r\n".encode()
        cover = rng.choice((b"", b"0\r\n\r\n", b"1\r\nx\r\n0\r\n\r\n", b"x" * rng.randrange(50)))
        jobs.append((i, ambiguous(rng, target.host, target.key) + cover + inner))

    def attack(job):
        number, data = job
        got = target.raw(data)
        trial.count()
        trial.note((got or b"")[9:12].decode() or "closed")
        if got is None:
            trial.got(f"hangs: {data[:200]!r}")
        elif f"smuggled-{number}".encode() in got:
            trial.got(f"the inner request is answered: {data[:200]!r}")
        elif got and not got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")):
            trial.got(f"accepted: {data[:200]!r} with {got[:60]!r}")

    each(jobs, attack)
    return trial


def noise(target, rng, size):
    trial = Trial("HTTP: noise, floods of headers, foreign protocols", "refused or closed; other clients are served")
    seeds = (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
             b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), b"SSH-2.0-x\r\n", b"*1\r\n$4\r\nPING\r\n",
             b"POST /api/v2/messages/inbound HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345")

    def one():
        kind = rng.randrange(9)
        if kind == 0:
            return rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n"
        if kind == 1:
            return b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(rng.randrange(90, 900))) + b"\r\n"
        if kind == 2:
            return b"GET / HTTP/1.1\r\nX: " + b"a" * rng.randrange(4000, 200000) + b"\r\n\r\n"
        if kind == 3:
            return b"GET /" + b"a" * rng.randrange(4000, 100000) + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        if kind == 4:
            return b"GET /?" + b"&".join(b"a" for _ in range(rng.randrange(10, 2500))) + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        if kind == 5:
            return (b"GET /healthz HTTP/1.1\r\nHost: a\r\nCookie: " + b";".join(b"%d=b" % i for i in range(rng.randrange(10, 700))) +
                    b"\r\n\r\n")
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data) + b"\r\n\r\n"

    def attack(data):
        got = b""
        with target.connect() as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)  # noise may well be the beginning of a request
                while piece := s.recv(65536):
                    got += piece
            except socket.timeout:
                trial.got(f"hangs after its end: {data[:100]!r}")
            except OSError:
                pass
        trial.count()
        trial.note(got[9:12].decode("latin-1") or "closed")
        target.look(got, "an answer to noise")
        trial.expect(b"HTTP/1.1 5" not in got or b"505" in got[:20], f"an error of ours: {data[:200]!r} {got[:200]!r}")

    each([one() for _ in range(size)], attack, 64)  # an end without a whole request is noticed after a second
    return trial


# ---- keys ----

def routes_of(target):
    """(method, path with its parameters filled, body schema) of all routes."""
    spec = target.get("/api/openapi.json")
    for path, methods in spec["paths"].items():
        if path.endswith("/stream"):
            continue  # never ends
        for method, doc in methods.items():
            schema = (((doc.get("requestBody") or {}).get("content") or {}).get("application/json") or {}).get("schema")
            yield method.upper(), path, schema


def fill(path, rng, values=None):
    while "{" in path:
        name = path[path.index("{") + 1:path.index("}")]
        value = rng.choice(values) if values else {"adapter": "secret", "platform": "discord"}.get(name, "1")
        path = path.replace("{" + name + "}", value, 1)
    return path


def wrong_keys(target, rng, dead):
    key = target.key
    yield from ([], [("Authorization", "")], [("Authorization", "Bearer")], [("Authorization", "Bearer ")],
                [("Authorization", f"Basic {key}")], [("Authorization", key)], [("x-api-key", "")],
                [("x-api-key", key[:-1])], [("x-api-key", key + "x")], [("x-api-key", key.swapcase())],
                [("x-api-key", key[::-1])], [("x-api-key", "dgm_")], [("x-api-key", "*")], [("x-api-key", "null")],
                [("x-api-key", f"{key},{key}")], [("x-api-key", f"'{key}'")], [("x-api-key", key.replace("_", "%5F"))],
                [("Cookie", f"x-api-key={key}")], [("X-Forwarded-For", "127.0.0.1")],
                [("Authorization", f"Bearer {key}"), ("x-api-key", "wrong")],
                [("Authorization", "Bearer wrong"), ("x-api-key", key)],
                [("X-Original-URL", "/healthz")], [("X-Rewrite-URL", "/healthz")], [("X-HTTP-Method-Override", "GET")],
                [("x-api-key", "x" * 3000)], [("Authorization", "Bearer " + "\xff" * 50)])
    yield from ([("x-api-key", text)] for text in dead)
    for _ in range(4):
        yield [("x-api-key", f"dgk_{rng.getrandbits(200):x}"[:44])]


def dead_keys(target):
    """The text of a key that is revoked, and of one that has expired."""
    texts = []
    soon = int(time.time() * 1000) + 1500
    for name, more in (("revoked", {}), ("expired", {"expiresAt": soon})):
        _, _, body = target.ask("POST", "/api/v2/keys", {"name": name, "scopes": ["admin"], **more}, key=target.key)
        made = json.loads(body)["data"]
        texts.append(made["key"])
        if name == "revoked":
            target.ask("DELETE", f"/api/v2/keys/{made['id']}", key=target.key)
    while time.time() * 1000 <= soon:
        time.sleep(0.05)
    return texts


def tricked_paths(path, rng):
    yield path
    yield from (path.upper(), "/" + path, path + "/", path + "/.", path + "%20", path + "%00", path + ";a=b", path + "?key=x",
                "/healthz/.." + path, "/healthz/%2e%2e" + path, "/./" + path[1:], path.replace("/", "//", 2),
                path.replace("api", "%61pi"), path.replace("/v2", "/v2/../v2"), path + "%2f..%2f", "/healthz?/" + path,
                path.replace("v", "%76"), path + "\\", path + "%0d%0aX: y", path + ".json", path + "#/healthz")


def without_key(target, rng, size):
    trial = Trial("HTTP: without a valid key, by other paths and methods", "no route but the public ones answers")
    dead = dead_keys(target)
    routes = [(m, fill(p, rng)) for m, p, _ in routes_of(target) if p not in PUBLIC and p != "/metrics"]
    jobs = [(m, p, h) for m, p in routes for h in wrong_keys(target, rng, dead)]
    jobs += [(m, t, []) for m, p in routes for t in tricked_paths(p, rng)]
    jobs += [(rng.choice(("TRACE", "CONNECT", "OPTIONS", "PATCH", "PROPFIND", "get", "GET\t", "X" * 40, "HEAD", "POST")), p, [])
             for _, p in routes for _ in range(3)]
    rng.shuffle(jobs)

    def attack(job):
        method, path, headers = job
        trial.count()
        try:
            status, _, body = target.ask(method, path, b"{}" if method not in ("GET", "HEAD") else None, headers=headers, trial=trial)
        except Closed:
            return
        clean = path.split("?")[0].split("#")[0]
        if clean not in PUBLIC and not 400 <= status < 500 and status != 503:
            trial.got(f"{method} {path} with {headers}: {status} {body[:100]!r}")

    each(jobs[:size], attack)
    return trial


def other_adapters(target, rng, size):
    trial = Trial("HTTP: a key of one adapter at all others", "it reaches its adapter and its agents, nothing else")
    _, _, body = target.ask("POST", "/api/v2/keys", {"name": "one", "scopes": ["admin"], "adapters": ["api"],
                                                     "rateLimit": 1000000}, key=target.key)
    key = json.loads(body)["data"]["key"]
    marker = "only-for-the-secret-adapter"
    target.ask("POST", "/api/v2/messages/inbound", {"instanceId": "secret", "text": marker}, key=target.key)
    routes = [(m, p) for m, p, _ in routes_of(target) if p not in PUBLIC]
    ids = ("1", "2", "evt-1", "evt-2", "trn-1", "dlv-1", "key-1", "secret", "tg", "dc", "default", "per-1", "other", "discord_send")
    paths = ("../state/operator.key", "/etc/passwd", "state/operator.key", "workspaces/secret/x", "../../config.json",
             "workspaces/api/../secret/x", "workspaces/api/../../state/operator.key", "./workspaces/api", "workspaces/api/\x00x",
             "/proc/self/environ", "workspaces/api/" + "../" * 30 + "etc/passwd", "file:///etc/passwd")
    jobs = []
    for i in range(size):
        method, path = routes[i % len(routes)]
        body = {"instanceId": rng.choice(("secret", "tg", "dc", "api,secret", "secret ", "SECRET", ",", "*")), "to": "default",
                "text": "x", "path": rng.choice(paths), "emoji": "👍", "messageId": "1", "chatId": "default",
                "agent": "other", "model": "other", "messages": [{"role": "user", "type": "human", "content": "x"}]}
        for name in rng.sample(sorted(body), rng.randrange(len(body) - 2)):
            if name != "instanceId":
                del body[name]
        jobs.append((method, fill(path, rng, ids), body, rng.choice(([], [("X-Dragoman-Instance", "secret")]))))

    def attack(job):
        method, path, body, headers = job
        trial.count()
        try:
            status, _, answer = target.ask(method, path, None if method in ("GET", "HEAD") else body, key=key, headers=headers, trial=trial)
        except Closed:
            return
        if marker.encode() in answer or b"root:x:" in answer or (status == 200 and b'"other"' in answer and "v1" in path):
            trial.got(f"{method} {path} {body}: {status} {answer[:200]!r}")
        if status >= 500 and status != 503:
            trial.got(f"{method} {path} {body}: {status} {answer[:200]!r}")

    each(jobs, attack)
    return trial


def steering(target, rng, size):
    """A key that may write messages, but not steer: under false names, by every protocol, with everything that steers or decides."""
    trial = Trial("HTTP: a key without the scope of sessions steers coding agents", "it tells and stops none, decides nothing and learns nothing")
    _, _, body = target.ask("POST", "/api/v2/keys", {"name": "writer", "scopes": ["messages:write", "chat:write", "agent:write", "a2a:write"],
                                                     "rateLimit": 1000000}, key=target.key)
    key = json.loads(body)["data"]["key"]
    marker = "only-for-those-who-may-steer"
    event = {"session_id": "hostile-1", "content": "rm x"}
    target.ask("POST", "/api/webhook/event", [
        {**event, "event_type": "session_start", "metadata": {"title": marker, "cwd": "/" + marker}},
        {**event, "event_type": "approval_request", "tool_name": marker, "metadata": {"approval_id": "a1"}}], key=target.key)
    _, _, body = target.ask("GET", "/api/v2/sessions/hostile-1", key=target.key)
    session = json.loads(body)["data"]["id"]
    adapters = ("api", "terminal")
    says = ("go left", "yes", "no, because", "/approve sap-1", "/refuse sap-1 x", f"/abort {session}", f"/steer {session} x", f"/reply {session} x",
            f"/followup {session} x", "/steer hostile-1 x", "/abort host", "/sessions", "/notify all", "stop")

    def attack(text):
        trial.count()
        adapter, sender = rng.choice(adapters), rng.choice(("42", "operator", "api", "1"))
        pinned = [("X-Dragoman-Instance", adapter), ("X-Dragoman-Chat", "room")]
        path, body, headers = rng.choice((
            ("/api/v2/messages/inbound?wait=2000", {"instanceId": adapter, "chatId": "room", "text": text, "sender": {"id": sender}}, []),
            ("/v1/chat/completions", {"model": "dragoman", "messages": [{"role": "user", "content": text}], "user": sender}, pinned),
            ("/api/agent/chat", {"messages": [{"type": "human", "content": text}], "conversationId": "room"}, pinned),
            ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {
                "kind": "message", "role": "user", "messageId": str(rng.random()), "parts": [{"kind": "text", "text": text}]}}}, [])))
        status, _, answer = target.ask("POST", path, body, key=key, headers=headers, trial=trial)
        if marker.encode() in answer:
            trial.got(f"{path} {body}: {status} {answer[:200]!r}")

    for adapter in adapters:
        target.ask("POST", "/api/sessions/hostile-1/link", {"adapter": adapter, "channel_id": "room", "user_id": "42"}, key=target.key)
        for i in range(size // len(adapters)):
            attack(says[i % len(says)])
    _, _, body = target.ask("GET", f"/api/v2/sessions/{session}/commands", key=target.key)
    trial.expect(json.loads(body)["items"] == [], f"commands: {body[:500]!r}")
    _, _, body = target.ask("GET", "/api/v2/events?type=session.command.queued", key=target.key)
    trial.expect(json.loads(body)["items"] == [], f"commands: {body[:500]!r}")
    return trial


# ---- bodies ----

HOSTILE_TEXTS = ("", "x" * 5000, "\u0000", "\u202eabc\u2066", "'; DROP TABLE keys; --", "%s%n%x", "../../etc/passwd", "{{7*7}}", "\ud800",
                 "\x1b[2J", "a\r\nb: c", "\ufeff", "𐍈" * 100, "-1", "9" * 40, "null", "__proto__", "evt-1", "trn-99999999999999999999",
                 "@everyone", "<script>", "key-1 OR 1=1", "٣", "per-1", "*", "a" * 129)


def hostile_value(rng, depth=0):
    kind = rng.randrange(9)
    if kind < 4 or depth > 3:
        return rng.choice(HOSTILE_TEXTS)
    if kind == 4:
        return rng.choice((0, -1, 2 ** 31, 2 ** 53 + 1, -2 ** 63, 2 ** 63 - 1, 0.1, 1e308, True, False, None))
    if kind == 5:
        return [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {rng.choice(HOSTILE_TEXTS): hostile_value(rng, depth + 1) for _ in range(rng.randrange(3))}
    if kind == 7:
        return rng.choice(("api", "default", "echo", "tg", "allow", "dm"))
    return "".join(chr(rng.choice((rng.randrange(32), rng.randrange(0x20, 0x2100), rng.randrange(0x1f300, 0x1f700))))
                   for _ in range(rng.randrange(40)))


USUAL = {"instanceId": "api", "to": "default", "chatId": "default", "model": "echo", "agent": "echo", "messageId": "1",
         "messages": [{"role": "user", "content": "x"}], "rule": {"name": "r", "agent": "echo"}}


def usual_value(name, schema, rng):
    if name in USUAL:
        return USUAL[name]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    return {"integer": 1, "boolean": True, "array": [], "object": {}}.get(schema.get("type"), rng.choice(HOSTILE_TEXTS[1:]))


def hostile_body(schema, rng):
    """All usual but for one or two members, so that the reader gets as far as those."""
    body = {}
    for name, member in (schema or {}).get("properties", {}).items():
        if name in schema.get("required", ()) or rng.random() < 0.4:
            body[name] = usual_value(name, member, rng)
        if rng.random() < 0.15:
            body[name] = hostile_value(rng)
    if rng.random() < 0.2:
        body[rng.choice(HOSTILE_TEXTS)] = hostile_value(rng)
    return body


def malformed(rng, schema):
    """JSON that must not be accepted."""
    good = json.dumps(hostile_body(schema, rng))
    kind = rng.randrange(10)
    if kind == 0:
        return b"[" * rng.randrange(100, 100000)
    if kind == 1:
        return b'{"a":' * rng.randrange(100, 20000) + b"1" + b"}" * 10
    if kind == 2:
        return b'{"text":"a","text":"b"}'
    if kind == 3:
        return b'{"text":"' + rng.choice((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc3")) + b'"}'
    if kind == 4:
        return b'{"text":' + rng.choice((b"1e999", b"-", b"01", b"NaN", b"Infinity", b"9" * 400, b"0x1", b".5")) + b"}"
    if kind == 5:
        return good.encode()[:-1] if len(good) > 2 else b"{"
    if kind == 6:
        return good.encode() + rng.choice((b"{}", b"]", b"\x00", b"x", b",", b"//"))
    if kind == 7:
        return b'{"text":"' + bytes([rng.randrange(32)]) + b'"}'
    if kind == 8:
        return b'{"text":"\\u' + rng.choice((b"d800", b"dfff", b"00", b"zzzz", b"0000")) + b'"}'
    return rng.choice((b"", b"null", b"1", b'"x"', b"[]", b"{'a':1}", b"\xef\xbb\xbf{}", b"{}" * 2, b"\xff\xfe{\x00}\x00"))


def bodies(target, rng, size):
    trial = Trial("HTTP: hostile JSON for every route, with the operator's key", "well-formed answers, no internal error, nothing malformed accepted")
    routes = [(m, p, s) for m, p, s in routes_of(target) if s and "backup" not in p and p != "/api/v2/keys"]
    jobs = []
    for i in range(size):
        method, path, schema = routes[i % len(routes)]
        broken = rng.random() < 0.4
        if broken:
            data = malformed(rng, schema)
        else:
            data = json.dumps(hostile_body(schema, rng)).encode()
        values = ("api", "default", "evt-1", "per-1", "echo", "%00", "..%2f..%2fx", "%ff", "'--", "-1", "9" * 30)
        jobs.append((method, fill(path, rng, values), data, broken and data.strip() not in (b"", b"{}")))

    def attack(job):
        method, path, data, broken = job
        trial.count()
        try:
            status, _, answer = target.ask(method, path, data, key=target.key, trial=trial)
        except Closed as e:
            if len(data) < 200000:
                trial.got(f"{method} {path} {data[:200]!r}: {e}")
            return
        try:
            json.loads(answer)
        except ValueError:
            if b"data: " not in answer:
                trial.got(f"{method} {path}: not JSON: {answer[:200]!r}")
        if status == 500 or status > 504 or (broken and status < 300):
            trial.got(f"{method} {path} {data[:200]!r}: {status} {answer[:200]!r}")

    each(jobs, attack)
    # rules made by chance must not decide what follows
    for rule in target.get("/api/v2/rules")["items"]:
        target.ask("DELETE", f"/api/v2/rules/{quote(rule['name'], safe='')}", key=target.key)
    return trial


def ids(target, rng, size):
    trial = Trial("HTTP: ids and queries that are code", "400 or 404; no rows of other adapters, no internal error")
    paths = [(m, p) for m, p, s in routes_of(target) if "{" in p and not s]
    evil = ("%27%20OR%201=1--", "..%2f..%2fstate%2foperator.key", "%00", "1%00", "-1", "0", "9" * 25, "evt-", "evt--1", "evt-0x1", "trn-1e9",
            "dlv-9223372036854775808", "%ff%fe", "%e2%80%ae", "%25n%25s", "key-%20" + "1", "*", "%2a", "{id}", "a" * 300, "evt-1%0d%0aX:y",
            "trn-1%27", "per-1%3b", "....//", "%c0%ae%c0%ae/", "null", "undefined", "true", "[]")
    names = ("limit", "after", "before", "cursor", "since", "until", "status", "wait", "order", "adapter", "type", "x", "limit[]", "")
    jobs = []
    for i in range(size):
        method, path = paths[i % len(paths)]
        query = "&".join(f"{rng.choice(names)}={rng.choice(evil)}" for _ in range(rng.randrange(3)))
        jobs.append((method, fill(path, rng, evil) + ("?" + query if query else "")))

    def attack(job):
        method, path = job
        trial.count()
        try:
            status, _, answer = target.ask(method, path, key=target.key, trial=trial)
        except Closed as e:
            trial.got(f"{method} {path}: {e}")
            return
        if not 400 <= status < 500 and status != 503 and not (status == 200 and b'"items":[]' in answer):
            trial.got(f"{method} {path}: {status} {answer[:200]!r}")

    each(jobs, attack)
    return trial


# ---- time and room ----

def crowds(target, rng, size):
    """Many connections that never finish a body, at the endpoint whose proof is in the body."""
    trial = Trial("HTTP: bodies from a crowd without keys", "bounded memory; callers with a key are served meanwhile")
    before = target.rss_mb()
    crowd, refused = [], 0
    head = Target.head("POST", INTERACTIONS, [("Host", target.host), ("Content-Length", 65536), ("X-Signature-Timestamp", int(time.time())),
                                              ("X-Signature-Ed25519", "ab" * 64)])
    for _ in range(size):
        trial.count()
        s = target.connect()
        s.settimeout(5)
        try:
            s.sendall(head + b"x" * 60000)
        except OSError:
            pass
        crowd.append(s)
    status, _, _ = target.ask("GET", "/api/v2/status", key=target.key)
    trial.expect(status == 200, f"a caller with a key gets {status} meanwhile")
    target.answers(trial, "in the crowd")
    grown = target.rss_mb() - before
    trial.expect(grown < 120, f"{size} bodies took {grown} MB")
    for s in crowd:
        try:
            s.settimeout(0.01)
            refused += b" 503 " in s.recv(100)
        except OSError:
            pass
        s.close()
    trial.expect(refused > 0 or size * 60000 < 4 << 20, "no body was refused")
    stale = Target.head("POST", INTERACTIONS, [("Host", target.host), ("Content-Length", 60000), ("X-Signature-Timestamp", 1700000000),
                                               ("X-Signature-Ed25519", "ab" * 64)])
    got = target.raw(stale)  # without a body
    trial.count()
    trial.expect(got and got.startswith(b"HTTP/1.1 401"), f"a stale timestamp waits for its body: {got!r:.100}")
    return trial


def slow(binary, rng, size):
    """Clients that send a byte now and then are cut, however patient they are. A daemon with short deadlines."""
    trial = Trial("HTTP: slow heads, bodies and readers", "cut at the deadline; others are served")
    settings = config()
    settings["http"].update(requestSeconds=2, idleSeconds=2)
    target = Target(binary, settings, [BOT, HOOK, CALLBACK])
    try:
        target.start()
        heads = (b"GET /heal", b"POST /api/v2/messages/inbound HTTP/1.1\r\nHost: a\r\n",
                 Target.head("POST", "/api/v2/messages/inbound", [("Host", target.host), ("x-api-key", target.key),
                                                                  ("Content-Length", 1000)]),
                 Target.head("POST", "/api/v2/messages/inbound", [("Host", target.host), ("x-api-key", target.key),
                                                                  ("Transfer-Encoding", "chunked")]) + b"5\r\n", b"")
        crowd = []
        for i in range(size):
            s = target.connect()
            s.sendall(heads[i % len(heads)])
            crowd.append(s)
            trial.count()
        end = time.monotonic() + 30
        while crowd and time.monotonic() < end:
            for s in list(crowd):
                try:
                    s.settimeout(0.001)
                    s.sendall(b"a")
                    if s.recv(4096) == b"":
                        raise OSError
                except socket.timeout:
                    continue
                except OSError:
                    s.close()
                    crowd.remove(s)
            time.sleep(0.2)
        trial.expect(not crowd, f"{len(crowd)} slow clients are still connected after 30 s")
        target.answers(trial)
        target.stop(trial, 150)
        target.remove()
    finally:
        target.kill()
    return trial


def run(lab):
    target = Target(lab.binary, config(), [BOT, HOOK, CALLBACK])
    whole = Trial("the daemon under hostile clients", "keeps running, stops cleanly, leaks neither memory nor secrets")
    try:
        target.start()
        for attack, share in ((smuggling, 4000), (noise, 1000), (without_key, 4000), (other_adapters, 3000), (steering, 100), (ids, 3000), (bodies, 5000)):
            lab.part(attack, target, share)
        lab.add(crowds(target, lab.rng("crowds"), 200 if lab.factor == 1 else 500))
        whole.count()
        target.answers(whole)
        target.stop(whole, 200)
        lab.add(whole)
        if not whole.through:
            target.remove()
        else:
            print(f"      kept: {target.dir}")
    finally:
        target.kill()
    lab.add(slow(lab.binary, lab.rng("slow"), 60 if lab.factor == 1 else 400))
