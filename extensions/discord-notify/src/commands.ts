/**
 * Fetches what people tell a session, and carries each command out at most once: it is acknowledged
 * as delivered before the agent gets it, and only if nobody else has acknowledged it.
 *
 * They come by an event stream. While that is not proved to work, because nothing came of it for
 * STREAM_SILENCE_MS, and after a command that could not be acknowledged, they are polled for as
 * well; a command that comes twice is known by its id.
 */
import { randomUUID } from "node:crypto";
import type { Gateway, Outcome } from "./gateway.ts";

export interface Command {
  command_id: string;
  action: string;
  content: string;
  created_at?: string;
  by?: string;
  approval_id?: string;
  decision?: string;
  reason?: string;
}

/** Carries it out. The end, if it has one at once; else it is acknowledged later by `settle`. */
export type Carry = (command: Command) => End | undefined;
export interface End {
  status: "seen" | "failed" | "superseded";
  error?: string;
}

export interface ReceiverOptions {
  gateway: Gateway;
  session: string;
  carry: Carry;
  stream: boolean;
  pollMs: number;
  /** The stream pings every 15 s. */
  silenceMs?: number;
  now?: () => number;
}

export const STALE_MS = 3600 * 1000;
const STREAM_SILENCE_MS = 45_000;
const STREAM_RETRY_MS = [5000, 15_000, 60_000, 300_000];
const ACK_RETRY_MS = [500, 1000, 2000, 5000, 10_000, 30_000];
const KNOWN_MAX = 1000;
const BUFFER_MAX = 1024 * 1024;

export class Receiver {
  readonly session: string;
  readonly #options: Required<ReceiverOptions>;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  /** Receipts of commands that were seen here. One whose acknowledgement failed keeps its receipt. */
  readonly #receipts = new Map<string, string>();
  readonly #handled = new Set<string>();
  #queue: Promise<void> = Promise.resolve();
  #streamHeardMs = 0;
  /** A command was not taken, and a stream that works does not bring it again. */
  #missed = false;
  #acks = new Set<Promise<void>>();

  constructor(options: ReceiverOptions) {
    this.session = options.session;
    this.#options = { silenceMs: STREAM_SILENCE_MS, now: Date.now, ...options };
    this.#running.push(this.#pollForever());
    if (options.stream) this.#running.push(this.#streamForever());
  }

  get way(): "stream" | "poll" {
    return this.#streamWorks() ? "stream" : "poll";
  }

  /** Acknowledges what became of a delivered command; repeated until the gateway has it. */
  settle(command: string, end: End): void {
    const ack = this.#settle(command, end).finally(() => this.#acks.delete(ack));
    this.#acks.add(ack);
  }

  /** Waits for acknowledgements that are under way, for a while. */
  async stop(waitMs = 0): Promise<void> {
    if (waitMs > 0 && this.#acks.size > 0) {
      let over: NodeJS.Timeout | undefined;
      const timeout = new Promise<void>((resolve) => {
        over = setTimeout(resolve, waitMs);
      });
      await Promise.race([Promise.all(this.#acks), timeout]);
      clearTimeout(over);
    }
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  #streamWorks(): boolean {
    return this.#options.now() - this.#streamHeardMs < this.#options.silenceMs;
  }

  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#stop;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(wake, ms);
      timer.unref?.();
      function wake() {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        resolve();
      }
      signal.addEventListener("abort", wake);
    });
  }

  // ---- fetching ----

