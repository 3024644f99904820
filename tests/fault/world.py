"""A data directory, its daemon, the receiver of its callbacks and the load."""
import copy
import os
import re
import shutil
import tempfile

from audit import Audit, wait_until_answered
from daemon import Daemon
from load import Load
from receiver import Receiver

SCRIPT = """# slow; some messages make it hang
when hang*
    hang
when *
    wait 25
    progress thinking
    piece "{text}"
"""

# Enough attempts for a turn or delivery that many kills in a row interrupt.
LIMITS = {"turnAttempts": 100, "deliveryAttempts": 1000, "retryBaseMs": 10, "retryCapMs": 100,
          "deliverySeconds": 10, "turnSeconds": 60}


class Failed(AssertionError):
    """A scenario found something wrong."""


def check(condition, otherwise):
    if not condition:
        raise Failed(otherwise)


def base_config(receiver):
    return {
        "http": {"listen": "127.0.0.1:0"},
        "agents": {"echo": {"type": "echo", "delayMs": 2}, "script": {"type": "script", "file": "script.txt"}},
        "defaultAgent": "echo",
        "limits": dict(LIMITS),
        "adapters": {
            "journal": {"type": "api", "agent": "echo"},
            "slow": {"type": "api", "agent": "script"},
            "gather": {"type": "api", "agent": "echo", "debounceMs": 60, "debounceMaxMs": 200},
            "idem": {"type": "api", "agent": "script", "callbackUrl": receiver.base + "/idem",
                     "callbackIdempotent": True, "timeoutMs": 5000},
            "once": {"type": "api", "agent": "echo", "callbackUrl": receiver.base + "/once",
                     "callbackIdempotent": False, "timeoutMs": 5000},
        },
    }


class World:
    """async with World(...) as w: removes the directory on success and keeps it on failure."""

    def __init__(self, lab, name, change=None, pause=0.3):
        self.lab, self.name, self.change, self.pause = lab, name, change, pause

    async def __aenter__(self):
        self.dir = tempfile.mkdtemp(prefix="dragoman-fault-")
        self.receiver = Receiver()
        await self.receiver.start()
        self.config = base_config(self.receiver)
        if self.change:
            self.change(self.config, self.receiver)
        with open(os.path.join(self.dir, "script.txt"), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        self.daemon = Daemon(self.lab.binary, self.dir, self.config)
        self.load = Load(self.daemon, f"{self.lab.seed}/{self.name}", self.pause)
        return self

    async def __aexit__(self, kind, value, _):
        self.load.abandon()
        await self.daemon.kill()
        self.daemon.control.close()
        self.receiver.stop()
        if kind is None:
            shutil.rmtree(self.dir, ignore_errors=True)
        else:
            self.lab.kept.append((self.name, self.dir))

    def copy_config(self):
        return copy.deepcopy(self.config)

    def start_chats(self, per_adapter, adapters=None):
        for adapter in adapters or self.config["adapters"]:
            self.load.start(adapter, [f"{adapter}{i}" for i in range(per_adapter)])

    async def settle(self, notices=()):
        """Stops the load, waits for the last answer and audits. Raises Failed when something is wrong."""
        await self.load.stop()
        journal = await wait_until_answered(self.daemon, self.load)
        findings = Audit(self.daemon, self.load, self.receiver, journal, notices).run()
        self.lab.total.add(findings)
        bad = findings.bad()
        if bad:
            raise Failed(await self._report(bad))
        return findings

    async def _report(self, bad):
        lines = []
        for what, items in bad.items():
            lines.append(f"{what}: {len(items)}")
            for item in items[:4]:
                lines.append(f"    {item}")
                event = re.search(r"\((evt-\d+)\)", item)
                if event:
                    why = await self.daemon.why(event.group(1))
                    turn, deliveries = why.get("turn") or {}, why.get("deliveries") or []
                    lines.append(f"        why: {why.get('summary')}; turn {turn.get('id')} {turn.get('state')} "
                                 f"attempt {turn.get('attempt')}; deliveries "
                                 f"{[(d['id'], d['state'], d['attempt']) for d in deliveries]}")
        return "\n".join(lines)
