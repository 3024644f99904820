"""Faults other than kills, each in a world of its own. A scenario returns a summary or raises Failed."""
import asyncio
import json
import os
import random
import signal
import sqlite3
import time

from audit import wait_until_answered
from receiver import Act
from world import World, check

SCENARIOS = []  # (name, coroutine function of the lab)
HOUR_MS = 3600 * 1000
TOO_LONG = "took too long"


def scenario(name):
    def add(function):
        SCENARIOS.append((name, function))
        return function
    return add


async def until(condition, what, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < deadline, f"waited {seconds} s for: {what}")
        await asyncio.sleep(0.01)


async def acks_grow(world, by):
    goal = len(world.load.by_event) + by
    await until(lambda: len(world.load.by_event) >= goal, f"{by} more messages acknowledged")


def short_turns(config, _):
    config["limits"]["turnSeconds"] = 1


# ---- the disk ----


async def disk_fails(world, **fault):
    """While the store cannot write, every post is refused and none acknowledged. Returns the number refused."""
    load, control = world.load, world.daemon.control
    refused = len(load.refusals)
    control.set(**fault)
    await until(lambda: len(load.refusals) >= refused + 100, "posts refused while the disk fails")
    since = time.monotonic()
    await asyncio.sleep(1)
    check(load.last_ack < since, "a message was acknowledged while the disk failed")
    statuses = {status for _, status, _ in load.refusals[refused:]}
    check(statuses <= {500, 503}, f"refused with {statuses}, expected 500 or 503")
    ready, _, _ = await world.daemon.client().request("GET", "/readyz")
    check(ready == 503, f"/readyz says {ready} while the disk fails")
    control.set()
    await acks_grow(world, 200)
    ready, _, _ = await world.daemon.client().request("GET", "/readyz")
    check(ready == 200, f"/readyz says {ready} after the disk recovered")
    return len(load.refusals) - refused


async def failing_disk(lab, name, **fault):
    async with World(lab, name) as world:
        await world.daemon.start()
        world.start_chats(6)
        await acks_grow(world, 100)
        refused = await disk_fails(world, **fault)
        refused += await disk_fails(world, **fault)
        findings = await world.settle()
        return f"{refused} posts refused with an error, {findings.acknowledged} messages, all answered once"


@scenario("fsync fails for a while")
async def fsync_fails(lab):
    return await failing_disk(lab, "fsync", fsync_fails=1)


@scenario("the disk is full for a while")
async def disk_full(lab):
    return await failing_disk(lab, "full", disk_full=1)


async def new_chats(world, stop):
    """Each message comes from a new chat, so that conversations are created while the disk flickers."""
    box, number = {}, 0
    while not stop.is_set():
        number += 1
        adapter = ("slow", "idem", "gather")[number % 3]
        await world.load.deliver(box, world.load.new_message(adapter, f"{adapter}-new{number}", 1))


@scenario("the disk flickers, with kills")
async def flickering_disk(lab):
    rng = random.Random(f"{lab.seed}/flicker")
    rounds = 8
    async with World(lab, "flicker", pause=0.1) as world:
        stop = asyncio.Event()
        new = [asyncio.ensure_future(new_chats(world, stop)) for _ in range(1)]
        world.start_chats(4)
        for _ in range(rounds):
            await world.daemon.start()
            for _ in range(12):
                world.daemon.control.set(**rng.choice(({"fsync_fails": 1}, {"disk_full": 1})))
                await asyncio.sleep(rng.uniform(0, 0.03))
                world.daemon.control.set()
                await asyncio.sleep(rng.uniform(0.005, 0.06))
            if rng.random() < 0.5:
                world.daemon.control.set(fsync_fails=1)
                await asyncio.sleep(0.02)
            await world.daemon.kill()
            lab.extra_kills += 1
            world.daemon.control.set()
        await world.daemon.start()
        stop.set()
        await asyncio.gather(*new)
        findings = await world.settle()
        return (f"{rounds} kills, {rounds * 12} short failures, {len(world.load.refusals)} posts refused, "
                f"{findings.acknowledged} messages, all answered once")


# ---- agents ----


@scenario("an agent hangs")
async def agent_hangs(lab):
    async with World(lab, "hang", short_turns) as world:
        await world.daemon.start()
        world.load.start("slow", [f"slow{i}" for i in range(8)], most=6,
                         text=lambda chat, n: f"hang {n}" if n in (1, 4) else f"{chat} says {n}")
        await world.load.finished()
        findings = await world.settle(notices=(TOO_LONG,))
        journal = await wait_until_answered(world.daemon, world.load)
        notices = sum(TOO_LONG in e["payload"]["text"] for e in journal.sent)
        check(notices == 16, f"16 messages made the agent hang, {notices} notices were sent")
        return f"{notices} notices, the other {findings.acknowledged - notices} messages answered after them"


