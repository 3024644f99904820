"""
Takes the posts of `callbackUrl`, and is a small chat-completions service.

An idempotent endpoint counts an arrival once per Idempotency-Key; the other counts every arrival, as a chat platform
shows every message. The `plan` of an endpoint decides about a request:

    Act()                      take it, answer 200
    Act(wait=0.3)              take it, answer later
    Act(status=503)            refuse it: nothing was taken
    Act(cut="head")            take it, then cut the connection before the status is complete
    Act(cut="body")            take it, answer 200, then cut the connection within the body
"""
import asyncio
import json
import time
from dataclasses import dataclass, field

from http1 import read_body, read_head


CUT = {"head": b"HTTP/1.1 2", "body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":"}


@dataclass
class Act:
    status: int = 200
    wait: float = 0.0
    cut: str = ""
    headers: dict = field(default_factory=dict)


@dataclass
class Arrival:
    key: str
    body: dict
    at: float


class Endpoint:
    def __init__(self, idempotent):
        self.idempotent = idempotent
        self.plan = lambda body: Act()
        self.arrivals = []  # what a person would see, in order
        self.first = {}  # Idempotency-Key -> the arrival
        self.deliveries = set()  # their ids
        self.requests = self.repeats = self.refused = 0
        self.changed_repeats = []  # the same key with different content

    def take(self, key, body):
        self.requests += 1
        first = self.first.get(key)
        if first is not None:
            self.repeats += 1
            if first.body["payload"] != body["payload"] or first.body["channel"] != body["channel"]:
                self.changed_repeats.append(key)
            if self.idempotent:
                return
        arrival = Arrival(key, body, time.monotonic())
        self.first.setdefault(key, arrival)
        self.deliveries.add(body["id"])
        self.arrivals.append(arrival)


class Completions:
    """Answers chat completions after `wait` seconds, even when the client is gone."""

    def __init__(self):
        self.wait = 0.0
        self.asked = []
        self.answered = 0

    async def answer(self, body):
        text = body["messages"][-1]["content"]
        self.asked.append(text)
        await asyncio.sleep(self.wait)
        self.answered += 1
        return {"id": "c", "object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}


class Receiver:
    def __init__(self):
        self.endpoints = {"/idem": Endpoint(True), "/once": Endpoint(False)}
        self.completions = Completions()
        self.server = None
        self.base = None

    @property
    def idem(self):
        return self.endpoints["/idem"]

    @property
    def once(self):
        return self.endpoints["/once"]

    async def start(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.base = "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    def stop(self):
        if self.server:
            self.server.close()

    async def _serve(self, reader, writer):
        try:
            while (head := await read_head(reader)) is not None:
                body = json.loads(await read_body(reader, head[1]))
                if not await self._one(head[0].split(" ")[1], head[1], body, writer):
                    break
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the daemon was killed
        finally:
            writer.close()

    async def _one(self, path, headers, body, writer):
        """False: cut the connection."""
        if path.endswith("/chat/completions"):
            return self._reply(writer, 200, {}, await self.completions.answer(body))
        endpoint = self.endpoints[path]
        act = endpoint.plan(body)
        if act.status != 200:
            endpoint.refused += 1
            if act.wait:
                await asyncio.sleep(act.wait)
            return self._reply(writer, act.status, act.headers, {"error": "not now"})
        key = headers.get("idempotency-key", "")
        endpoint.take(key, body)
        if act.wait:
            await asyncio.sleep(act.wait)
        if act.cut:
            writer.write(CUT[act.cut])
            await writer.drain()
            return False
        return self._reply(writer, 200, act.headers, {"id": f"r-{key}"})

    @staticmethod
    def _reply(writer, status, headers, body):
        data = json.dumps(body).encode()
        more = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}"
                     f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return True
