"""
The platform campaign: people write to a bot on the simulator, and the daemon is killed at random instants and at every
fault point. Meanwhile the platform misbehaves (telegram.py, discord.py, slack.py): connections are cut, rate limits and errors
come in storms, events arrive twice or out of order, the clock jumps.

The simulator knows every message that the bot sent. The text of a message is a mark (`c17-4` is the fourth of chat 17)
and the agent is an echo, so an answer names the message it answers.
"""
import asyncio
import json
import os
import random
import re
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field

from daemon import Daemon
from http1 import Client
from kill_campaign import POINT_SECONDS, fault_points
from world import LIMITS, check

HOUR_MS = 3600 * 1000
QUIET_SECONDS = 60  # without progress before waiting ends
SETTLE_SECONDS = 660  # the same at the end, when a send may be looked for: longer than limits.reconcileSeconds
BACKLOG = 3000  # unanswered messages at which people pause
FIRST_USER = 1000
MARK = re.compile(r"c(\d+)-(\d+)")


@dataclass
class Size:
    messages: int
    chats: int
    random_kills: int
    passes: int  # kills at each fault point
    seconds: int  # at most
    unknown: float = 0  # share of the messages, at most


# ---- the platform ----


def trouble(kind, method, probability, **more):
    """A fault, as arguments of Simulator.fault."""
    return {"kind": kind, "method": method, "probability": probability, **more}


class Platform:
    """What differs between platforms."""

    name = None
    sizes = {}
    rests = 0.0  # share of runs long enough to recover from the faults before

    def adapter(self, address):
        """Settings of the adapter, besides those all have."""
        raise NotImplementedError

    def chat_of(self, item):
        """The user in whose chat the bot wrote."""
        raise NotImplementedError

    def always(self):
        """Permanent faults, as arguments of Simulator.fault."""
        return []

    def weather(self, rng):
        """Faults for a while."""
        raise NotImplementedError

    async def strike(self, sim, rng):
        """A single disturbance, now and then."""

    def newcomers(self, chats):
        """Chats whose first message comes while there is no session."""
        return set()

    def lists(self, chats):
        """Settings that name people."""
        return {}

    async def prepare(self, sim, chats):
        """Before the first start of the daemon."""

    def says(self, rng, chat, text):
        """The messages of one person, perhaps among those of others."""
        return [{"from": FIRST_USER + chat, "text": text}]

    async def lose_session(self, sim, rng):
        """After a kill. True: the session is lost, and people write meanwhile."""
        return False


class Simulator:
    """Is never killed, so its record is complete."""

    def __init__(self, platform, binary, seed):
        self.platform, self.binary, self.seed = platform, binary, seed
        self.process = self.address = self.control = None

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            self.binary, self.platform.name, "--port", "0", "--quiet", "--no-limits", "--seed", str(self.seed or 1),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
        line = await asyncio.wait_for(self.process.stdout.readline(), 20)
        self.address = line.decode().strip().removeprefix("http://")
        check(":" in self.address, f"the simulator says {line!r} instead of its address")
        self.control = self.client()
        # platforms forget nothing, and a busy channel has many messages
        await self.post("/sim/settings", {"record_calls": False, "keep_messages": 100_000})

    async def stop(self):
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def client(self):
        return Client(self.address, "none", timeout=30)

    async def post(self, path, body):
        status, _, answer = await self.control.request("POST", path, body)
        check(status == 200, f"the simulator answers {path} with {status}: {answer}")
        return answer

    async def calm(self):
        await self.control.request("DELETE", "/sim/faults")

    async def fault(self, kind, method=None, probability=1.0, **more):
        body = {"kind": kind, "probability": probability, **more}
        if method:
            body["method"] = method
        await self.post("/sim/faults", body)


