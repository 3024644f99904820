"""
The schedule campaign: messages and turns that are due while the daemon is killed at random instants and at every step of a tick.

The clock of the daemon is ours. What is due comes in bursts of a second, five minutes apart; while the daemon is down, the clock jumps
to shortly before the next burst, or to long after it, which makes it late. Now and then it is set back.

The text of everything scheduled is a mark (`mark-17.`), so whatever arrives names what caused it. Witnesses are the receiver of an
adapter with a callback, and for one without the journal, which is what its clients read.
"""
import asyncio
import collections
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field

from daemon import Daemon
from http1 import Lost
from kill_campaign import POINT_SECONDS, SCHEDULE_POINTS, fault_points, unreliable
from receiver import Receiver
from world import LIMITS, check

MARK = re.compile(r"mark-(\d+)\.")
EVERY_MS = 300_000  # between two bursts, and between the ticks of a periodic schedule
BURST_MS = 800
LATE_MS = 60_000  # what is later says so
SLACK_MS = 5000  # between a claim and what follows
HOUR_MS = 3600 * 1000
FIRST_MS = 1800 * 1000  # time to schedule everything before the first is due
QUIET_SECONDS = 60  # without progress before waiting ends
CHATS = 40
POSTERS = 8
PERIODIC = 8  # half of them with each policy
# points that need more than a text to send: a command in a sandbox, event files
ELSEWHERE = ("schedule.check", "schedule.file")


@dataclass
class Size:
    ticks: int
    random_kills: int
    passes: int  # kills at each fault point
    seconds: int  # at most


SIZES = {"short": Size(500, 12, 1, 240), "full": Size(10_600, 160, 4, 5400)}


class Clock:
    """The wall clock of the daemon."""

    def __init__(self, control):
        self.control, self.offset = control, 0
        self.jumps = self.set_backs = 0

    def now(self):
        return int(time.time() * 1000) + self.offset

    def jump_to(self, ms):
        self.offset += ms - self.now()
        self.jumps += 1
        self.set_back(0)

    def set_back(self, ms):
        """By this much, until it is called again."""
        self.set_backs += ms > 0
        self.control.set(clock_offset_ms=self.offset - ms)


@dataclass
class Tally:
    lost: list = field(default_factory=list)
    twice: list = field(default_factory=list)
    lateness: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    ticks: int = 0
    late: int = 0