def late_agent(config, receiver):
    short_turns(config, receiver)
    config["agents"]["late"] = {"type": "openai", "baseUrl": receiver.base + "/v1", "model": "m", "apiKey": "k",
                                "stream": False, "retries": 0}
    config["adapters"]["late"] = {"type": "api", "agent": "late"}
    config["adapters"]["late-idem"] = dict(config["adapters"]["idem"], agent="late")


@scenario("an agent answers after the timeout")
async def agent_late(lab):
    async with World(lab, "late", late_agent) as world:
        await world.daemon.start()
        world.receiver.completions.wait = 1.6
        for adapter in ("late", "late-idem"):
            world.load.start(adapter, [f"{adapter}{i}" for i in range(4)], most=2)
        await world.load.finished()
        await until(lambda: world.receiver.completions.answered == 16, "the late answers")
        await asyncio.sleep(0.3)
        findings = await world.settle(notices=(TOO_LONG,))
        asked = world.receiver.completions.asked
        check(len(asked) == 16, f"16 messages, but the agent was asked {len(asked)} times")
        return f"{findings.acknowledged} late answers came, each message got its notice and nothing else"


def late_agent_with_time(config, receiver):
    late_agent(config, receiver)
    config["limits"]["turnSeconds"] = 30


@scenario("killed while a model works")
async def model_interrupted(lab):
    async with World(lab, "model", late_agent_with_time) as world:
        await world.daemon.start()
        completions = world.receiver.completions
        completions.wait = 20.0  # longer than it takes to reach the kill
        world.load.start("late", [f"late{i}" for i in range(6)], most=1)
        await until(lambda: len(completions.asked) == 6, "the agent is asked")
        await world.daemon.kill()
        lab.extra_kills += 1
        completions.wait = 0.0
        await world.daemon.start()
        await world.load.finished()
        await world.settle()
        asked = len(completions.asked)
        check(asked == 12, f"6 calls were interrupted and should be repeated, but there were {asked} calls")
        return "6 calls interrupted and repeated, 6 messages answered once"


# ---- the clock ----


@scenario("the clock jumps by hours")
async def clock_jumps(lab):
    rng = random.Random(f"{lab.seed}/clock")
    jumps = (5, -5, 11, -11, 0)

    def slow_retries(config, _):
        config["adapters"]["gather"].update(debounceMs=400, debounceMaxMs=1500)
        config["limits"].update(retryBaseMs=200, retryCapMs=1000)

    async with World(lab, "clock", slow_retries) as world:
        world.receiver.idem.plan = lambda _: Act(status=503) if rng.random() < 0.3 else Act()
        await world.daemon.start()
        world.start_chats(5)
        for hours in jumps:
            await acks_grow(world, 60)
            world.daemon.control.set(clock_offset_ms=hours * HOUR_MS)
            await acks_grow(world, 60)
            if hours in (-5, 11, -11):
                await world.daemon.kill()
                lab.extra_kills += 1
                await world.daemon.start()
        findings = await world.settle()
        return f"{len(jumps)} jumps, 3 kills, {findings.acknowledged} messages, all answered once"


@scenario("the clock jumps while schedules wait")
async def clock_jumps_over_schedules(lab):
    """What a jump passes is due once, late; a clock that is set back repeats nothing and holds nothing up for good."""
    day = 24 * HOUR_MS
    daily = time.strftime("%M %H * * *", time.gmtime(time.time() + 12 * 3600))  # never close to now

    def sent(world):
        store = sqlite3.connect(f"file:{world.daemon.state}/main.db?mode=ro", uri=True, timeout=20)
        rows = store.execute("SELECT payload FROM journal WHERE type = 'message.sent'").fetchall()
        store.close()
        return sorted(json.loads(payload)["text"] for payload, in rows)

    async def sent_is(world, count, what):
        """All of them are there, and no more of them come."""
        await until(lambda: len(sent(world)) >= count, f"{count} messages {what}")
        await asyncio.sleep(1)
        check(len(sent(world)) == count, f"{what}: {len(sent(world))} messages, not {count}: {sent(world)[:10]}")

    async with World(lab, "jumps") as world:
        await world.daemon.start()
        client = world.daemon.client()
        for when, text in (({"in": "1h"}, "a"), ({"in": "30h"}, "b"), ({"in": "400d"}, "c"), ({"cron": daily, "missed": "all"}, "d")):
            status, _, answer = await client.request("POST", "/api/v2/schedules", {
                **when, "text": text, "instanceId": "journal", "to": "c1", "timezone": "UTC", "maxAgeSeconds": 0})
            check(status == 201, f"scheduling was answered with {status}: {answer}")
        control = world.daemon.control
        control.set(clock_offset_ms=3 * day)  # over a, b, and three times d
        await sent_is(world, 5, "after a jump of three days")
        texts = sent(world)
        check([t[0] for t in texts] == list("abddd") and all("(late:" in t for t in texts), f"after a jump of three days: {texts}")
        control.set(clock_offset_ms=-3 * day)
        await sent_is(world, 5, "after it was set back")
        await world.daemon.kill()
        await world.daemon.start()
        await sent_is(world, 5, "after a restart in the past")
        control.set(clock_offset_ms=3 * day)
        await sent_is(world, 5, "after it was corrected")
        control.set(clock_offset_ms=401 * day)  # over c, and more of d than are caught up with
        await sent_is(world, 106, "after a jump of a year")
        lab.extra_kills += 1
        return "4 jumps, a kill, each due time once, each late one said so"