class People:
    """Write at a steady pace, sometimes several messages at once."""

    def __init__(self, sim, rng, size):
        self.sim, self.rng, self.size = sim, rng, size
        self.written = [0] * size.chats  # per chat
        self.newcomers = sim.platform.newcomers(size.chats)  # who have not written yet
        self.count = 0
        self.allowed = 0  # messages due by now

    def _say(self, chat, batch):
        self.written[chat] += 1
        self.count += 1
        batch += self.sim.platform.says(self.rng, chat, f"c{chat}-{self.written[chat]}")

    def _batch(self, n):
        batch = []
        while n > 0:
            chat = self.rng.randrange(self.size.chats)
            if chat in self.newcomers:
                continue
            for _ in range(min(n, self.rng.choice((1, 1, 1, 2, 4)))):
                self._say(chat, batch)
                n -= 1
        return batch

    async def write_unheard(self):
        """While there is no session: a few messages, among them first ones."""
        batch = self._batch(self.rng.choice((1, 3, 8))) if self.allowed > self.count else []
        for chat in sorted(self.newcomers)[:self.rng.choice((0, 1, 1, 2))]:
            self.newcomers.remove(chat)
            self._say(chat, batch)
        if batch:
            await self.sim.post("/sim/send", batch)

    async def write_one(self):
        await self.sim.post("/sim/send", self._batch(1))

    async def write(self, seconds, answers):
        """For `seconds`: faster when behind the plan, slower when answers are missing."""
        ends = time.monotonic() + seconds
        while True:
            left = ends - time.monotonic()
            due = self.allowed - self.count
            if due > 0 and self.count - answers.count < BACKLOG:
                n = due if left <= 0.02 else max(1, int(due * 0.02 / left))
                await self.sim.post("/sim/send", self._batch(min(n, 500)))
            if left <= 0:
                return
            await asyncio.sleep(min(0.02, left))


class Answers:
    """What the bot sent, in order, according to the simulator."""

    def __init__(self, sim):
        self.sim = sim
        self.seen = {}  # (chat, number) -> how often
        self.last = {}  # chat -> the number answered last
        self.count = 0
        self.disorder, self.problems = [], []

    def _take(self, item):
        chat = self.sim.platform.chat_of(item)
        marks = MARK.findall((item.get("message") or item).get("text") or item.get("text") or "")
        if not marks:
            self.problems.append(f"the bot says {json.dumps(item)[:200]}")
        for mark in marks:
            number = int(mark[1])
            key = (int(mark[0]), number)
            self.seen[key] = self.seen.get(key, 0) + 1
            if chat is not None and chat != FIRST_USER + key[0]:
                self.problems.append(f"c{key[0]}-{number} is answered in chat {chat}")
            if self.seen[key] == 1:
                self.count += 1
                if number <= self.last.get(key[0], 0):
                    self.disorder.append(f"c{key[0]}-{number} after c{key[0]}-{self.last[key[0]]}")
            self.last[key[0]] = max(self.last.get(key[0], 0), number)

    async def collect(self):
        client, after = self.sim.client(), 0
        while True:
            page = await client.get(f"/sim/messages?after={after}&wait=5000&kind=message&limit=1000")
            if page["missed"]:
                self.problems.append("the simulator dropped messages")
            for item in page["items"]:
                self._take(item)
            after = page["last"]


# ---- faults ----


class Weather:
    """Changes the faults every second or so. Those that leave sends unconfirmed are rare: each may be unknown."""

    CALM = 0.4  # share of the time
    CLOCK = 0.15  # share of the rest

    def __init__(self, lab, sim, daemon):
        self.sim, self.daemon = sim, daemon
        self.rng = random.Random(f"{lab.seed}/weather")
        self.jumps = 0
        self.fired = {}

    async def _add(self, faults):
        for fault in faults:
            await self.sim.fault(**fault)

    async def _count(self):
        """Counts how often the faults fired."""
        shown = await self.sim.control.get("/sim/faults")
        for row in shown.get("faults", []):
            what = row["kind"] + (f" {row['method']}" if row.get("method") else "")
            self.fired[what] = self.fired.get(what, 0) + row.get("fired", 0)

    async def change(self):
        await self._count()
        await self.sim.calm()
        await self._add(self.sim.platform.always())
        if self.rng.random() < self.CALM:
            return
        if self.rng.random() < self.CLOCK:
            self.jumps += 1
            self.daemon.control.set(clock_offset_ms=self.rng.choice((-11, -5, 0, 5, 11)) * HOUR_MS)
        else:
            await self._add(self.sim.platform.weather(self.rng))
            await self.sim.platform.strike(self.sim, self.rng)

    async def clear(self):
        await self._count()
        await self.sim.calm()
        self.daemon.control.set()


# ---- results ----


