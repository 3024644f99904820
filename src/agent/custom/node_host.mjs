// Runs the tools in DIR/tools/NAME/index.ts and index.js: an MCP server on stdio, started by Dragoman.
// Each tool has a thread of its own, so that one that crashes or never ends does not stop the others.
import { execFile } from "node:child_process";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import * as nodeModule from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const LOAD_MS = 20000; // until the list is given without a module that does not answer
const ABORT_MS = 1000; // until a thread that ignores its abort signal is ended
const STOP_MS = 1500;

// ---- one tool, in its thread ----

// What Node offers for TypeScript, or the package "typescript" beside the tool.
function prepareTypeScript(file) {
        if (process.features.typescript) return;
        let compiler = null;
        if (!nodeModule.stripTypeScriptTypes) {
                try {
                        compiler = createRequire(file).resolve("typescript");
                } catch {
                        throw new Error(`${path.basename(file)} needs Node 22.18 or newer (this is ${process.version}), ` +
                                `or the package typescript@5 in ${path.dirname(file)} or a folder above`);
                }
        }
        const hooks = `
                import { readFile } from "node:fs/promises";
                import * as nodeModule from "node:module";
                let ts;
                export async function initialize(compiler) { if (compiler) ts = nodeModule.createRequire(compiler)(compiler); }
                export async function resolve(name, context, next) {
                        try { return await next(name, context); }
                        catch (e) {
                                if (!/^[.]{1,2}[/]/.test(name) || !/[.]m?ts$/.test(context.parentURL ?? "")) throw e;
                                return next(/[.]m?js$/.test(name) ? name.replace(/js$/, "ts") : name + ".ts", context);
                        }
                }
                export async function load(url, context, next) {
                        if (!/^file:.*[.]m?ts$/.test(url)) return next(url, context);
                        const text = await readFile(new URL(url), "utf8");
                        const source = ts
                                ? ts.transpileModule(text, { fileName: url, compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } }).outputText
                                : nodeModule.stripTypeScriptTypes(text);
                        return { format: "module", source, shortCircuit: true };
                }`;
        nodeModule.register("data:text/javascript," + encodeURIComponent(hooks), { data: compiler });
}

// What a factory gets. Relative paths start at the data directory.
function toolApi(dataDir) {
        const at = (name) => path.resolve(dataDir, name);
        return {
                dataDir,
                exec: (command, args = [], options = {}) => new Promise((resolve) => {
                        execFile(command, args, { maxBuffer: 16 << 20, ...options }, (error, stdout, stderr) =>
                                resolve({ stdout, stderr, code: error ? (typeof error.code === "number" ? error.code : 1) : 0, killed: !!error?.killed }));
                }),
                readFile: (name) => readFile(at(name), "utf8"),
                writeFile: async (name, content) => {
                        await mkdir(path.dirname(at(name)), { recursive: true });
                        await writeFile(at(name), content);
                },
        };
}

async function runTool() {
        const { file, dataDir } = workerData;
        const running = new Map();
        let tool;
        try {
                if (/[.]m?ts$/.test(file)) prepareTypeScript(file);
                const exported = await import(pathToFileURL(file));
                tool = exported.default?.default ?? exported.default ?? exported;
                if (typeof tool === "function") tool = await tool(toolApi(dataDir));
                if (typeof tool?.name !== "string" || typeof tool.description !== "string" || typeof tool.execute !== "function")
                        throw new Error("its default export must have name, description, parameters and execute, or be a function that returns that");
                await tool.onStart?.();
                const parameters = JSON.parse(JSON.stringify(tool.parameters ?? { type: "object" }));
                parentPort.postMessage({ ready: { name: tool.name, description: tool.description, inputSchema: parameters } });
        } catch (e) {
                parentPort.postMessage({ broken: String(e?.message ?? e) });
                return;
        }
        parentPort.on("message", async (m) => {
                if (m.abort !== undefined) return running.get(m.abort)?.abort();
                if (m.stop) {
                        await tool.onStop?.();
                        return process.exit(0);
                }
                const abort = new AbortController();
                running.set(m.id, abort);
                let result;
                try {
                        const update = (text) => parentPort.postMessage({ id: m.id, progress: String(text) });
                        result = await tool.execute(m.callId, m.args, abort.signal, update);
                        if (typeof result === "string") result = { content: [{ type: "text", text: result }] };
                        result = JSON.parse(JSON.stringify(result ?? { content: [] }));
                } catch (e) {
                        result = { content: [{ type: "text", text: `${e?.message ?? e}` }], isError: true };
                }
                running.delete(m.id);
                parentPort.postMessage({ id: m.id, result });
        });
}

