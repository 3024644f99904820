"""
Slack: connections of Socket Mode are cut, refreshed and muted, acknowledgements are lost, events arrive twice, late or
never. A send without an answer is looked for by its metadata, so none may be repeated and none may end as unknown.
"""
import asyncio

from busy_channel import BusyChannel
from platform_campaign import FIRST_USER, trouble

READ = "conversations.history"
TOKEN = "xoxb-simulator-token"


class Slack(BusyChannel):
    name = "slack"
    send = "chat.postMessage"

    def adapter(self, address):
        # the clock jumps, so messages may look hours older than they are
        return {"botToken": TOKEN, "appToken": TOKEN.replace("xoxb", "xapp"), "apiBase": f"http://{address}/api",
                "catchUpSeconds": 86400, "catchUpMessages": 1000, "streaming": "off", "autoThreadChars": 0}

    def lists(self, chats):
        return {"dm": "everyone", "channels": ["*"]}

    async def prepare(self, sim, chats):
        # Slack retries after a minute and five; the campaign has no time for that
        await sim.post("/sim/settings", {"ack_ms": 2000, "retry_2_ms": 1000, "retry_3_ms": 3000})
        await self.say_too_early(sim, FIRST_USER)
        await sim.post("/sim/gateway", {"action": "expire"})
        await asyncio.sleep(1.5)  # by Slack's clock, the Date of its answers, which counts seconds

    def always(self):
        return [trouble("duplicate", "message", 0.03), trouble("drop", "ack", 0.01)]

    def weather(self, rng):
        return rng.choice((
            *self.send_faults(rng, retry_after=1),
            [trouble("cut_after", READ, 0.2), trouble("error", READ, 0.2, status=503)],
        ))

    async def strike(self, sim, rng):
        act = rng.choice(({"action": "cut"}, {"action": "close", "code": 1001}, {"action": "mute"},
                          {"action": "disconnect", "reason": "warning", "ms": 500},
                          {"action": "disconnect", "reason": "refresh_requested"},
                          {"action": "raw", "text": "no json"}))
        await sim.post("/sim/gateway", act)
