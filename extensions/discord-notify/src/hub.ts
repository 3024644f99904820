/**
 * What the extension has once per process and gateway, however often the agent loads it: the queue,
 * the connection, the session that is reported, open approvals. pi loads an extension again for
 * every session, omp once more for every subagent.
 *
 * Nothing here keeps an object of the agent longer than its session: an old one throws.
 */
import { createHash, randomBytes } from "node:crypto";
import { Approvals } from "./approvals.ts";
import { acknowledge, type Carry, type End, Receiver } from "./commands.ts";
import type { Config, Link } from "./config.ts";
import { Gateway, type Outcome } from "./gateway.ts";
import { type Draft, Entry, Outbox } from "./outbox.ts";
import { redactor } from "./redact.ts";
import { Repeater } from "./repeater.ts";
import { Sender } from "./sender.ts";
import { Spool, spoolFolder } from "./spool.ts";

export interface Report {
  type: string;
  tool?: string | undefined;
  content?: string;
  metadata?: Record<string, unknown>;
  /** Of the content, in bytes. */
  limit?: number;
  onSent?: () => void;
  /** Is it sent at once? */
  urgent?: boolean;
}

export class Hub {
  readonly config: Config;
  readonly gateway: Gateway;
  readonly outbox: Outbox;
  readonly sender: Sender;
  readonly repeater: Repeater;
  readonly approvals = new Approvals();
  /** Why the spool could not be used, if so. */
  spoolError: string | undefined;
  muted: boolean;
  /** Id of the session that is reported; "" before the first. */
  session = "";
  /** The session whose beginning was reported, and not its end. */
  #announced = "";
  /** Who reports it; others are its subagents. undefined: nobody at the moment. */
  #main: object | undefined;
  #carry: Carry = () => ({ status: "failed", error: "no agent is here" });
  #receiver: Receiver | undefined;
  /** Ends the repetition of the configured link. */
  #linking: AbortController | undefined;
  /** Sessions that the gateway knows. */
  readonly #known = new Set<string>();
  readonly #spool: Spool | undefined;
  readonly #process = randomBytes(6).toString("hex");
  #events = 0;

  constructor(config: Config) {
    this.config = config;
    this.muted = config.muted;
    this.gateway = new Gateway({
      url: config.url,
      key: config.key,
      timeoutMs: config.timeoutSeconds * 1000,
    });
    const redact = redactor(config.redact, [config.key]);
    this.outbox = new Outbox(config.queue, redact, (dropped) =>
      this.#draft({ type: "notice", ...droppedReport(dropped) }),
    );
    this.sender = new Sender(this.outbox, this.gateway);
    this.repeater = new Repeater(this.gateway);
    if (config.queue.spool) {
      this.#spool = new Spool(spoolFolder(), identityOf(config), config.queue.bytes);
      this.#takeOver();
    }
  }

  get receiving(): "stream" | "poll" | "no" {
    return this.#receiver?.way ?? "no";
  }