# ---- the receiver ----


@scenario("the receiver answers 429 with Retry-After")
async def rate_limited(lab):
    def few_attempts(config, _):
        config["limits"]["deliveryAttempts"] = 2

    async with World(lab, "429", few_attempts) as world:
        refusals = {}  # of the first deliveries seen

        def plan(body):
            if body["id"] not in refusals and len(refusals) >= 6:
                return Act()
            n = refusals[body["id"]] = refusals.get(body["id"], 0) + 1
            return Act(status=429, headers={"Retry-After": "1"}) if n <= 3 else Act()
        world.receiver.idem.plan = world.receiver.once.plan = plan
        await world.daemon.start()
        for adapter in ("idem", "once"):
            world.load.start(adapter, [f"{adapter}{i}" for i in range(10)], most=10)
        await world.load.finished()
        findings = await world.settle()
        most = max(refusals.values()) - 1
        check(most >= 3, f"expected three refusals of one delivery, saw {most}")
        check(not findings.unknown, f"a refusal is not unknown: {findings.unknown}")
        return (f"{world.receiver.idem.refused + world.receiver.once.refused} refusals, up to {most} of one delivery "
                f"that has 2 attempts, {findings.acknowledged} messages")


@scenario("the receiver answers 5xx in storms")
async def storms(lab):
    async with World(lab, "5xx") as world:
        rng = random.Random(f"{lab.seed}/5xx")
        storm = {"on": False}

        def plan(_):
            return Act(status=rng.choice((500, 503))) if storm["on"] else Act()
        world.receiver.idem.plan = world.receiver.once.plan = plan
        await world.daemon.start()
        world.start_chats(10, ("idem", "once"))
        for _ in range(3):
            await acks_grow(world, 100)
            storm["on"] = True
            await asyncio.sleep(0.7)
            storm["on"] = False
        findings = await world.settle()
        check(not findings.unknown, f"a refusal is not unknown: {findings.unknown}")
        return f"{world.receiver.idem.refused + world.receiver.once.refused} refusals, {findings.acknowledged} messages"


@scenario("the receiver cuts the connection in its answer")
async def cuts(lab):
    async with World(lab, "cut") as world:
        rng = random.Random(f"{lab.seed}/cut")
        cut = {}

        def plan(body):
            act = Act(cut=rng.choice(("head", "body")) if rng.random() < 0.25 else "")
            what = (body["instanceId"], act.cut)
            cut[what] = cut.get(what, 0) + 1
            return act
        world.receiver.idem.plan = world.receiver.once.plan = plan
        await world.daemon.start()
        world.start_chats(10, ("idem", "once"))
        await acks_grow(world, 400)
        findings = await world.settle()
        heads = cut[("once", "head")]
        check(world.receiver.idem.repeats > 0, "no post was repeated to the idempotent receiver after a cut answer")
        check(len(findings.unknown) == heads, f"{heads} unreadable answers, but {len(findings.unknown)} unknown")
        return (f"{sum(n for (_, how), n in cut.items() if how)} cuts, {findings.acknowledged} messages, "
                f"{world.receiver.idem.repeats} repeated posts recognised, unknown {heads} (all had arrived)")