def iso(ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"


class Campaign:
    def __init__(self, lab, size):
        self.lab, self.size = lab, SIZES[size]
        self.rng = random.Random(f"{lab.seed}/schedule")
        self.points = [p for p in fault_points(of=SCHEDULE_POINTS) if not p.startswith(ELSEWHERE)]
        self.plan = [f"{p}@{1 if n == 0 else self.rng.randint(2, 12)}" for p in self.points for n in range(self.size.passes)]
        self.plan += [None] * self.size.random_kills
        self.rng.shuffle(self.plan)
        self.bursts = len(self.plan) + len(self.plan) // 8  # some are rare, and need more than one
        self.burst = 0  # the next one
        self.kills = 0
        self.unreached = []
        self.due = {}  # mark -> due time, of what is due once
        self.actions = {}  # mark -> "message" or "turn"
        self.periodic = {}  # mark -> (policy, id)
        self.line = ""

    # ---- what is scheduled ----

    def _begins(self, burst):
        return self.first + burst * EVERY_MS

    def _once(self, mark, at):
        kind = self.rng.choice(("journal", "journal", "idem", "idem", "turn"))
        self.due[mark], self.actions[mark] = at, "turn" if kind == "turn" else "message"
        return {"at": iso(at), "text": f"mark-{mark}.", "instanceId": "idem" if kind == "idem" else "journal",
                "to": f"c{mark % CHATS}", "action": self.actions[mark], "maxAgeSeconds": 0}

    def _bodies(self):
        self.first = ((self.clock.now() + FIRST_MS) // EVERY_MS + 1) * EVERY_MS
        size = max(4, self.size.ticks // self.bursts - PERIODIC)
        bodies = [(burst * size + i, self._once(burst * size + i, self._begins(burst) + i * BURST_MS // size))
                  for burst in range(self.bursts) for i in range(size)]
        for i in range(PERIODIC):
            mark, policy = len(bodies), ("all", "once")[i % 2]
            self.periodic[mark] = (policy, None)
            bodies.append((mark, {"cron": "*/5 * * * *", "text": f"mark-{mark}.", "missed": policy, "timezone": "UTC",
                                  "instanceId": "idem" if i % 4 < 2 else "journal", "to": f"c{i}", "maxAgeSeconds": 0}))
        return bodies

    async def _post(self, mark, body):
        while True:
            await self.daemon.up.wait()
            client = self.daemon.client()
            try:
                status, _, answer = await client.request("POST", "/api/v2/schedules", body, key=f"s-{self.lab.seed}-{mark}")
            except Lost:
                await asyncio.sleep(0.01)
                continue
            finally:
                client.close()
            if status in (200, 201):
                if mark in self.periodic:
                    self.periodic[mark] = (self.periodic[mark][0], answer["data"]["id"])
                return
            check(status in (429, 500, 503), f"scheduling {body} was answered with {status}: {answer}")
            await asyncio.sleep(0.02)

    async def _schedule_all(self):
        """Killed a few times meanwhile: the keys make each request count once."""
        waiting = self._bodies()
        waiting.reverse()

        async def poster():
            while waiting:
                await self._post(*waiting.pop())
        posters = asyncio.gather(*(poster() for _ in range(POSTERS)))
        try:
            for _ in range(2):
                await self.daemon.start()
                await asyncio.wait([posters], timeout=self.rng.uniform(0.1, 0.5))
                await self.daemon.kill()
                self.kills += 1
            await self.daemon.start()
            await posters
        finally:
            posters.cancel()
        await self.daemon.kill()
        check(self.clock.now() < min(self.due.values()), "it took too long to schedule everything")

    # ---- time passes ----

    async def _nudge(self):
        """Something new is scheduled, for the day after everything: so it looks at the clock."""
        client = self.daemon.client()
        try:
            await client.request("POST", "/api/v2/schedules", {"at": "2099-01-01T00:00:00Z", "text": "never", "instanceId": "journal",
                                                               "to": "c0"})
        except Lost:
            pass
        finally:
            client.close()

    async def _run_to_point(self, fault):
        await self.daemon.spawn(fault)
        ready = await self.daemon.ready()
        deadline = time.monotonic() + POINT_SECONDS
        while ready and time.monotonic() < deadline:
            code = await self.daemon.ended(0.5)
            if code is not None:
                check(code == -signal.SIGKILL, f"with fault {fault} the daemon exited with {code}: {self.daemon.log_tail()}")
                break
            if self.clock.now() > self._begins(self.burst - 1) + 2 * BURST_MS and self.burst < self.bursts:
                self.clock.jump_to(self._begins(self.burst))
                self.burst += 1
                await self._nudge()
        else:
            if ready:
                self.unreached.append(fault)

    async def _run_for_a_while(self):
        back = self.rng.choice((1, 24)) * HOUR_MS if self.rng.random() < 0.1 else 0
        if back:
            self.clock.set_back(back)
        await self.daemon.spawn()
        if self.rng.random() < 0.2:
            await asyncio.sleep(self.rng.uniform(0, 0.1))  # a kill during recovery
        else:
            check(await self.daemon.ready(), f"the daemon exited: {self.daemon.log_tail()}")
            await asyncio.sleep(self.rng.uniform(0, 2 * BURST_MS / 1000))
        check(self.daemon.alive, f"the daemon exited: {self.daemon.log_tail()}")
        if back:
            self.clock.set_back(0)

    async def _run_once(self, fault):
        if self.burst < self.bursts:
            late = self.rng.randint(LATE_MS + 1000, 3 * LATE_MS) if self.rng.random() < 0.3 else -100
            self.clock.jump_to(self._begins(self.burst) + late)
            self.burst += 1
        await (self._run_to_point(fault) if fault else self._run_for_a_while())
        await self.daemon.kill()
        self.kills += 1

    # ---- the run ----

    async def run(self):
        directory = tempfile.mkdtemp(prefix="dragoman-fault-")
        self.receiver = Receiver()
        await self.receiver.start()
        self.receiver.idem.plan = unreliable(f"{self.lab.seed}/schedule", 0.05)
        self.daemon = Daemon(self.lab.binary, directory, {
            "http": {"listen": "127.0.0.1:0"}, "limits": dict(LIMITS), "agents": {"echo": {"type": "echo"}},
            "adapters": {"journal": {"type": "api"},
                         "idem": {"type": "api", "callbackUrl": self.receiver.base + "/idem", "callbackIdempotent": True}}})
        self.clock = Clock(self.daemon.control)
        try:
            text = await self._campaign()
            shutil.rmtree(directory, ignore_errors=True)
            return text
        except BaseException:
            self.lab.kept.append(("schedule", directory))
            raise
        finally:
            await self.daemon.kill()
            self.daemon.control.close()
            self.receiver.stop()

    async def _campaign(self):
        await self._schedule_all()
        for number, fault in enumerate(self.plan, 1):
            await self._run_once(fault)
            if number % 25 == 0 or number == len(self.plan):
                self.lab.say(f"      {number} of {len(self.plan)} kills, {self.burst} of {self.bursts} bursts")
        # between two bursts, so that it is clear which times of the periodic ones have passed
        ended = self._begins(self.bursts - 1) + EVERY_MS // 3
        self.clock.jump_to(ended)
        await self.daemon.start()
        await self._until_settled()
        await self._cancel_periodic()
        check(self.clock.now() < ended + EVERY_MS // 2, "it took too long to settle")
        self.daemon.signal(signal.SIGTERM)
        check(await self.daemon.ended(60) == 0, f"the daemon did not stop: {self.daemon.log_tail()}")
        return self._audit(ended)

    def _store(self):
        return sqlite3.connect(f"file:{self.daemon.state}/main.db?mode=ro", uri=True, timeout=20)

    async def _until_settled(self):
        """Nothing is due, pending or under way; or nothing has changed for long, and the audit says what is missing."""
        least, changed = None, time.monotonic()
        while time.monotonic() - changed < QUIET_SECONDS:
            store = self._store()
            left = sum(n for n, in store.execute(
                "SELECT count(*) FROM ticks WHERE state IN ('pending', 'running') UNION ALL "
                f"SELECT count(*) FROM schedules WHERE state = 'active' AND next_ms <= {self.clock.now()} UNION ALL "
                "SELECT count(*) FROM turns WHERE state IN ('queued', 'running') UNION ALL "
                "SELECT count(*) FROM deliveries WHERE state IN ('queued', 'sending')"))
            store.close()
            if not left:
                return
            if least is None or left < least:
                least, changed = left, time.monotonic()
            await asyncio.sleep(0.1)

    async def _cancel_periodic(self):
        client = self.daemon.client()
        for mark, (_, number) in self.periodic.items():
            status, _, answer = await client.request("DELETE", f"/api/v2/schedules/{number}")
            check(status == 200, f"cancelling {number} was answered with {status}: {answer}")
        client.close()

    # ---- the audit ----

    def _audit(self, ended):
        store, tally = self._store(), Tally()
        ticks = collections.defaultdict(list)  # mark -> rows
        for row in store.execute("SELECT t.id, t.due_ms, t.runs, t.state, t.event, t.delivery, t.note, s.text, s.created_ms "
                                 "FROM ticks t JOIN schedules s ON s.id = t.schedule ORDER BY t.due_ms"):
            ticks[int(MARK.search(row[7]).group(1))].append(row)
            tally.ticks += 1
        self._check_rows(ticks, ended, tally)
        self._check_arrivals(store, ticks, tally)
        self._check_lateness(store, ticks, tally)
        store.close()
        tally.problems += [f"{fault} was not reached" for fault in self.unreached]
        self.line = (f"schedule: ticks {tally.ticks}, kills {self.kills}, lost {len(tally.lost)}, twice {len(tally.twice)}, late "
                     f"{tally.late} (wrongly reported {len(tally.lateness)}), clock jumps {self.clock.jumps}, set back "
                     f"{self.clock.set_backs}")
        bad = {"lost": tally.lost, "twice": tally.twice, "lateness": tally.lateness, "problems": tally.problems}
        faults = [f"{what}: {len(items)}: {'; '.join(items[:5])}" for what, items in bad.items() if items]
        check(not faults, "\n".join([self.line, *faults]))
        check(tally.late > 0, "nothing was late")
        return self.line

    def _check_rows(self, ticks, ended, tally):
        """Each due time has its tick, and the tick was done."""
        for mark, due in self.due.items():
            dues = [row[1] for row in ticks[mark]]
            if dues != [due]:
                (tally.twice if len(dues) > 1 else tally.lost).append(f"mark-{mark} is due at {due} and has ticks for {dues}")
        for mark, (policy, number) in self.periodic.items():
            rows = ticks[mark]
            first = rows[0][8] // EVERY_MS * EVERY_MS + EVERY_MS if rows else 0  # after its creation
            wanted = list(range(first, ended, EVERY_MS))
            dues = [row[1] for row in rows if row[1] >= first]
            # while the clock is set back, times before the creation, or that a later tick stood for, are due by it
            stood_for = {due - i * EVERY_MS for _, due, runs, *_ in rows for i in range(runs)}
            if set(wanted) - stood_for or (policy == "all" and dues != wanted):
                tally.lost.append(f"{number} ({policy}) was due {len(wanted)} times and its {len(rows)} ticks stand for "
                                  f"{sum(row[2] for row in rows)}")
            if sum(row[2] for row in rows) > len(wanted) and not self.clock.set_backs:
                tally.twice.append(f"{number} ({policy}) was due {len(wanted)} times and ran for {sum(row[2] for row in rows)}")
        for mark, rows in ticks.items():
            tally.problems += [f"mark-{mark}: tck-{row[0]} is {row[3]}: {row[6]}" for row in rows if row[3] != "done"]

    def _check_arrivals(self, store, ticks, tally):
        """What people saw, by mark: as often as there are ticks."""
        seen = collections.Counter()
        for arrival in self.receiver.idem.arrivals:
            seen[int(MARK.search(arrival.body["payload"]["text"]).group(1))] += 1
        for payload, in store.execute("SELECT payload FROM journal WHERE type = 'message.sent' AND adapter = 'journal'"):
            seen[int(MARK.search(json.loads(payload)["text"]).group(1))] += 1
        for mark, rows in ticks.items():
            if seen[mark] > len(rows):
                tally.twice.append(f"mark-{mark} arrived {seen[mark]} times, with {len(rows)} ticks")
            elif seen[mark] < len(rows):
                tally.lost.append(f"mark-{mark} arrived {seen[mark]} times, with {len(rows)} ticks")
        fired, = store.execute("SELECT count(*) FROM journal WHERE type = 'schedule.fired'").fetchone()
        turns = sum(len(rows) for mark, rows in ticks.items() if self.actions.get(mark) == "turn")
        if fired != turns:
            (tally.twice if fired > turns else tally.lost).append(f"{fired} events for {turns} ticks that are turns")
        tally.twice += self.receiver.idem.changed_repeats

    def _check_lateness(self, store, ticks, tally):
        """What began more than a minute late says so, and nothing else does."""
        reported = {json.loads(payload)["tickId"] for payload, in
                    store.execute("SELECT payload FROM journal WHERE type = 'schedule.late'")}
        began = dict(store.execute("SELECT id, created_ms FROM deliveries"))
        texts = {number: json.loads(payload)["text"] for number, payload in store.execute("SELECT id, payload FROM deliveries")}
        for number, at, payload in store.execute("SELECT seq, time_ms, payload FROM journal WHERE type = 'schedule.fired'"):
            began[-number], texts[-number] = at, json.loads(payload)["text"]
        for mark, rows in ticks.items():
            for number, due, runs, state, event, delivery, *_ in rows:
                key = -event if event else delivery
                if state != "done" or key not in began:
                    continue
                says, late = "(late:" in texts[key], began[key] - due
                tally.late += says
                if (says and late < LATE_MS and runs == 1) or (not says and late > LATE_MS + SLACK_MS):
                    tally.lateness.append(f"mark-{mark} began {late} ms after its time and says {texts[key]!r}")
                elif says and f"tck-{number}" not in reported:
                    tally.lateness.append(f"tck-{number} says that it is late, and no schedule.late does")
