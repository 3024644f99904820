/** Sending and receiving, against a gateway that misbehaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Breaker } from "../src/breaker.ts";
import { type Carry, type Command, EventParser, Receiver } from "../src/commands.ts";
import { Gateway } from "../src/gateway.ts";
import { type Draft, Entry, Outbox } from "../src/outbox.ts";
import { Repeater } from "../src/repeater.ts";
import { Sender } from "../src/sender.ts";
import { FakeGateway, until } from "./rig.ts";

const quick = () => new Breaker({ firstPauseMs: 20, longestPauseMs: 40 });

async function rig(timeoutMs = 5000) {
  const fake = await new FakeGateway().start();
  const gateway = new Gateway({ url: fake.url, key: "k", timeoutMs, breaker: quick() });
  const draft = (event_type: string, event_id: string): Draft => ({
    session_id: "s",
    event_type,
    content: event_id,
    metadata: {},
    timestamp: "",
    event_id,
    limit: 100,
  });
  const outbox = new Outbox(
    { events: 1000, bytes: 1e6 },
    (text) => text,
    () => draft("notice", "n"),
  );
  const sender = new Sender(outbox, gateway);
  const add = (id: string, type = "tool_call") => {
    outbox.add(new Entry(draft(type, id), type));
    sender.wake(0);
  };
  const ids = () => fake.events.map((event) => event.event_id);
  return { fake, gateway, outbox, sender, add, ids };
}

test("events wait while the gateway is away, and arrive in order and once when it is back", async () => {
  const { fake, outbox, sender, add, ids } = await rig();
  add("1");
  await until("the first is there", () => ids().length === 1);
  await fake.stop();
  for (const id of ["2", "3", "4"]) add(id);
  await until("a request has failed", () => outbox.size === 3 && !ids().includes("2"));
  await fake.start();
  for (const id of ["5", "6"]) add(id);
  await until("all are there", () => ids().length === 6);
  assert.deepEqual(ids(), ["1", "2", "3", "4", "5", "6"]);
  await until("nothing waits", () => outbox.size === 0);
  await sender.stop();
});

test("a batch whose answer was lost is sent again, and stored once", async () => {
  const { fake, sender, add, ids } = await rig();
  let cuts = 2;
  fake.trick = () => (cuts-- > 0 ? "cut-after" : undefined);
  add("1");
  add("2");
  await until("both are there and known", () => fake.duplicates === 4);
  assert.deepEqual(ids(), ["1", "2"]);
  await sender.stop();
});

test("one request is under way at a time", async () => {
  const { fake, sender, add, ids } = await rig(60_000);
  let open = 0;
  fake.trick = () => {
    open++;
    return open === 1 ? "hang" : undefined;
  };
  for (let i = 0; i < 20; i++) {
    add(`e${i}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(open, 1);
  await fake.stop();
  await fake.start();
  await until("all are there", () => ids().length === 20);
  await sender.stop();
});

test("an event that the gateway cannot take holds up no other", async () => {
  const { fake, outbox, sender, add, ids } = await rig();
  fake.trick = ({ body }) =>
    body.includes("poison")
      ? { status: 400, body: { error: { message: "[3].content" } } }
      : undefined;
  for (const id of ["1", "2", "poison", "3", "4", "5"]) add(id);
  await until("the others are there", () => ids().length === 5);
  assert.deepEqual(ids(), ["1", "2", "3", "4", "5"]);
  await until("nothing waits", () => outbox.size === 0);
  assert.equal(sender.refused, 1);
  await sender.stop();
});

test("a session of another key holds up no other, and is asked about once", async () => {
  const { fake, outbox, sender, add, ids } = await rig();
  const isForeign = (body: string) => body.includes('"session_id":"theirs"');
  fake.trick = ({ body }) =>
    isForeign(body)
      ? { status: 404, body: { error: { message: "there is no session 'theirs'" } } }
      : undefined;
  const theirs = (id: string) => {
    const event = { session_id: "theirs", event_id: id, content: "", event_type: "tool_call" };
    outbox.add(new Entry(JSON.stringify(event), "tool_call", undefined, "theirs"));
  };
  for (let i = 0; i < 100; i++) theirs(`a${i}`);
  for (const id of ["1", "2", "3"]) add(id);
  await until("ours are there", () => ids().length === 3);
  await until("nothing waits", () => outbox.size === 0);
  assert.deepEqual(ids(), ["1", "2", "3"]);
  assert.equal(sender.refused, 100);
  assert.ok(sender.isForeign("theirs"));
  const asked = fake.requests.filter(({ body }) => isForeign(body)).length;
  assert.ok(asked <= 10, `${asked} requests`);
  theirs("b");
  add("4");
  await until("the next is there", () => ids().length === 4);
  assert.equal(fake.requests.filter(({ body }) => isForeign(body)).length, asked);
  assert.equal(outbox.bytes, 0);
  await sender.stop();
});

test("an address without our routes loses no event", async () => {
  const { fake, gateway, outbox, sender, add } = await rig();
  fake.trick = () => ({ status: 404, body: { error: { message: "there is no route 'x'" } } });
  add("1");
  await until("it is open", () => gateway.breaker.state === "open");
  assert.equal(outbox.size, 1);
  assert.equal(sender.refused, 0);
  await sender.stop();
});

test("while the breaker is open nothing is asked; a refused key opens it", async () => {
  const { fake, gateway, outbox, sender, add } = await rig();
  fake.trick = () => ({ status: 401, body: { error: { message: "no such key" } } });
  add("1");
  await until("it is open", () => gateway.breaker.state !== "closed" || undefined);
  assert.match(gateway.lastError ?? "", /no such key \(401\)/);
  assert.equal(outbox.size, 1);
  await sender.stop();
});

test("the gateway's wish for a pause is obeyed", async () => {
  const { fake, gateway } = await rig();
  fake.trick = () => ({ status: 429, headers: { "retry-after": "7" }, body: {} });
  await gateway.get("/x");
  assert.ok(gateway.breaker.pauseMs > 6000);
  const asked = fake.requests.length;
  assert.equal((await gateway.get("/x")).kind, "failed");
  assert.equal(fake.requests.length, asked);
});

test("a redirection is not followed, since the key is for one address", async () => {
  const { fake, gateway } = await rig();
  const other = await new FakeGateway().start();
  fake.trick = () => ({ status: 302, headers: { location: `${other.url}/x` } });
  assert.notEqual((await gateway.get("/x")).kind, "ok");
  assert.equal(other.requests.length, 0);
});

// ---- commands ----

function receive(
  gateway: Gateway,
  carry: Carry,
  options: { stream?: boolean; silenceMs?: number; now?: () => number } = {},
) {
  const repeater = new Repeater(gateway, [5]);
  const common = { gateway, repeater, session: "s", stream: true, pollMs: 20 };
  return new Receiver({ ...common, carry, ...options });
}

/** Notes what is carried out; everything is read at once. */
function notebook() {
  const carried: string[] = [];
  const carry = (command: Command) => {
    carried.push(command.content);
    return { status: "seen" as const };
  };
  return { carried, carry };
}

