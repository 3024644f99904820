"""
Webhook agents: the daemon or the agent is killed between any two steps of a turn. Each message is answered once, or
its failure is recorded and shown; no turn is worked on twice unless the agent is repeatable.
"""
import asyncio
import collections
import os
import random
import signal
import sys

import ports
from audit import wait_until_answered
from kill_campaign import AGENT_POINTS, POINT_SECONDS, fault_points
from scenarios import scenario
from world import World, check

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "webhook_agent.py")
STEPS = ("received", "worked", "half")
NOTICES = ("interrupted", "cannot be reached", "was lost", "has a problem", "took too long", "takes longer")


class HookAgent:
    """The process of an agent, on a fixed port."""

    def __init__(self, directory, program=AGENT):
        self.program = program
        self.reserved = ports.reserve()
        self.port = ports.port_of(self.reserved)
        self.log = os.path.join(directory, "worked.txt")
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def start(self, fault=None):
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, self.program, str(self.port), self.log, *([fault] if fault else []),
            stdin=asyncio.subprocess.DEVNULL)
        for _ in range(6000):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.01)
        raise AssertionError("the agent did not start")

    async def died(self, seconds):
        try:
            await asyncio.wait_for(self.process.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    async def stop(self):
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def lines(self, word):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as f:
            return [line.split()[-1] for line in f if line.startswith(word)]


def road_points():
    """The fault points of a turn on a journaled adapter."""
    return [p for p in fault_points() if not p.startswith("outbox.")] + fault_points(AGENT_POINTS)


class HookWorld(World):
    """Agents `hook`, `again` (repeatable) and `later` (fire and forget) in one process, each with an adapter."""

    async def __aenter__(self):
        await super().__aenter__()
        self.agent = HookAgent(self.dir)
        plain = {"type": "webhook", "url": self.agent.url + "/", "retryMs": 10, "breakerFailures": 0}
        later = dict(plain, url=self.agent.url + "/later", mode="fire-and-forget")
        self.reserved = ports.reserve()
        # a fixed port, so that reply URLs survive a restart
        self.config["http"]["listen"] = f"127.0.0.1:{ports.port_of(self.reserved)}"
        self.config["agents"] = {"hook": plain, "again": dict(plain, repeatable=True), "later": later}
        self.config["defaultAgent"] = "hook"
        self.config["adapters"] = {name: {"type": "api", "agent": name} for name in self.config["agents"]}
        self.daemon.write_config(self.config)
        return self

    async def __aexit__(self, *how):
        await self.agent.stop()
        await super().__aexit__(*how)
        self.agent.reserved.close()
        self.reserved.close()

    async def kill_daemon_at(self, fault):
        await self.daemon.spawn(fault)
        ready = await self.daemon.ready()
        code = await self.daemon.ended(POINT_SECONDS if ready else 1)
        check(code == -signal.SIGKILL, f"the point {fault} was not reached ({code}): {self.daemon.log_tail()}")
        self.lab.extra_kills += 1

    async def kill_agent_at(self, step):
        await self.agent.stop()
        await self.agent.start(step)
        await self.daemon.start()
        check(await self.agent.died(POINT_SECONDS), f"the agent did not reach {step}")
        await self.agent.start()
        await asyncio.sleep(0.1)
        await self.daemon.kill()

    async def check_failures(self, journal):
        """Every notice belongs to a turn recorded as failed, with an error."""
        client, notices = self.daemon.client(), collections.Counter()
        for event in journal.sent:
            notice = next((n for n in NOTICES if n in event["payload"]["text"]), None)
            if not notice:
                continue
            turn = (await client.get(f"/api/v2/turns/{event['payload']['turnId']}"))["data"]
            check(turn["state"] == "failed" and turn.get("error"), f"a notice without a recorded failure: {turn}")
            notices[notice] += 1
        return ", ".join(f"{n} {notice!r}" for notice, n in notices.most_common()) or "none"


def check_once_each(keys, repeatable):
    """A key is the id of a turn and its trace."""
    twice = [key for key, n in collections.Counter(keys).items() if n > 1 and key.rpartition("-")[0] not in repeatable]
    check(not twice, f"worked on twice: {twice[:5]}")


async def turns_of(world, agent):
    client, cursor, found = world.daemon.client(), "", set()
    while True:
        page = await client.get(f"/api/v2/turns?agent={agent}&limit=100{cursor}")
        found.update(t["id"] for t in page["items"])
        if not page["meta"]["hasMore"]:
            return found
        cursor = f"&before={page['meta']['cursor']}"


@scenario("webhook: daemon and agent killed between every two steps")
async def between_steps(lab):
    rng = random.Random(f"{lab.seed}/hooks")
    plan = [("daemon", f"{p}@{n}") for p in road_points() for n in (1, rng.randint(2, 9))]
    plan += [("agent", f"{s}@{n}") for s in STEPS for n in (1, rng.randint(2, 9))]
    rng.shuffle(plan)
    async with HookWorld(lab, "hooks", pause=0.1) as world:
        await world.agent.start()
        world.start_chats(4, ("hook", "again"))
        for who, where in plan:
            await (world.kill_daemon_at if who == "daemon" else world.kill_agent_at)(where)
        await world.daemon.start()
        findings = await world.settle(notices=NOTICES)
        journal = await wait_until_answered(world.daemon, world.load)
        notices = await world.check_failures(journal)
        check_once_each(world.agent.lines("worked"), await turns_of(world, "again"))
        return (f"{len(plan)} kills, {findings.acknowledged} messages, failures recorded and shown: {notices}; "
                f"{len(world.agent.lines('worked'))} turns worked on, none twice")


def texts_sent(journal):
    return collections.Counter(e["payload"]["text"] for e in journal.sent)


@scenario("webhook: answers that come later, over restarts")
async def later_answers(lab):
    rng = random.Random(f"{lab.seed}/later")
    plan = [f"{p}@{rng.randint(1, 6)}" for p in road_points()]
    rng.shuffle(plan)
    async with HookWorld(lab, "later", pause=0.1) as world:
        await world.agent.start()
        world.load.start("later", [f"later{i}" for i in range(4)], text=lambda chat, n: f"<{chat}.{n}>")
        for fault in plan:
            await world.kill_daemon_at(fault)
        await world.daemon.start()
        await world.load.stop()
        journal = await wait_until_answered(world.daemon, world.load, 0.5)
        await until_replied(world, journal)
        await world.check_failures(journal)
        said = "".join(text for text in texts_sent(journal).elements())
        twice = [m.key for m in world.load.by_event.values() if said.count(m.text) > 1]
        check(not twice, f"answered twice: {twice[:5]}")
        check_once_each(world.agent.lines("worked"), ())
        check(not world.load.problems, f"{world.load.problems[:3]}")
        return f"{len(plan)} kills, {len(world.load.by_event)} messages, each answered once or its failure shown"


async def until_replied(world, journal):
    for _ in range(1200):
        await journal.read()
        said = "".join(texts_sent(journal))
        if all(m.event in journal.answered or m.text in said for m in world.load.by_event.values()):
            return
        await asyncio.sleep(0.05)
    missing = [m.key for m in world.load.by_event.values() if m.event not in journal.answered and m.text not in said]
    check(False, f"neither answered nor notified: {missing[:5]} of {len(missing)}")
