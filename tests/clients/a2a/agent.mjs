// An agent made with the official SDK: `node agent.mjs 1.0|0.3|both [STATE]` prints its URL. What it does is in the text of the message.
// In STATE (a file) it keeps its tasks over a kill; each message that reaches it is a line of STATE.log.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import express from "express";
import * as v1 from "@a2a-js/sdk";
import * as server1 from "@a2a-js/sdk/server";
import * as express1 from "@a2a-js/sdk/server/express";
import * as server03 from "a2a-sdk-0.3/server";
import * as express03 from "a2a-sdk-0.3/server/express";

const [mode, state] = process.argv.slice(2);
const old = mode === "0.3";
const token = process.env.TOKEN;
const gates = new Map(); // "open NAME" lets what waits for it go on
const gate = (name) => gates.get(name) ?? gates.set(name, Promise.withResolvers ? Promise.withResolvers() : defer()).get(name);
function defer() {
  const d = {};
  d.promise = new Promise((resolve) => (d.resolve = resolve));
  return d;
}
const S = old ? (s) => s : (s) => v1.TaskState["TASK_STATE_" + s.toUpperCase().replaceAll("-", "_")];
const id = () => crypto.randomUUID();

// ---- the two forms ----
const text = (t) => (old ? { kind: "text", text: t } : { content: { $case: "text", value: t }, metadata: undefined, filename: "", mediaType: "text/plain" });
const data = (d) => (old ? { kind: "data", data: d } : { content: { $case: "data", value: d }, metadata: undefined, filename: "", mediaType: "application/json" });
const bytes = (b, name, mime) =>
  old ? { kind: "file", file: { bytes: b.toString("base64"), name, mimeType: mime } } : { content: { $case: "raw", value: b }, metadata: undefined, filename: name, mediaType: mime };
const link = (url, name) => (old ? { kind: "file", file: { uri: url, name } } : { content: { $case: "url", value: url }, metadata: undefined, filename: name, mediaType: "" });
const said = (r, t) => ({
  ...(old ? { kind: "message", role: "agent" } : { role: v1.Role.ROLE_AGENT, extensions: [], referenceTaskIds: [], metadata: {} }),
  messageId: id(), taskId: r.taskId, contextId: r.contextId, parts: [text(t)],
});
const texts = (m) => m.parts.map((p) => (old ? p.text : p.content?.$case === "text" ? p.content.value : "")).filter(Boolean).join("\n");
const files = (m) =>
  m.parts.map((p) => (old ? p.file && { name: p.file.name, n: Buffer.from(p.file.bytes ?? "", "base64").length } : p.content?.$case === "raw" && { name: p.filename, n: p.content.value.length })).filter(Boolean);
const publish = (bus, kind, value) => bus.publish(old ? { kind: { task: "task", status: "status-update", artifact: "artifact-update", message: "message" }[kind], ...value } : v1Event(kind, value));
const v1Event = (kind, value) =>
  ({ task: server1.AgentEvent.task, status: server1.AgentEvent.statusUpdate, artifact: server1.AgentEvent.artifactUpdate, message: server1.AgentEvent.message })[kind](value);

// ---- what the agent does ----
class Executor {
  stopped = new Set();
  async execute(r, bus) {
    const base = { taskId: r.taskId, contextId: r.contextId, metadata: {} };
    const status = (s, t, final) =>
      publish(bus, "status", { ...base, status: { state: S(s), message: t === undefined ? undefined : said(r, t), timestamp: new Date().toISOString() }, ...(old ? { final: !!final } : {}) });
    const artifact = (artifactId, parts, append = false, lastChunk = false) =>
      publish(bus, "artifact", { ...base, artifact: { artifactId, name: "", description: "", parts, metadata: {}, extensions: [] }, append, lastChunk });
    const end = (s, t) => status(s, t, true);
    const words = texts(r.userMessage), [verb, ...rest] = words.split(/\s+/);
    if (state) appendFileSync(state + ".log", JSON.stringify({ id: r.userMessage.messageId, context: r.contextId, task: !!r.task, text: words, files: files(r.userMessage) }) + "\n");
    if (verb === "message") return publish(bus, "message", said(r, "a message, no task"));
    publish(bus, "task", r.task ?? { id: r.taskId, contextId: r.contextId, status: { state: S("submitted"), timestamp: new Date().toISOString(), message: undefined }, artifacts: [], history: [r.userMessage], metadata: {} });
    status("working", "thinking about it");
    switch (verb) {
      case "pieces":
        for (const [i, word] of ["one ", "two ", "three"].entries()) artifact("a", [text(word)], i > 0, i === 2);
        return end("completed");
      case "ask":
        if (!r.task) return status("input-required", "which colour?", true);
        break;
      case "login":
        status("auth-required", "open https://auth.example/device and say who you are");
        await gate("login").promise;
        artifact("a", [text("now I may")]);
        return end("completed");
      case "fail":
        artifact("a", [text("half of it")]);
        return end("failed", "the printer is on fire");
      case "reject":
        return end("rejected", "not my job");
      case "words":
        return end("completed", "only these last words");
      case "files":
        artifact("a", [text("see:"), bytes(Buffer.from("a,b\n1,2\n"), "table.csv", "text/csv"), link("https://files.example/x.pdf", "x.pdf"), data({ rows: 1 })]);
        return end("completed");
      case "wait":
        artifact("a", [text("before ")]);
        await gate(rest[0]).promise;
        if (this.stopped.has(r.taskId)) return end("canceled", "stopped by you");
        artifact("a", [text("after")], true, true);
        return end("completed");
    }
    artifact("a", [text(`you said: ${words} (${r.contextId.length > 0 ? "context" : "none"}${r.task ? ", same task" : ""})`)]);
    end("completed");
  }
  async cancelTask(taskId, bus) {
    this.stopped.add(taskId);
    if (state) appendFileSync(state + ".log", JSON.stringify({ cancel: true }) + "\n");
    for (const d of gates.values()) d.resolve();
  }
}