// ---- the host ----

const threads = []; // { spec, worker, tool, broken, calls: Map(id -> {token}) }
let settled = Promise.resolve();

function send(message) {
        process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

function ended(thread, why) {
        for (const id of thread.calls.keys()) send({ id, error: { code: -32000, message: `the tool ended: ${why}; it may have happened in part` } });
        thread.calls.clear();
        thread.worker = null;
}

// Resolves when the module has been loaded, or cannot be.
function startThread(thread, dataDir) {
        const { file, env } = thread.spec;
        const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { file, dataDir }, env: { ...process.env, ...env }, stdout: true, stderr: true });
        let why = "its thread ended";
        thread.worker = worker;
        for (const stream of [worker.stdout, worker.stderr]) stream.on("data", (text) => process.stderr.write(text));
        return new Promise((resolve) => {
                worker.on("message", (m) => {
                        if (m.ready) { thread.tool = m.ready; thread.broken = null; resolve(); }
                        if (m.broken) { thread.broken = m.broken; resolve(); }
                        if (m.progress !== undefined && thread.calls.has(m.id))
                                send({ method: "notifications/progress", params: { progressToken: thread.calls.get(m.id).token, progress: ++thread.calls.get(m.id).steps, message: m.progress } });
                        if (m.result && thread.calls.delete(m.id)) send({ id: m.id, result: m.result });
                });
                worker.on("error", (e) => { why = e.message; if (!thread.tool) thread.broken = e.message; });
                worker.on("exit", () => { if (thread.worker === worker) ended(thread, why); resolve(); });
                setTimeout(resolve, LOAD_MS).unref();
        });
}

let dataDir = "";

async function call(id, params) {
        const thread = threads.find((t) => t.tool?.name === params.name);
        if (!thread) return send({ id, error: { code: -32602, message: `unknown tool ${params.name}` } });
        thread.calls.set(id, { token: params._meta?.progressToken, steps: 0 });
        if (!thread.worker) await startThread(thread, dataDir);
        thread.worker?.postMessage({ id, callId: String(id), args: params.arguments ?? {} });
}

function cancel(id) {
        const thread = threads.find((t) => t.calls.has(id));
        if (!thread) return;
        thread.calls.delete(id);
        const worker = thread.worker;
        let idle = false;
        worker?.postMessage({ abort: id });
        worker?.on("message", (m) => { if (m.id === id) idle = true; });
        setTimeout(() => { if (!idle && thread.worker === worker) worker?.terminate(); }, ABORT_MS).unref();
}

async function take(m) {
        const { id, method, params = {} } = m;
        if (method === "initialize") {
                const given = params._meta?.dragoman ?? { modules: [] };
                dataDir = given.dataDir;
                for (const spec of given.modules) threads.push({ spec, calls: new Map() });
                settled = Promise.all(threads.map((t) => startThread(t, dataDir)));
                return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "dragoman-modules", version: "1" } } });
        }
        if (method === "tools/list") {
                await settled;
                const problems = threads.filter((t) => !t.tool).map((t) => ({ folder: t.spec.folder, why: t.broken ?? `it did not load within ${LOAD_MS / 1000} seconds` }));
                const tools = threads.filter((t) => t.tool).map((t) => ({ ...t.tool, _meta: { folder: t.spec.folder } }));
                return send({ id, result: { tools, _meta: { problems } } });
        }
        if (method === "tools/call") return call(id, params);
        if (method === "notifications/cancelled") return cancel(params.requestId);
        if (id !== undefined && method) send({ id, error: { code: -32601, message: "method not found" } });
}

function host() {
        let rest = Buffer.alloc(0);
        process.stdin.on("data", (bytes) => {
                rest = Buffer.concat([rest, bytes]);
                for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) take(JSON.parse(rest.subarray(0, end).toString()));
        });
        process.stdin.on("end", () => {
                for (const t of threads) t.worker?.postMessage({ stop: true });
                setTimeout(() => process.exit(0), STOP_MS).unref();
        });
}

if (isMainThread) host();
else runTool();
