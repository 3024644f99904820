// The official SDK as a client of Dragoman: `node client.mjs` runs all checks, with version 1.0, with 1.0's own way to speak 0.3, and with the SDK of 0.3.
// BASE_URL, API_KEY, OTHER_KEY. With an argument it does one thing and prints what came: `send TEXT [ID]` (1.0, as a stream), `get TASK`.
import assert from "node:assert/strict";
import * as v1 from "@a2a-js/sdk";
import * as client1 from "@a2a-js/sdk/client";
import * as client03 from "a2a-sdk-0.3/client";

const { BASE_URL: base, API_KEY: key, OTHER_KEY: other } = process.env;
const withKey = (k) => (url, init = {}) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${k}` } });
const id = () => crypto.randomUUID();
const part = (text) => ({ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" });

// Each speaks one version; what comes back is brought into one form.
const state = (s) => (typeof s === "string" ? s : v1.TaskState[s].slice(11).toLowerCase().replaceAll("_", "-"));
const words = (parts = []) => parts.map((p) => p.text ?? (p.content?.$case === "text" ? p.content.value : "")).join("");
const shape = (t) => ({ id: t.id, context: t.contextId, state: state(t.status.state), said: t.status.message && words(t.status.message.parts), text: t.artifacts && t.artifacts.map((a) => words(a.parts)).join("|"), history: (t.history ?? []).map((m) => [m.messageId, words(m.parts)]) });

async function modern(path, k, legacy) {
  const fetchImpl = withKey(k), compat = { legacyCompat: { enabled: true } };
  const resolver = new client1.DefaultAgentCardResolver({ fetchImpl, ...(legacy ? compat : {}) });
  const factory = new client1.ClientFactory({ transports: [new client1.JsonRpcTransportFactory({ fetchImpl, ...compat })], cardResolver: resolver });
  let client;
  if (legacy) {
    const card = await resolver.resolve(base + path, `${path}/.well-known/agent-card.json`);
    client = await factory.createFromAgentCard({ ...card, supportedInterfaces: card.supportedInterfaces.filter((i) => i.protocolVersion === "0.3") });
  } else client = await factory.createFromUrl(base + path, `${path}/.well-known/agent-card.json`);
  const ask = (text, o = {}) => ({
    tenant: "", metadata: {}, configuration: { acceptedOutputModes: [], returnImmediately: !!o.now, historyLength: o.history, taskPushNotificationConfig: undefined },
    message: { messageId: o.id ?? id(), contextId: o.context ?? "", taskId: o.task ?? "", role: v1.Role.ROLE_USER, parts: o.parts ?? [part(text)], metadata: {}, extensions: [], referenceTaskIds: [] },
  });
  const events = async function* (stream) {
    for await (const { payload: p } of stream) {
      const v = p.value;
      if (p.$case === "task") yield { task: shape(v) };
      if (p.$case === "statusUpdate") yield { state: state(v.status.state), said: v.status.message && words(v.status.message.parts), id: v.taskId };
      if (p.$case === "artifactUpdate") yield { text: words(v.artifact.parts), append: v.append, id: v.taskId };
    }
  };
  return {
    send: async (text, o) => shape(await client.sendMessage(ask(text, o))),
    stream: (text, o) => events(client.sendMessageStream(ask(text, o))),
    get: async (task, n) => shape(await client.getTask({ tenant: "", id: task, historyLength: n })),
    list: legacy ? undefined : async (o) => client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", ...o }),
    cancel: async (task) => shape(await client.cancelTask({ tenant: "", id: task, metadata: {} })),
    subscribe: (task) => events(client.resubscribeTask({ tenant: "", id: task })),
    version: client.protocolVersion,
  };
}

async function old(path, k) {
  const fetchImpl = withKey(k);
  const factory = new client03.ClientFactory({ transports: [new client03.JsonRpcTransportFactory({ fetchImpl })], cardResolver: new client03.DefaultAgentCardResolver({ fetchImpl }) });
  const client = await factory.createFromUrl(base + path, `${path}/.well-known/agent-card.json`);
  const ask = (text, o = {}) => ({
    configuration: { blocking: !o.now, historyLength: o.history },
    message: { kind: "message", messageId: o.id ?? id(), contextId: o.context, taskId: o.task, role: "user", parts: o.parts ?? [{ kind: "text", text }] },
  });
  const events = async function* (stream) {
    for await (const e of stream) {
      if (e.kind === "task") yield { task: shape(e) };
      if (e.kind === "status-update") yield { state: e.status.state, said: e.status.message && words(e.status.message.parts), id: e.taskId, final: e.final };
      if (e.kind === "artifact-update") yield { text: words(e.artifact.parts), append: e.append, id: e.taskId };
    }
  };
  return {
    send: async (text, o) => shape(await client.sendMessage(ask(text, o))),
    stream: (text, o) => events(client.sendMessageStream(ask(text, o))),
    get: async (task, n) => shape(await client.getTask({ id: task, historyLength: n })),
    cancel: async (task) => shape(await client.cancelTask({ id: task })),
    subscribe: (task) => events(client.resubscribeTask({ id: task })),
    version: "0.3",
  };
}

const all = async (stream) => {
  const list = [];
  for await (const e of stream) list.push(e);
  return list;
};
const fails = async (promise, what) => assert.rejects(promise, (e) => what.test(`${e.name} ${e.code ?? ""} ${e.message} ${e.cause?.name ?? ""}`) || (console.error(e), false));

async function check(name, open) {
  const a = await open("", key);
  // whole answers, contexts, what a task remembers
  const first = await a.send("hello");
  assert.equal(first.state, "completed");
  assert.equal(first.text, "You said: hello");
  assert.equal(first.history[0][1], "hello");
  assert.match(first.id, /^evt-\d+$/);
  const second = await a.send("again", { context: first.context, history: 0 });
  assert.equal(second.context, first.context);
  assert.notEqual(second.id, first.id);
  assert.deepEqual(second.history, []);
  assert.deepEqual(await a.get(first.id), first);
  assert.deepEqual((await a.get(first.id, 0)).history, []);
  // the same message does nothing twice, another one with its id is refused
  const twice = { id: id() };
  const one = await a.send("once", twice);
  assert.deepEqual(await a.send("once", twice), one);
  await fails(a.send("something else", twice), /already used|-32602/);
  // failures and refusals
  const failed = await a.send("bad thing");
  assert.equal(failed.state, "failed");
  assert.match(failed.said, /broken/);
  const rejected = await a.send("skip this");
  assert.equal(rejected.state, "rejected");
  assert.ok(rejected.said);
  // streams
  const events = await all(a.stream("slow please"));
  const task = events[0].task;
  assert.equal(task.state, "submitted");
  assert.equal(events.at(-1).state, "completed");
  assert.deepEqual(events.filter((e) => e.text).map((e) => [e.text, !!e.append]), [["One. ", false], ["Two. ", true], ["Three.", true]]);
  assert.ok(events.slice(1).every((e) => e.id === task.id));
  assert.ok(events.some((e) => e.state === "working"));
  // not blocking, subscribed to, cancelled
  const hanging = await a.send("hang on", { now: true });
  assert.ok(["submitted", "working"].includes(hanging.state), hanging.state);
  const following = a.subscribe(hanging.id);
  assert.equal((await following.next()).value.task.id, hanging.id);
  const cancelled = await a.cancel(hanging.id);
  assert.equal(cancelled.state, "canceled");
  assert.equal((await all(following)).at(-1).state, "canceled");
  await fails(a.cancel(hanging.id), /cancel/i);
  if (a.version === "1.0") await fails(all(a.subscribe(hanging.id)), /ended|nsupported/);
  else assert.deepEqual((await all(a.subscribe(hanging.id))).map((e) => e.task.state), ["canceled"]);
  await fails(all(a.subscribe("evt-999999")), /not ?found|no task/i);
  await fails(a.get("evt-999999"), /not ?found|no task/i);
  await fails(a.send("more", { task: first.id }), /ended|nsupported/);
  // another key sees nothing of it, and may not ask a restricted agent
  const b = await open("", other);
  await fails(b.get(first.id), /not ?found|no task/i);
  await fails(b.cancel(first.id), /not ?found|no task/i);
  assert.notEqual((await b.send("hello", { context: first.context })).id, first.id);
  // the agent of a path
  const c = await open("/a2a/stage", key);
  assert.equal((await c.send("hello")).text, "You said: hello");
  await fails(c.get(first.id), /not ?found|no task/i);
  if (a.list) {
    const page = await a.list({ contextId: first.context, includeArtifacts: true });
    assert.deepEqual(page.tasks.map((t) => t.id), [second.id, first.id]);
    assert.equal(page.totalSize, 2);
    assert.equal(page.nextPageToken, "");
    const half = await a.list({ contextId: first.context, pageSize: 1 });
    assert.equal(half.tasks.length, 1);
    const rest = await a.list({ contextId: first.context, pageSize: 1, pageToken: half.nextPageToken });
    assert.deepEqual(rest.tasks.map((t) => t.id), [first.id]);
    const bad = await a.list({ status: v1.TaskState.TASK_STATE_FAILED });
    assert.ok(bad.tasks.length >= 1 && bad.tasks.every((t) => state(t.status.state) === "failed"));
    const image = { content: { $case: "raw", value: Buffer.from("hello") }, metadata: undefined, filename: "a.txt", mediaType: "text/plain" };
    assert.match((await a.send("", { parts: [part("look"), image] })).text, /look/);
  }
  console.log(`${name}: ok (${a.version})`);
}

const [what, ...rest] = process.argv.slice(2);
if (what === "send") {
  const a = await modern("", key);
  for await (const e of a.stream(rest[0], { id: rest[1] })) console.log(JSON.stringify(e));
} else if (what === "get") {
  console.log(JSON.stringify(await (await modern("", key)).get(rest[0])));
} else {
  await check("sdk 1.3, version 1.0", (path, k) => modern(path, k, false));
  await check("sdk 1.3, version 0.3", (path, k) => modern(path, k, true));
  await check("sdk 0.3", old);
  // without a key there is neither a card, unless it is published, nor an answer
  assert.equal((await fetch(base + "/a2a/stage/.well-known/agent-card.json")).status, 401);
  assert.equal((await fetch(base + "/.well-known/agent-card.json")).status, 200);
  assert.equal((await fetch(base + "/a2a", { method: "POST", body: "{}" })).status, 401);
}
