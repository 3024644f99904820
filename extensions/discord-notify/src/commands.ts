/**
 * Fetches what people tell a session, and carries each command out at most once: it is acknowledged
 * as delivered before the agent gets it, and only if nobody else has acknowledged it. An answer that
 * is lost is asked for again with the same receipt, since a command that the gateway has noted as
 * delivered is not listed again.
 *
 * They come by an event stream. While that is not proved to work, because nothing came of it for
 * STREAM_SILENCE_MS, they are polled for as well; a command that comes twice is known by its id.
 */
import { randomUUID } from "node:crypto";
import type { Gateway } from "./gateway.ts";
import { type Repeater, sleep } from "./repeater.ts";

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

/** Carries it out. The end, if it has one at once; else it is acknowledged later. */
export type Carry = (command: Command) => End | undefined;
export interface End {
  status: "seen" | "failed" | "superseded";
  error?: string;
}

/** What became of a delivered command. */
export function acknowledge(repeater: Repeater, command: string, end: End): void {
  void repeater.post(ackPath(command), end);
}

export interface ReceiverOptions {
  gateway: Gateway;
  repeater: Repeater;
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
const KNOWN_MAX = 1000;
const BUFFER_MAX = 1024 * 1024;

export class Receiver {
  readonly session: string;
  readonly #options: Required<ReceiverOptions>;
  readonly #stop = new AbortController();
  readonly #handled = new Set<string>();
  #queue: Promise<void> = Promise.resolve();
  #streamHeardMs = 0;

  constructor(options: ReceiverOptions) {
    this.session = options.session;
    this.#options = { silenceMs: STREAM_SILENCE_MS, now: Date.now, ...options };
    void this.#pollForever();
    if (options.stream) void this.#streamForever();
  }

  get way(): "stream" | "poll" {
    return this.#streamWorks() ? "stream" : "poll";
  }

  /** Takes no more commands. */
  stop(): void {
    this.#stop.abort();
  }

  #streamWorks(): boolean {
    return this.#options.now() - this.#streamHeardMs < this.#options.silenceMs;
  }

  // ---- fetching ----

  #query(): string {
    return `?session_id=${encodeURIComponent(this.#options.session)}`;
  }

  async #pollForever(): Promise<void> {
    const { gateway, pollMs } = this.#options;
    while (!this.#stop.signal.aborted) {
      if (!this.#streamWorks()) {
        const outcome = await gateway.get(`/api/commands/poll${this.#query()}`, this.#stop.signal);
        if (outcome.kind === "ok" && Array.isArray(outcome.body))
          for (const command of outcome.body) this.#take(command);
      }
      // never in step with other agents
      const pause = Math.max(pollMs * (0.9 + Math.random() / 5), gateway.breaker.pauseMs);
      await sleep(pause, this.#stop.signal);
    }
  }

  async #streamForever(): Promise<void> {
    const { gateway } = this.#options;
    for (let failures = 0; !this.#stop.signal.aborted; ) {
      const worked = await this.#readStream();
      failures = worked ? 0 : failures + 1;
      const pause = STREAM_RETRY_MS[Math.min(failures, STREAM_RETRY_MS.length) - 1] ?? 1000;
      const spread = pause * (0.8 + Math.random() * 0.4);
      await sleep(Math.max(spread, gateway.breaker.pauseMs), this.#stop.signal);
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
    const id = command.command_id;
    if (!this.#isStale(command) && !(await this.#deliver(id))) return;
    const end = this.#carryOut(command);
    if (end) acknowledge(this.#options.repeater, id, end);
  }

  /** The end, if it has one at once. Much may have happened while it was acknowledged. */
  #carryOut(command: Command): End | undefined {
    const failed = (error: string): End => ({ status: "failed", error });
    if (this.#isStale(command)) return failed("it is older than an hour");
    if (this.#stop.signal.aborted) return failed("the session has ended");
    try {
      return this.#options.carry(command);
    } catch (error) {
      return failed((error as Error).message.slice(0, 500));
    }
  }

  #isStale({ created_at }: Command): boolean {
    const { gateway, now } = this.#options;
    return now() + gateway.clockOffsetMs - Date.parse(created_at ?? "") > STALE_MS;
  }

  /** True: the command is ours to carry out. */
  async #deliver(id: string): Promise<boolean> {
    const body = { status: "delivered", receipt: randomUUID() };
    const outcome = await this.#options.repeater.post(ackPath(id), body);
    return outcome.kind === "ok" && (outcome.body as { duplicate?: unknown })?.duplicate === false;
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
