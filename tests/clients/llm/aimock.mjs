// An independent mock of the model services. Prints its address; ends with its standard input.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, chunkSize: 7 });
mock.onMessage(/hello/, { content: "Hello from a mock, gr\u00fc\u00df dich \u{1F3B2}." });
mock.on({ userMessage: /weather/, hasToolResult: false }, { toolCalls: [{ name: "bash", arguments: '{"label":"looking","command":"echo so very sunny"}' }] });
mock.on({ userMessage: /weather/, hasToolResult: true, toolResultContains: "so very sunny" }, { content: "It is sunny." });
// refused once, then answered
mock.on({ userMessage: /busy/, sequenceIndex: 0 }, { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 });
mock.onMessage(/busy/, { content: "Not busy any more." });
// the stream ends in the middle
mock.onMessage(/broken/, { content: "word ".repeat(50) + "the end" }, { truncateAfterChunks: 5 });
console.log(await mock.start());
process.stdin.resume().on("end", () => mock.stop().then(() => process.exit(0)));
