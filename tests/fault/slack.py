"""
Slack: connections of Socket Mode are cut, refreshed and muted, acknowledgements are lost, events arrive twice, late or
never. Some people ask in a busy channel, some write their first direct message while nothing is connected, and messages
from before the first connection must not be answered. A send without an answer is looked for by its metadata, so none
may be repeated and none may end as unknown.
"""
import asyncio

from platform_campaign import FIRST_USER, Platform, Size
from telegram import trouble

SEND, READ = "chat.postMessage", "conversations.history"
BUSY = "general"
CHATTER = {"from": "chatterbox", "channel": BUSY, "text": "chatter"}
TOKEN = "xoxb-simulator-token"


class Slack(Platform):
    name = "slack"
    rests = 0.08
    sizes = {"short": Size(4_000, 150, 40, 1, 600), "full": Size(50_000, 400, 300, 5, 7200)}

    def adapter(self, address):
        # the clock jumps, so messages may look hours older than they are
        return {"botToken": TOKEN, "appToken": TOKEN.replace("xoxb", "xapp"), "apiBase": f"http://{address}/api",
                "catchUpSeconds": 86400, "catchUpMessages": 1000, "streaming": "off", "autoThreadChars": 0}

    def chat_of(self, item):
        if item.get("where") == BUSY:
            return None
        return int((item.get("to") or "user0").removeprefix("user") or 0)

    def newcomers(self, chats):
        return {chat for chat in range(chats) if chat % 10 == 7}

    def lists(self, chats):
        return {"dm": "everyone", "channels": ["*"]}

    async def prepare(self, sim, chats):
        # Slack retries after a minute and five; the campaign has no time for that
        await sim.post("/sim/settings", {"ack_ms": 2000, "retry_2_ms": 1000, "retry_3_ms": 3000})
        await sim.post("/sim/send", [{"from": FIRST_USER, "channel": BUSY, "text": "<@dragoman> too early"}] * 20)
        await sim.post("/sim/gateway", {"action": "expire"})
        await asyncio.sleep(1.5)  # by Slack's clock, the Date of its answers, which counts seconds

    @staticmethod
    def _in_channel(chat):
        return chat % 10 == 3

    def says(self, rng, chat, text):
        if not self._in_channel(chat):
            return super().says(rng, chat, text)
        return [{"from": FIRST_USER + chat, "channel": BUSY, "text": f"<@dragoman> {text}"},
                *([CHATTER] * rng.choice((0, 1, 2, 8)))]

    async def lose_session(self, sim, rng):
        """Nothing that waits for delivery is delivered: only the channels have it."""
        if rng.random() > 0.15:
            return False
        await sim.post("/sim/gateway", {"action": "expire"})
        await sim.post("/sim/send", [CHATTER] * rng.choice((1, 30, 120)))
        return True

    def always(self):
        return [trouble("duplicate", "message", 0.03), trouble("drop", "ack", 0.01)]

    def weather(self, rng):
        return rng.choice((
            [trouble("cut_before", SEND, 0.01), trouble("cut_after", SEND, 0.01)],
            [trouble("error", SEND, 0.01, status=rng.choice((500, 502, 503))),
             trouble("error_after", SEND, 0.01, status=502)],
            [trouble("flood", SEND, rng.choice((0.1, 0.5)), retry_after=1)],
            [trouble("cut_after", READ, 0.2), trouble("error", READ, 0.2, status=503)],
            [trouble("slow", SEND, 0.1, ms=rng.choice((20, 200)))],
            [],
        ))

    async def strike(self, sim, rng):
        act = rng.choice(({"action": "cut"}, {"action": "close", "code": 1001}, {"action": "mute"},
                          {"action": "disconnect", "reason": "warning", "ms": 500},
                          {"action": "disconnect", "reason": "refresh_requested"},
                          {"action": "raw", "text": "no json"}))
        await sim.post("/sim/gateway", act)
