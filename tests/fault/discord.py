"""
Discord: the gateway is cut, must reconnect and loses sessions, events arrive twice. Every send carries a nonce, so it
can be repeated, and none may end as unknown.
"""
from platform_campaign import Platform, Size
from telegram import trouble

SEND = "create_message"
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
        return int((item.get("to") or "user0").removeprefix("user") or 0)

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
