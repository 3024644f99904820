"""
Discord: the gateway is cut, must reconnect and loses sessions, events arrive twice. Some people ask in a busy channel,
some write their first direct message while there is no session, and messages from before the first session must not be
answered. Every send carries a nonce, so it can be repeated, and none may end as unknown.
"""
from platform_campaign import FIRST_USER, Platform, Size
from telegram import trouble

SEND = "create_message"
GUILD, BUSY = "900000000000000001", "general"
CHATTER = {"from": "chatterbox", "channel": BUSY, "text": "chatter"}
TOKEN = "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token"


class Discord(Platform):
    name = "discord"
    rests = 0.08  # after an invalid session, a new one is allowed only after seconds
    sizes = {"short": Size(4_000, 150, 40, 1, 600), "full": Size(50_000, 400, 300, 5, 7200)}

    def adapter(self, address):
        # the clock jumps, so messages may look hours older than they are
        return {"botToken": TOKEN, "apiBase": f"http://{address}/api/v10", "catchUpSeconds": 86400,
                "catchUpMessages": 1000}

    def chat_of(self, item):
        if item.get("where") == BUSY:
            return None
        return int((item.get("to") or "user0").removeprefix("user") or 0)

    def newcomers(self, chats):
        return {chat for chat in range(chats) if chat % 10 == 7}

    def lists(self, chats):
        return {"dm": ["*", *(str(FIRST_USER + chat) for chat in self.newcomers(chats))], "channels": ["*"]}

    async def prepare(self, sim, chats):
        people = [FIRST_USER + chat for chat in range(chats) if self._in_guild(chat) or chat in self.newcomers(chats)]
        for user in people:
            await sim.post("/sim/users", {"id": str(user), "username": f"user{user}", "guild": GUILD})
        await sim.post("/sim/users", {"id": "999", "username": "chatterbox", "guild": GUILD})
        await sim.post("/sim/send", [{"from": people[0], "channel": BUSY, "text": "<@dragoman> too early"}] * 20)

    @staticmethod
    def _in_guild(chat):
        return chat % 10 == 3

    def says(self, rng, chat, text):
        if not self._in_guild(chat):
            return super().says(rng, chat, text)
        return [{"from": FIRST_USER + chat, "channel": BUSY, "text": f"<@dragoman> {text}"},
                *([CHATTER] * rng.choice((0, 1, 2, 8)))]

    async def lose_session(self, sim, rng):
        if rng.random() > 0.15:
            return False
        await sim.post("/sim/gateway", {"action": "expire"})
        await sim.post("/sim/send", [CHATTER] * rng.choice((1, 30, 120)))
        return True

    def always(self):
        return [trouble("duplicate", "MESSAGE_CREATE", 0.03)]

    def weather(self, rng):
        return rng.choice((
            [trouble("cut_before", SEND, 0.01), trouble("cut_after", SEND, 0.01)],
            [trouble("error", SEND, 0.01, status=rng.choice((500, 502, 503))),
             trouble("error_after", SEND, 0.01, status=502)],
            [trouble("flood", SEND, rng.choice((0.1, 0.5)), retry_after=0.3)],
            [trouble("slow", SEND, 0.1, ms=rng.choice((20, 200)))],
            [],
        ))

    async def strike(self, sim, rng):
        act = rng.choice(({"action": "cut"}, {"action": "reconnect"}, {"action": "invalid_session", "resumable": True},
                          {"action": "invalid_session", "resumable": False}, {"action": "close", "code": 4000},
                          {"action": "expire"}))
        await sim.post("/sim/gateway", act)
