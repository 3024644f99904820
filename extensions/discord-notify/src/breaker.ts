/**
 * Stops asking a gateway that does not answer. After `failures` failed requests in a row nothing is
 * asked for a while; then one probe, whose outcome closes the breaker or doubles the pause.
 */
export interface BreakerOptions {
  failures?: number;
  firstPauseMs?: number;
  longestPauseMs?: number;
  now?: () => number;
  random?: () => number;
}

export type BreakerState = "closed" | "open" | "half-open";

export class Breaker {
  readonly #options: Required<BreakerOptions>;
  #failed = 0; // in a row
  #pauses = 0; // since it was closed
  #openUntil = 0;
  #probing = false;

  constructor(options: BreakerOptions = {}) {
    this.#options = {
      failures: 3,
      firstPauseMs: 1000,
      longestPauseMs: 60_000,
      now: Date.now,
      random: Math.random,
      ...options,
    };
  }

  get state(): BreakerState {
    if (this.#pauses === 0) return "closed";
    return this.#options.now() < this.#openUntil ? "open" : "half-open";
  }

  /** How long nothing may be asked; 0: now, though a probe may be under way. */
  get pauseMs(): number {
    return this.state === "open" ? this.#openUntil - this.#options.now() : 0;
  }

  /** May a request be made? Then its outcome must be reported. */
  allow(): boolean {
    const state = this.state;
    if (state === "closed") return true;
    if (state === "open" || this.#probing) return false;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#failed = 0;
    this.#pauses = 0;
    this.#probing = false;
  }

  /** A request was stopped by us: it says nothing. */
  abandoned(): void {
    this.#probing = false;
  }

  /** `pauseMs`: at least so long, because the gateway asked for it. */
  failed(pauseMs = 0): void {
    this.#failed++;
    this.#probing = false;
    if (pauseMs > 0 || this.#pauses > 0 || this.#failed >= this.#options.failures)
      this.#open(pauseMs);
  }

  #open(atLeastMs: number): void {
    const { firstPauseMs, longestPauseMs, now, random } = this.#options;
    const doubled = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#pauses, 16));
    this.#pauses++;
    // between half of it and the whole, so that many agents do not come back at once
    this.#openUntil = now() + Math.max(atLeastMs, doubled * (0.5 + random() / 2));
  }
}
