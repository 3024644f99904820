/**
 * Requests to the Dragoman daemon. Nothing here throws: a request ends with an outcome. All requests
 * share one circuit breaker; connections are kept alive by fetch.
 */
import { Breaker } from "./breaker.ts";

export type Outcome =
  | { kind: "ok"; body: unknown }
  /** The gateway has understood and says no: the same again has no better end. */
  | { kind: "refused"; status: number; message: string }
  /** It may work later. */
  | { kind: "failed"; message: string };

export interface GatewayOptions {
  url: string;
  key: string;
  timeoutMs: number;
  breaker?: Breaker;
}

const ANSWER_MAX = 4 * 1024 * 1024;

export class Gateway {
  readonly breaker: Breaker;
  readonly #options: GatewayOptions;
  /** Of the gateway's clock: what to add to ours. */
  clockOffsetMs = 0;
  lastError: string | undefined;
  lastAnswerMs = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.breaker = options.breaker ?? new Breaker();
  }

  get url(): string {
    return this.#options.url;
  }

  post(path: string, body: string, signal?: AbortSignal): Promise<Outcome> {
    return this.#request("POST", path, body, signal);
  }

  get(path: string, signal?: AbortSignal): Promise<Outcome> {
    return this.#request("GET", path, undefined, signal);
  }

  async #request(
    method: string,
    path: string,
    body: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Outcome> {
    if (!this.breaker.allow())
      return { kind: "failed", message: this.lastError ?? "no connection" };
    const limit = AbortSignal.timeout(this.#options.timeoutMs);
    try {
      const response = await fetch(this.#options.url + path, {
        method,
        headers: this.#headers(body !== undefined),
        ...(body === undefined ? {} : { body }),
        redirect: "manual", // the key is for this address
        signal: signal ? AbortSignal.any([limit, signal]) : limit,
      });
      return this.#judge(response, await readText(response));
    } catch (error) {
      return this.#broken(error, signal);
    }
  }

  /** The chunks of an event stream; undefined: there is none. Ends when the connection does. */
  async stream(path: string, signal: AbortSignal): Promise<AsyncIterable<string> | undefined> {
    if (!this.breaker.allow()) return undefined;
    const opening = new AbortController();
    const timer = setTimeout(() => opening.abort(), this.#options.timeoutMs);
    timer.unref?.();
    try {
      const response = await fetch(this.#options.url + path, {
        headers: { ...this.#headers(false), accept: "text/event-stream" },
        redirect: "manual",
        signal: AbortSignal.any([signal, opening.signal]),
      });
      const type = response.headers.get("content-type") ?? "";
      if (response.status === 200 && type.startsWith("text/event-stream") && response.body) {
        this.#answered(response);
        return chunks(response.body);
      }
      this.#judge(response, await readText(response));
    } catch (error) {
      this.#broken(error, signal);
    } finally {
      clearTimeout(timer);
    }
    return undefined;
  }

  #headers(withBody: boolean): Record<string, string> {
    const common = { "x-api-key": this.#options.key, "user-agent": "dragoman-discord-notify" };
    return withBody ? { ...common, "content-type": "application/json" } : common;
  }

  #judge(response: Response, text: string): Outcome {
    const { status } = response;
    const body = parse(text);
    if (status >= 200 && status < 300) {
      this.#answered(response);
      return { kind: "ok", body };
    }
    const message = `${messageOf(body) ?? (response.statusText || "no reason given")} (${status})`;
    if (status === 401 || status === 403 || status === 408 || status === 429 || status >= 500)
      return this.#failed(message, retryAfterMs(response));
    this.#answered(response);
    this.lastError = message;
    return { kind: "refused", status, message };
  }

  #answered(response: Response): void {
    const date = Date.parse(response.headers.get("date") ?? "");
    if (!Number.isNaN(date)) this.clockOffsetMs = date - Date.now();
    this.lastAnswerMs = Date.now();
    this.breaker.succeeded();
  }

  #broken(error: unknown, signal: AbortSignal | undefined): Outcome {
    if (!signal?.aborted) return this.#failed(explain(error));
    this.breaker.abandoned();
    return { kind: "failed", message: "it was stopped" };
  }

  #failed(message: string, pauseMs = 0): Outcome {
    this.lastError = message;
    this.breaker.failed(pauseMs);
    return { kind: "failed", message };
  }
}

async function readText(response: Response): Promise<string> {
  let text = "";
  if (!response.body) return text;
  for await (const chunk of chunks(response.body)) {
    text += chunk;
    if (text.length > ANSWER_MAX) throw new Error("the answer is too long");
  }
  return text;
}

async function* chunks(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(body: unknown): string | undefined {
  const error = (body as { error?: { message?: unknown } } | undefined)?.error;
  return typeof error?.message === "string" ? error.message.slice(0, 300) : undefined;
}

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return seconds > 0 ? Math.min(seconds, 300) * 1000 : 0;
}

/** The cause is told in `error.cause` by Node and in `error.code` by Bun. */
function explain(error: unknown): string {
  const { name, message, code, cause } = error as Error & { code?: string; cause?: unknown };
  if (name === "TimeoutError" || name === "AbortError")
    return "the gateway does not answer in time";
  const inner = cause as { code?: string; message?: string } | undefined;
  const reason = inner?.code ?? inner?.message ?? code ?? message;
  return `the gateway cannot be reached: ${reason}`;
}
