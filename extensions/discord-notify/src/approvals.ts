/**
 * Questions to people before a tool runs. Whoever answers first decides, once: somebody in a chat, the
 * person at the desk by the agent's own dialog, or, when time is over, the policy. The others are
 * withdrawn.
 */
import { randomUUID } from "node:crypto";
import type { Decision } from "./config.ts";

export interface Answer {
  decision: Decision;
  /** "desk", "timeout", "unreachable", "aborted", or the person who answered in a chat. */
  by: string;
  reason?: string | undefined;
}

export interface Question {
  fallback: Decision;
  timeoutMs: number;
  /** The agent's own dialog; resolves with the choice. undefined: there is nobody to ask here. */
  dialog: ((signal: AbortSignal) => Promise<boolean>) | undefined;
  /** Of the agent's run: with it, the question ends. */
  signal: AbortSignal | undefined;
  /** Reports that it is asked; calls back when the gateway has it. */
  announce(id: string, onSent: () => void): void;
  /** Reports an answer that was not given in a chat. */
  resolved(id: string, answer: Answer): void;
  /** Is it known that nobody can be asked through the gateway? */
  isUnreachable(): boolean;
}

/** Without a dialog, a gateway that has not taken the question by then has no answer to it. */
const REACH_MS = 10_000;
const DECIDED_MAX = 200;

type Settle = (answer: Answer, inChat?: boolean) => void;

export class Approvals {
  readonly #open = new Map<string, Settle>();
  readonly #decided = new Set<string>();
  readonly #reachMs: number;

  constructor(reachMs = REACH_MS) {
    this.#reachMs = reachMs;
  }

  get size(): number {
    return this.#open.size;
  }

  ask(question: Question): Promise<Answer> {
    const id = randomUUID();
    return new Promise((resolve) => {
      const { fallback, timeoutMs, dialog, signal } = question;
      const withdraw = new AbortController();
      const timers: NodeJS.Timeout[] = [];
      const settle: Settle = (answer, inChat = false) => {
        if (!this.#open.delete(id)) return;
        this.#remember(id);
        for (const timer of timers) clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        withdraw.abort();
        if (!inChat) question.resolved(id, answer);
        resolve(answer);
      };
      const onAbort = () => settle({ decision: "deny", by: "aborted" });
      const giveUp = () => settle({ decision: fallback, by: "unreachable" });
      let reach: NodeJS.Timeout | undefined;
      const needGateway = () => {
        if (question.isUnreachable()) return giveUp();
        reach = setTimeout(giveUp, Math.min(this.#reachMs, timeoutMs));
        timers.push(reach);
      };

      this.#open.set(id, settle);
      let sent = false;
      question.announce(id, () => {
        sent = true;
        clearTimeout(reach);
      });
      timers.push(setTimeout(() => settle({ decision: fallback, by: "timeout" }), timeoutMs));
      signal?.addEventListener("abort", onAbort);
      if (signal?.aborted) onAbort();
      else if (!dialog) needGateway();
      else
        dialog(withdraw.signal).then(
          (yes) => settle({ decision: yes ? "allow" : "deny", by: "desk" }),
          () => {
            if (!sent && this.#open.has(id)) needGateway();
          },
        );
    });
  }

  /** Somebody decided in a chat. "late": it was decided before; "unknown": it was not asked here. */
  decide(id: string, answer: Answer): "taken" | "late" | "unknown" {
    const settle = this.#open.get(id);
    settle?.(answer, true);
    if (settle) return "taken";
    return this.#decided.has(id) ? "late" : "unknown";
  }

  /** The agent stops: what it wanted to do is not done. */
  refuseAll(): void {
    for (const settle of [...this.#open.values()]) settle({ decision: "deny", by: "aborted" });
  }

  #remember(id: string): void {
    this.#decided.add(id);
    if (this.#decided.size > DECIDED_MAX)
      this.#decided.delete(this.#decided.values().next().value as string);
  }
}
