"""Telegram: sends are not idempotent, so the adapter finds out whether an unconfirmed one arrived."""
from platform_campaign import Platform, Size, trouble

SEND, POLL = "sendMessage", "getUpdates"


class Telegram(Platform):
    name = "telegram"
    rests = 0.02
    sizes = {"short": Size(8_000, 250, 64, 1, 600, 0.005), "full": Size(100_000, 1000, 1000, 10, 7200, 0.0005)}

    def adapter(self, address):
        # the simulator works on no call after its connection is gone
        return {"botToken": "100000001:dragoman-simulator-token", "apiBase": f"http://{address}",
                "reconcileAfterMs": 50}

    def chat_of(self, item):
        return ((item.get("message") or item).get("chat") or {}).get("id", item.get("chat"))

    def always(self):
        return [trouble("duplicate", "message", 0.03), trouble("reorder", POLL, 0.2)]

    def weather(self, rng):
        return rng.choice((
            [trouble("cut_before", SEND, 0.004), trouble("cut_after", SEND, 0.004)],
            [trouble("error", SEND, 0.004, status=rng.choice((500, 502, 503))),
             trouble("error_after", SEND, 0.004, status=502)],
            [trouble("flood", SEND, rng.choice((0.1, 0.5, 0.9)), retry_after=1)],
            [trouble(rng.choice(("cut_before", "cut_after", "error", "flood")), POLL, 0.2, retry_after=1)],
            [trouble("slow", SEND, 0.1, ms=rng.choice((20, 200)))],
        ))