// Tasks that are there after a kill.
class Store {
  tasks = new Map(state && existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : []);
  async load(taskId) {
    const t = this.tasks.get(taskId);
    return t && (old ? structuredClone(t) : v1.Task.fromJSON(t));
  }
  async save(task) {
    this.tasks.set(task.id, old ? structuredClone(task) : v1.Task.toJSON(task));
    if (state) writeFileSync(state, JSON.stringify([...this.tasks]));
  }
  async list(params) {
    const all = [...this.tasks.values()].map((t) => v1.Task.fromJSON(t)).filter((t) => !params.contextId || t.contextId === params.contextId);
    return { tasks: all.reverse().slice(0, params.pageSize ?? 50), nextPageToken: "", pageSize: all.length, totalSize: all.length };
  }
}

// ---- serving ----
const app = express();
app.get("/open/:name", (q, a) => (gate(q.params.name).resolve(), a.end("open\n")));
app.use((q, a, next) => {
  if (token && q.headers.authorization !== `Bearer ${token}`) return void a.status(401).json({ error: "who are you?" });
  if (state) appendFileSync(state + ".log", JSON.stringify({ method: q.method, url: q.url, traceparent: q.headers.traceparent, version: q.headers["a2a-version"] }) + "\n");
  next();
});
const listening = app.listen(0, "127.0.0.1", () => {
  const base = `http://127.0.0.1:${listening.address().port}`;
  const common = { name: "Test agent", description: "does what it is told", version: "2.1", capabilities: { streaming: process.env.STREAM !== "no", pushNotifications: false },
                   defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], skills: [{ id: "x", name: "x", description: "x", tags: ["x"] }] };
  if (old) {
    const handler = new server03.DefaultRequestHandler({ ...common, protocolVersion: "0.3.0", url: base + "/rpc", preferredTransport: "JSONRPC" }, new Store(), new Executor());
    app.use("/.well-known/agent-card.json", express03.agentCardHandler({ agentCardProvider: handler }));
    app.use("/rpc", express03.jsonRpcHandler({ requestHandler: handler, userBuilder: express03.UserBuilder.noAuthentication }));
  } else {
    const one = { url: base + "/rpc", protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" };
    const card = { ...common, capabilities: { ...common.capabilities, extensions: [], extendedAgentCard: false }, supportedInterfaces: mode === "both" ? [{ ...one, protocolVersion: "0.3" }, one] : [one],
                   provider: undefined, securitySchemes: {}, securityRequirements: [], documentationUrl: "", iconUrl: "", signatures: [],
                   skills: common.skills.map((s) => ({ ...s, examples: [], inputModes: [], outputModes: [], securityRequirements: [] })) };
    const handler = new server1.DefaultRequestHandler(card, new Store(), new Executor());
    const compat = mode === "both" ? { legacyCompat: { enabled: true } } : {};
    app.use("/.well-known/agent-card.json", express1.agentCardHandler({ agentCardProvider: handler, ...compat }));
    app.use("/rpc", express1.jsonRpcHandler({ requestHandler: handler, userBuilder: express1.UserBuilder.noAuthentication, ...compat }));
  }
  console.log(base);
});
