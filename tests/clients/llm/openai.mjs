// OpenAI's own SDK against dragoman-sim llm: Chat Completions and Responses.
import assert from "node:assert/strict";
import OpenAI, { APIError, AuthenticationError, BadRequestError, InternalServerError, NotFoundError, RateLimitError } from "openai";
import { control, calls, fault, key, refusedOnly, url } from "./control.mjs";

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const patient = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 2 });
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const bash = { type: "function", function: { name: "bash", description: "run a command", parameters } };
const flat = { type: "function", name: "bash", description: "run a command", parameters, strict: false };
const says = (content, more = {}) => ({ model: "gpt-5.4", messages: [{ role: "user", content }], ...more });
const rejects = (promise, type, words) => assert.rejects(promise, (e) => e instanceof type && e.message.includes(words));

const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.ok(names.includes("gpt-5.4") && !names.includes("claude-opus-5-5"));
assert.equal((await client.models.retrieve("gpt-4o")).object, "model");

// ---- chat completions ----
const { data: whole, response: raw } = await client.chat.completions.create(says("hello")).withResponse();
assert.ok(Number(raw.headers.get("x-ratelimit-limit-requests")) > 0);
assert.equal(whole.choices[0].message.content, "You said: hello");
assert.equal(whole.choices[0].finish_reason, "stop");
assert.match(whole._request_id, /^req_/);
const streamed = client.chat.completions.stream(says("long 50", { stream_options: { include_usage: true } }));
assert.equal((await streamed.finalContent()).split(" ").length, 50);
assert.ok((await streamed.totalUsage()).completion_tokens > 50);

const messages = [{ role: "user", content: 'calls 3 bash {"command":"echo {n} \u{1F600}\\n"}\nsay One more.\nuse bash: last\nsay Done.' }];
const seen = [];
for (;;) {
        const answer = (await client.chat.completions.stream(says("", { messages, tools: [bash] })).finalChatCompletion()).choices[0];
        messages.push(answer.message);
        if (answer.finish_reason !== "tool_calls") {
                assert.equal(answer.message.content, "Done.");
                break;
        }
        seen.push(answer.message.tool_calls.map((c) => JSON.parse(c.function.arguments).command));
        for (const c of answer.message.tool_calls) messages.push({ role: "tool", tool_call_id: c.id, content: "ok" });
}
assert.deepEqual(seen, [["echo 1 \u{1F600}\n", "echo 2 \u{1F600}\n", "echo 3 \u{1F600}\n"], ["last"]]);

// the SDK's own tool loop
const ran = [];
const runner = client.chat.completions.runTools(says("calls 2 bash {\"command\":\"{n}\"}\nuse bash: 3\nsay Finished.", {
        tools: [{ ...bash, function: { ...bash.function, parse: JSON.parse, function: (input) => { ran.push(input.command); return "ok"; } } }],
}));
assert.equal(await runner.finalContent(), "Finished.");
assert.deepEqual(ran.sort(), ["1", "2", "3"]);

// ---- responses ----
const response = await client.responses.create({ model: "gpt-5.4", input: "hello" });
assert.equal(response.output_text, "You said: hello");
const input = [{ role: "user", content: 'think First this.\ncalls 2 bash {"command":"{n}"}\nthink Then that.\nuse bash: 3\nsay Done.' }];
const rounds = [];
for (;;) {
        const stream = client.responses.stream({ model: "gpt-5.4", input, tools: [flat], store: false, include: ["reasoning.encrypted_content"],
                reasoning: { effort: "low", summary: "auto" } });
        const answer = await stream.finalResponse();
        input.push(...answer.output.map(({ parsed_arguments, ...item }) => item));
        const uses = answer.output.filter((item) => item.type === "function_call");
        if (uses.length === 0) {
                assert.equal(answer.output_text, "Done.");
                break;
        }
        assert.equal(answer.output[0].type, "reasoning");
        assert.equal(answer.output[0].summary.length, 1);
        rounds.push(uses.map((item) => JSON.parse(item.arguments).command));
        for (const item of uses) input.push({ type: "function_call_output", call_id: item.call_id, output: "ok" });
}
assert.deepEqual(rounds, [["1", "2"], ["3"]]);
const short = await client.responses.create({ model: "gpt-5.4", input: "long 200", max_output_tokens: 16 });
assert.equal(short.status, "incomplete");
assert.equal(short.incomplete_details.reason, "max_output_tokens");

// the cache
const rules = { role: "system", content: "rules ".repeat(2000) };
const usage = async (content) => (await client.chat.completions.create(says("", { messages: [rules, { role: "user", content }] }))).usage.prompt_tokens_details.cached_tokens;
assert.equal(await usage("one"), 0);
assert.ok((await usage("two")) >= 1024);
await refusedOnly({});

// errors
await rejects(new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-wrong", maxRetries: 0 }).chat.completions.create(says("x")), AuthenticationError, "Incorrect API key provided");
await assert.rejects(client.chat.completions.create({ ...says("x"), model: "gpt-9" }), (e) => e instanceof NotFoundError && e.code === "model_not_found");
await assert.rejects(client.chat.completions.create(says("x", { max_tokens: 5 })), (e) => e instanceof BadRequestError && e.code === "unsupported_parameter" && e.param === "max_tokens");
await rejects(client.responses.create({ model: "gpt-5.4", input: input.slice(0, 2).concat(input.slice(3)), tools: [flat] }), BadRequestError, "No tool call found for function call output");
await rejects(client.responses.create({ model: "gpt-5.4", input: input.filter((i) => i.type !== "reasoning"), tools: [flat] }), BadRequestError, "without its required 'reasoning' item");
await refusedOnly({ key: 1, model: 1, max_tokens: 1, result_without_call: 1, call_without_reasoning: 1 });

// overload: tried again before the first byte, told after it
await fault("error", { status: 503, method: "chat" });
await fault("flood", { retry_after: 0.01, method: "chat" });
assert.equal(await calls("chat", () => patient.chat.completions.create(says("again"))), 3);
await fault("flood", { retry_after: 7 });
await assert.rejects(client.responses.create({ model: "gpt-5.4", input: "x" }), (e) => e instanceof RateLimitError && e.headers.get("retry-after") === "7");
await fault("error", { status: 500 });
await rejects(client.chat.completions.create(says("x")), InternalServerError, "Internal server error");
await fault("overload", { at: 4, method: "chat" });
await assert.rejects(client.chat.completions.stream(says("long 50")).finalContent(), APIError);
await fault("overload", { at: 4, method: "responses" });
await assert.rejects(client.responses.stream({ model: "gpt-5.4", input: "long 50" }).finalResponse(), APIError);

// broken streams
const calling = says('call bash {"command":"a long command"}', { tools: [bash] });
await fault("cut_at", { at: 700 });
await assert.rejects(client.chat.completions.stream(calling).finalChatCompletion());
await fault("no_done", { method: "chat" }); // the SDK does without
assert.equal((await client.chat.completions.stream(calling).finalChatCompletion()).choices[0].finish_reason, "tool_calls");
await fault("truncate", { method: "chat" });
assert.equal((await client.chat.completions.stream(calling).finalChatCompletion()).choices[0].finish_reason, "length");
await fault("overflow");
await assert.rejects(client.chat.completions.create(says("x")), (e) => e instanceof BadRequestError && e.code === "context_length_exceeded");
await control("settings", { window: 100 });
await assert.rejects(client.responses.create({ model: "gpt-5.4", input: "word ".repeat(100) }), (e) => e.code === "context_length_exceeded");
console.log("openai: ok");
