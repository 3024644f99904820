/** The extension whole, driven as pi and omp drive it, against a gateway. */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { configure, FakeAgent, FakeGateway, until } from "./rig.ts";

async function rig(options: { omp?: boolean; settings?: object; started?: boolean } = {}) {
  const fake = await new FakeGateway().start();
  const home = configure(fake.url, options.settings);
  const agent = new FakeAgent({ omp: options.omp ?? false });
  if (options.started !== false) {
    agent.emit("session_start", { reason: "startup" });
    await until("the session is known", () => fake.of("session_start").length === 1);
  }
  return { fake, agent, home };
}

const metadata = (fake: FakeGateway, type: string, i = 0) => fake.of(type)[i]?.metadata ?? {};

// ---- events ----

test("a run is reported from beginning to end", async () => {
  const { fake, agent } = await rig({ started: false });
  agent.sessionName = "fix the build";
  agent.emit("session_start", { reason: "startup" });
  agent.emit("before_agent_start", { prompt: "go" });
  agent.emit("agent_start");
  agent.emit("turn_start");
  agent.call("ls", "c1");
  agent.result("c1", "a\nb");
  const usage = { input: 10, output: 2, totalTokens: 12, cost: { total: 0.5 } };
  agent.emit("turn_end", {
    message: { role: "assistant", content: [{ type: "toolCall" }], usage },
  });
  agent.emit("turn_start");
  agent.emit("turn_end", {
    message: { role: "assistant", content: [{ type: "text", text: "done" }], usage },
  });
  agent.emit("agent_end");
  agent.emit("agent_settled");
  await agent.quit();

  assert.deepEqual(fake.types(), [
    "session_start",
    "tool_call",
    "tool_result",
    "turn_end",
    "turn_end",
    "session_end",
  ]);
  const { host, cwd, ...start } = metadata(fake, "session_start");
  assert.ok(host && cwd === agent.cwd);
  assert.deepEqual(start, {
    program: "pi",
    title: "fix the build",
    model: "fake/m-1",
    mode: "print",
    reason: "startup",
  });
  assert.equal(fake.of("tool_call")[0]?.tool_name, "bash");
  assert.equal(fake.of("tool_call")[0]?.content, "ls");
  assert.deepEqual(metadata(fake, "tool_call"), { toolCallId: "c1", cwd: agent.cwd });
  const { durationMs, ...result } = metadata(fake, "tool_result");
  assert.ok(Number(durationMs) >= 0);
  assert.deepEqual(result, { toolCallId: "c1", isError: false });
  assert.equal(fake.of("tool_result")[0]?.content, "a\nb");
  const flat = { totalTokens: 12, input: 10, output: 2, cost: 0.5 };
  assert.deepEqual(metadata(fake, "turn_end", 0), {
    usage: flat,
    pending: false,
    final: false,
    outcome: "completed",
  });
  assert.equal(metadata(fake, "turn_end", 1).final, true);
  assert.equal(fake.of("turn_end")[1]?.content, "done");
  assert.deepEqual(metadata(fake, "session_end"), { reason: "quit" });
  assert.equal(new Set(fake.events.map((event) => event.event_id)).size, fake.events.length);
  assert.ok(fake.requests.every(({ key }) => key === "drg_test_key_1234567890"));
});

test("a session is titled by its first prompt, renamed, and follows the model", async () => {
  const { fake, agent } = await rig();
  agent.prompt("fix the build\nplease");
  agent.prompt("another");
  agent.emit("session_info_changed", { name: "named" });
  agent.model = { id: "m-2", provider: "fake" };
  agent.answer("ok");
  await agent.quit();
  const updates = fake.of("session_update").map((event) => event.metadata);
  assert.deepEqual(updates, [
    { title: "fix the build" },
    { title: "named" },
    { model: "fake/m-2" },
  ]);
});

for (const reason of ["reload", "resume", "startup"])
  test(`a session without a name keeps its title over a ${reason}`, async () => {
    const { fake, agent } = await rig();
    agent.entries.push({ type: "model_change" });
    agent.prompt("fix the build\nplease");
    await agent.quit(reason);
    agent.load();
    agent.emit("session_start", { reason });
    agent.prompt("another");
    await agent.quit();
    assert.deepEqual(
      fake.of("session_update").map((event) => event.metadata),
      [{ title: "fix the build" }],
    );
    const titles = fake.of("session_start").map((event) => event.metadata.title);
    assert.deepEqual(titles, reason === "reload" ? [undefined] : [undefined, "fix the build"]);
  });

