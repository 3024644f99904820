// OpenAI's own client against a daemon at BASE_URL, with API_KEY; READER_KEY may not chat.
import assert from "node:assert/strict";
import OpenAI, { NotFoundError, PermissionDeniedError, APIError } from "openai";

const options = { baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, maxRetries: 0 };
const client = new OpenAI(options);
const says = (content, more = {}) => ({ model: "stage", messages: [{ role: "user", content }], ...more });

const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.deepEqual(names.sort(), ["dragoman", "stage"]);
assert.equal((await client.models.retrieve("stage")).owned_by, "dragoman");

const whole = await client.chat.completions.create(says("hello", { temperature: 0.2, max_tokens: 100 }));
assert.equal(whole.choices[0].message.content, "You said: hello");
assert.equal(whole.choices[0].finish_reason, "stop");
assert.equal(whole.object, "chat.completion");

// streaming
const stream = await client.chat.completions.create(says("slow words", { stream: true, stream_options: { include_usage: true } }));
let text = "", pieces = 0, usage = null;
for await (const chunk of stream) {
        pieces++;
        text += chunk.choices[0]?.delta?.content ?? "";
        usage = chunk.usage ?? usage;
}
assert.equal(text, "One. Two. Three.");
assert.ok(pieces >= 4, `${pieces} pieces`);
assert.ok(usage && usage.total_tokens >= 0);
const final = await client.chat.completions.stream(says("slow words")).finalContent();
assert.equal(final, "One. Two. Three.");

// an existing conversation
const named = (content) => client.chat.completions.create(says(content, { user: "ann" }));
await named("first");
assert.equal((await named("second")).choices[0].message.content, "You said: second");

// a repeated request starts no second turn
const again = () => client.chat.completions.create(says("once"), { headers: { "Idempotency-Key": "one" } });
assert.equal((await again()).id, (await again()).id);

await assert.rejects(client.chat.completions.create({ ...says("x"), model: "gpt-5" }), (e) => e instanceof NotFoundError && e.code === "model_not_found");
await assert.rejects(client.chat.completions.create(says("bad luck")), (e) => e instanceof APIError && e.status === 502 && e.message.includes("It is broken."));
await assert.rejects(client.chat.completions.stream(says("bad luck")).finalContent(), (e) => e instanceof APIError && e.code === "agent_error");
const reader = new OpenAI({ ...options, apiKey: process.env.READER_KEY });
await assert.rejects(reader.chat.completions.create(says("x")), PermissionDeniedError);
console.log("openai: ok");