  report(report: Report): void {
    const entry = new Entry(this.#draft(report), report.type, report.onSent);
    this.outbox.add(entry);
    this.sender.wake(report.urgent ? 0 : undefined);
  }

  /**
   * The agent has a session. False: it is a subagent's, and belongs to the one that is reported.
   * `carry` gets its commands.
   */
  begin(who: object, session: string, start: () => Report, carry: Carry): boolean {
    if (this.#main && this.#main !== who) return false;
    this.#main = who;
    this.#carry = carry;
    this.session = session;
    if (this.#announced !== session) {
      this.#announced = session;
      this.#linking = undefined; // that of the session before goes on
      const begun = start();
      this.report({
        ...begun,
        onSent: () => {
          this.#known.add(session);
          begun.onSent?.();
          this.#receive();
        },
      });
    }
    this.#receive();
    this.sender.wake();
    return true;
  }

  /** The session has ended, and with it what it waits for. */
  end(who: object, metadata: Record<string, unknown>): void {
    if (this.#main !== who || this.#announced === "") return;
    this.approvals.refuseAll();
    this.report({ type: "session_end", metadata, urgent: true });
    this.#announced = "";
  }

  /** The agent goes, or is loaded again. Sends what waits, for a while. */
  async leave(who: object, waitMs: number): Promise<void> {
    if (this.#main !== who) return;
    this.#main = undefined;
    this.approvals.refuseAll();
    this.#receiver?.stop();
    this.#receiver = undefined;
    if (waitMs > 0) {
      const until = Date.now() + waitMs;
      await this.sender.flush(waitMs);
      await this.repeater.stop(Math.max(0, until - Date.now()));
    }
    if (this.#main) return; // the next session has begun meanwhile
    await this.sender.stop();
    this.#save();
  }

  settle(command: string, end: End): void {
    acknowledge(this.repeater, command, end);
  }

  /** Shows the session there. A person decides: what is configured is not tried any more. */
  link(link: Link): Promise<Outcome> {
    this.#linking?.abort();
    return this.gateway.post(this.#linkPath(), JSON.stringify(linkBody(link)));
  }

  /** The same, until the gateway answers. */
  linkAsConfigured(link: Link): Promise<Outcome> {
    this.#linking = new AbortController();
    return this.repeater.post(this.#linkPath(), linkBody(link), this.#linking.signal);
  }

  #linkPath(): string {
    return `/api/sessions/${encodeURIComponent(this.session)}/link`;
  }

  /** Commands can be asked for once the gateway knows the session. */
  #receive(): void {
    const { session, config } = this;
    if (this.#receiver?.session === session) return;
    this.#receiver?.stop();
    this.#receiver = undefined;
    if (!this.#main || !this.#known.has(session)) return;
    this.#receiver = new Receiver({
      gateway: this.gateway,
      repeater: this.repeater,
      session,
      stream: config.stream,
      pollMs: config.pollSeconds * 1000,
      carry: (command) => this.#carry(command),
    });
  }

  #draft(report: Report): Draft {
    return {
      session_id: this.session,
      event_type: report.type,
      ...(report.tool ? { tool_name: report.tool } : {}),
      content: report.content ?? "",
      metadata: report.metadata ?? {},
      timestamp: new Date().toISOString(),
      event_id: `${this.#process}-${++this.#events}`,
      limit: report.limit ?? 4096,
    };
  }

  #save(): void {
    try {
      this.#spool?.save(this.outbox.lines());
      this.spoolError = undefined;
    } catch (error) {
      this.spoolError = (error as Error).message;
    }
  }

  #takeOver(): void {
    for (const line of this.#spool?.takeOver() ?? []) {
      try {
        const { event_type, session_id } = JSON.parse(line) as Record<string, unknown>;
        if (typeof event_type === "string" && typeof session_id === "string")
          this.outbox.add(new Entry(line, event_type, undefined, session_id));
      } catch {
        // a line that was not written whole
      }
    }
  }
}

function linkBody({ adapter, channel, thread, user }: Link) {
  return { adapter, channel_id: channel, thread_id: thread, user_id: user };
}

function droppedReport(dropped: ReadonlyMap<string, number>): Omit<Report, "type"> {
  const count = [...dropped.values()].reduce((sum, n) => sum + n, 0);
  return {
    content: `${count} events are missing here, because too many waited for the gateway.`,
    metadata: { dropped: Object.fromEntries(dropped), count },
  };
}

function identityOf({ url, key }: Config): string {
  return createHash("sha256").update(`${url}\n${key}`).digest("hex").slice(0, 16);
}

/** The same hub for every instance of the extension in this process that is configured alike. */
export function hubFor(config: Config): Hub {
  const place = globalThis as { [HUBS]?: Map<string, Hub> };
  place[HUBS] ??= new Map();
  const hubs = place[HUBS];
  const name = createHash("sha256").update(JSON.stringify(config, regExpAsText)).digest("hex");
  let hub = hubs.get(name);
  if (!hub) {
    hub = new Hub(config);
    hubs.set(name, hub);
  }
  return hub;
}

const HUBS = Symbol.for("dragoman.discord-notify.hubs.1");

function regExpAsText(_key: string, value: unknown): unknown {
  return value instanceof RegExp ? String(value) : value;
}
