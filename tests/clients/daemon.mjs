// Dragoman beside the simulator, for clients that watch it: started with one adapter, and asked by its REST API.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const dir = mkdtempSync(join(tmpdir(), "dragoman-"));
let name, daemon;

// Starts it with the adapter `id` and waits until that is connected.
export async function start(id, adapter) {
  name = id;
  writeFileSync(join(dir, "config.json"), JSON.stringify({
    http: { listen: "127.0.0.1:0" }, agents: { echo: { type: "echo" } }, adapters: { [id]: { channels: ["*"], ...adapter } },
  }));
  daemon = spawn(process.env.DRAGOMAN, ["run", dir], { stdio: process.env.VERBOSE ? "inherit" : "ignore" });
  process.on("exit", () => {
    daemon.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  });
  for (let i = 0; i < 600; i++) {
    if (existsSync(join(dir, "state/http.addr")) && (await ask("instances").catch(() => null))?.items.find((a) => a.id === id)?.state === "connected") return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("Dragoman does not connect");
}

export async function ask(path, body) {
  const address = readFileSync(join(dir, "state/http.addr"), "utf8").trim();
  const key = readFileSync(join(dir, "state/operator.key"), "utf8").trim();
  const answer = await fetch(`http://${address}${path[0] === "/" ? "" : "/api/v2/"}${path}`, {
    method: body ? "POST" : "GET", headers: { "x-api-key": key, "content-type": "application/json" }, body: body && JSON.stringify(body),
  });
  const json = await answer.json();
  assert.ok(answer.ok, JSON.stringify(json));
  return json;
}

// POST /api/v2/messages/WHAT; the number of the delivery.
export const send = async (what, body) => (await ask(`messages/${what}`, { instanceId: name, ...body })).data.deliveryId;

// A coding session reports an event.
export const report = (type, event) => ask("/api/webhook/event", { session_id: "s-1", event_type: type, ...event });

// It is shown in a chat, and belongs to a person.
export const link = (body) => ask("/api/sessions/s-1/link", { adapter: name, ...body });

// It polls until a command waits, and takes it.
export async function polled() {
  for (let i = 0; i < 600; i++) {
    const [command] = await ask("/api/commands/poll?session_id=s-1");
    if (command) {
      await ask(`/api/commands/${command.command_id}/ack`, { status: "delivered" });
      return command;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("no command waits");
}

// What a coding session shows: a tool call.
export const card = {
  title: "🛠️ Tool Execution: bash", color: "#FFA500", body: "Command execution started in **/home/dev**",
  fields: [{ name: "Input", value: "```bash\nrm -rf ./*\n```" }, { name: "Session", value: "session-xyz-123", inline: true }],
  footer: "OMP Agent System", time: "2026-01-31T12:00:00Z",
};
export const ended = { title: "✅ Turn Completed", color: "#00FF00", fields: [{ name: "Tokens Used", value: "1245" }] };
export const buttons = [{ text: "Stop", data: "stop it" }, { text: "Docs", url: "https://example.org/" }];
