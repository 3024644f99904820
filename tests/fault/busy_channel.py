"""
Platforms with channels: some people ask in a busy channel, some write their first direct message while there is no
session, and what was missed has to be read back from the channels.
"""
from platform_campaign import FIRST_USER, Platform, Size, trouble

BUSY = "general"
CHATTER = {"from": "chatterbox", "channel": BUSY, "text": "chatter"}


class BusyChannel(Platform):
    send = None  # the method that sends a message
    rests = 0.08  # after a lost session, a new one may be allowed only after seconds
    sizes = {"short": Size(4_000, 150, 40, 1, 600), "full": Size(50_000, 400, 300, 5, 7200)}

    def chat_of(self, item):
        if item.get("where") == BUSY:
            return None
        return int((item.get("to") or "user0").removeprefix("user") or 0)

    def newcomers(self, chats):
        return {chat for chat in range(chats) if chat % 10 == 7}

    @staticmethod
    def in_channel(chat):
        return chat % 10 == 3

    @staticmethod
    async def say_too_early(sim, user):
        """Messages from before the first session, which must not be answered."""
        await sim.post("/sim/send", [{"from": user, "channel": BUSY, "text": "<@dragoman> too early"}] * 20)

    def says(self, rng, chat, text):
        if not self.in_channel(chat):
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

    def send_faults(self, rng, retry_after):
        """Sets of faults of sends, for weather(); one is empty."""
        return [
            [trouble("cut_before", self.send, 0.01), trouble("cut_after", self.send, 0.01)],
            [trouble("error", self.send, 0.01, status=rng.choice((500, 502, 503))),
             trouble("error_after", self.send, 0.01, status=502)],
            [trouble("flood", self.send, rng.choice((0.1, 0.5)), retry_after=retry_after)],
            [trouble("slow", self.send, 0.1, ms=rng.choice((20, 200)))],
            [],
        ]