test("pi announces a new session twice, to a new instance: it is reported once", async () => {
  const { fake, agent } = await rig();
  const old = agent.ctx;
  await agent.quit("new");
  agent.session = "s-2";
  agent.load();
  agent.emit("session_start", { reason: "new" });
  agent.emit("session_start", { reason: "new" });
  assert.throws(() => old.isIdle(), /stale/);
  fake.tell("s-2", { action: "steer", content: "to the new one" });
  await until("the new one has it", () => agent.said.length === 1);
  await agent.quit();
  const story = fake.events.map((event) => `${event.session_id} ${event.event_type}`);
  assert.deepEqual(story, [
    "s-1 session_start",
    "s-1 session_end",
    "s-2 session_start",
    "s-2 session_end",
  ]);
});

test("a reload in pi goes on with the same session, without timers of the old instance", async () => {
  const { fake, agent } = await rig();
  await until("the stream works", () => fake.openStreams === 1);
  await agent.quit("reload");
  await until("the old stream is closed", () => fake.openStreams === 0);
  agent.load();
  agent.emit("session_start", { reason: "reload" });
  fake.tell("s-1", { action: "followUp", content: "still there?" });
  await until("the new instance has it", () => agent.said.length === 1);
  await agent.quit();
  assert.deepEqual(fake.types(), ["session_start", "session_end"]);
});

test("omp keeps the instance when the session changes", async () => {
  const { fake, agent } = await rig({ omp: true });
  agent.session = "s-2";
  agent.emit("session_switch", { reason: "new" });
  agent.answer("hello", { totalTokens: 1 });
  await agent.quit();
  const story = fake.events.map((event) => `${event.session_id} ${event.event_type}`);
  assert.deepEqual(story, [
    "s-1 session_start",
    "s-1 session_end",
    "s-2 session_start",
    "s-2 turn_end",
    "s-2 session_end",
  ]);
  assert.equal(metadata(fake, "session_start").program, "omp");
});

test("what subagents of omp do belongs to the session that started them", async () => {
  const { fake, agent } = await rig({ omp: true });
  const subagent = new FakeAgent({ omp: true, cwd: agent.cwd });
  subagent.session = "s-sub";
  subagent.emit("session_start");
  subagent.call("ls", "c1");
  subagent.answer("found it", { totalTokens: 5 });
  await subagent.quit();
  agent.answer("done", { totalTokens: 7 });
  await agent.quit();
  assert.deepEqual(fake.types(), [
    "session_start",
    "tool_call",
    "turn_end",
    "turn_end",
    "session_end",
  ]);
  assert.ok(fake.events.every((event) => event.session_id === "s-1"));
  assert.equal(metadata(fake, "tool_call").subagent, "s-sub");
  assert.deepEqual(
    fake.of("turn_end").map((event) => event.metadata.final),
    [false, true],
  );
});

test("errors, retries, aborts and compactions are told apart", async () => {
  const { fake, agent } = await rig();
  const failing = {
    message: {
      role: "assistant",
      content: [],
      stopReason: "error",
      errorMessage: "529 overloaded",
    },
  };
  agent.emit("agent_start");
  agent.emit("turn_end", failing);
  agent.emit("agent_end");
  agent.emit("agent_start"); // pi tries again
  agent.emit("turn_end", failing);
  agent.emit("agent_end");
  agent.emit("agent_settled");
  agent.emit("agent_start");
  agent.emit("turn_end", {
    message: {
      role: "assistant",
      content: [],
      stopReason: "error",
      errorMessage: "This operation was aborted",
    },
  });
  agent.emit("agent_settled");
  agent.emit("session_compact", { reason: "threshold", compactionEntry: { tokensBefore: 90_000 } });
  agent.emit("session_compact_failed", { reason: "manual", errorMessage: "no model" });
  await agent.quit();
  assert.deepEqual(fake.types(), [
    "session_start",
    "retry",
    "error",
    "turn_end",
    "turn_end",
    "compaction",
    "compaction",
    "session_end",
  ]);
  assert.equal(fake.of("retry")[0]?.content, "529 overloaded");
  assert.equal(fake.of("error")[0]?.content, "529 overloaded");
  assert.deepEqual(
    fake.of("turn_end").map((event) => event.metadata.outcome),
    ["error", "aborted"],
  );
  assert.equal(metadata(fake, "compaction").tokensBefore, 90_000);
});

