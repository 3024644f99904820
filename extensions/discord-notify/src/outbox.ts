/**
 * Events that wait to be sent, in order, within a limit of number and size. When it is full the
 * oldest events of the least rank go first, and a notice says how many.
 */
import type { Redact } from "./redact.ts";

export interface SessionEvent {
  session_id: string;
  event_type: string;
  tool_name?: string;
  content: string;
  metadata: Record<string, unknown>;
  timestamp: string;
  event_id: string;
}

/** An event as it waits: redacted, cut and turned into JSON when it is sent, not when it happens. */
export interface Draft extends SessionEvent {
  /** Of the content, in bytes. */
  limit: number;
}

export interface OutboxLimits {
  events: number;
  bytes: number;
}

export const CONTENT_MAX = 65536; // bytes, by the gateway
export const BATCH_MAX = 200; // events, by the gateway
/** A larger batch would keep the agent's thread busy for too long at once. */
const BATCH_BYTES = 256 * 1024;

/** The lowest are dropped first. Without its beginning, a session has no name and no commands. */
const RANKS: Readonly<Record<string, number>> = {
  tool_call: 0,
  tool_result: 0,
  notice: 2,
  session_start: 3,
  session_end: 2,
  turn_end: 2,
  approval_request: 2,
  approval_resolved: 2,
};
const OTHER_RANK = 1;

export class Entry {
  readonly type: string;
  readonly session: string;
  readonly rank: number;
  readonly bytes: number; // about; counted while it waits
  readonly onSent: (() => void) | undefined;
  dropped = false;
  #draft: Draft | undefined;
  #json: string | undefined;

  /** A draft, or the JSON of one with its session. */
  constructor(content: Draft | string, type: string, onSent?: () => void, session = "") {
    this.type = type;
    this.session = typeof content === "string" ? session : content.session_id;
    this.rank = RANKS[type] ?? OTHER_RANK;
    this.onSent = onSent;
    if (typeof content === "string") this.#json = content;
    else this.#draft = content;
    this.bytes = typeof content === "string" ? content.length : content.content.length + 400;
  }

  json(redact: Redact): string {
    if (this.#json === undefined && this.#draft) {
      this.#json = serialize(this.#draft, redact);
      this.#draft = undefined;
    }
    return this.#json ?? "{}";
  }
}

/** A copy: a slice would keep the whole text alive while it waits. */
export function beginning(text: string, length: number): string {
  if (text.length <= length) return text;
  return Buffer.from(text.slice(0, length), "utf16le").toString("utf16le");
}

/** Without what the gateway's JSON cannot hold: halves of characters, and NUL. */
function clean(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** Whole characters of the text, at most so many bytes of UTF-8. */
export function cut(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text;
  const room = Math.max(0, bytes - 3);
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(room));
  return bytes < 3 ? "" : `${text.slice(0, read)}…`;
}

/** Ids must stay what they are: they join events. */
const ID_KEYS: ReadonlySet<string> = new Set(["toolCallId", "approval_id", "subagent"]);

function serialize({ limit, ...event }: Draft, redact: Redact): string {
  return JSON.stringify({
    ...event,
    content: cut(clean(redact(event.content)), Math.min(limit, CONTENT_MAX)),
    metadata: JSON.parse(
      JSON.stringify(event.metadata, (key, value: unknown) =>
        typeof value === "string" && !ID_KEYS.has(key) ? cut(clean(redact(value)), 4096) : value,
      ),
    ),
  });
}

export class Outbox {
  readonly #limits: OutboxLimits;
  readonly #redact: Redact;
  readonly #notice: (dropped: ReadonlyMap<string, number>) => Draft;
  #waiting: Entry[] = [];
  #byRank: Entry[][] = [[], [], [], []];
  #live = 0; // entries of #waiting that are not dropped
  #bytes = 0; // of these, and of those that are being sent
  #sending = 0;
  #dropped = new Map<string, number>();
  /** Of all time. */
  droppedTotal = 0;

