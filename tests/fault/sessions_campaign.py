"""
The sessions campaign: coding agents report events and are told commands, while the daemon is killed at random instants and at every
step of theirs.

Every event carries an id, and is posted again until it is answered. Every command carries a key, and is given again until it is
answered. A program fetches, acknowledges before it acts, again if the answer was lost, and acts only if it was the first to do so.
"""
import asyncio
import collections
import json
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from dataclasses import dataclass

from daemon import Daemon
from http1 import Lost
from kill_campaign import POINT_SECONDS, SESSION_POINTS, fault_points
from world import check

LIST_MAX = 20  # events in one request
AGAIN = (429, 500, 503)  # answers after which a request is repeated
PAUSE_SECONDS = 0.01
END_SECONDS = 120  # for what is left when the kills are over


@dataclass
class Size:
    sessions: int
    random_kills: int
    passes: int  # kills at each fault point
    seconds: int  # at most


SIZES = {"short": Size(10, 12, 2, 240), "full": Size(50, 160, 12, 3600)}


class Program:
    """A session: what it reported, and what it was told."""

    def __init__(self, campaign, number):
        self.campaign, self.name = campaign, f"session-{number}"
        self.rng = random.Random(f"{campaign.lab.seed}/{self.name}")
        self.reported = 0  # events that were answered with 200
        self.given = 0  # commands that were answered with 201
        self.acted = collections.Counter()  # by the text of the command

    async def request(self, method, path, body=None, key=None):
        """(status, answer), after as many attempts as it takes; None: the connection broke after the request."""
        daemon = self.campaign.daemon
        await daemon.up.wait()
        client = daemon.client()
        try:
            status, _, answer = await client.request(method, path, body, key=key)
            return status, answer
        except Lost:
            await asyncio.sleep(PAUSE_SECONDS)
            return None
        finally:
            client.close()

    async def until_answered(self, wanted, method, path, body, key=None):
        while True:
            answer = await self.request(method, path, body, key)
            if answer and answer[0] == wanted:
                return answer[1]
            check(not answer or answer[0] in AGAIN, f"{method} {path} was answered with {answer}")
            await asyncio.sleep(PAUSE_SECONDS)

    def event(self, number):
        return {"session_id": self.name, "event_type": "turn_end" if number % 7 == 6 else "tool_call", "tool_name": "bash",
                "content": f"event {number}", "event_id": f"e{number}", "metadata": {"usage": {"totalTokens": 10}}}

    async def report(self):
        while not self.campaign.over:
            events = [self.event(self.reported + i) for i in range(self.rng.randint(1, LIST_MAX))]
            await self.until_answered(200, "POST", "/api/webhook/event", events if len(events) > 1 else events[0])
            self.reported += len(events)

    async def steer(self):
        while self.reported == 0:
            await asyncio.sleep(PAUSE_SECONDS)
        while not self.campaign.over:
            text = f"{self.name}: command {self.given}"
            await self.until_answered(201, "POST", f"/api/v2/sessions/{self.name}/commands", {"content": text}, key=f"{self.name}-{self.given}")
            self.given += 1
            await asyncio.sleep(self.rng.uniform(0, 0.05))

    async def obey(self):
        """Until everything that was given is known to be acknowledged."""
        while not self.campaign.over or len(self.acted) < self.given:
            answer = await self.request("GET", f"/api/commands/poll?session_id={self.name}")
            for command in answer[1] if answer and answer[0] == 200 else ():
                ack = await self.until_answered(200, "POST", f"/api/commands/{command['command_id']}/ack",
                                                {"status": "delivered", "receipt": f"{self.rng.random()}"})
                self.acted[command["content"]] += not ack["duplicate"]
            await asyncio.sleep(PAUSE_SECONDS)