test("omp tells of its retries", async () => {
  const { fake, agent } = await rig({ omp: true });
  agent.emit("auto_retry_start", {
    attempt: 1,
    maxAttempts: 3,
    delayMs: 2000,
    errorMessage: "overloaded",
  });
  agent.emit("auto_compaction_end", { errorMessage: "no model" });
  agent.emit("auto_compaction_end", { errorMessage: "nothing to do", skipped: true });
  await agent.quit();
  assert.deepEqual(fake.types(), ["session_start", "retry", "compaction", "session_end"]);
  assert.deepEqual(metadata(fake, "retry"), { attempt: 1, maxAttempts: 3, delayMs: 2000 });
});

test("secrets do not leave the machine, and texts are bounded", async () => {
  const { fake, agent } = await rig({ settings: { report: { input: 100, result: 50 } } });
  agent.call("export API_KEY=geheim123 && make", "c1");
  agent.result("c1", `PASSWORD=geheim456\n${"x".repeat(100_000)}`, true);
  agent.call(`echo ${"y".repeat(1000)}`, "c2");
  agent.emit("before_agent_start", { prompt: "use token=geheim789" });
  await agent.quit();
  const all = fake.requests.map(({ body }) => body).join("\n");
  assert.doesNotMatch(all, /geheim|drg_test_key/);
  assert.match(all, /API_KEY=\[redacted\]/);
  assert.ok(Buffer.byteLength(fake.of("tool_result")[0]?.content ?? "") <= 50);
  assert.ok(Buffer.byteLength(fake.of("tool_call")[1]?.content ?? "") <= 100);
});

test("what is not to be reported is not, unless it is destructive", async () => {
  const report = { input: 0, result: 0, text: 0, ignoreTools: ["bash"] };
  const { fake, agent } = await rig({
    settings: { report, policy: { builtIn: { permissions: "flag" } } },
  });
  agent.call("ls", "c1");
  agent.result("c1", "secret plans");
  agent.call("chmod -R 700 .", "c2");
  agent.answer("secret answer", { totalTokens: 1 });
  await agent.quit();
  assert.deepEqual(fake.types(), ["session_start", "tool_call", "turn_end", "session_end"]);
  assert.doesNotMatch(JSON.stringify(fake.events), /secret|chmod/);
  assert.deepEqual(metadata(fake, "tool_call").rules, ["permissions"]);
});

// ---- it never blocks, and never breaks, the agent ----

for (const state of ["down", "hanging"] as const)
  test(`with the gateway ${state}, handlers return at once`, async () => {
    const fake = await new FakeGateway().start();
    configure(fake.url, { queue: { events: 100, spool: false } });
    if (state === "down") await fake.stop();
    fake.trick = () => "hang";
    const agent = new FakeAgent();
    const began = performance.now();
    agent.emit("session_start", { reason: "startup" });
    for (let i = 0; i < 1000; i++) {
      // undefined, not a promise: the agent has nothing to wait for
      assert.equal(agent.call(`echo ${i}`, `c${i}`), undefined);
      assert.deepEqual(agent.emit("turn_end", { message: { role: "assistant", content: "x" } }), [
        undefined,
      ]);
      agent.result(`c${i}`, "ok");
    }
    assert.ok(performance.now() - began < 5000);
    if (state === "hanging") await until("a request hangs", () => fake.requests.length > 0);
    await agent.quit();
    assert.ok(performance.now() - began < 15_000); // the end of the agent waits for 1.5 s at most
  });

