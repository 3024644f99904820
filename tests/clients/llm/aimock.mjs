// An independent mock of the model services. Prints its address; ends with its standard input.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, chunkSize: 7 });
mock.onMessage(/hello/, { content: "Hello from a mock, gr\u00fc\u00df dich \u{1F3B2}." });
// a file is written, then read, then told about
const call = (name, args) => ({ toolCalls: [{ name, arguments: JSON.stringify({ label: name, ...args }) }] });
mock.on({ userMessage: /weather/, hasToolResult: false }, { ...call("write", { path: "sky.txt", content: "so very sunny" }), reasoning: "I write it down." });
mock.on({ userMessage: /weather/, toolResultContains: "Created sky.txt" }, call("read", { path: "sky.txt" }));
mock.on({ userMessage: /weather/, toolResultContains: "so very sunny" }, { content: "It is sunny." });
// refused once, then answered
mock.on({ userMessage: /busy/, sequenceIndex: 0 }, { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 });
mock.onMessage(/busy/, { content: "Not busy any more." });
// the stream ends in the middle
mock.onMessage(/broken/, { content: "word ".repeat(50) + "the end" }, { truncateAfterChunks: 5 });
console.log(await mock.start());
process.stdin.resume().on("end", () => mock.stop().then(() => process.exit(0)));
