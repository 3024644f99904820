"""
Agents that are started programs: the daemon, the program or both are killed between any two steps of a turn. Each
message is given to the program at most once, answered once or its failure shown, and no process is left behind.

Each message makes the program write its mark into a file of counters, before or after it has worked for a while.
"""
import asyncio
import collections
import glob
import json
import os
import random
import signal
import sys

from audit import wait_until_answered
from kill_campaign import CHILD_POINTS, POINT_SECONDS, fault_points
from scenarios import scenario, until
from world import World, check

FAKE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib", "fake_rpc.py")
KINDS = ("pi", "omp")
POINTS = ("turn.before_step", "turn.step_stored", "turn.claimed", "turn.before_end", "turn.ended")
NOTICES = ("interrupted", "could not be started")


def work_of(chat, number):
    return f"mark {chat}-{number}\ntool make {number}\nnap {random.Random(f'{chat}/{number}').choice((0, 10, 60))}\necho <{chat}-{number}>"


class ChildWorld(World):
    """An adapter for each kind of agent, whose programs count in one file."""

    async def __aenter__(self):
        await super().__aenter__()
        self.counts = os.path.join(self.dir, "counts.txt")
        command = [sys.executable, FAKE, "--state", self.counts]
        self.config["agents"] = {
            kind: {"type": kind, "command": [*command, "--dialect", kind], "sandbox": {"kind": "host"}, "breakerFailures": 0}
            for kind in KINDS}
        self.config["defaultAgent"] = KINDS[0]
        self.config["adapters"] = {kind: {"type": "api", "agent": kind} for kind in KINDS}
        self.daemon.write_config(self.config)
        return self

    def counted(self, word):
        if not os.path.exists(self.counts):
            return []
        with open(self.counts, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
        return [line for line in lines if line["what"].split()[0] == word]

    def programs(self):
        """The processes of agents, by what they were started with; also what keeps them."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if FAKE.encode() in words and self.counts.encode() in words:
                found.append(int(path.split("/")[2]))
        return found

    async def nothing_is_left(self):
        await until(lambda: not self.programs(), f"the end of {len(self.programs())} programs", 20)

    async def kill_daemon_at(self, fault, programs_too):
        await self.daemon.spawn(fault)
        ready = await self.daemon.ready()
        code = await self.daemon.ended(POINT_SECONDS if ready else 1)
        check(code == -signal.SIGKILL, f"the point {fault} was not reached ({code}): {self.daemon.log_tail()}")
        if programs_too:
            self.kill_programs()
        self.lab.extra_kills += 1
        await self.nothing_is_left()

    def kill_programs(self):
        for pid in self.programs():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def kill_programs_often(self, times, rng):
        """While the daemon runs, at any moment of their turns."""
        await self.daemon.start()
        for _ in range(times):
            worked = len(self.counted("did"))
            await until(lambda: len(self.counted("did")) > worked, "a program at work")
            await asyncio.sleep(rng.random() * 0.1)
            self.kill_programs()
            self.lab.extra_kills += 1
        await self.daemon.kill()
        await self.nothing_is_left()


@scenario("coding agents: daemon, program or both killed at every step")
async def at_every_step(lab):
    rng = random.Random(f"{lab.seed}/coding")
    points = [*fault_points(of=CHILD_POINTS), *POINTS]
    plan = [(f"{p}@{n}", both) for p in points for n, both in ((1, False), (rng.randint(2, 12), rng.random() < 0.5))]
    rng.shuffle(plan)
    async with ChildWorld(lab, "coding", pause=0.2) as world:
        for kind in KINDS:
            world.load.start(kind, [f"{kind}{i}" for i in range(3)], text=work_of)
        for fault, both in plan:
            await world.kill_daemon_at(fault, both)
        await world.kill_programs_often(8, rng)
        await world.daemon.start()
        await world.load.stop()
        journal = await wait_until_answered(world.daemon, world.load)
        await check_answers(world, journal)
        world.daemon.signal(signal.SIGTERM)
        check(await world.daemon.ended(60) == 0, f"the daemon did not stop: {world.daemon.log_tail()}")
        await world.nothing_is_left()
        failed = sum(any(n in e["payload"]["text"] for n in NOTICES) for e in journal.sent)
        return (f"{len(plan)} kills of the daemon and 8 of programs, {len(world.load.by_event)} messages, "
                f"{len(world.counted('did'))} worked on, none twice; {failed} turns failed and said so; no process left")


async def check_answers(world, journal):
    load = world.load
    check(not load.problems, "; ".join(load.problems[:5]))
    marks = collections.Counter(line["what"].split()[1] for line in world.counted("did"))
    twice = [mark for mark, n in marks.items() if n > 1]
    check(not twice, f"given twice: {twice[:5]}")
    answers = collections.Counter(e for sent in journal.sent for e in sent["payload"].get("answers", []))
    check(not [e for e, n in answers.items() if n > 1], "a message was answered twice")
    silent = [m.key for e, m in load.by_event.items() if answers[e] == 0]
    check(not silent, f"{len(silent)} messages have no answer: {silent[:5]}")
    good = {e for sent in journal.sent if not any(n in sent["payload"]["text"] for n in NOTICES) for e in sent["payload"].get("answers", [])}
    idle = [m.key for e, m in load.by_event.items() if e in good and not marks[m.key]]
    check(not idle, f"answered without being given to the program: {idle[:5]}")