for (const stream of [true, false])
  test(`commands are carried out in order by ${stream ? "stream" : "polling"}, acknowledged before and after`, async () => {
    const { fake, gateway } = await rig();
    const { carried, carry } = notebook();
    fake.tell("s", { action: "steer", content: "one" });
    const receiver = receive(gateway, carry, { stream });
    await until("the first is carried out", () => carried.length === 1);
    fake.tell("s", { action: "steer", content: "two" });
    fake.tell("other", { action: "steer", content: "not ours" });
    fake.tell("s", { action: "followUp", content: "three" });
    await until("all are", () => carried.length === 3 && fake.acks.length === 6);
    assert.deepEqual(carried, ["one", "two", "three"]);
    assert.deepEqual(
      fake.acks.map((ack) => ack.status),
      ["delivered", "seen", "delivered", "seen", "delivered", "seen"],
    );
    assert.ok(fake.acks.filter((ack) => ack.status === "delivered").every((ack) => ack.receipt));
    receiver.stop();
  });

test("a command that somebody else has is not carried out", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  const taken = fake.tell("s", { action: "steer", content: "taken" });
  let first = true;
  fake.trick = ({ path }) => {
    if (first && path.includes("/ack")) {
      first = false;
      const known = fake.commands.get(taken.command_id);
      if (known) Object.assign(known, { state: "delivered", receipt: "of another" });
    }
    return undefined;
  };
  const receiver = receive(gateway, carry);
  await until("it is refused", () => fake.acks.length === 1);
  fake.tell("s", { action: "steer", content: "ours" });
  await until("ours is carried out", () => carried.length === 1);
  assert.deepEqual(carried, ["ours"]);
  receiver.stop();
});

test("an acknowledgement whose answer was lost is repeated, and the command carried out once", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  let cuts = 2;
  fake.trick = ({ path }) => (path.includes("/ack") && cuts-- > 0 ? "cut-after" : undefined);
  fake.tell("s", { action: "steer", content: "once" });
  const receiver = receive(gateway, carry);
  await until("it is read", () => fake.states()[0] === "seen");
  assert.deepEqual(carried, ["once"]);
  const receipts = new Set(
    fake.acks.filter((ack) => ack.status === "delivered").map((ack) => ack.receipt),
  );
  assert.equal(receipts.size, 1);
  receiver.stop();
});

test("a command is not carried out while its acknowledgement fails, and is later", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  let down = true;
  fake.trick = ({ path }) =>
    down && path.includes("/ack") ? { status: 503, body: {} } : undefined;
  fake.tell("s", { action: "steer", content: "later" });
  const receiver = receive(gateway, carry, { stream: false });
  await until("it was tried", () => fake.requests.some(({ path }) => path.includes("/ack")));
  assert.deepEqual(carried, []);
  down = false;
  await until("it is carried out", () => carried.length === 1);
  receiver.stop();
});

