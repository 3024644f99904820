"""Hostile servers in the place of Telegram and Discord: answers, downloads, redirects and gateway frames."""
import base64
import gzip
import hashlib
import http.server
import json
import os
import struct
import threading
import time
import zlib

from agents import serve
from target import Target, Trial

TELEGRAM, DISCORD = "8099999:AAHostileTelegramToken-{}", "MTHostile.Discord.Token-{}"
BOMB = gzip.compress(bytes(200 << 20), 9)
ADAPTERS = 16  # of each platform: backoff makes a single one slow


def odd(rng, depth=0):
    """Any JSON value."""
    kind = rng.randrange(10)
    if kind < 3 or depth > 3:
        return rng.choice(("", "x" * 70000, "\x00", "\u202e", "@everyone", "../../x", "-1", "1e9", "\ud83d", "12345678901234567890123", "1"))
    if kind < 6:
        return rng.choice((0, -1, 1, 2 ** 31, 2 ** 53 + 1, 2 ** 63 - 1, -2 ** 63, 2 ** 70, 1e308, 0.5, True, False, None))
    if kind == 6:
        return [odd(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {rng.choice(("id", "text", "type", "chat", "from", "d", "")): odd(rng, depth + 1) for _ in range(rng.randrange(4))}


def spoil(value, rng, rate=0.08):
    """A copy with some members replaced, removed or repeated deep inside."""
    if rng.random() < rate:
        return odd(rng)
    if isinstance(value, dict):
        return {k: spoil(v, rng, rate) for k, v in value.items() if rng.random() > rate / 2}
    if isinstance(value, list):
        return [spoil(v, rng, rate) for v in value]
    return value


class Hostile(http.server.BaseHTTPRequestHandler):
    """Answers well now and then, so that the adapter comes further, and mostly not."""
    protocol_version = "HTTP/1.1"
    trial, rng, lock = None, None, threading.Lock()
    elsewhere, stopped = "", threading.Event()
    good = 0.75

    def log_message(self, *args):
        pass

    def raw(self, data):
        self.close_connection = True
        try:
            self.wfile.write(data)
        except OSError:
            pass

    def send(self, value, status=200):
        body = json.dumps(value).encode()
        try:
            self.wfile.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        except OSError:
            self.close_connection = True

    def endless(self, head, piece):
        self.raw(head)
        end = time.monotonic() + 5
        try:
            while not self.stopped.is_set() and time.monotonic() < end:
                self.wfile.write(piece)
        except OSError:
            pass

    def hostile(self, value):
        with self.lock:
            kind, odd_value = self.rng.randrange(14), spoil(value, self.rng, 0.3)
            status, noise = self.rng.choice((201, 204, 301, 400, 404, 409, 418, 429, 500, 503, 599)), self.rng.randbytes(300)
            if self.rng.random() < 0.01:
                status = 401  # ends the adapter
        ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        if kind < 4:
            self.send(odd_value)
        elif kind == 4:
            self.raw(ok + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)
        elif kind == 5:
            self.endless(ok + b"Transfer-Encoding: chunked\r\n\r\n", b"2000\r\n" + b'{"a":' + b" " * 8187 + b"\r\n")
        elif kind == 6:
            self.raw(ok + b"Content-Length: 100000\r\n\r\n" + b"[" * 100000)
        elif kind == 7:
            self.raw(b"HTTP/1.1 302 X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % self.elsewhere.encode())
        elif kind == 8:
            self.endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 1000 + b"\r\n")
        elif kind == 9:
            self.raw(noise)
        elif kind == 10:
            self.send({"ok": False, "error_code": odd_value, "description": "x" * 3000, "parameters": {"retry_after": -1},
                       "retry_after": 1e300, "global": "yes", "code": -5}, status)
        elif kind == 11:
            self.raw(ok + b"Content-Length: 99999999999\r\n\r\n{")
        elif kind == 12:
            self.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 500 + ok + b"Content-Length: 2\r\n\r\n{}")
        else:
            self.raw(b"HTTP/1.1 %d X\r\nX-RateLimit-Limit: -1\r\nX-RateLimit-Remaining: 1e9\r\nX-RateLimit-Reset-After: nan\r\n"
                     b"Retry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n" % status)

    def handle_call(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        if self.path.startswith("/elsewhere"):
            if "Token" in str(self.headers) + self.path:
                self.trial.got(f"a redirect carried a token: {self.path} {self.headers}")
        with self.lock:
            good = self.rng.random() < self.good
        value = self.value()
        updates = value.get("result") if isinstance(value, dict) and good else None
        self.trial.count(len(updates) if isinstance(updates, list) else 1)
        self.trial.note("answered" if good else "hostile")
        if good:
            self.send(value)
        else:
            self.hostile(value)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_call


# ---- Telegram ----

class Telegram(Hostile):
    """getUpdates with spoilt updates: a batch of them costs the adapter no backoff."""
    update = 100

    def value(self):
        method = self.path.rsplit("/", 1)[-1].split("?")[0]
        if method == "getMe":
            return {"ok": True, "result": {"id": 8099999, "is_bot": True, "username": "x_bot", "first_name": "X"}}
        if method == "getFile":
            return {"ok": True, "result": {"file_id": "f", "file_path": "../../../state/operator.key", "file_size": 10 ** 12}}
        if method != "getUpdates":
            return {"ok": True, "result": {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}}}
        with self.lock:
            updates = [self.one() for _ in range(60)]
        return {"ok": True, "result": updates}

    def one(self):
        rng = self.rng
        Telegram.update += 1
        person = {"id": rng.choice((1, 7)), "is_bot": False, "first_name": "A\u202eB", "username": "../x"}
        chat = {"id": rng.choice((7, -5, -1001)), "type": rng.choice(("private", "group", "supergroup", "channel")), "title": "\x00"}
        message = {"message_id": rng.randrange(1, 9999), "date": rng.choice((int(time.time()), 0, -1, 2 ** 40)), "chat": chat, "from": person,
                   "text": rng.choice(("hi", "/help@x_bot", "a" * 5000)),
                   "entities": [{"type": rng.choice(("mention", "bot_command", "pre", "x")), "offset": rng.choice((0, -1, 4, 2 ** 31)),
                                 "length": rng.choice((0, 1, 5, -5, 2 ** 31))}],
                   "document": {"file_id": "f", "file_unique_id": "u", "file_name": rng.choice(("../../a", "a\x00b", "/etc/passwd", "a" * 999)),
                                "file_size": rng.choice((1, -1, 2 ** 62))},
                   "reply_to_message": {"message_id": 1, "from": person, "chat": chat, "text": "x"}, "media_group_id": "g"}
        kind = rng.choice(("message", "edited_message", "channel_post", "callback_query", "message_reaction", "nonsense"))
        if kind == "callback_query":
            message = {"id": "1", "from": person, "message": message, "data": "x" * 100}
        elif kind == "message_reaction":
            message = {"chat": chat, "message_id": 1, "user": person, "date": 1, "old_reaction": [],
                       "new_reaction": [{"type": "emoji", "emoji": "\u202e"}]}
        update = spoil({kind: message}, rng)
        update = update if isinstance(update, dict) else {kind: update}
        # a spoilt id would make the adapter skip all that follow
        return {"update_id": Telegram.update, **update}


# ---- Discord ----

READY = {"v": 10, "user": {"id": "9", "username": "x", "bot": True}, "session_id": "s",
         "guilds": [{"id": "5", "unavailable": True}], "application": {"id": "9", "flags": 1 << 19}}


class Discord(Hostile):
    gateway = ""
    sequence = 0

    def value(self):
        path = self.path.split("?")[0]
        if path.endswith("/gateway/bot"):
            return {"url": self.gateway, "shards": 1, "session_start_limit": {"total": 1000, "remaining": 999, "reset_after": 0,
                                                                              "max_concurrency": 16}}
        if "applications" in path or path.endswith("@me"):
            return {"id": "9", "username": "x", "verify_key": "ab" * 32, "flags": 1 << 19, "bot": True, "name": "x"}
        if path.endswith("/messages") and self.command == "GET":
            return [self.message() for _ in range(3)]
        return self.message()

    def message(self):
        return {"id": "77", "channel_id": "6", "guild_id": "5", "content": "<@9> hi", "timestamp": "2026-01-01T00:00:00Z", "type": 0,
                "author": {"id": "1", "username": "a\u202e", "bot": False}, "mentions": [{"id": "9"}], "mention_roles": ["5"],
                "attachments": [{"id": "1", "filename": "../../x", "size": 10 ** 15, "url": "http://169.254.169.254/x", "content_type": "\x00"}],
                "embeds": [{"title": "x"}], "referenced_message": {"id": "1", "author": {"id": "9"}, "content": "y"}}

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self.close_connection = True
            try:
                self.talk()
            except OSError:
                pass
        else:
            self.handle_call()

    def talk(self):
        with self.lock:
            rng = self.rng
            accepts = rng.random() < 0.9
        accept = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        self.trial.count()
        if not accepts:
            self.wfile.write(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n\r\n")
            return
        self.wfile.write(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        packer = zlib.compressobj()
        squeezed = "compress=zlib-stream" in self.path

        def frame(data, first=0x82 if squeezed else 0x81):
            n = len(data)
            size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
            self.wfile.write(bytes([first]) + size + data)

        def say(payload):
            text = json.dumps(payload).encode()
            frame(packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH) if squeezed else text)

        say({"op": 10, "d": {"heartbeat_interval": 45000}})
        say({"op": 0, "t": "READY", "s": 1, "d": {**READY, "resume_gateway_url": self.gateway}})
        for i in range(60):
            with self.lock:
                kind, event = max(13, rng.randrange(-60, 24)), self.event(rng, i + 2)
                noise = rng.randbytes(100)
            self.trial.count()
            if kind < 14:
                say(event)
            elif kind == 14:
                frame(b"", rng.choice((0x89, 0x8a, 0x80, 0x01, 0x00)))
            elif kind == 15:
                frame(noise, rng.choice((0x83, 0x8b, 0xc1, 0xa1, 0xf2)))  # reserved codes and bits
                return
            elif kind == 16:
                self.wfile.write(b"\x82\x7f" + b"\xff" * 8)  # a length without end
                return
            elif kind == 17:
                frame(b"x" * 200, 0x89)  # a control frame that is too long
                return
            elif kind == 18:
                frame(noise)  # no JSON, no zlib
                return
            elif kind == 19 and squeezed:
                bomb = zlib.compressobj(9)
                frame(bomb.compress(bytes(100 << 20)) + bomb.flush())
                return
            elif kind == 20:
                frame(struct.pack(">H", rng.choice((1000, 4000, 4001, 4009, 0, 65535, 3000))) + b"\xff\xfe", 0x88)
                return
            elif kind == 21:
                self.wfile.write(b"\x81\x85" + noise[:9])  # masked by a server
                return
            elif kind == 22:
                say({"op": rng.choice((7, 9, 11, 1, 10, 99, -1, "x", None, 2 ** 40)), "d": odd(rng), "s": odd(rng)})
            else:
                frame(b"[" * 60000 if not squeezed else packer.compress(b"[" * 60000) + packer.flush(zlib.Z_SYNC_FLUSH))

    def event(self, rng, sequence):
        kind = rng.choice(("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_REACTION_ADD", "GUILD_CREATE", "INTERACTION_CREATE",
                           "CHANNEL_CREATE", "THREAD_CREATE", "GUILD_MEMBER_UPDATE", "NONSENSE", "RESUMED", "READY"))
        data = {**self.message(), "emoji": {"name": "\u202e", "id": None}, "user_id": "1", "message_id": "77", "token": "t", "version": 1,
                "application_id": "9", "member": {"user": {"id": "1", "username": "a"}, "roles": ["1"]}, "data": {"name": "help", "id": "1"},
                "channels": [{"id": "6", "type": 0, "name": "x"}], "threads": [], "members": [], "roles": [], "name": "g", "parent_id": "6"}
        data["id"] = str(rng.randrange(1, 10 ** 6))
        return {"op": 0, "t": kind, "s": sequence, "d": spoil(data, rng)}


def config(telegram, discord):
    adapters = {"api": {"type": "api"}}
    for i in range(ADAPTERS):
        adapters[f"tg{i}"] = {"type": "telegram", "botToken": TELEGRAM.format(i), "apiBase": telegram, "dm": "everyone", "admins": ["1"]}
        adapters[f"dc{i}"] = {"type": "discord", "botToken": DISCORD.format(i), "apiBase": discord, "dm": "everyone", "admins": ["1"],
                              "compress": ("zlib-stream", "none")[i % 2], "gatewayUrl": discord.replace("http", "ws")}
    return {"http": {"listen": "127.0.0.1:0"}, "agents": {"echo": {"type": "echo"}}, "adapters": adapters}


def run(lab):
    telegram = Trial("a Telegram server: spoilt updates, answers and redirects", "the adapter continues or reports why not; tokens are sent to no other server")
    discord = Trial("a Discord server: spoilt events, frames and answers", "the same")
    stopped = threading.Event()
    Hostile.stopped = stopped
    elsewhere = type("Elsewhere", (Telegram,), {"trial": telegram, "rng": lab.rng("elsewhere")})
    other, Hostile.elsewhere = serve(elsewhere)
    Hostile.elsewhere += "/elsewhere"
    Telegram.trial, Telegram.rng = telegram, lab.rng("telegram")
    Discord.trial, Discord.rng = discord, lab.rng("discord")
    first, tg = serve(Telegram)
    second, dc = serve(Discord)
    Discord.gateway = dc.replace("http", "ws")
    secrets = [t.format(i) for t in (TELEGRAM, DISCORD) for i in range(ADAPTERS)]
    target = Target(lab.binary, config(tg, dc), secrets)
    whole = Trial("the daemon under hostile platforms", "keeps running, stops cleanly, leaks neither memory nor secrets")
    enough = 4000 * lab.factor, 600 * lab.factor
    try:
        target.start()
        end = time.monotonic() + (25 if lab.factor == 1 else 240)
        while time.monotonic() < end and (telegram.tried < enough[0] or discord.tried < enough[1]) and target.process.poll() is None:
            time.sleep(0.1)
        whole.count()
        if target.process.poll() is None:
            target.answers(whole)
            for root, _, files in os.walk(target.dir):  # no file name of theirs left its folder
                for name in files:
                    whole.expect(".." not in name and "\\" not in name, f"a file '{name}' in {root}")
        stopped.set()
        target.stop(whole, 300)
        for trial in (telegram, discord, whole):
            lab.add(trial)
        if not whole.through:
            target.remove()
    finally:
        stopped.set()
        target.kill()
        for server in (first, second, other):
            server.shutdown()
