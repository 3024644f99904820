"""
The kill campaign: the daemon is killed under load, at random instants and at every fault point, and restarted on
the same data directory.
"""
import asyncio
import os
import random
import re
import signal
import time

from receiver import Act
from world import World, check

POINT_SECONDS = 60  # of load, to reach a fault point
SOURCES = os.path.join(os.path.dirname(__file__), "..", "..", "src")
AGENT_POINTS = "http_agent."  # in the call of a webhook agent; see webhooks.py
STEP_POINTS = ("agent.", "approval.", "turn.before_step", "turn.step_stored")  # of the built-in agent; see agent_campaign.py

SCHEDULE_POINTS = "schedule."  # see schedule_campaign.py
SESSION_POINTS = "session."  # see sessions_campaign.py
CHILD_POINTS = "child."  # of started programs; see coding_agents.py
A2A_POINTS = "a2a."  # of agents that speak A2A; see a2a_agents.py


def fault_points(of=""):
    """All fault points in the sources, so that new ones are tested without being listed here."""
    names = set()
    for folder, _, files in os.walk(SOURCES):
        for name in files:
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    names.update(re.findall(r'fault_point\("([^"]+)"\)', f.read()))
    chosen = sorted(n for n in names if (n.startswith(of) if of else not n.startswith((AGENT_POINTS, SCHEDULE_POINTS, SESSION_POINTS, CHILD_POINTS, A2A_POINTS, *STEP_POINTS))))
    check(chosen, f"no fault points {of!r} in {SOURCES}")
    return chosen


def make_plan(rng, points, passes, random_kills):
    """(fault or None, seconds) for every run, in random order."""
    plan = []
    for name in points:
        counts = [1]
        while len(counts) < passes:
            counts.append(rng.randint(2, 5) if len(counts) % 2 else rng.randint(6, 40))
        plan += [(f"{name}@{n}", None) for n in counts]
    for _ in range(random_kills):
        # a quarter at once, during recovery
        plan.append((None, rng.uniform(0, 0.06) if rng.random() < 0.25 else rng.uniform(0.06, 0.6)))
    rng.shuffle(plan)
    return plan


def unreliable(seed, refusing):
    """Mostly quick, sometimes slow or refusing, so that kills interrupt retries."""
    rng = random.Random(seed)

    def plan(_):
        if rng.random() < refusing:
            return Act(status=rng.choice((503, 500, 429)), headers={"Retry-After": "0"})
        return Act(wait=rng.choice((0, 0, 0.002, 0.03)))
    return plan


class Campaign:
    def __init__(self, lab, passes, random_kills, chats):
        self.lab, self.chats = lab, chats
        self.rng = random.Random(f"{lab.seed}/kills")
        self.points = fault_points()
        self.plan = make_plan(self.rng, self.points, passes, random_kills)
        self.random_kills = self.point_kills = 0
        self.unreached = []

    async def _run_to_point(self, world, fault):
        await world.daemon.spawn(fault)
        ready = await world.daemon.ready()
        code = await world.daemon.ended(POINT_SECONDS if ready else 1)
        if code == -signal.SIGKILL:
            self.point_kills += 1
            return
        check(code is None, f"with fault {fault} the daemon exited with {code}: {world.daemon.log_tail()}")
        self.unreached.append(fault)
        await world.daemon.kill()

    async def _run_for(self, world, seconds):
        await world.daemon.spawn()
        began = time.monotonic()
        watch = asyncio.ensure_future(world.daemon.ready())
        await asyncio.sleep(seconds)
        if time.monotonic() - began > 0.06 and not watch.done():
            await asyncio.sleep(0.05)  # on a busy machine, let it get ready now and then
        watch.cancel()
        check(world.daemon.alive, f"the daemon exited: {world.daemon.log_tail()}")
        await world.daemon.kill()
        self.random_kills += 1

    async def run(self):
        async with World(self.lab, "kills", pause=0.25) as world:
            world.receiver.idem.plan = unreliable(f"{self.lab.seed}/idem", 0.05)
            world.receiver.once.plan = unreliable(f"{self.lab.seed}/once", 0.03)
            world.start_chats(self.chats // 5)
            for number, (fault, seconds) in enumerate(self.plan, 1):
                if fault:
                    await self._run_to_point(world, fault)
                else:
                    await self._run_for(world, seconds)
                if number % 25 == 0 or number == len(self.plan):
                    self.lab.say(f"      {number} of {len(self.plan)} kills, {len(world.load.by_event)} messages "
                                 f"acknowledged, {world.load.duplicates} duplicates recognised")
            await world.daemon.start()
            findings = await world.settle()
            check(not self.unreached, f"points never reached: {', '.join(self.unreached)}")
            idem = world.receiver.idem
            return (f"{len(self.plan)} kills, {findings.acknowledged} messages, {world.load.duplicates} duplicates "
                    f"recognised, {idem.repeats} repeated posts recognised by the receiver, unknown "
                    f"{len(findings.unknown)} after {findings.unknown_runs} kills "
                    f"({findings.unknown_arrived} had arrived)")
