"""
The agent campaign: turns of the built-in agent with 3 to 8 tool calls in a sandbox, killed at random instants and at
every step of the loop. The model is the simulator, which does what the lines of a message say and refuses every
transcript that a real service would refuse.

Each call appends its mark to a file of its chat: `chat2-7.3` is the third call of the seventh message. A mark that is
there twice is a tool that ran twice; for one that is missing, the result must say that the call was interrupted.
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

from audit import wait_until_answered
from daemon import Daemon
from http1 import Lost
from kill_campaign import POINT_SECONDS, STEP_POINTS, fault_points
from load import Load
from platform_campaign import Simulator
from world import LIMITS, check

MARK = re.compile(r"[a-z]+\d+-\d+\.\d+")
KEY = "sk-sim"
# agent, model, path of the base URL, wire
AGENTS = (("claude", "anthropic/claude-sonnet-5-5", "", "auto"), ("gpt", "gpt-5.4", "/v1", "openai"),
          ("responses", "gpt-5.4", "/v1", "responses"))
RARE = ("agent.compact", "approval.")
# chats of each agent, kills at each point, random kills, seconds at most
SIZES = {"short": (2, 1, 8, 600), "full": (4, 12, 300, 5400)}


class Model:
    """What Simulator needs to know."""

    name = "llm"


def plan_of(chat, number):
    """A message whose lines are the steps of its turn, a few of them with parallel calls."""
    rng = random.Random(f"{chat}/{number}")
    steps, lines = rng.randint(3, 8), []
    call = 1
    while call <= steps:
        together = min(rng.choice((1, 1, 1, 2, 3)), steps - call + 1)
        ask = rng.choice(("", "", "", "", "touch asked; "))  # the policy asks about touch
        calls = [{"command": f"{ask}echo {chat}-{number}.{call + i} >> ran.txt; echo ok"} for i in range(together)]
        if rng.random() < 0.3:
            lines.append("think Which file was it?")
        if rng.random() < 0.3:
            lines.append(f"say Working on {call}.")
        lines.append("calls " + " ".join(f"bash {json.dumps(c)}" for c in calls))
        call += together
    return "\n".join(lines)


class Campaign:
    def __init__(self, lab, size, simulator):
        self.lab = lab
        self.chats, passes, random_kills, self.seconds = SIZES[size]
        self.sim = Simulator(Model(), simulator, lab.seed)
        self.rng = random.Random(f"{lab.seed}/agent")
        self.plan = [(f"{point}@{self.rng.randint(1, 2 if point.startswith(RARE) else 20)}", None)
                     for point in fault_points(of=STEP_POINTS) for _ in range(passes)]
        self.plan += [(None, self.rng.uniform(0.05, 1.5)) for _ in range(random_kills)]
        self.rng.shuffle(self.plan)
        self.unreached = []
        self.approved = 0
        self.line = ""

    def config(self):
        base = f"http://{self.sim.address}"
        agents = {name: {"type": "builtin", "model": model, "wire": wire, "baseUrl": base + path, "apiKey": KEY,
                         "policy": {"ask": {"tool": "bash", "command": "touch *", "decide": "ask"}},
                         # small, so that conversations are compacted now and then
                         "window": 24000, "limits": {"rounds": 1000}, "compaction": {"reserveTokens": 4000, "keepRecentTokens": 3000}}
                  for name, model, path, wire in AGENTS}
        return {"http": {"listen": "127.0.0.1:0"}, "agents": agents, "defaultAgent": "claude",
                "limits": dict(LIMITS), "adapters": {name: {"type": "api", "agent": name} for name in agents}}

    async def _run_once(self, daemon, fault, seconds):
        await daemon.spawn(fault)
        check(await daemon.ready() or fault, f"the daemon exited: {daemon.log_tail()}")
        code = await daemon.ended(POINT_SECONDS if fault else seconds)
        check(code in (None, -signal.SIGKILL), f"with fault {fault} the daemon exited with {code}: {daemon.log_tail()}")
        if code is None and fault:
            self.unreached.append(fault)
        await daemon.kill()

    async def run(self):
        directory = tempfile.mkdtemp(prefix="dragoman-fault-")
        await self.sim.start()
        daemon = Daemon(self.lab.binary, directory, self.config())
        load = Load(daemon, f"{self.lab.seed}/agent", 8)
        person = asyncio.ensure_future(self._approve(daemon))
        try:
            text = await self._campaign(daemon, load)
            shutil.rmtree(directory, ignore_errors=True)
            return text
        except BaseException:
            self.lab.kept.append(("agent", directory))
            raise
        finally:
            load.abandon()
            person.cancel()
            await daemon.kill()
            daemon.control.close()
            await self.sim.stop()

    async def _approve(self, daemon):
        """A person who approves what waits, again and again."""
        while True:
            await daemon.up.wait()
            try:
                client = daemon.client()
                for waiting in (await client.get("/api/v2/approvals?state=open"))["items"]:
                    status, _, _ = await client.request("POST", f"/api/v2/approvals/{waiting['id']}/approve", {})
                    self.approved += status == 200
                client.close()
            except Lost:
                pass
            await asyncio.sleep(0.1)

    async def _campaign(self, daemon, load):
        for name, *_ in AGENTS:
            load.start(name, [f"{name}{i}" for i in range(self.chats)], text=plan_of)
        for number, (fault, seconds) in enumerate(self.plan, 1):
            await self._run_once(daemon, fault, seconds)
            if number % 20 == 0 or number == len(self.plan):
                self.lab.say(f"      {number} of {len(self.plan)} kills, {len(load.by_event)} messages acknowledged")
        await daemon.start()
        await load.stop()
        journal = await wait_until_answered(daemon, load)
        state = await self.sim.client().get("/sim/state")
        daemon.signal(signal.SIGTERM)
        check(await daemon.ended(60) == 0, f"the daemon did not stop: {daemon.log_tail()}")
        return self._audit(daemon, load, journal, state)

    def _audit(self, daemon, load, journal, state):
        check(not load.problems, "; ".join(load.problems[:5]))
        check(state["counters"]["answers"] > 0 and not state["refused"], f"transcripts refused: {json.dumps(state)[:600]}")
        answers = collections.Counter(e for sent in journal.sent for e in sent["payload"].get("answers", []))
        unanswered = [m.key for e, m in load.by_event.items() if answers[e] == 0]
        check(not unanswered, f"{len(unanswered)} messages have no answer: {unanswered[:5]}")
        twice = [e for e, n in answers.items() if n > 1]
        check(not twice, f"answered twice: {twice[:5]}")
        ran = self._marks_in_files(daemon)
        doubles = [mark for mark, n in ran.items() if n > 1]
        check(not doubles, f"ran twice: {doubles[:10]}")
        called, started, done, interrupted = self._steps(daemon)
        for wrong, what in ((called - set(ran) - interrupted, "neither ran nor were interrupted"), (called - done, "have no result"),
                            (set(ran) - called, "ran before the answer that asks for them was stored"),
                            (set(ran) - started, "ran before their start was stored")):
            check(not wrong, f"{len(wrong)} calls {what}: {sorted(wrong)[:10]}")
        check(not self.unreached, f"points never reached: {', '.join(self.unreached)}")
        turns = len({sent["payload"]["turnId"] for sent in journal.sent if sent["payload"].get("answers")})
        self.line = (f"fault on agent: kills {len(self.plan)}, messages {len(load.by_event)}, turns {turns}, tool calls "
                     f"{len(called)}, ran twice 0, interrupted {len(interrupted)}, approved {self.approved}, transcripts refused 0")
        return self.line

    @staticmethod
    def _marks_in_files(daemon):
        ran = collections.Counter()
        for folder, _, files in os.walk(os.path.join(daemon.dir, "workspace", "channels")):
            if "ran.txt" in files:
                with open(os.path.join(folder, "ran.txt"), encoding="utf-8") as f:
                    ran.update(line.strip() for line in f)
        return ran

    @staticmethod
    def _steps(daemon):
        """The marks of all calls, of those that started, that have a result, and whose result says that they were interrupted."""
        store = sqlite3.connect(f"file:{daemon.state}/main.db?mode=ro", uri=True)
        marks, called, started, done, interrupted = {}, set(), set(), set(), set()
        for kind, text in store.execute("SELECT kind, body FROM steps ORDER BY id"):
            body = json.loads(text)
            for block in body["content"] if kind == "assistant" else ():
                if block["type"] == "toolCall":
                    mark = MARK.search(json.dumps(block["arguments"])).group(0)
                    marks[block["id"]] = mark
                    called.add(mark)
            if kind in ("tool_started", "tool_done"):
                mark = marks[body["toolCallId"]]
                (started if kind == "tool_started" else done).add(mark)
                if "Interrupted by a restart" in text:
                    interrupted.add(mark)
        store.close()
        return called, started, done, interrupted
