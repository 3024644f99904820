/** Sends what is in the outbox: one batch at a time, in order, as often as it takes. */
import type { Gateway, Outcome } from "./gateway.ts";
import { BATCH_MAX, type Outbox } from "./outbox.ts";

/** Events that happen together are sent together. */
const GATHER_MS = 200;
const RETRY_MS = 1000;
/** Then the gateway is asked again whether a session is another key's. */
const FOREIGN_MS = 600_000;

export class Sender {
  readonly #outbox: Outbox;
  readonly #gateway: Gateway;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  #stop = new AbortController();
  #sending: Promise<void> | undefined;
  /** Of a batch; less after one was refused, until the event that is at fault is found. */
  #most = BATCH_MAX;
  /** Sessions of another key, and until when nothing is reported of them. */
  readonly #foreign = new Map<string, number>();
  /** Events that the gateway refused. */
  refused = 0;

  constructor(outbox: Outbox, gateway: Gateway) {
    this.#outbox = outbox;
    this.#gateway = gateway;
  }

  /** Does the session belong to another key? */
  isForeign(session: string): boolean {
    return this.#foreign.has(session);
  }

  /** There is something to send. */
  wake(afterMs = GATHER_MS): void {
    const due = Date.now() + afterMs;
    if (this.#timer && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#begin();
    }, afterMs);
    this.#timer.unref?.();
  }

  /** Sends until nothing waits, the gateway is away, or the time is over. True: nothing waits. */
  async flush(timeoutMs: number): Promise<boolean> {
    let over: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      over = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([this.#begin().then(() => this.#begin()), timeout]);
    clearTimeout(over);
    return this.#outbox.size === 0;
  }

  /** Nothing is sent after it, until it is woken. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stop.abort();
    await this.#sending;
    this.#stop = new AbortController();
  }

  #begin(): Promise<void> {
    this.#sending ??= this.#drain(this.#stop.signal).finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #drain(stop: AbortSignal): Promise<void> {
    while (this.#outbox.size > 0 && !stop.aborted) {
      if (!(await this.#sendOne(stop))) {
        if (!stop.aborted) this.wake(Math.max(this.#gateway.breaker.pauseMs, RETRY_MS));
        return;
      }
    }
  }

  async #sendOne(stop: AbortSignal): Promise<boolean> {
    if (this.#gateway.breaker.state === "open") return false;
    this.#forgetForeign();
    if (this.#outbox.size === 0) return true;
    const { entries, body } = this.#outbox.take(this.#most);
    const outcome = await this.#gateway.post("/api/webhook/event", body, stop);
    const isForeign = isOfAnotherKey(outcome);
    const isBad =
      isForeign || (outcome.kind === "refused" && [400, 413, 422].includes(outcome.status));
    if (outcome.kind === "ok" || (isBad && entries.length === 1)) {
      this.#outbox.done(entries);
      if (isBad) this.refused++;
      else for (const entry of entries) entry.onSent?.();
      if (isForeign && entries[0]) this.#foreign.set(entries[0].session, Date.now() + FOREIGN_MS);
      this.#most = BATCH_MAX;
      return true;
    }
    this.#outbox.giveBack(entries);
    if (isBad) {
      this.#most = Math.ceil(entries.length / 2);
      return true;
    }
    // such as a wrong address: no reason to hurry
    if (outcome.kind === "refused") this.#gateway.breaker.failed(30_000);
    return false;
  }

  /** What waits of them would be refused, and hold up the others. */
  #forgetForeign(): void {
    for (const [session, until] of this.#foreign) {
      if (Date.now() < until) this.refused += this.#outbox.forget(session);
      else this.#foreign.delete(session);
    }
  }
}

function isOfAnotherKey(outcome: Outcome): boolean {
  return (
    outcome.kind === "refused" &&
    outcome.status === 404 &&
    outcome.message.startsWith("there is no session '")
  );
}
