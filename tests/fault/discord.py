"""
Discord: the gateway is cut, must reconnect and loses sessions, events arrive twice. Every send carries a nonce, so it
can be repeated, and none may end as unknown.
"""
from busy_channel import BusyChannel
from platform_campaign import FIRST_USER, trouble

GUILD = "900000000000000001"
TOKEN = "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token"


class Discord(BusyChannel):
    name = "discord"
    send = "create_message"

    def adapter(self, address):
        # the clock jumps, so messages may look hours older than they are
        return {"botToken": TOKEN, "apiBase": f"http://{address}/api/v10", "catchUpSeconds": 86400,
                "catchUpMessages": 1000}

    def lists(self, chats):
        return {"dm": ["*", *(str(FIRST_USER + chat) for chat in self.newcomers(chats))], "channels": ["*"]}

    async def prepare(self, sim, chats):
        people = [FIRST_USER + chat for chat in range(chats) if self.in_channel(chat) or chat in self.newcomers(chats)]
        for user in people:
            await sim.post("/sim/users", {"id": str(user), "username": f"user{user}", "guild": GUILD})
        await sim.post("/sim/users", {"id": "999", "username": "chatterbox", "guild": GUILD})
        await self.say_too_early(sim, people[0])

    def always(self):
        return [trouble("duplicate", "MESSAGE_CREATE", 0.03)]

    def weather(self, rng):
        return rng.choice(self.send_faults(rng, retry_after=0.3))

    async def strike(self, sim, rng):
        act = rng.choice(({"action": "cut"}, {"action": "reconnect"}, {"action": "invalid_session", "resumable": True},
                          {"action": "invalid_session", "resumable": False}, {"action": "close", "code": 4000},
                          {"action": "expire"}))
        await sim.post("/sim/gateway", act)
