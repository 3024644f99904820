"""
Agents that speak A2A: the daemon, the agent or both are killed between any two steps of a turn. Each message is given to the agent once, answered once
or its failure shown; a task that the daemon knew is answered in any case.
"""
import asyncio
import collections
import json
import os
import random
import re
import signal

from audit import wait_until_answered
from kill_campaign import A2A_POINTS, POINT_SECONDS, fault_points
from scenarios import scenario
from webhooks import HookAgent
from world import World, check

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "a2a_agent.py")
KINDS = ("new", "plain", "old")
STEPS = ("received", "given", "told", "worked")
POINTS = ("turn.before_step", "turn.step_stored", "turn.claimed", "turn.before_end", "turn.ended")
NOTICES = ("cannot be reached", "was lost", "no longer says", "interrupted")


class A2aWorld(World):
    async def __aenter__(self):
        await super().__aenter__()
        self.agent = HookAgent(self.dir, AGENT)
        self.config["agents"] = {
            kind: {"type": "a2a", "url": f"{self.agent.url}/{kind}", "pollMs": 50, "retries": 5, "breakerFailures": 0} for kind in KINDS}
        self.config["defaultAgent"] = KINDS[0]
        self.config["adapters"] = {kind: {"type": "api", "agent": kind} for kind in KINDS}
        self.daemon.write_config(self.config)
        return self

    async def __aexit__(self, *how):
        await self.agent.stop()
        await super().__aexit__(*how)
        self.agent.reserved.close()

    async def kill_daemon_at(self, fault, agent_too):
        await self.daemon.spawn(fault)
        ready = await self.daemon.ready()
        code = await self.daemon.ended(POINT_SECONDS if ready else 1)
        check(code == -signal.SIGKILL, f"the point {fault} was not reached ({code}): {self.daemon.log_tail()}")
        self.lab.extra_kills += 1
        if agent_too:
            await self.agent.stop()
            await self.agent.start()

    async def kill_agent_at(self, step):
        await self.agent.stop()
        await self.agent.start(step)
        await self.daemon.start()
        check(await self.agent.died(POINT_SECONDS), f"the agent did not reach {step}")
        await self.agent.start()
        await asyncio.sleep(0.1)
        await self.daemon.kill()
        self.lab.extra_kills += 1

    def given(self):
        """How often each mark was given to the agent."""
        marks = collections.Counter()
        with open(self.agent.log, encoding="utf-8") as f:
            for line in f:
                if line.endswith("\n") and "given" in (entry := json.loads(line)):
                    marks.update(re.findall(r"<([^>]+)>", entry["text"]))
        return marks


@scenario("a2a: daemon, agent or both killed at every step")
async def at_every_step(lab):
    rng = random.Random(f"{lab.seed}/a2a")
    plan = [("daemon", f"{p}@{n}", both) for p in [*fault_points(of=A2A_POINTS), *POINTS]
            for n, both in ((1, False), (rng.randint(2, 12), rng.random() < 0.5))]
    plan += [("agent", f"{s}@{n}", False) for s in STEPS for n in (1, rng.randint(2, 9))]
    rng.shuffle(plan)
    async with A2aWorld(lab, "a2a", pause=0.15) as world:
        await world.agent.start()
        for kind in KINDS:
            world.load.start(kind, [f"{kind}{i}" for i in range(3)], text=lambda chat, n: f"<{chat}-{n}>")
        for who, where, both in plan:
            if who == "daemon":
                await world.kill_daemon_at(where, both)
            else:
                await world.kill_agent_at(where)
        await world.daemon.start()
        await world.load.stop()
        journal = await wait_until_answered(world.daemon, world.load)
        return await check_answers(world, journal, len(plan))


async def check_answers(world, journal, kills):
    load, given = world.load, world.given()
    check(not load.problems, "; ".join(load.problems[:5]))
    twice = [mark for mark, n in given.items() if n > 1]
    check(not twice, f"given twice: {twice[:5]}")
    answers, failed, notices = collections.Counter(), set(), collections.Counter()
    for sent in journal.sent:
        events = sent["payload"].get("answers", [])
        answers.update(events)
        if any(n in sent["payload"]["text"] for n in NOTICES):
            failed.update(events)
            notices.update([next(n for n in NOTICES if n in sent["payload"]["text"])] * len(events))
        else:
            for event in events:
                check(f"<{load.by_event[event].key}>" in sent["payload"]["text"], f"a wrong answer: {sent['payload']['text'][:200]}")
    check(not [e for e, n in answers.items() if n > 1], "a message was answered twice")
    silent = [m.key for e, m in load.by_event.items() if answers[e] == 0]
    check(not silent, f"{len(silent)} messages have no answer: {silent[:5]}")
    idle = [m.key for e, m in load.by_event.items() if e not in failed and not given[m.key]]
    check(not idle, f"answered without being given to the agent: {idle[:5]}")
    # version 1.0 can look for what it sent: what reached the agent is answered
    lost = [m.key for e, m in load.by_event.items() if e in failed and given[m.key] and m.adapter != "old"]
    check(not lost, f"given to the agent, and said to be lost: {lost[:5]}")
    return (f"{kills} kills, {len(load.by_event)} messages, {sum(given.values())} given to the agent, none twice; "
            f"{len(failed)} failed and said so: {', '.join(f'{n} {what!r}' for what, n in notices.most_common())}")