test("events wait for the gateway over its restart, bounded, and say what is missing", async () => {
  const { fake, agent } = await rig({ settings: { queue: { events: 50 } } });
  await fake.stop();
  for (let i = 0; i < 100; i++) {
    agent.call(`echo ${i}`, `c${i}`);
    if (i % 10 === 0) agent.answer(`turn ${i}`, { totalTokens: 1 });
  }
  await fake.start();
  await until("they are there", () => fake.of("turn_end").length === 10);
  await agent.quit();
  assert.deepEqual(
    fake.of("turn_end").map((event) => event.content),
    [0, 10, 20, 30, 40, 50, 60, 70, 80, 90].map((n) => `turn ${n}`),
  );
  assert.equal(Number(metadata(fake, "notice").count) + fake.of("tool_call").length, 100);
  assert.match(fake.of("notice")[0]?.content ?? "", /events are missing here/);
  const last = fake.of("tool_call").at(-1);
  assert.equal(last?.content, "echo 99");
});

test("what waits keeps no more in memory than its beginning", async () => {
  const { fake, agent } = await rig();
  await fake.stop();
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  for (let i = 0; i < 100; i++) {
    agent.call(`echo ${`${i} `.repeat(200_000)}`, `c${i}`);
    agent.result(`c${i}`, `${i} `.repeat(200_000));
    agent.answer(`${i} `.repeat(200_000), { totalTokens: 1 });
  }
  const grown = heap() - before;
  assert.ok(grown < 20e6, `${grown} bytes`); // the texts have 150 MB
  await agent.quit();
});

test("a session that begins while the gateway is away has its name and its commands, however much happens", async () => {
  const { fake, agent } = await rig({ settings: { queue: { events: 20 } }, started: false });
  await fake.stop();
  agent.sessionName = "fix the build";
  agent.emit("session_start", { reason: "startup" });
  for (let i = 0; i < 100; i++) agent.answer(`turn ${i}`, { totalTokens: 1 });
  fake.tell("s-1", { action: "steer", content: "still there?" });
  await fake.start();
  await until("it has the command", () => agent.said.length === 1);
  await agent.quit();
  assert.equal(metadata(fake, "session_start").title, "fix the build");
});

test("what was not sent before the agent ended is sent by the next one", async () => {
  const { fake, agent, home } = await rig();
  await fake.stop();
  agent.call("make", "c1");
  await agent.quit();
  const folder = join(home, "state/dragoman/discord-notify");
  const [gateway = ""] = readdirSync(folder);
  assert.equal(readdirSync(join(folder, gateway)).length, 1);
  await fake.start();
  // another process would have no hub yet: a setting that differs has the same effect
  writeFileSync(
    join(home, "discord-notify.json"),
    JSON.stringify({ url: fake.url, key: "drg_test_key_1234567890" }),
    { mode: 0o600 },
  );
  const next = new FakeAgent();
  next.session = "s-2";
  next.emit("session_start", { reason: "startup" });
  await until("all is there", () => fake.of("session_end").length === 1);
  await next.quit();
  const story = fake.events.map((event) => `${event.session_id} ${event.event_type}`);
  assert.deepEqual(story, [
    "s-1 session_start",
    "s-1 tool_call",
    "s-1 session_end",
    "s-2 session_start",
    "s-2 session_end",
  ]);
  assert.deepEqual(readdirSync(join(folder, gateway)), []);
});

test("a wrong configuration is said once, and the agent works on", async () => {
  configure("ftp://x");
  const agent = new FakeAgent();
  agent.hasUI = true;
  agent.emit("session_start", { reason: "startup" });
  assert.equal(agent.call("ls"), undefined);
  agent.answer("ok");
  assert.equal(agent.notes.length, 1);
  assert.match(agent.notes[0] ?? "", /reports nothing.*url: expected an address/);
  assert.match(await agent.discord("status"), /Nothing is reported: .*url: expected an address/);
  await agent.quit();
});

test("a wrong configuration does not turn the policy off: the desk is asked", async () => {
  configure("ftp://x", { policy: { rules: [{ pattern: "deploy", action: "deny" }] } });
  const agent = new FakeAgent();
  agent.emit("session_start", { reason: "startup" });
  assert.match(JSON.stringify(await agent.call("rm -rf x")), /Nobody could be asked/);
  assert.match(JSON.stringify(agent.call("make deploy")), /Refused by the policy/);
  agent.hasUI = true;
  const asked = [agent.call("rm -rf x"), agent.call("rm -rf y")] as Promise<unknown>[];
  agent.dialogs[0]?.answer(true);
  assert.equal(await asked[0], undefined);
  await agent.quit();
  assert.match(JSON.stringify(await asked[1]), /was stopped/);
});

