/**
 * How long the extension holds up a tool call: the time that its handlers take from the call to the
 * result, for calls of several sizes, with the gateway working, away, and hanging.
 */
import { configure, FakeAgent, FakeGateway } from "./rig.ts";

const CALLS = 5000;

const INPUTS: [string, string, object][] = [
  ["a short command", "bash", { command: "npm test -- --watch=false 2>&1 | tail -40" }],
  [
    "a script of 4 KB",
    "bash",
    { command: "echo one && test -f package.json || exit 1\n".repeat(100) },
  ],
  [
    "an edit of 20 KB",
    "edit",
    { path: "src/a.ts", oldText: "x".repeat(10_000), newText: "y".repeat(10_000) },
  ],
  ["a file of 200 KB", "write", { path: "src/b.ts", content: "line of text\n".repeat(16_000) }],
];
const RESULT = { content: [{ type: "text", text: "a line of output\n".repeat(500) }] };

async function measure(tool: string, input: object): Promise<number[]> {
  const agent = new FakeAgent();
  const times: number[] = [];
  agent.emit("session_start", { reason: "startup" });
  for (let i = 0; i < CALLS; i++) {
    const toolCallId = `c${i}`;
    const ctx = agent.ctx;
    const began = performance.now();
    agent.emit("tool_call", { toolName: tool, toolCallId, input }, ctx);
    agent.emit("tool_execution_end", { toolName: tool, toolCallId, result: RESULT }, ctx);
    times.push(performance.now() - began);
    // what the extension does in the background gets its turn, as while a tool runs
    if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await agent.quit("new");
  return times.sort((a, b) => a - b);
}

const at = (times: number[], share: number) =>
  (times[Math.floor(times.length * share)] ?? 0).toFixed(3);

console.log(`${CALLS} tool calls each; milliseconds in the handlers, per call`);
console.log("| gateway | input | median | p99 | p99.9 | longest |\n|---|---|---|---|---|---|");
for (const state of ["working", "away", "hanging"]) {
  const gateway = await new FakeGateway().start();
  if (state === "hanging") gateway.trick = () => "hang";
  if (state === "away") await gateway.stop();
  for (const [name, tool, input] of INPUTS) {
    configure(gateway.url, { queue: { spool: false } });
    const times = await measure(tool, input);
    const longest = (times.at(-1) ?? 0).toFixed(3);
    console.log(
      `| ${state} | ${name} | ${at(times, 0.5)} | ${at(times, 0.99)} | ${at(times, 0.999)} | ${longest} |`,
    );
  }
  await gateway.stop();
}
process.exit(0);
