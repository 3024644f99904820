"""
Many coding sessions report fast, on all platforms at once, whose limits hold. In the end every call, turn and error is shown, no call was
refused by a limit, and no event is lost.
"""
import asyncio
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass

from daemon import Daemon
from platform_campaign import Simulator
from world import check

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "exchanges"))
from platforms import PLATFORMS  # noqa: E402
from session_cards import WORK, totals  # noqa: E402

EVENTS = 200  # in a request; each session posts one a second
CALLS = (EVENTS - 3) // 2
END_SECONDS = 900  # for what the limits hold back
SHARE = {"discord": 0.4, "slack": 0.4, "telegram": 0.2}  # of the sessions
SESSIONS_OF_A_CHANNEL = {"discord": 5, "slack": 5, "telegram": 2}


@dataclass
class Size:
    sessions: int
    requests: int  # of each
    seconds: int  # at most


SIZES = {"short": Size(5, 4, 300), "full": Size(50, 20, 1800)}


class Chats:
    """A platform with its limits, and channels for sessions."""

    def __init__(self, lab, name, binary):
        self.platform = PLATFORMS[name]
        self.sim = Simulator(self.platform, binary, lab.seed)
        self.channels = []

    async def start(self, sessions):
        await self.sim.start()
        await self.sim.post("/sim/settings", {"limits": True})
        for i in range(-(-sessions // SESSIONS_OF_A_CHANNEL[self.platform.name])):
            wish = {"type": "supergroup", "title": f"Lab {i}", "forum": True, "bot_status": "administrator"} \
                if self.platform.name == "telegram" else {"name": f"lab-{i}"}
            answer = await self.sim.post("/sim/chats" if self.platform.name == "telegram" else "/sim/channels", wish)
            self.channels.append(str(self.platform.made(answer)))

    def adapter(self):
        settings = self.platform.adapter(f"http://{self.sim.address}")
        settings.pop("pace", None)
        return settings

    async def record(self):
        """(all that the bot did, how many calls were refused by limits)."""
        items, after, client = [], 0, self.sim.client()  # the first connection has been idle for long
        try:
            while page := (await client.get(f"/sim/messages?after={after}&limit=1000"))["items"]:
                items += page
                after = page[-1]["seq"]
            counters = (await client.get("/sim/state"))["counters"]
        finally:
            client.close()
        return items, counters["floods" if self.platform.name == "telegram" else "limited"]


class Session:
    def __init__(self, daemon, name, chats, channel):
        self.daemon, self.name, self.chats, self.channel = daemon, name, chats, channel
        self.slowest = 0.0

    async def post(self, client, path, body):
        began = time.monotonic()
        status, _, answer = await client.request("POST", path, body)
        check(status == 200, f"{path} was answered with {status}: {answer}")
        self.slowest = max(self.slowest, time.monotonic() - began)

    def event(self, kind, content="", tool=None, **metadata):
        return {"session_id": self.name, "event_type": kind, "content": content, "metadata": metadata, **({"tool_name": tool} if tool else {})}

    def second(self, n):
        calls = [e for i in range(CALLS) for e in (self.event("tool_call", f"make {i}", "bash", toolCallId=f"{n}-{i}"),
                                                   self.event("tool_result", "done", "bash", toolCallId=f"{n}-{i}"))]
        return [self.event("session_update", model=f"m-{n}"), *calls, self.event("error", "overloaded"),
                *[self.event("notice", "still there") for _ in range(EVENTS - 2 * CALLS - 3)], self.event("turn_end", f"answer {n}")]

    async def report(self, requests):
        client = self.daemon.client()
        try:
            await self.post(client, "/api/webhook/event", self.event("session_start", program="pi", title=self.name))
            await self.post(client, f"/api/sessions/{self.name}/link", {"adapter": self.chats.platform.id, "channel_id": self.channel})
            began = time.monotonic()
            for n in range(requests):
                await asyncio.sleep(max(0.0, began + n - time.monotonic()))
                await self.post(client, "/api/webhook/event", self.second(n))
            took = max(time.monotonic() - began, requests)
            await self.post(client, "/api/webhook/event", self.event("session_end"))
            return EVENTS * requests / took
        finally:
            client.close()


class Load:
    def __init__(self, lab, size, sim_binary):
        self.lab, self.size = lab, SIZES[size]
        self.chats = [Chats(lab, name, sim_binary) for name in SHARE]
        self.line = ""

    async def run(self):
        directory = tempfile.mkdtemp(prefix="dragoman-fault-")
        daemon = None
        try:
            wanted = {c: round(self.size.sessions * SHARE[c.platform.name]) for c in self.chats}
            for chats, sessions in wanted.items():
                await chats.start(sessions)
            daemon = Daemon(self.lab.binary, directory, {
                "http": {"listen": "127.0.0.1:0"}, "agents": {"echo": {"type": "echo"}},
                "adapters": {c.platform.id: c.adapter() for c in self.chats}})
            await daemon.start()
            sessions = [Session(daemon, f"{c.platform.name}-{i}", c, c.channels[i // SESSIONS_OF_A_CHANNEL[c.platform.name]])
                        for c, count in wanted.items() for i in range(count)]
            await self._load(daemon, sessions)
            shutil.rmtree(directory, ignore_errors=True)
            return self.line
        except BaseException:
            self.lab.kept.append(("sessions: many at once", directory))
            raise
        finally:
            if daemon:
                await daemon.kill()
                daemon.control.close()
            for chats in self.chats:
                await chats.sim.stop()

    async def _load(self, daemon, sessions):
        rates = await asyncio.gather(*(s.report(self.size.requests) for s in sessions))
        await self._done(daemon)
        actions, faults = 0, []
        for chats in self.chats:
            mine = sum(s.chats is chats for s in sessions)
            items, refused = await chats.record()
            reported = {"calls": CALLS, "turns": 1, "errors": 1}
            wanted = {**{what: n * mine * self.size.requests for what, n in reported.items()}, "ended": mine}
            shown = totals(items, wanted)
            actions += len(items)
            if shown != wanted:
                faults.append(f"{chats.platform.name} shows {shown} instead of {wanted}")
            if refused:
                faults.append(f"{chats.platform.name} refused {refused} calls by its limits")
        daemon.signal(signal.SIGTERM)
        check(await daemon.ended(60) == 0, f"the daemon did not stop: {daemon.log_tail()}")
        store = sqlite3.connect(f"file:{daemon.state}/main.db?mode=ro", uri=True, timeout=20)
        stored = store.execute("SELECT count(*) FROM journal WHERE type GLOB 'session.[a-z_]*' AND type NOT GLOB 'session.*.*'").fetchone()[0]
        store.close()
        reported = len(sessions) * (EVENTS * self.size.requests + 2)
        if stored != reported:
            faults.append(f"{reported} events were answered, {stored} are stored")
        self.line = (f"sessions at once: {len(sessions)}, events {reported}, each session {min(rates):.0f} to {max(rates):.0f} a second, "
                     f"slowest answer {max(s.slowest for s in sessions):.2f} s, stored {stored}, "
                     f"messages and edits on three platforms {actions}, refused by limits 0")
        check(not faults, "\n".join(faults))

    async def _done(self, daemon):
        deadline = time.monotonic() + END_SECONDS
        while work := WORK.findall(await asyncio.to_thread(metrics, daemon)):
            check(time.monotonic() < deadline, f"the daemon is not done: {work}")
            await asyncio.sleep(0.1)


def metrics(daemon):
    request = urllib.request.Request(f"http://{daemon.address}/metrics", headers={"x-api-key": daemon.key})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()