  #query(): string {
    return `?session_id=${encodeURIComponent(this.#options.session)}`;
  }

  async #pollForever(): Promise<void> {
    const { gateway, pollMs } = this.#options;
    while (!this.#stop.signal.aborted) {
      if (!this.#streamWorks() || this.#missed) {
        const outcome = await gateway.get(`/api/commands/poll${this.#query()}`, this.#stop.signal);
        if (outcome.kind === "ok" && Array.isArray(outcome.body)) {
          this.#missed = false;
          for (const command of outcome.body) this.#take(command);
        }
      }
      // never in step with other agents
      await this.#sleep(Math.max(pollMs * (0.9 + Math.random() / 5), gateway.breaker.pauseMs));
    }
  }

  async #streamForever(): Promise<void> {
    const { gateway } = this.#options;
    for (let failures = 0; !this.#stop.signal.aborted; ) {
      const worked = await this.#readStream();
      failures = worked ? 0 : failures + 1;
      const pause = STREAM_RETRY_MS[Math.min(failures, STREAM_RETRY_MS.length) - 1] ?? 1000;
      await this.#sleep(Math.max(pause * (0.8 + Math.random() * 0.4), gateway.breaker.pauseMs));
    }
  }

  /** Until it ends or is silent. True: something came. */
  async #readStream(): Promise<boolean> {
    const { gateway, silenceMs, now } = this.#options;
    const silence = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, silence.signal]);
    const chunks = await gateway.stream(`/api/commands/stream${this.#query()}`, signal);
    if (!chunks) return false;
    let heard = false;
    let watchdog = setTimeout(() => silence.abort(), silenceMs);
    watchdog.unref?.();
    try {
      const parser = new EventParser((data) => this.#take(data));
      for await (const chunk of chunks) {
        heard = true;
        this.#streamHeardMs = now();
        clearTimeout(watchdog);
        watchdog = setTimeout(() => silence.abort(), silenceMs);
        watchdog.unref?.();
        if (!parser.push(chunk)) break;
      }
    } catch {
      // it broke: there will be another
    } finally {
      clearTimeout(watchdog);
      silence.abort();
      this.#streamHeardMs = 0;
    }
    return heard;
  }

  // ---- carrying out ----

  #take(given: unknown): void {
    const command = given as Command | null;
    if (typeof command !== "object" || typeof command?.command_id !== "string") return;
    if (this.#handled.has(command.command_id)) return;
    remember(this.#handled, command.command_id);
    this.#queue = this.#queue.then(() => this.#handle(command)).catch(() => {});
  }

  async #handle(command: Command): Promise<void> {
    const { gateway, carry, now } = this.#options;
    const id = command.command_id;
    const age = now() + gateway.clockOffsetMs - Date.parse(command.created_at ?? "");
    if (age > STALE_MS) {
      this.settle(id, { status: "failed", error: "it is older than an hour" });
      return;
    }
    if (!(await this.#deliver(id))) return;
    if (this.#stop.signal.aborted) {
      // it was for the session before; nobody waits for this answer
      const end = { status: "failed", error: "the session has ended" };
      gateway.post(ackPath(id), JSON.stringify(end));
      return;
    }
    let end: End | undefined;
    try {
      end = carry(command);
    } catch (error) {
      end = { status: "failed", error: (error as Error).message.slice(0, 500) };
    }
    if (end) this.settle(id, end);
  }

  /** True: the command is ours to carry out. */
  async #deliver(id: string): Promise<boolean> {
    const receipt = this.#receipts.get(id) ?? randomUUID();
    this.#receipts.set(id, receipt);
    for (const pause of [...ACK_RETRY_MS.slice(0, 3), 0]) {
      const outcome = await this.#ack(id, { status: "delivered", receipt });
      if (outcome.kind !== "failed") {
        this.#receipts.delete(id);
        const body = outcome.kind === "ok" ? (outcome.body as { duplicate?: unknown }) : {};
        return body?.duplicate === false;
      }
      if (this.#stop.signal.aborted) return false;
      await this.#sleep(pause);
    }
    // whether it was stored is not known: asked again with the same receipt when it comes again
    this.#handled.delete(id);
    this.#missed = true;
    return false;
  }

  async #settle(id: string, end: End): Promise<void> {
    for (let attempt = 0; !this.#stop.signal.aborted && attempt < 100; attempt++) {
      if ((await this.#ack(id, end)).kind !== "failed") return;
      await this.#sleep(ACK_RETRY_MS[Math.min(attempt, ACK_RETRY_MS.length - 1)] ?? 1000);
    }
  }

  #ack(id: string, body: object): Promise<Outcome> {
    return this.#options.gateway.post(ackPath(id), JSON.stringify(body), this.#stop.signal);
  }
}

function ackPath(id: string): string {
  return `/api/commands/${encodeURIComponent(id)}/ack`;
}

function remember(known: Set<string>, id: string): void {
  known.add(id);
  if (known.size > KNOWN_MAX) known.delete(known.values().next().value as string);
}

/** Events of type command from a stream of server-sent events. */
export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  readonly #onCommand: (data: unknown) => void;

  constructor(onCommand: (data: unknown) => void) {
    this.#onCommand = onCommand;
  }

  /** False: no line ends for too long. */
  push(chunk: string): boolean {
    this.#rest += chunk;
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
    return this.#rest.length + this.#data.length <= BUFFER_MAX;
  }

  #line(line: string): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
  }

  #dispatch(): void {
    const [event, data] = [this.#event, this.#data.join("\n")];
    this.#event = "";
    this.#data = [];
    if (event !== "command") return;
    try {
      this.#onCommand(JSON.parse(data));
    } catch {
      // not a command of ours
    }
  }
}
