/** What the tests share: a gateway that misbehaves on request, and an agent that is driven by hand. */
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { AgentApi, AgentContext, AgentMessage } from "../src/agent.ts";
import type { Command } from "../src/commands.ts";
import extension from "../src/index.ts";
import type { SessionEvent } from "../src/outbox.ts";

/** For what must happen; a slow machine is no failure. */
const PATIENCE_MS = 20_000;

type Look<T> = T | undefined | false;

export async function until<T>(what: string, look: () => Look<T> | Promise<Look<T>>): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited too long until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const folders: string[] = [];
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is gone when the tests end. */
export function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "discord-notify-"));
  folders.push(folder);
  return folder;
}

type Answer = { status: number; body?: unknown; headers?: Record<string, string> };
/** undefined: as usual; "hang": no answer; "cut": the connection breaks after the work is done. */
export type Trick = (request: {
  method: string;
  path: string;
  body: string;
}) => Answer | "hang" | "cut" | "cut-after" | undefined;

const gateways: FakeGateway[] = [];
after(() => Promise.all(gateways.map((gateway) => gateway.stop())));

/** Does what the daemon documents: duplicates by event id, states of commands, receipts. */
export class FakeGateway extends EventEmitter {
  events: SessionEvent[] = [];
  duplicates = 0;
  requests: { method: string; path: string; body: string; key: string | undefined }[] = [];
  acks: { id: string; status: string; error?: string; receipt?: string; duplicate: boolean }[] = [];
  trick: Trick = () => undefined;
  streams = true;
  /** Bytes of the stream's beginning; "": it is silent, as behind a proxy that buffers. */
  greeting = ": ping\n\n";
  readonly commands = new Map<
    string,
    Command & { state: string; receipt?: string; session: string }
  >();
  #server: Server | undefined;
  #port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #streams = new Map<ServerResponse, string>();
  readonly #seen = new Set<string>();

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    gateways.push(this);
    return this;
  }

  /** As `kill -9`: what it knows stays, as in its database. */
  async stop(): Promise<void> {
    const closed = this.#server ? once(this.#server, "close") : undefined;
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#streams.clear();
    await closed;
    this.#server = undefined;
  }

  types(): string[] {
    return this.events.map((event) => event.event_type);
  }

  of(type: string): SessionEvent[] {
    return this.events.filter((event) => event.event_type === type);
  }

  states(): string[] {
    return [...this.commands.values()].map((command) => command.state);
  }

  tell(session: string, command: Partial<Command> & { action: string }): Command {
    const full = {
      command_id: `cmd-${this.commands.size + 1}`,
      content: "",
      created_at: new Date().toISOString(),
      by: "ada",
      ...command,
    };
    this.commands.set(full.command_id, { ...full, state: "queued", session });
    for (const [response, of] of this.#streams) if (of === session) response.write(frame(full));
    return full;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { method = "GET", url = "/" } = request;
    const asked = { method, path: url, body };
    this.requests.push({ ...asked, key: request.headers["x-api-key"]?.toString() });
    const trick = this.trick(asked);
    if (trick === "hang") return;
    if (trick === "cut") {
      request.socket.destroy();
      return;
    }
    if (typeof trick === "object") {
      send(response, trick);
      return;
    }
    const path = new URL(url, "http://x");
    if (path.pathname === "/api/commands/stream") {
      this.#stream(response, path.searchParams.get("session_id") ?? "");
      return;
    }
    const answer = this.#answer(method, path, body);
    if (trick === "cut-after") request.socket.destroy();
    else send(response, answer);
    this.emit("served", asked);
  }

  #answer(method: string, path: URL, body: string): Answer {
    const session = path.searchParams.get("session_id") ?? "";
    const ack = /^\/api\/commands\/([^/]+)\/ack$/.exec(path.pathname);
    if (method === "POST" && path.pathname === "/api/webhook/event")
      return this.#store(JSON.parse(body) as SessionEvent[]);
    if (path.pathname === "/api/commands/poll") {
      const waiting = [...this.commands.values()].filter(
        (command) => command.session === session && command.state === "queued",
      );
      return { status: 200, body: waiting };
    }
    if (ack?.[1]) return this.#acknowledge(ack[1], JSON.parse(body));
    if (/^\/api\/sessions\/.+\/link$/.test(path.pathname)) return { status: 200, body: {} };
    return { status: 404, body: { error: { message: "no such route" } } };
  }

  #store(events: SessionEvent[]): Answer {
    if (events.length > 200) return { status: 400, body: { error: { message: "too many" } } };
    let accepted = 0;
    for (const event of events) {
      const id = `${event.session_id} ${event.event_id}`;
      if (this.#seen.has(id)) {
        this.duplicates++;
        continue;
      }
      this.#seen.add(id);
      this.events.push(event);
      accepted++;
    }
    return { status: 200, body: { status: "ok", accepted, duplicates: events.length - accepted } };
  }

  #acknowledge(id: string, ack: { status: string; error?: string; receipt?: string }): Answer {
    const command = this.commands.get(id);
    if (!command) return { status: 404, body: { error: { message: "no such command" } } };
    const same = command.state === ack.status;
    const moves = command.state === "queued" || (command.state === "delivered" && !same);
    const duplicate = !moves && !(same && ack.receipt && ack.receipt === command.receipt);
    if (moves) {
      command.state = ack.status;
      if (ack.receipt) command.receipt = ack.receipt;
    }
    this.acks.push({ id, ...ack, duplicate });
    return { status: 200, body: { state: command.state, duplicate } };
  }

  #stream(response: ServerResponse, session: string): void {
    if (!this.streams) {
      send(response, { status: 404, body: { error: { message: "no stream" } } });
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    if (this.greeting) response.write(this.greeting);
    this.#streams.set(response, session);
    response.on("close", () => this.#streams.delete(response));
    if (this.greeting === "") {
      this.#streams.delete(response);
      return;
    }
    for (const command of this.commands.values())
      if (command.session === session && command.state === "queued") response.write(frame(command));
  }
}