test("what the agent does after its end is nobody's", async () => {
  const { fake, agent } = await rig();
  const ctx = agent.ctx;
  await agent.quit();
  agent.emit(
    "turn_end",
    { message: { role: "assistant", content: "late", usage: { totalTokens: 1 } } },
    ctx,
  );
  agent.emit("agent_settled", {}, ctx);
  assert.deepEqual(fake.types(), ["session_start", "session_end"]);
});

// ---- commands ----

test("steering reaches the agent, and is seen when the agent reads it", async () => {
  const { fake, agent } = await rig();
  agent.idle = false;
  fake.tell("s-1", { action: "steer", content: "use the other branch" });
  fake.tell("s-1", { action: "followUp", content: "then test" });
  await until("it has both", () => agent.said.length === 2);
  assert.deepEqual(agent.said, [
    { content: "use the other branch", deliverAs: "steer" },
    { content: "then test", deliverAs: "followUp" },
  ]);
  await until("they are delivered", () => fake.states().join() === "delivered,delivered");
  const read = (text: string) =>
    agent.emit("message_start", { message: { role: "user", content: [{ type: "text", text }] } });
  read("something typed at the desk");
  read("use the other branch");
  await until("the first is seen", () => fake.states()[0] === "seen");
  assert.equal(fake.states()[1], "delivered");
  await agent.quit();
  await until("the other has failed", () => fake.states()[1] === "failed");
  assert.match(fake.acks.at(-1)?.error ?? "", /ended before the agent read it/);
});

for (const change of ["new", "fork", "switch"] as const)
  test(`a command that is not read before the session changes (${change}) has failed`, async () => {
    const { fake, agent } = await rig({ omp: change === "switch" });
    fake.tell("s-1", { action: "steer", content: "too late" });
    await until("it is delivered", () => agent.said.length === 1);
    let isFirst = true;
    fake.trick = ({ path }) => {
      if (!isFirst || !path.includes("/ack")) return undefined;
      isFirst = false;
      return { status: 503, body: {} };
    };
    if (change === "switch") {
      agent.session = "s-2";
      agent.emit("session_switch", { reason: "new" });
    } else {
      await agent.quit(change);
      agent.session = "s-2";
      agent.load();
      agent.emit("session_start", { reason: change });
    }
    await until("it has failed", () => fake.states()[0] === "failed");
    assert.match(fake.acks.at(-1)?.error ?? "", /ended before the agent read it/);
    await agent.quit();
  });

test("a message that the agent refuses has failed", async () => {
  const { fake, agent } = await rig();
  agent.refuseMessages = "no model is selected";
  fake.tell("s-1", { action: "steer", content: "x" });
  fake.tell("s-1", { action: "dance" });
  await until("both have failed", () => fake.states().join() === "failed,failed");
  assert.deepEqual(
    fake.acks.filter((ack) => ack.status === "failed").map((ack) => ack.error),
    ["no model is selected", 'this program knows no "dance"'],
  );
  await agent.quit();
});

test("an abort stops the agent that runs now, and what it asks", async () => {
  const { fake, agent } = await rig();
  fake.tell("s-1", { action: "abort" });
  await until("it has failed", () => fake.states()[0] === "failed");
  agent.idle = false;
  const asked = agent.call("sudo reboot") as Promise<{ block: boolean }>;
  fake.tell("s-1", { action: "abort" });
  assert.equal((await asked).block, true);
  await until("it is done", () => agent.aborted === 1 && fake.states()[1] === "seen");
  await agent.quit();
});

// ---- the policy ----

test("a destructive call is marked; one that is refused does not run", async () => {
  const { fake, agent } = await rig({
    settings: { policy: { builtIn: { "recursive-delete": "flag", "force-push": "deny" } } },
  });
  assert.equal(agent.call("rm -rf build", "c1"), undefined);
  assert.deepEqual(agent.call("git push -f", "c2"), {
    block: true,
    reason: "Refused by the policy, because it rewrites or deletes what others have on the server.",
  });
  agent.result("c2", "Refused", true);
  await agent.quit();
  assert.equal(metadata(fake, "tool_call").destructive, true);
  assert.deepEqual(metadata(fake, "tool_call", 1).rules, ["force-push"]);
  assert.equal(metadata(fake, "tool_result").blocked, true);
});

