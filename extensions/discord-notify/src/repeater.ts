/**
 * Requests that the gateway must get, whatever becomes of the session meanwhile: acknowledgements,
 * and the link that is configured. Each is repeated until it is answered.
 */
import type { Gateway, Outcome } from "./gateway.ts";

const PAUSES_MS = [500, 1000, 2000, 5000];
/** More than an hour of them. */
const REPEATS_MAX = 1000;

export class Repeater {
  readonly #gateway: Gateway;
  readonly #pausesMs: readonly number[];
  readonly #open = new Set<Promise<Outcome>>();
  #stop = new AbortController();

  constructor(gateway: Gateway, pausesMs: readonly number[] = PAUSES_MS) {
    this.#gateway = gateway;
    this.#pausesMs = pausesMs;
  }

  /** Resolves with the answer, or with the last failure if it was given up. */
  post(path: string, body: object, signal?: AbortSignal): Promise<Outcome> {
    const stop = this.#stop.signal;
    const until = signal ? AbortSignal.any([stop, signal]) : stop;
    const posted = this.#repeat(path, JSON.stringify(body), until).finally(() =>
      this.#open.delete(posted),
    );
    this.#open.add(posted);
    return posted;
  }

  /** Waits for what is not answered yet, for a while, and then gives it up. */
  async stop(waitMs: number): Promise<void> {
    let over: NodeJS.Timeout | undefined;
    let isOver = false;
    const timeout = new Promise<void>((resolve) => {
      over = setTimeout(() => {
        isOver = true;
        resolve();
      }, waitMs);
    });
    // an answer may lead to another request
    while (this.#open.size > 0 && !isOver) await Promise.race([...this.#open, timeout]);
    clearTimeout(over);
    this.#stop.abort();
    this.#stop = new AbortController();
  }

  async #repeat(path: string, body: string, until: AbortSignal): Promise<Outcome> {
    for (let i = 0; ; i++) {
      const outcome = await this.#gateway.post(path, body, until);
      if (outcome.kind !== "failed" || until.aborted || i >= REPEATS_MAX) return outcome;
      await sleep(this.#pausesMs[Math.min(i, this.#pausesMs.length - 1)] ?? 0, until);
      if (until.aborted) return outcome;
    }
  }
}

/** Keeps no process alive. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
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