function frame(command: Command): string {
  return `event: command\nid: ${command.command_id}\ndata: ${JSON.stringify(command)}\n\n`;
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

type Handler = (event: object, ctx: AgentContext) => unknown;
type Registered = Parameters<AgentApi["registerCommand"]>[1];

/** An agent without a model. Each instance of the extension is loaded as the program would. */
export class FakeAgent {
  session = "s-1";
  hasUI = false;
  idle = true;
  model = { id: "m-1", provider: "fake" };
  sessionName: string | undefined;
  /** What the session's file has. */
  entries: { type: string; message?: AgentMessage }[] = [];
  signal: AbortSignal | undefined;
  said: { content: string; deliverAs: string | undefined }[] = [];
  notes: string[] = [];
  aborted = 0;
  dialogs: { message: string; answer: (yes: boolean) => void; signal: AbortSignal | undefined }[] =
    [];
  refuseMessages: string | undefined;
  readonly cwd: string;
  #handlers = new Map<string, Handler[]>();
  #commands = new Map<string, Registered>();
  #stale: { yes: boolean } = { yes: false };
  readonly #isOmp: boolean;

  constructor(options: { omp?: boolean; cwd?: string } = {}) {
    this.#isOmp = options.omp ?? false;
    this.cwd = options.cwd ?? temporary();
    this.load();
  }

  /** Loads the extension, as a new instance; what an earlier one holds is stale. */
  load(): void {
    this.#stale.yes = true;
    this.#stale = { yes: false };
    this.#handlers = new Map();
    extension(this.#api(this.#stale));
  }

  #api(stale: { yes: boolean }): AgentApi {
    const check = () => {
      if (stale.yes) throw new Error("this extension instance is stale");
    };
    return {
      on: (name: string, handler: Handler) => {
        this.#handlers.set(name, [...(this.#handlers.get(name) ?? []), handler]);
      },
      registerCommand: (name, options) => this.#commands.set(name, options),
      sendUserMessage: (content, options) => {
        check();
        if (this.refuseMessages) throw new Error(this.refuseMessages);
        this.said.push({ content, deliverAs: options?.deliverAs });
      },
      getSessionName: () => this.sessionName,
      ...(this.#isOmp ? { logger: { error: (text: string) => this.notes.push(text) } } : {}),
    };
  }

  get ctx(): AgentContext {
    const stale = this.#stale;
    const check = () => {
      if (stale.yes) throw new Error("this context is stale");
    };
    return {
      ui: {
        confirm: (_title, message, options) =>
          new Promise((resolve) => {
            options?.signal?.addEventListener("abort", () => resolve(false));
            this.dialogs.push({ message, answer: resolve, signal: options?.signal });
          }),
        notify: (text) => {
          this.notes.push(text);
        },
      },
      mode: this.hasUI ? "tui" : "print",
      hasUI: this.hasUI,
      cwd: this.cwd,
      sessionManager: {
        getSessionId: () => {
          check();
          return this.session;
        },
        getEntries: () => this.entries,
      },
      model: this.model,
      signal: this.signal,
      isIdle: () => {
        check();
        return this.idle;
      },
      abort: () => {
        check();
        this.aborted++;
      },
      hasPendingMessages: () => false,
    };
  }

  /** What the handlers return, not awaited. */
  emit(name: string, event: object = {}, ctx = this.ctx): unknown[] {
    return (this.#handlers.get(name) ?? []).map((handler) => handler(event, ctx));
  }

  prompt(text: string): void {
    this.emit("before_agent_start", { prompt: text });
    this.entries.push({ type: "message", message: { role: "user", content: text } });
  }

  call(command: string, id = `call-${Math.random()}`): unknown {
    return this.emit("tool_call", { toolName: "bash", toolCallId: id, input: { command } })[0];
  }

  result(id: string, text: string, isError = false): void {
    const result = { content: [{ type: "text", text }] };
    this.emit("tool_execution_end", { toolName: "bash", toolCallId: id, result, isError });
  }

  /** One prompt that the model answers at once. */
  answer(text: string, usage?: object): void {
    this.emit("agent_start");
    this.emit("turn_start");
    this.emit("turn_end", {
      message: { role: "assistant", content: text, usage, stopReason: "stop" },
    });
    this.emit("agent_end");
    if (!this.#isOmp) this.emit("agent_settled");
  }

  async quit(reason = "quit"): Promise<void> {
    await Promise.all(this.emit("session_shutdown", this.#isOmp ? {} : { reason }));
  }

  async discord(args: string): Promise<string> {
    const before = this.notes.length;
    const hadUI = this.hasUI;
    this.hasUI = true;
    await this.#commands.get("discord")?.handler(args, this.ctx);
    this.hasUI = hadUI;
    return this.notes.slice(before).join("\n");
  }

  completions(prefix: string): { value: string }[] | null {
    return this.#commands.get("discord")?.getArgumentCompletions?.(prefix);
  }
}

/** Each test has a home, and so a queue on disk and a hub, of its own. */
export function configure(url: string, settings: object = {}): string {
  const home = temporary();
  const file = join(home, "discord-notify.json");
  const marker = { redact: [`never-${Math.random()}`] }; // no test shares a hub with another
  writeFileSync(
    file,
    JSON.stringify({ url, key: "drg_test_key_1234567890", pollSeconds: 1, ...marker, ...settings }),
    { mode: 0o600 },
  );
  process.env.DRAGOMAN_CONFIG = file;
  process.env.XDG_STATE_HOME = join(home, "state");
  delete process.env.DRAGOMAN_URL;
  delete process.env.DRAGOMAN_KEY_FILE;
  return home;
}
