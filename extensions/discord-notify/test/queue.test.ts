import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Breaker } from "../src/breaker.ts";
import { cut, type Draft, Entry, Outbox, type SessionEvent } from "../src/outbox.ts";
import { Spool } from "../src/spool.ts";
import { temporary } from "./rig.ts";

let count = 0;
const draft = (event_type: string, content = "", limit = 65_536): Draft => ({
  session_id: "s",
  event_type,
  content,
  metadata: {},
  timestamp: "",
  event_id: `e-${++count}`,
  limit,
});
const entry = (type: string, content?: string) => new Entry(draft(type, content), type);
const notice = (dropped: ReadonlyMap<string, number>): Draft => ({
  ...draft("notice"),
  metadata: { dropped: Object.fromEntries(dropped) },
});
const outbox = (events: number, bytes = 1e9) =>
  new Outbox({ events, bytes }, (text) => text, notice);
const types = (body: string) =>
  (JSON.parse(body) as SessionEvent[]).map((event) => event.event_type);

test("events leave in order, at most 200 at once", () => {
  const queue = outbox(1000);
  for (let i = 0; i < 450; i++) queue.add(entry(`t_${i}`));
  const sizes: number[] = [];
  const order: string[] = [];
  while (queue.size > 0) {
    const { entries, body } = queue.take();
    sizes.push(entries.length);
    order.push(...types(body));
    queue.done(entries);
  }
  assert.deepEqual(sizes, [200, 200, 50]);
  assert.deepEqual(
    order,
    Array.from({ length: 450 }, (_, i) => `t_${i}`),
  );
  assert.equal(queue.bytes, 0);
});

test("a batch that was not sent comes again, first", () => {
  const queue = outbox(100);
  for (const type of ["a", "b", "c"]) queue.add(entry(type));
  const { entries } = queue.take(2);
  queue.add(entry("d"));
  queue.giveBack(entries);
  assert.deepEqual(types(queue.take().body), ["a", "b", "c", "d"]);
});

test("when it is full, tool calls go first, then others; turns and questions late, beginnings last", () => {
  const queue = outbox(6);
  for (const type of [
    "session_start",
    "tool_call",
    "error",
    "turn_end",
    "tool_call",
    "approval_request",
  ])
    queue.add(entry(type));
  for (const type of ["tool_result", "turn_end", "error", "tool_call"]) queue.add(entry(type));
  const { body } = queue.take();
  assert.deepEqual(types(body), [
    "notice",
    "session_start",
    "error",
    "turn_end",
    "approval_request",
    "turn_end",
    "error",
  ]);
  const [first] = JSON.parse(body) as SessionEvent[];
  assert.deepEqual(first?.metadata.dropped, { tool_call: 3, tool_result: 1 });
  for (let i = 0; i < 6; i++) queue.add(entry("turn_end"));
  assert.equal(queue.droppedTotal, 4 + 6); // those that are being sent count
  queue.add(entry("session_start"));
  for (let i = 0; i < 10; i++) queue.add(entry("turn_end"));
  assert.ok(queue.lines().some((line) => line.includes("session_start")));
});

test("its size in bytes is limited too", () => {
  const queue = outbox(1000, 100_000);
  for (let i = 0; i < 50; i++) queue.add(entry("tool_call", "x".repeat(10_000)));
  assert.ok(queue.bytes <= 100_000);
  assert.equal(queue.droppedTotal, 50 - queue.size);
});

test("a batch given back to a full queue makes room by the same order", () => {
  const queue = outbox(4);
  for (const type of ["tool_call", "turn_end"]) queue.add(entry(type));
  const { entries } = queue.take();
  queue.add(entry("tool_call"));
  queue.add(entry("session_end"));
  queue.giveBack(entries);
  queue.add(entry("turn_end"));
  assert.deepEqual(types(queue.take().body), [
    "notice",
    "turn_end",
    "tool_call",
    "session_end",
    "turn_end",
  ]);
});

test("texts are cut at characters, and what JSON cannot hold is replaced", () => {
  assert.equal(cut("abc", 3), "abc");
  assert.equal(cut("äöü", 5), "ä…");
  assert.equal(cut("🎲".repeat(100), 50), `${"🎲".repeat(11)}…`);
  const queue = outbox(10);
  queue.add(entry("a", "nul \0, half 🎲".slice(0, -1)));
  queue.add(new Entry(draft("b", "x".repeat(100_000), 1e9), "b"));
  const [a, b] = JSON.parse(queue.take().body) as SessionEvent[];
  assert.equal(a?.content, "nul \ufffd, half \ufffd");
  assert.equal(Buffer.byteLength(b?.content ?? ""), 65_536);
});

test("the breaker opens after failures in a row, and lets one probe through", () => {
  let now = 0;
  const breaker = new Breaker({ failures: 3, now: () => now, random: () => 1 });
  for (let i = 0; i < 2; i++) {
    assert.ok(breaker.allow());
    breaker.failed();
  }
  assert.ok(breaker.allow());
  breaker.succeeded();
  for (let i = 0; i < 3; i++) breaker.failed();
  assert.equal(breaker.state, "open");
  assert.ok(!breaker.allow());
  now += 1000;
  assert.ok(breaker.allow());
  assert.ok(!breaker.allow(), "only one probe");
  breaker.failed();
  assert.equal(breaker.pauseMs, 2000);
  now += 2000;
  assert.ok(breaker.allow());
  breaker.abandoned();
  assert.ok(breaker.allow());
  breaker.succeeded();
  assert.equal(breaker.state, "closed");
});

test("the pause of the breaker grows to a limit, is spread, and obeys the gateway", () => {
  let now = 0;
  const breaker = new Breaker({ now: () => now, random: () => 0, longestPauseMs: 60_000 });
  for (let i = 0; i < 40; i++) {
    breaker.failed();
    now += breaker.pauseMs;
  }
  breaker.failed();
  assert.equal(breaker.pauseMs, 30_000);
  breaker.succeeded();
  breaker.failed(120_000);
  assert.equal(breaker.pauseMs, 120_000);
});

test("what could not be sent is on disk, for this user alone, and read once", () => {
  const folder = temporary();
  const spool = new Spool(folder, "gateway", 1000);
  spool.save(["{1}", "{2}"]);
  const [file = ""] = readdirSync(join(folder, "gateway"));
  assert.equal(statSync(join(folder, "gateway", file)).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, "gateway")).mode & 0o777, 0o700);
  assert.deepEqual(new Spool(folder, "other", 1000).takeOver(), []);
  assert.deepEqual(new Spool(folder, "gateway", 1000).takeOver(), ["{1}", "{2}"]);
  assert.deepEqual(new Spool(folder, "gateway", 1000).takeOver(), []);
  spool.save(["{3}"]);
  spool.save([]);
  assert.deepEqual(readdirSync(join(folder, "gateway")), []);
});

test("files of processes that have ended are taken over, of others not; the newest events are kept", () => {
  const folder = temporary();
  const spool = new Spool(folder, "g", 30);
  spool.save(["a".repeat(20), "b".repeat(20), "c".repeat(8)]);
  writeFileSync(join(folder, "g", "queue-999999999.jsonl"), "dead\n", { mode: 0o600 });
  writeFileSync(join(folder, "g", "queue-1.jsonl"), "alive\n", { mode: 0o600 });
  const lines = spool.takeOver();
  assert.deepEqual(lines.sort(), ["b".repeat(20), "c".repeat(8), "dead"]);
  assert.ok(existsSync(join(folder, "g", "queue-1.jsonl")));
});