@dataclass
class Tally:
    lost: list = field(default_factory=list)
    twice: list = field(default_factory=list)
    disorder: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    unknown: list = field(default_factory=list)
    arrived: int = 0
    causes: dict = field(default_factory=dict)  # cause of unknown -> (how many, in how many runs)


async def dead_letters(daemon):
    client, letters, cursor = daemon.client(), [], ""
    while True:
        page = await client.get(f"/api/v2/dead-letters?limit=100{cursor}")
        letters += page["items"]
        if not page["meta"]["hasMore"]:
            return letters
        cursor = f"&cursor={page['meta']['cursor']}"


def looked_for(daemon):
    """From the log: how sends without an answer were decided, why not, and the questions that took."""
    counts, reasons, probes = {}, {}, 0
    with open(daemon.log_path, encoding="utf-8", errors="replace") as f:
        for line in f:
            found = re.search(r'looked for a message .* probes=(\d+) result="it ([a-z]+ [a-z]+)', line)
            if found:
                probes += int(found.group(1))
                counts[found.group(2)] = counts.get(found.group(2), 0) + 1
                if found.group(2) == "may have":
                    why = re.sub(r"\d+", "N", line.split("may have arrived: ")[-1].strip().strip('"'))
                    reasons[why] = reasons.get(why, 0) + 1
    return counts, reasons, probes