for (const decision of ["allow", "deny"] as const)
  test(`a person in a chat decides: ${decision}`, async () => {
    const { fake, agent } = await rig();
    agent.hasUI = true;
    const asked = agent.call("rm -rf build", "c1") as Promise<unknown>;
    await until("it is asked", () => fake.of("approval_request").length === 1);
    const { approval_id, ...question } = metadata(fake, "approval_request");
    assert.deepEqual(question, {
      toolCallId: "c1",
      timeoutMs: 300_000,
      default: "deny",
      reason: "deletes folders",
      rules: ["recursive-delete"],
    });
    assert.equal(fake.of("approval_request")[0]?.content, "rm -rf build");
    fake.tell("s-1", {
      action: "decision",
      approval_id: String(approval_id),
      decision,
      reason: "not today",
    });
    const verdict =
      decision === "allow"
        ? undefined
        : { block: true, reason: "This deletes folders. ada refused it: not today" };
    assert.deepEqual(await asked, verdict);
    assert.ok(agent.dialogs[0]?.signal?.aborted);
    await until("it is seen", () => fake.states()[0] === "seen");
    await agent.quit();
    assert.equal(fake.of("approval_resolved").length, 0);
  });

test("the person at the desk decides, and the chat hears of it", async () => {
  const { fake, agent } = await rig();
  agent.hasUI = true;
  const asked = agent.call("rm -rf build", "c1") as Promise<unknown>;
  await until(
    "it is asked",
    () => agent.dialogs.length === 1 && fake.of("approval_request").length === 1,
  );
  assert.match(agent.dialogs[0]?.message ?? "", /rm -rf build/);
  agent.dialogs[0]?.answer(true);
  assert.equal(await asked, undefined);
  const { approval_id } = metadata(fake, "approval_request");
  fake.tell("s-1", { action: "decision", approval_id: String(approval_id), decision: "deny" });
  await until("the late one is superseded", () => fake.states()[0] === "superseded");
  fake.tell("s-1", { action: "decision", approval_id: "unknown", decision: "deny" });
  await until("the unknown one has failed", () => fake.states()[1] === "failed");
  await agent.quit();
  assert.deepEqual(metadata(fake, "approval_resolved"), {
    approval_id,
    toolCallId: "c1",
    decision: "allow",
    by: "desk",
  });
});

test("an answer given while the gateway restarts still counts", async () => {
  const { fake, agent } = await rig();
  const asked = agent.call("rm -rf build") as Promise<unknown>;
  await until("it is asked", () => fake.of("approval_request").length === 1);
  await fake.stop();
  const { approval_id } = metadata(fake, "approval_request");
  fake.tell("s-1", { action: "decision", approval_id: String(approval_id), decision: "allow" });
  await fake.start();
  assert.equal(await asked, undefined);
  await agent.quit();
});

test("the time-out of a rule and its default hold", async () => {
  const rules = [
    { name: "deploy", pattern: "deploy", action: "ask", default: "allow", timeoutSeconds: 1 },
  ];
  const { fake, agent } = await rig({ settings: { policy: { rules } } });
  assert.equal(await agent.call("make deploy"), undefined);
  await agent.quit();
  assert.equal(metadata(fake, "approval_request").default, "allow");
  assert.deepEqual(
    [metadata(fake, "approval_resolved").decision, metadata(fake, "approval_resolved").by],
    ["allow", "timeout"],
  );
});

test("without a desk omp's own limit for handlers is respected", async () => {
  const { fake, agent } = await rig({ omp: true });
  const asked = agent.call("rm -rf build") as Promise<unknown>;
  await until("it is asked", () => fake.of("approval_request").length === 1);
  assert.equal(metadata(fake, "approval_request").timeoutMs, 29_000);
  await agent.quit();
  assert.match(JSON.stringify(await asked), /was stopped/);
});

// ---- /discord ----