class Campaign:
    def __init__(self, lab, size):
        self.lab, self.size = lab, SIZES[size]
        self.rng = random.Random(f"{lab.seed}/sessions")
        points = fault_points(of=SESSION_POINTS)
        self.plan = [f"{p}@{1 if n == 0 else self.rng.randint(2, 30)}" for p in points for n in range(self.size.passes)]
        self.plan += [None] * self.size.random_kills
        self.rng.shuffle(self.plan)
        self.over = False
        self.line = ""

    async def run(self):
        directory = tempfile.mkdtemp(prefix="dragoman-fault-")
        self.daemon = Daemon(self.lab.binary, directory, {
            "http": {"listen": "127.0.0.1:0"}, "adapters": {"journal": {"type": "api"}}, "agents": {"echo": {"type": "echo"}},
            "sessions": {"queued": 1000}})
        try:
            text = await self._campaign()
            shutil.rmtree(directory, ignore_errors=True)
            return text
        except BaseException:
            self.lab.kept.append(("sessions", directory))
            raise
        finally:
            await self.daemon.kill()
            self.daemon.control.close()

    async def _campaign(self):
        programs = [Program(self, i) for i in range(self.size.sessions)]
        work = asyncio.gather(*(part for p in programs for part in (p.report(), p.steer(), p.obey())))
        try:
            for fault in self.plan:
                await self._run_once(fault, work)
            await self.daemon.start()
            self.over = True
            await asyncio.wait_for(work, END_SECONDS)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        self.daemon.signal(signal.SIGTERM)
        check(await self.daemon.ended(60) == 0, f"the daemon did not stop: {self.daemon.log_tail()}")
        return self._audit(programs)

    async def _run_once(self, fault, work):
        await self.daemon.spawn(fault)
        check(await self.daemon.ready(), f"the daemon exited: {self.daemon.log_tail()}")
        if fault:
            code = await self.daemon.ended(POINT_SECONDS)
            check(code == -signal.SIGKILL, f"{fault} was not reached, or the daemon exited with {code}: {self.daemon.log_tail()}")
        else:
            await asyncio.sleep(self.rng.uniform(0, 0.5))
        if work.done():
            work.result()
        await self.daemon.kill()

    def _audit(self, programs):
        store = sqlite3.connect(f"file:{self.daemon.state}/main.db?mode=ro", uri=True, timeout=20)
        told = collections.defaultdict(list)  # session -> events in the order of the journal
        for payload, in store.execute("SELECT payload FROM journal WHERE type IN ('session.tool_call', 'session.turn_end') ORDER BY seq"):
            payload = json.loads(payload)
            told[payload["sessionId"]].append(int(payload["content"].split()[1]))
        rows = collections.Counter(content for content, in store.execute("SELECT content FROM session_commands"))
        unsettled = store.execute("SELECT count(*) FROM session_commands WHERE state <> 'delivered'").fetchone()[0]
        turns = dict(store.execute("SELECT session, turns FROM sessions"))
        store.close()
        faults = []
        lost = twice = 0
        for p in programs:
            lost += p.reported - len(set(told[p.name]))
            twice += len(told[p.name]) - len(set(told[p.name]))
            if told[p.name] != list(range(p.reported)):
                missing = sorted(set(range(p.reported)) - set(told[p.name]))
                faults.append(f"{p.name} reported {p.reported} events, {len(told[p.name])} are stored, missing {missing[:5]}, or not in order")
            ends = sum(1 for i in range(p.reported) if i % 7 == 6)
            if turns[p.name] != ends:
                faults.append(f"{p.name} ended {ends} turns, {turns[p.name]} were counted")
            faults += [f"{text!r} was carried out {n} times" for text, n in p.acted.items() if n > 1]
        given = sum(p.given for p in programs)
        faults += [f"{text!r} is {n} rows" for text, n in rows.items() if n > 1]
        if len(rows) != given:
            faults.append(f"{given} commands were given, {len(rows)} are stored")
        if unsettled:
            faults.append(f"{unsettled} commands were not acknowledged")
        again = sum(n > 1 for p in programs for n in p.acted.values())
        acted = sum(n > 0 for p in programs for n in p.acted.values())
        self.line = (f"sessions: kills {len(self.plan)}, events {sum(p.reported for p in programs)}, lost {lost}, twice {twice}, "
                     f"commands {given}, carried out {acted}, twice {again}")
        check(not faults, "\n".join([self.line, *faults[:8]]))
        check(0 < given == acted, f"{given - acted} commands were not carried out")
        return self.line