def failed_in(daemon):
    """From the log: delivery -> the run in which it failed first, and run -> its fault."""
    runs, faults, run = {}, {}, 0
    with open(daemon.log_path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("--- run "):
                run += 1
                faults[run] = line.split("fault ")[1].strip()
            elif "delivery given up" in line:
                found = re.search(r"delivery=(\d+)", line)
                if found:
                    runs.setdefault(f"dlv-{found.group(1)}", run)
    return runs, faults


def cause_of(delivery, run, faults):
    """A kill shows in the run after it."""
    why = delivery["error"]["message"]
    if "the process ended during the send" in why:
        point = faults.get(run - 1, "none")
        return "kill at a random instant" if point == "none" else f"kill at {point.split('@')[0]}"
    return "error 5xx from the server" if "answered 5" in why or "says:" in why else "connection cut"


class Campaign:
    def __init__(self, lab, platform, size, sim_binary):
        self.lab, self.platform, self.size, self.sim_binary = lab, platform, size, sim_binary
        self.rng = random.Random(f"{lab.seed}/{platform.name}")
        self.plan = [(f"{point}@{self.rng.choice((1, 2, 5, 17, 40))}", 0.4)
                     for point in fault_points() for _ in range(size.passes)]
        for _ in range(size.random_kills):
            self.plan.append((None, self._run_seconds()))
        self.rng.shuffle(self.plan)
        self.random_kills = self.point_kills = 0
        self.unreached = []
        self.tally = Tally()
        self.line = None  # the result

    def _run_seconds(self):
        """Until the kill; a fifth during recovery."""
        if self.rng.random() < self.platform.rests:
            return self.rng.uniform(5, 9)
        return self.rng.uniform(0, 0.06) if self.rng.random() < 0.2 else self.rng.uniform(0.06, 1.0)

    def _config(self, sim):
        adapter = {"type": self.platform.name, "dm": "everyone", "agent": "echo", "rateLimit": {"turns": 0},
                   "debounceMs": 0, "pace": {"perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0},
                   **self.platform.adapter(sim.address), **self.platform.lists(self.size.chats)}
        return {"http": {"listen": "127.0.0.1:0"}, "agents": {"echo": {"type": "echo"}}, "limits": dict(LIMITS),
                "adapters": {"bot": adapter}}

    async def run(self):
        self.dir = tempfile.mkdtemp(prefix="dragoman-fault-")
        self.sim = Simulator(self.platform, self.sim_binary, self.lab.seed)
        collector, good = None, False
        try:
            await self.sim.start()
            self.daemon = Daemon(self.lab.binary, self.dir, self._config(self.sim))
            self.people = People(self.sim, self.rng, self.size)
            self.answers = Answers(self.sim)
            self.weather = Weather(self.lab, self.sim, self.daemon)
            collector = asyncio.ensure_future(self.answers.collect())
            await self._first_messages()
            await self._run_plan()
            text = await self._settle(collector)
            good = True
            return text
        finally:
            if collector:
                collector.cancel()
            if hasattr(self, "daemon"):
                await self.daemon.kill()
                self.daemon.control.close()
            await self.sim.stop()
            if good:
                shutil.rmtree(self.dir, ignore_errors=True)
            else:
                self.lab.kept.append((self.platform.name, self.dir))

    # ---- runs ----

    async def _first_messages(self):
        """Everyone but newcomers writes once without faults: platforms do not catch up chats they have never seen."""
        await self.platform.prepare(self.sim, self.size.chats)
        await self.daemon.start()
        await self._connected()
        known = [chat for chat in range(self.size.chats) if chat not in self.people.newcomers]
        first = [m for chat in known for m in self.platform.says(self.rng, chat, f"c{chat}-1")]
        for i in range(0, len(first), 500):
            await self.sim.post("/sim/send", first[i:i + 500])
        for chat in known:
            self.people.written[chat] = 1
        self.people.count = self.people.allowed = len(known)
        ends = time.monotonic() + QUIET_SECONDS
        while self.answers.count < len(known) and time.monotonic() < ends:
            await asyncio.sleep(0.05)
        check(self.answers.count >= len(known),
              f"without faults only {self.answers.count} of {len(known)} are answered")
        await self.daemon.kill()

    async def _connected(self):
        client, ends = self.daemon.client(), time.monotonic() + QUIET_SECONDS
        while time.monotonic() < ends:
            instances = (await client.get("/api/v2/instances"))["items"]
            if any(i["name"] == "bot" and i["state"] == "connected" for i in instances):
                return
            await asyncio.sleep(0.05)
        check(False, f"the bot is not connected: {instances}")

    async def _run_to_point(self, fault, seconds):
        await self.daemon.spawn(fault)
        watch = asyncio.ensure_future(self.daemon.ready())
        ends = time.monotonic() + POINT_SECONDS
        await self.people.write(seconds, self.answers)
        while time.monotonic() < ends and self.daemon.alive:
            if self.people.count >= self.size.messages:
                ends = min(ends, time.monotonic() + 0.5)
            self.people.allowed = min(self.size.messages, self.people.allowed + 2)
            await self.people.write(0.05, self.answers)  # the point is reached only by messages
        watch.cancel()
        if await self.daemon.ended(0.5) == -signal.SIGKILL:
            self.point_kills += 1
            return
        check(self.daemon.alive, f"with fault {fault} the daemon exited: {self.daemon.log_tail()}")
        await self.daemon.kill()
        self.unreached.append(fault)

    async def _run_for(self, seconds):
        await self.daemon.spawn()
        await self.people.write(seconds, self.answers)
        check(self.daemon.alive, f"the daemon exited: {self.daemon.log_tail()}")
        await self.daemon.kill()
        self.random_kills += 1

    async def _run_plan(self):
        next_weather = next_report = 0
        for number, (fault, seconds) in enumerate(self.plan, 1):
            self.people.allowed = max(self.people.allowed, self.size.messages * number // len(self.plan))
            if time.monotonic() > next_weather:
                await self.weather.change()
                next_weather = time.monotonic() + self.rng.uniform(0.5, 2.0)
            await (self._run_to_point(fault, seconds) if fault else self._run_for(seconds))
            if await self.platform.lose_session(self.sim, self.rng):
                await self.people.write_unheard()
            if time.monotonic() > next_report or number == len(self.plan):
                next_report = time.monotonic() + 15
                self.lab.say(f"      {number} of {len(self.plan)} kills, {self.people.count} messages written, "
                             f"{self.answers.count} answered")

    # ---- the audit ----

    def _open(self, known, written):
        return [(chat, n) for chat, last in enumerate(written) for n in range(1, last + 1)
                if (chat, n) not in self.answers.seen and (chat, n) not in known]

    async def _decide(self, collector, written, lively):
        """Waits until each of these is answered or a dead letter, or nothing has changed for long: some are lost."""
        known, least, changed, next_one = {}, None, time.monotonic(), time.monotonic() + 2
        while time.monotonic() - changed < SETTLE_SECONDS:
            check(not collector.done(), "the collector of answers ended")
            known = self._marks(await dead_letters(self.daemon))
            missing = len(self._open(known, written))
            if not missing:
                return
            if least is None or missing < least:
                least, changed = missing, time.monotonic()
            if lively and time.monotonic() > next_one:  # life goes on: somebody writes now and then
                await self.people.write_one()
                next_one = time.monotonic() + 2
            await asyncio.sleep(0.2)

    async def _settle(self, collector):
        await self.weather.clear()
        await self.daemon.start()
        self.people.allowed = self.size.messages
        while self.people.count < self.size.messages:
            await self.people.write(1, self.answers)
        await self._decide(collector, list(self.people.written), True)
        await self._decide(collector, self.people.written, False)
        await asyncio.sleep(1)  # for a second answer, which would be wrong
        known = self._marks(await dead_letters(self.daemon))
        return await self._judge(known)

    @staticmethod
    def _marks(letters):
        """(chat, number) -> the dead letter."""
        known = {}
        for letter in letters:
            delivery = letter.get("delivery")
            for mark in MARK.findall((delivery or {}).get("payload", {}).get("text") or ""):
                known[(int(mark[0]), int(mark[1]))] = delivery
        return known

    async def _judge(self, known):
        tally, seen = self.tally, self.answers.seen
        runs, faults = failed_in(self.daemon)
        counted = {}
        for chat, written in enumerate(self.people.written):
            for n in range(1, written + 1):
                times, letter = seen.get((chat, n), 0), known.get((chat, n))
                if times > 1:
                    tally.twice.append(f"c{chat}-{n}: {times} times")
                if letter and letter["state"] == "unknown":
                    tally.unknown.append((chat, n))
                    tally.arrived += times > 0
                    run = runs.get(letter["id"], 0)
                    row = counted.setdefault(cause_of(letter, run, faults), [0, set()])
                    row[0] += 1
                    row[1].add(run)
                elif times == 0:
                    tally.lost.append(f"c{chat}-{n}: " + (f"{letter['id']} is {letter['state']}" if letter else
                                                          "no answer, no dead letter"))
        tally.causes = {cause: (n, len(runs)) for cause, (n, runs) in sorted(counted.items())}
        tally.disorder += self.answers.disorder
        tally.problems += self.answers.problems
        invalid = (await self.sim.control.get("/sim/calls?valid=false&limit=3"))["items"]
        tally.problems += [f"not a valid call: {json.dumps(call)[:300]}" for call in invalid]
        return self._result()

    def _result(self):
        tally, kills = self.tally, self.random_kills + self.point_kills + len(self.unreached)
        percent = 100 * len(tally.unknown) / max(1, self.people.count)
        self.line = (f"{self.platform.name}: messages {self.people.count}, chats {self.size.chats}, kills {kills}, "
                     f"lost {len(tally.lost)}, answered twice {len(tally.twice)}, out of order "
                     f"{len(tally.disorder)}, unknown {len(tally.unknown)} ({percent:.2f} % ; {tally.arrived} of them "
                     f"had arrived)")
        bad = {"lost": tally.lost, "answered twice": tally.twice, "out of order": tally.disorder,
               "problems": tally.problems}
        faults = [f"{what}: {len(items)}: {'; '.join(items[:5])}" for what, items in bad.items() if items]
        if len(tally.unknown) > self.size.unknown * self.people.count:
            faults.append(f"unknown: {len(tally.unknown)}, at most {100 * self.size.unknown:g} % may be")
        check(not faults, "\n".join(faults))
        looked, reasons, probes = looked_for(self.daemon)
        return (f"{self.random_kills} random kills, {self.point_kills} at fault points"
                + (f", {len(self.unreached)} before {' '.join(self.unreached)}" if self.unreached else "") + "; "
                + ", ".join(f"{what} {n}" for what, n in sorted(self.weather.fired.items()) if n)
                + f", clock jumps {self.weather.jumps}\n      "
                + (f"sends without an answer: {looked.get('had arrived', 0)} had arrived, "
                   f"{looked.get('certainly did', 0)} certainly not (sent again), {looked.get('may have', 0)} not "
                   f"decided {sorted(reasons.items()) if reasons else ''}; questions {probes}\n      " if looked else "") + "unknown by cause: "
                + ("; ".join(f"{cause} {n} (in {runs} runs)" for cause, (n, runs) in tally.causes.items()) or "none"))