for (const stream of [true, false])
  test(`a command that the gateway noted before it went away is carried out when it is back, by ${stream ? "stream" : "polling"}`, async () => {
    const { fake, gateway } = await rig();
    const { carried, carry } = notebook();
    let failures = 0;
    const post = gateway.post.bind(gateway);
    gateway.post = async (...request) => {
      const outcome = await post(...request);
      if (outcome.kind === "failed") failures++;
      return outcome;
    };
    fake.trick = ({ path }) => (path.includes("/ack") ? "cut-after" : undefined);
    const command = fake.tell("s", { action: "steer", content: "once" });
    const receiver = receive(gateway, carry, { stream });
    await until("it is noted", () => fake.states()[0] === "delivered");
    await fake.stop();
    const before = failures;
    await until("it was tried many times", () => failures > before + 20);
    assert.deepEqual(carried, []);
    fake.trick = () => undefined;
    await fake.start();
    fake.tell("s", { action: "steer", content: "the next" });
    await until("both are read", () => fake.states().join() === "seen,seen");
    assert.deepEqual(carried, ["once", "the next"]);
    const receipts = fake.acks.filter(
      ({ id, status }) => id === command.command_id && status === "delivered",
    );
    assert.equal(new Set(receipts.map(({ receipt }) => receipt)).size, 1);
    receiver.stop();
  });

test("a command whose acknowledgement took an hour is not carried out", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  let now = Date.now();
  fake.trick = ({ path }) => (path.includes("/ack") ? { status: 503, body: {} } : undefined);
  fake.tell("s", { action: "steer", content: "late" });
  const receiver = receive(gateway, carry, { now: () => now });
  await until("it was tried", () => fake.requests.some(({ path }) => path.includes("/ack")));
  now += 3_601_000;
  fake.trick = () => undefined;
  await until("it has failed", () => fake.states()[0] === "failed");
  assert.deepEqual(carried, []);
  receiver.stop();
});

test("a gateway that restarts loses no command and doubles none", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  const receiver = receive(gateway, carry);
  for (let i = 0; i < 5; i++) {
    fake.tell("s", { action: "steer", content: `before ${i}` });
    await fake.stop();
    fake.tell("s", { action: "steer", content: `while ${i}` });
    await fake.start();
  }
  await until("all are carried out", () => carried.length === 10);
  assert.equal(new Set(carried).size, 10);
  receiver.stop();
});

test("behind a proxy that holds back the stream, commands come by polling", async () => {
  const { fake, gateway } = await rig();
  fake.greeting = "";
  const { carried, carry } = notebook();
  const receiver = receive(gateway, carry, { silenceMs: 100 });
  for (let i = 0; i < 3; i++) {
    fake.tell("s", { action: "steer", content: `${i}` });
    await until("it is carried out", () => carried.length === i + 1);
  }
  assert.equal(receiver.way, "poll");
  receiver.stop();
});

test("a working stream ends polling, and a broken one begins it", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  const receiver = receive(gateway, carry);
  await until("the stream works", () => receiver.way === "stream");
  fake.streams = false;
  await fake.stop();
  await fake.start();
  await until("polling again", () => receiver.way === "poll");
  fake.tell("s", { action: "steer", content: "x" });
  await until("it is carried out", () => carried.length === 1);
  receiver.stop();
});

test("commands older than an hour by the gateway's clock are not carried out", async () => {
  const { fake, gateway } = await rig();
  const { carried, carry } = notebook();
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  fake.tell("s", { action: "steer", content: "stale", created_at: ago(61) });
  fake.tell("s", { action: "steer", content: "fresh", created_at: ago(59) });
  const receiver = receive(gateway, carry);
  await until("both have ended", () => fake.states().join() === "failed,seen");
  assert.deepEqual(carried, ["fresh"]);
  assert.match(fake.acks.find((ack) => ack.status === "failed")?.error ?? "", /older than an hour/);
  receiver.stop();
});

test("a command that fails says why", async () => {
  const { fake, gateway } = await rig();
  fake.tell("s", { action: "steer", content: "x" });
  const receiver = receive(gateway, () => {
    throw new Error("the agent is busy");
  });
  await until("it has failed", () => fake.states()[0] === "failed");
  assert.equal(fake.acks.at(-1)?.error, "the agent is busy");
  receiver.stop();
});

test("streams are read however they are split", () => {
  const text =
    ': ping\r\n\r\nevent: command\nid: 1\ndata: {"a":\ndata: 1}\n\nevent: other\ndata: {}\n\nevent:command\rdata:{"b":2}\r\rdata: x\n\n';
  for (let step = 1; step < text.length; step++) {
    const found: unknown[] = [];
    const parser = new EventParser((data) => found.push(data));
    for (let i = 0; i < text.length; i += step) assert.ok(parser.push(text.slice(i, i + step)));
    assert.deepEqual(found, [{ a: 1 }, { b: 2 }], `step ${step}`);
  }
});

test("a stream without an end of line is given up", () => {
  const parser = new EventParser(() => {});
  let taken = 0;
  while (taken < 100 && parser.push("x".repeat(65_536))) taken++;
  assert.ok(taken < 100);
});