test("/discord shows the state, and links, mutes and flushes", async () => {
  const { fake, agent } = await rig();
  await until("the stream works and the first events are sent", async () =>
    /, connected.*by stream.*Queue: 0 events/s.test(await agent.discord("status")),
  );
  const status = await agent.discord("");
  assert.match(status, /Gateway: http:\/\/127\.0\.0\.1:\d+, connected/);
  assert.match(status, /Session: s-1/);
  assert.match(status, /Queue: 0 events, 0 KiB; 0 dropped, 0 refused/);
  assert.doesNotMatch(status, /drg_/);

  assert.match(
    await agent.discord("link 1189326655021121576/42 dc 7"),
    /shown in 1189326655021121576\/42/,
  );
  const link = fake.requests.find(({ path }) => path.endsWith("/link"));
  assert.equal(link?.path, "/api/sessions/s-1/link");
  assert.deepEqual(JSON.parse(link?.body ?? ""), {
    adapter: "dc",
    channel_id: "1189326655021121576",
    thread_id: "42",
    user_id: "7",
  });
  fake.trick = ({ path }) =>
    path.endsWith("/link")
      ? { status: 422, body: { error: { message: "adapter: name one of dc, tg" } } }
      : undefined;
  assert.match(await agent.discord("link 1"), /Not linked: adapter: name one of dc, tg \(422\)/);
  assert.match(await agent.discord("link"), /Which chat/);

  await agent.discord("mute");
  agent.call("ls", "muted");
  await agent.discord("unmute");
  agent.call("ls", "reported");
  assert.match(await agent.discord("flush"), /Everything is sent/);
  assert.deepEqual(
    fake.of("tool_call").map((event) => event.metadata.toolCallId),
    ["reported"],
  );
  assert.match(await agent.discord("help"), /\/discord link/);
  assert.deepEqual(
    agent.completions("m")?.map(({ value }) => value),
    ["mute"],
  );
  assert.equal(agent.completions("x"), null);
  await agent.quit();
});

test("/discord says what is wrong", async () => {
  const { fake, agent } = await rig();
  await fake.stop();
  agent.call("ls");
  assert.match(
    await agent.discord("flush"),
    /1 events still wait: the gateway cannot be reached: /,
  );
  assert.match(await agent.discord("status"), /Last error: the gateway cannot be reached/);
  await agent.quit();
});

test("a session is linked where the configuration says", async () => {
  const { fake, agent } = await rig({ settings: { link: { channel: "99", user: "7" } } });
  await until("it is linked", () =>
    fake.requests.some(({ path }) => path === "/api/sessions/s-1/link"),
  );
  await agent.quit();
});

/** A session that the gateway cannot link to channel 99 at first; the channels that were asked for. */
async function linking(failures: number) {
  const fake = await new FakeGateway().start();
  configure(fake.url, { link: { channel: "99" } });
  const links = () =>
    fake.requests
      .filter(({ path }) => path === "/api/sessions/s-1/link")
      .map(({ body }) => JSON.parse(body).channel_id);
  fake.trick = ({ path, body }) =>
    path.endsWith("/link") && body.includes('"99"') && links().length <= failures
      ? { status: 503, body: {} }
      : undefined;
  const agent = new FakeAgent();
  agent.emit("session_start", { reason: "startup" });
  await until("it was tried", () => links().length === 1);
  return { agent, links };
}

test("a link that is configured is asked for until the gateway answers", async () => {
  const { agent, links } = await linking(2);
  await until("it is linked", () => links().length === 3);
  await agent.quit();
  assert.deepEqual(links(), ["99", "99", "99"]);
});

test("a link that is configured does not replace one that a person has asked for", async () => {
  const { agent, links } = await linking(100);
  assert.match(await agent.discord("link 7"), /shown in 7/);
  await agent.quit(); // waits for what is still repeated
  assert.deepEqual(links(), ["99", "7"]);
});

test("a configured link that is refused is said, and not repeated", async () => {
  const fake = await new FakeGateway().start();
  configure(fake.url, { link: { channel: "99" } });
  fake.trick = ({ path }) =>
    path.endsWith("/link") ? { status: 404, body: { error: { message: "no chat" } } } : undefined;
  const agent = new FakeAgent();
  agent.hasUI = true;
  agent.emit("session_start", { reason: "startup" });
  await until("it is said", () => agent.notes.some((note) => /not linked: no chat/.test(note)));
  await agent.quit();
  assert.equal(fake.requests.filter(({ path }) => path.endsWith("/link")).length, 1);
});