@scenario("the receiver answers very slowly")
async def slowness(lab):
    def short_timeouts(config, _):
        for adapter in ("idem", "once"):
            config["adapters"][adapter]["timeoutMs"] = 300

    async with World(lab, "slow", short_timeouts) as world:
        rng = random.Random(f"{lab.seed}/slow")
        world.receiver.idem.plan = world.receiver.once.plan = (
            lambda _: Act(wait=0.8 if rng.random() < 0.1 else 0))
        await world.daemon.start()
        for adapter in ("idem", "once"):
            world.load.start(adapter, [f"{adapter}{i}" for i in range(10)], most=20)
        await world.load.finished()
        findings = await world.settle()
        check(findings.unknown, "a post that timed out must be unknown where it cannot be repeated")
        check(findings.unknown_arrived == len(findings.unknown), "a post that timed out had not arrived")
        return (f"{findings.acknowledged} messages, {world.receiver.idem.repeats} repeated posts recognised, unknown "
                f"{len(findings.unknown)} (all had arrived)")


# ---- the process ----


@scenario("SIGTERM under load")
async def terminated(lab):
    rounds = 4
    async with World(lab, "term", pause=0.1) as world:
        world.receiver.once.plan = lambda _: Act(wait=0.3)
        world.start_chats(8)
        slowest = 0
        for _ in range(rounds):
            await world.daemon.start()
            await acks_grow(world, 100)
            world.daemon.up.clear()
            began = time.monotonic()
            world.daemon.signal(signal.SIGTERM)
            code = await world.daemon.ended(60)
            check(code == 0, f"SIGTERM ended it with {code}: {world.daemon.log_tail()}")
            slowest = max(slowest, time.monotonic() - began)
        await world.daemon.start()
        findings = await world.settle()
        check(not findings.unknown, f"a clean stop waits for its posts, but {findings.unknown} are unknown")
        return f"{rounds} clean stops, the slowest took {slowest:.2f} s, {findings.acknowledged} messages"


@scenario("SIGHUP under load")
async def reloaded(lab):
    async with World(lab, "hup", pause=0.1) as world:
        await world.daemon.start()
        world.start_chats(6)
        pid = world.daemon.process.pid
        for round_ in range(6):
            await acks_grow(world, 50)
            if round_ == 2:
                world.daemon.write_config('{ "http": 7 ')
            else:
                config = world.copy_config()
                config["adapters"][f"more{round_}"] = {"type": "api", "agent": "echo"}
                world.daemon.write_config(config)
            world.daemon.signal(signal.SIGHUP)
        await acks_grow(world, 50)
        check(world.daemon.alive and world.daemon.process.pid == pid, "the daemon did not survive its reloads")
        world.load.start("more5", ["new"], most=3)
        await acks_grow(world, 3)
        findings = await world.settle()
        check(not findings.unknown, f"a reload leaves posts alone, but {findings.unknown} are unknown")
        return f"6 reloads, one of them broken, {findings.acknowledged} messages, same process"


@scenario("a second process on the same directory")
async def second_process(lab):
    async with World(lab, "second") as world:
        await world.daemon.start()
        world.start_chats(4)
        await acks_grow(world, 50)
        code, said = await world.daemon.run_once()
        check(code is not None and code > 0, f"the second process ended with {code}: {said}")
        last = said.splitlines()[-1] if said else ""
        check(last.startswith("dragoman: ") and len(last) > 30, f"the refusal is not a clear sentence: {said!r}")
        check(world.daemon.alive, "the first process died")
        with open(os.path.join(world.daemon.state, "http.addr"), encoding="utf-8") as f:
            check(f.read().strip() == world.daemon.address, "the second process took over http.addr")
        await acks_grow(world, 50)
        await world.settle()
        return f"refused with {code}: {last}"


def overwrite(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def damages(path):
    size = os.path.getsize(path)
    return (
        ("its head is garbage", lambda: overwrite(path, 0, b"not a database at all" * 40)),
        ("pages in the middle are garbage", lambda: overwrite(path, 4096, os.urandom(size - 4096))),
        ("its second half is missing", lambda: os.truncate(path, size // 2)),
    )


@scenario("a corrupt database file")
async def corrupt(lab):
    sentences = []
    for i in range(3):
        async with World(lab, f"corrupt{i}") as world:
            await world.daemon.start()
            world.start_chats(4)
            await acks_grow(world, 300)
            await world.settle()
            world.daemon.signal(signal.SIGTERM)
            check(await world.daemon.ended(60) == 0, "it did not stop cleanly")
            what, damage = damages(os.path.join(world.daemon.state, "main.db"))[i]
            damage()
            code, said = await world.daemon.run_once()
            check(code is not None and code > 0, f"{what}: it ended with {code}: {said[-300:]}")
            last = said.splitlines()[-1] if said else ""
            check(last.startswith("dragoman: ") and len(last) > 30, f"{what}: not a clear sentence: {said!r}")
            sentences.append(f"{what}: {last}")
    return "; ".join(sentences)