  /** `notice`: the event that reports dropped ones, by type. */
  constructor(
    limits: OutboxLimits,
    redact: Redact,
    notice: (dropped: ReadonlyMap<string, number>) => Draft,
  ) {
    this.#limits = limits;
    this.#redact = redact;
    this.#notice = notice;
  }

  /** Those that wait and those that are being sent. */
  get size(): number {
    return this.#live + this.#sending;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(entry: Entry): void {
    this.#waiting.push(entry);
    this.#byRank[entry.rank]?.push(entry);
    this.#live++;
    this.#bytes += entry.bytes;
    while (this.#live > 0 && this.#isFull()) this.#dropOne();
  }

  /** The next batch, as the body of a request. Confirm it, give it back or discard it. */
  take(most = BATCH_MAX): { entries: Entry[]; body: string } {
    const entries: Entry[] = [];
    const parts: string[] = [];
    let bytes = 0;
    this.#reportDropped();
    while (this.#waiting[0] && entries.length < most) {
      const entry = this.#waiting[0];
      if (!entry.dropped) {
        const json = entry.json(this.#redact);
        if (entries.length > 0 && bytes + json.length > BATCH_BYTES) break;
        bytes += json.length;
        entries.push(entry);
        parts.push(json);
      }
      this.#waiting.shift();
    }
    this.#forget(entries);
    this.#live -= entries.length;
    this.#sending += entries.length;
    return { entries, body: `[${parts.join(",")}]` };
  }

  /** The gateway has them, or never takes them. */
  done(entries: readonly Entry[]): void {
    this.#sending -= entries.length;
    for (const entry of entries) this.#bytes -= entry.bytes;
  }

  /** They were not sent: they are the next again. */
  giveBack(entries: readonly Entry[]): void {
    this.#sending -= entries.length;
    this.#live += entries.length;
    this.#waiting.unshift(...entries);
    this.#byRank.forEach((waiting, rank) => {
      waiting.unshift(...entries.filter((entry) => entry.rank === rank));
    });
    while (this.#live > 0 && this.#isFull()) this.#dropOne();
  }

  /** Forgets what waits of a session. How many events that was. */
  forget(session: string): number {
    const stays = (entry: Entry) => !entry.dropped && entry.session !== session;
    const before = this.#live;
    this.#waiting = this.#waiting.filter((entry) => {
      if (entry.dropped || entry.session !== session) return !entry.dropped;
      this.#live--;
      this.#bytes -= entry.bytes;
      return false;
    });
    this.#byRank = this.#byRank.map((rank) => rank.filter(stays));
    return before - this.#live;
  }

  /** All that waits, as JSON, in order. */
  lines(): string[] {
    this.#reportDropped();
    return this.#waiting.filter((entry) => !entry.dropped).map((entry) => entry.json(this.#redact));
  }

  #isFull(): boolean {
    return this.size > this.#limits.events || this.#bytes > this.#limits.bytes;
  }

  #dropOne(): void {
    const entry = this.#byRank.find((rank) => rank.length > 0)?.shift();
    if (!entry) return;
    entry.dropped = true;
    this.#live--;
    this.#bytes -= entry.bytes;
    this.#dropped.set(entry.type, (this.#dropped.get(entry.type) ?? 0) + 1);
    this.droppedTotal++;
    // those in the middle stay as marks until they come first, or are too many
    if (this.#waiting.length > 2 * this.#live + 64)
      this.#waiting = this.#waiting.filter((waiting) => !waiting.dropped);
  }

  #forget(taken: readonly Entry[]): void {
    // in both lists they are in the same order
    for (const entry of taken) {
      const rank = this.#byRank[entry.rank];
      if (rank?.[0] === entry) rank.shift();
    }
  }

  #reportDropped(): void {
    if (this.#dropped.size === 0) return;
    const draft = this.#notice(this.#dropped);
    const entry = new Entry(draft, draft.event_type);
    this.#dropped = new Map();
    this.#waiting.unshift(entry);
    this.#byRank[entry.rank]?.unshift(entry);
    this.#live++;
    this.#bytes += entry.bytes;
  }
}
