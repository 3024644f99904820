// Anthropic's own SDK against dragoman-sim llm.
import assert from "node:assert/strict";
import Anthropic, { APIError, AuthenticationError, BadRequestError, NotFoundError, RateLimitError } from "@anthropic-ai/sdk";
import { control, calls, fault, key, refusedOnly, url } from "./control.mjs";

const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const patient = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 2 });
const bash = {
        name: "bash",
        description: "run a command",
        input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
};
const says = (content, more = {}) => ({ model: "claude-sonnet-5-5", max_tokens: 4000, messages: [{ role: "user", content }], ...more });
const texts = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");

// models and counting
const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.ok(names.includes("claude-opus-5-5"));
const model = await client.models.retrieve("claude-opus-5-5");
assert.equal(model.max_input_tokens, 1000000);
assert.equal(model.capabilities.thinking.types.adaptive.supported, true);
assert.ok((await client.messages.countTokens({ model: "claude-opus-5-5", messages: [{ role: "user", content: "hello" }] })).input_tokens > 0);

// whole and streamed
const { data: whole, request_id, response } = await client.messages.create(says("hello")).withResponse();
assert.ok(Number(response.headers.get("anthropic-ratelimit-requests-limit")) > 0);
assert.equal(texts(whole), "You said: hello");
assert.match(request_id, /^req_/);
let pieces = 0;
const stream = client.messages.stream(says("long 50")).on("text", () => pieces++);
assert.equal(texts(await stream.finalMessage()).split(" ").length, 50);
assert.ok(pieces > 10);

// tools: parallel calls, in a loop, with thinking that goes back as it came
const messages = [{ role: "user", content: 'think First this.\ncalls 3 bash {"command":"echo {n} \u{1F600}\\n"}\nthink Then that.\nsay One more.\nuse bash: last\nsay Done.' }];
const seen = [];
for (;;) {
        const answer = await client.messages.stream(says("", { messages, tools: [bash], thinking: { type: "adaptive" } })).finalMessage();
        messages.push({ role: "assistant", content: answer.content });
        if (answer.stop_reason !== "tool_use") {
                assert.equal(texts(answer), "Done.");
                break;
        }
        assert.equal(answer.content[0].type, "thinking");
        const uses = answer.content.filter((b) => b.type === "tool_use");
        seen.push(uses.map((b) => b.input.command));
        messages.push({ role: "user", content: uses.map((b) => ({ type: "tool_result", tool_use_id: b.id, content: "ok" })) });
}
assert.deepEqual(seen, [["echo 1 \u{1F600}\n", "echo 2 \u{1F600}\n", "echo 3 \u{1F600}\n"], ["last"]]);

// the SDK's own tool loop
const ran = [];
const runner = client.beta.messages.toolRunner(says("calls 2 bash {\"command\":\"{n}\"}\nuse bash: 3\nsay Finished.", {
        thread: false, // the whole conversation in each request
        tools: [{ ...bash, type: "custom", parse: (input) => input, run: async (input) => { ran.push(input.command); return `ran ${input.command}`; } }],
}));
assert.equal(texts(await runner), "Finished.");
assert.deepEqual(ran.sort(), ["1", "2", "3"]);

// the cache
const marked = (content) => says(content, { system: [{ type: "text", text: "rules ".repeat(2000), cache_control: { type: "ephemeral" } }] });
const first = (await client.messages.create(marked("one"))).usage;
const second = (await client.messages.create(marked("two"))).usage;
assert.ok(first.cache_creation_input_tokens > 2000 && first.cache_read_input_tokens === 0);
assert.ok(second.cache_read_input_tokens === first.cache_creation_input_tokens && second.cache_creation_input_tokens === 0);

// errors
const rejects = (promise, type, words) => assert.rejects(promise, (e) => e instanceof type && e.message.includes(words));
await rejects(new Anthropic({ baseURL: url, apiKey: "sk-wrong", maxRetries: 0 }).messages.create(says("x")), AuthenticationError, "invalid x-api-key");
await rejects(client.messages.create({ ...says("x"), model: "claude-9" }), NotFoundError, "model: claude-9");
await rejects(client.messages.create(says(" ")), BadRequestError, "text content blocks must contain non-whitespace text");
const use = { role: "assistant", content: [{ type: "tool_use", id: "toolu_x", name: "bash", input: {} }] };
await rejects(client.messages.create(says("", { messages: [{ role: "user", content: "x" }, use, { role: "user", content: "y" }], tools: [bash] })),
        BadRequestError, "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_x");
await refusedOnly({ key: 1, model: 1, blank_text: 1, call_without_result: 1 });

// overload: tried again before the first byte, told after it
await fault("error", { status: 529, method: "messages" });
await fault("flood", { retry_after: 0.01, method: "messages" });
assert.equal(await calls("messages", () => patient.messages.create(says("again"))), 3);
await fault("flood", { retry_after: 7 });
await assert.rejects(client.messages.create(says("x")), (e) => e instanceof RateLimitError && e.headers.get("retry-after") === "7");
await fault("overload", { at: 4 });
await assert.rejects(client.messages.stream(says("long 50")).finalMessage(), (e) => e instanceof APIError && e.message.includes("Overloaded"));

// broken streams
const calling = says('call bash {"command":"a long command"}', { tools: [bash] });
for (const at of [0, 1, 400, 1000]) {
        await fault("cut_at", { at });
        await assert.rejects(client.messages.stream(calling).finalMessage(), undefined, `cut at ${at}`);
}
await fault("no_done");
await assert.rejects(client.messages.stream(calling).finalMessage());
await fault("truncate");
const cut = await client.messages.stream(calling).finalMessage();
assert.equal(cut.stop_reason, "max_tokens");
await fault("refuse");
const refused = await client.messages.stream(calling).finalMessage();
assert.equal(refused.stop_reason, "refusal");
assert.equal(refused.stop_details.type, "refusal");
await fault("overflow");
await rejects(client.messages.create(says("x")), BadRequestError, "prompt is too long: 1000001 tokens > 1000000 maximum");

// a client that leaves is noticed
await control("settings", { piece_ms: 20 });
const left = client.messages.stream(says("long 500"));
left.on("text", () => left.abort());
await assert.rejects(left.finalMessage());
assert.equal((await control("messages?kind=aborted&wait=60000")).items.length, 1);
console.log("anthropic: ok");
