"""
The audit at the end. It compares the load with the journal, read from its beginning after the last restart, and
with the receiver, which knows what arrived.
"""
import asyncio
import time
from dataclasses import dataclass, field

QUIET_SECONDS = 60  # without progress before waiting ends


class Journal:
    """The messages of the journal."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.client = daemon.client()
        self.cursor = "evt-0"
        self.received = {}  # event id -> event
        self.sent = []  # in order
        self.failed = []
        self.answered = set()  # event ids
        self.dead = {}  # event id -> (delivery, state) of a failed or unknown delivery

    async def read(self):
        """Reads new events; returns how many."""
        count = 0
        while True:
            page = await self.client.get(f"/api/v2/events?after={self.cursor}&limit=100&type=message.*")
            for event in page["items"]:
                await self._take(event)
            count += len(page["items"])
            if page["meta"]["cursor"]:
                self.cursor = page["meta"]["cursor"]
            if not page["meta"]["hasMore"]:
                return count

    async def _take(self, event):
        if event["type"] == "message.received":
            self.received[event["id"]] = event
        elif event["type"] == "message.sent":
            self.sent.append(event)
            self.answered.update(event["payload"].get("answers", []))
        elif event["type"] == "message.failed":
            self.failed.append(event)
            delivery = (await self.client.get(f"/api/v2/deliveries/{event['payload']['deliveryId']}"))["data"]
            for answered in delivery["payload"].get("answers", []):
                self.dead[answered] = delivery


async def wait_until_answered(daemon, load, seconds=QUIET_SECONDS):
    """Reads the journal until every acknowledged message is answered or dead, or nothing changes."""
    journal = Journal(daemon)
    changed = time.monotonic()
    while True:
        if await journal.read():
            changed = time.monotonic()
        pending = [e for e in load.by_event if e not in journal.answered and e not in journal.dead]
        if not pending or time.monotonic() - changed > seconds:
            return journal
        await asyncio.sleep(0.05)


@dataclass
class Findings:
    messages: int = 0
    acknowledged: int = 0
    lost: list = field(default_factory=list)  # acknowledged, but not in the journal
    unanswered: list = field(default_factory=list)
    twice: list = field(default_factory=list)
    disorder: list = field(default_factory=list)
    unknown: list = field(default_factory=list)  # where the receiver has no idempotency
    unknown_arrived: int = 0  # of these, how many the receiver got
    unknown_runs: int = 0  # runs of the daemon that left some
    traces: list = field(default_factory=list)
    wrong: list = field(default_factory=list)  # another chat, another text, never arrived
    problems: list = field(default_factory=list)

    FAULTS = (("lost", "acknowledged but not in the journal"), ("unanswered", "acknowledged but unanswered"),
              ("twice", "answered twice"), ("disorder", "out of order"), ("traces", "trace differs"),
              ("wrong", "wrong chat, wrong text or never arrived"), ("problems", "problems"))

    def bad(self):
        return {what: getattr(self, name) for name, what in self.FAULTS if getattr(self, name)}

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def _runs_of(daemon, events):
    """How many runs of the daemon wrote these events."""
    runs = set()
    for event in events:
        runs.add(sum(1 for start in daemon.runs if start * 1000 <= event["timestamp"] + 50))
    return len(runs)


class Audit:
    """Compares the load with journal and receiver. `notices`: accepted texts besides the echo."""

    def __init__(self, daemon, load, receiver, journal, notices=()):
        self.daemon, self.load, self.receiver, self.journal = daemon, load, receiver, journal
        self.notices = notices
        self.out = Findings(messages=len(load.messages), acknowledged=len(load.by_event))
        self.count = {}  # event id -> answers a person would see
        self.seen_in = {}  # event id -> deliveries of these answers
        self.last = {}  # chat -> number of the last message answered

    def run(self):
        self._stored()
        self._journal_answers()
        for endpoint in self.receiver.endpoints.values():
            self._arrived_answers(endpoint)
        self._ends()
        self.out.problems += self.load.problems[:20]
        return self.out

    def _stored(self):
        keys = set()
        for event in self.journal.received.values():
            key = (event["instanceId"], event["payload"]["id"])
            if key in keys:
                self.out.twice.append(f"{key[1]}: two events with one key")
            keys.add(key)
        for event, message in self.load.by_event.items():
            stored = self.journal.received.get(event)
            if not stored:
                self.out.lost.append(message.key)
            elif stored["traceId"] != message.trace or stored["payload"]["id"] != message.key:
                self.out.traces.append(f"{message.key}: acknowledged with trace {message.trace}, stored as "
                                       f"{stored['payload']['id']} with {stored['traceId']}")

    def _journal_answers(self):
        """Every message.sent; without a callback it is the answer itself."""
        called = self._called_adapters()
        seen = set()
        for event in self.journal.sent:
            delivery = event["payload"]["deliveryId"]
            if delivery in seen:
                self.out.twice.append(f"{delivery}: two message.sent events")
            seen.add(delivery)
            if event["instanceId"] in called:
                if delivery not in called[event["instanceId"]].deliveries:
                    self.out.wrong.append(f"{delivery}: recorded as sent, never arrived")
                self._check_trace(event["payload"].get("answers", []), event["traceId"], delivery)
            else:
                self._answer(event["payload"], event["channel"], event["traceId"], delivery)

    def _called_adapters(self):
        by_adapter = {}
        for endpoint in self.receiver.endpoints.values():
            for arrival in endpoint.arrivals:
                by_adapter[arrival.body["instanceId"]] = endpoint
        return by_adapter

    def _arrived_answers(self, endpoint):
        for arrival in endpoint.arrivals:
            self._answer(arrival.body["payload"], arrival.body["channel"], arrival.body["traceId"], arrival.key)
        for key in endpoint.changed_repeats:
            self.out.wrong.append(f"{key}: repeated with different content")

    def _answer(self, payload, channel, trace, delivery):
        answers = payload.get("answers", [])
        messages = [self.load.by_event.get(event) for event in answers]
        self._check_trace(answers, trace, delivery)
        for event, message in zip(answers, messages):
            self.count[event] = self.count.get(event, 0) + 1
            self.seen_in.setdefault(event, []).append(delivery)
            if message is None:
                self.out.wrong.append(f"{delivery}: answers {event}, which was never acknowledged")
                continue
            if message.chat != channel:
                self.out.wrong.append(f"{delivery}: answers {message.key} in chat {channel}")
            if self.count[event] == 1 and message.number <= self.last.get(message.chat, 0):
                self.out.disorder.append(f"{message.key}: after {self.last[message.chat]}")
            self.last[message.chat] = max(self.last.get(message.chat, 0), message.number)
        if None not in messages:
            expected = "\n".join(m.text for m in messages)
            if payload["text"] != expected and not any(n in payload["text"] for n in self.notices):
                self.out.wrong.append(f"{delivery}: says {payload['text'][:80]!r}, expected {expected[:80]!r}")

    def _check_trace(self, answers, trace, delivery):
        """A turn of several messages has the trace of the first."""
        first = self.journal.received.get(answers[0]) if answers else None
        if first and first["traceId"] != trace:
            self.out.traces.append(f"{delivery}: trace {trace}, its message has {first['traceId']}")

    def _ends(self):
        unknown = [e for e in self.journal.failed if e["payload"]["state"] == "unknown"]
        self.out.unknown_runs = _runs_of(self.daemon, unknown)
        for event, message in self.load.by_event.items():
            n = self.count.get(event, 0)
            dead = self.journal.dead.get(event)
            if n > 1:
                self.out.twice.append(f"{message.key} ({event}): {n} answers, as {self.seen_in[event]}")
            if dead and dead["state"] == "unknown" and message.adapter.startswith("once"):
                self.out.unknown.append(message.key)
                self.out.unknown_arrived += n
            elif n == 0 or event not in self.journal.answered:
                how = f"delivery {dead['id']} is {dead['state']}" if dead else "no answer"
                self.out.unanswered.append(f"{message.key} ({event}): {how}")
