"""
The load: many chats. Each sends one message after the other and repeats it until it is acknowledged, as a platform
redelivers; so the order in a chat is known, and a key belongs to one message.
"""
import asyncio
import random
import time

from http1 import Lost

MESSAGE_SECONDS = 90  # to get a message acknowledged, over restarts


class Message:
    __slots__ = ("adapter", "chat", "number", "key", "text", "event", "trace", "posts")

    def __init__(self, adapter, chat, number, text):
        self.adapter, self.chat, self.number, self.text = adapter, chat, number, text
        self.key = f"{chat}-{number}"
        self.event = self.trace = None  # from the acknowledgement
        self.posts = 0

    def body(self):
        return {"instanceId": self.adapter, "chatId": self.chat, "text": self.text, "externalId": self.key,
                "sender": {"id": "u-" + self.chat}}


class Load:
    def __init__(self, daemon, seed, pause=0.5):
        self.daemon = daemon
        self.seed = seed
        self.pause = pause  # longest, between bursts of a chat
        self.messages = []
        self.by_event = {}
        self.problems = []
        self.refusals = []  # (monotonic time, status, error code)
        self.acks = 0
        self.last_ack = 0.0
        self.duplicates = 0
        self.stopping = False
        self.tasks = []

    # ---- one message ----

    async def _post(self, box, message):
        """The data of the response, or None: send it again."""
        await asyncio.wait_for(self.daemon.up.wait(), MESSAGE_SECONDS)
        if not self.daemon.up.is_set():  # killed since; its address is not that of the next run
            return None
        client = box.get("client")
        if client is None or box["address"] != self.daemon.address:
            if client:
                client.close()
            client = box["client"] = self.daemon.client()
            box["address"] = self.daemon.address
        message.posts += 1
        try:
            status, _, answer = await client.request("POST", "/api/v2/messages/inbound", message.body())
        except Lost:
            await asyncio.sleep(0.005)
            return None
        if status == 202:
            return answer["data"]
        error = (answer or {}).get("error") or {}
        self.refusals.append((time.monotonic(), status, error.get("code")))
        if status not in (429, 500, 503) or not error.get("code") or not error.get("message"):
            self.problems.append(f"{message.key}: answered {status} {answer}")
        await asyncio.sleep(0.02)
        return None

    def _acknowledged(self, message, data):
        self.acks += 1
        self.last_ack = time.monotonic()
        if message.event is None:
            message.event, message.trace = data["eventId"], data["traceId"]
            if data["eventId"] in self.by_event:
                self.problems.append(f"{message.key}: its event {data['eventId']} belongs to another message")
            self.by_event[data["eventId"]] = message
            return
        self.duplicates += 1
        if (data["eventId"], data["traceId"], data["status"]) != (message.event, message.trace, "duplicate"):
            self.problems.append(f"{message.key}: stored as {message.event}, posted again it got {data}")

    async def deliver(self, box, message):
        deadline = time.monotonic() + MESSAGE_SECONDS
        while time.monotonic() < deadline:
            data = await self._post(box, message)
            if data:
                self._acknowledged(message, data)
                return
        self.problems.append(f"{message.key}: not acknowledged within {MESSAGE_SECONDS} s")

    # ---- chats ----

    def new_message(self, adapter, chat, number, text=None):
        message = Message(adapter, chat, number, text or f"{chat} says {number}")
        self.messages.append(message)
        return message

    async def _chat(self, adapter, chat, most, text):
        rng = random.Random(f"{self.seed}/{chat}")
        box, mine, number = {}, [], 0
        while not self.stopping and number < most:
            for _ in range(rng.choice((1, 1, 2, 3, 6))):
                number += 1
                mine.append(self.new_message(adapter, chat, number, text(chat, number) if text else None))
                await self.deliver(box, mine[-1])
                if rng.random() < 0.08:  # a platform that redelivers in spite of the ack
                    await self.deliver(box, rng.choice(mine[-10:]))
                if self.stopping or number >= most:
                    break
            await asyncio.sleep(rng.random() * self.pause)
        if box.get("client"):
            box["client"].close()

    def start(self, adapter, chats, most=10**9, text=None):
        for chat in chats:
            self.tasks.append(asyncio.ensure_future(self._chat(adapter, chat, most, text)))

    async def stop(self):
        """Sends no new messages; returns when the last are acknowledged."""
        self.stopping = True
        await self.finished()

    async def finished(self):
        for result in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(result, BaseException):
                self.problems.append(f"a chat ended: {type(result).__name__}: {result}")
        self.tasks = []

    def abandon(self):
        for task in self.tasks:
            task.cancel()
