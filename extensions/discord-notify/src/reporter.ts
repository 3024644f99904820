/**
 * One session of the agent: what it does becomes reports, and commands become what the agent does.
 * Handlers of the agent only put reports into a queue; the one that may wait is a tool call that a
 * person is asked about.
 */
import { hostname } from "node:os";
import {
  type AgentApi,
  type AgentContext,
  type AgentEvents,
  type AgentMessage,
  type ToolVerdict,
  textOf,
  type Usage,
} from "./agent.ts";
import { type Answer, Approvals } from "./approvals.ts";
import type { Command, End } from "./commands.ts";
import {
  type Config,
  type Link,
  loadConfig,
  type Policy,
  policyDespiteMistakes,
  surroundings,
} from "./config.ts";
import { type Hub, hubFor, type Report } from "./hub.ts";
import { beginning } from "./outbox.ts";
import { inputText, judge, shortly, type ToolCall, toolCall, type Verdict } from "./policy.ts";

/** How long the end of the agent may be delayed by what is still to be sent. omp allows 2 s. */
const EXIT_MS = 1500;
/** omp ends a handler of a tool call after this; a dialog of its own stops the clock. */
const OMP_HANDLER_MS = 30_000;
const TITLE_MAX = 80;
const RUNNING_MAX = 1000;
/** Read beyond what is reported, so that a secret that is cut is still recognised. */
const MARGIN = 4096;

interface HeldTurn {
  text: string;
  usage: Usage | undefined;
  outcome: "completed" | "aborted" | "error";
  error: string | undefined;
  pending: boolean;
}

interface RunningTool {
  startedMs: number;
  reported: boolean;
  blocked: boolean;
}

type Handled<E extends keyof AgentEvents> = (event: AgentEvents[E], ctx: AgentContext) => unknown;

export class Reporter {
  readonly #pi: AgentApi;
  readonly program: "pi" | "omp";
  hub: Hub | undefined;
  /** Why nothing is reported, if so. */
  problem: string | undefined;
  /** undefined: nothing is configured. A mistake does not turn it off. */
  #policy: Policy | undefined;
  /** Questions that nobody but the desk can answer, because of a mistake. */
  readonly #atDesk = new Approvals();
  /** The newest; older ones throw. undefined: no session. */
  #ctx: AgentContext | undefined;
  #session = "";
  /** The session is a subagent's: what it does is reported as the work of the main one. */
  #isSubagent = false;
  #title: string | undefined;
  #model: string | undefined;
  #runStartedMs = 0;
  #held: HeldTurn | undefined;
  #failed: string | undefined; // the last response, until the agent goes on or settles
  #retries = 0;
  #abortAsked = false;
  #warned = false;
  readonly #running = new Map<string, RunningTool>();
  /** Commands that the agent was given and has not read. */
  #given: Command[] = [];

  constructor(pi: AgentApi) {
    this.#pi = pi;
    this.program = pi.logger ? "omp" : "pi";
  }

  /** Subscribes to the agent's events. A failure of ours must never be one of the agent. */
  listen(): void {
    const on = <E extends keyof AgentEvents>(name: E, handler: Handled<E>) =>
      this.#pi.on(name, (event: AgentEvents[E], ctx: AgentContext) => {
        try {
          return handler(event, ctx);
        } catch (error) {
          this.#log(`${name}: ${(error as Error).message}`);
          return undefined;
        }
      });
    on("session_start", (event, ctx) => this.#begin(ctx, event.reason ?? "startup"));
    on("session_switch", (event, ctx) => this.#begin(ctx, event.reason ?? "switch"));
    on("session_branch", (_event, ctx) => this.#begin(ctx, "branch"));
    on("session_shutdown", (event) => this.#leave(event.reason ?? "quit"));
    on("session_info_changed", (event) => this.#update({ title: event.name }));
    on("before_agent_start", (event, ctx) => this.#prompted(event.prompt ?? "", ctx));
    on("agent_start", (_event, ctx) => this.#runStarted(ctx));
    on("turn_start", (_event, ctx) => {
      this.#adopt(ctx);
      this.#reportTurn(false);
    });
    on("turn_end", (event, ctx) => this.#turnEnded(event.message, ctx));
    on("agent_end", (event, ctx) => {
      if (this.program === "omp" && !event.willContinue) this.#settled(ctx);
    });
    on("agent_settled", (_event, ctx) => this.#settled(ctx));
    on("message_start", (event) => this.#messageStarted(event.message));
    on("tool_call", (event, ctx) => this.#toolCalled(event, ctx));
    on("tool_execution_end", (event) => this.#toolEnded(event));
    on("session_compact", (event) => this.#compacted(event));
    on("session_compact_failed", (event) => this.#compactionFailed(event));
    on("auto_compaction_end", (event) => {
      if (event.errorMessage && !event.skipped) this.#compactionFailed(event);
    });
    on("auto_retry_start", (event) =>
      this.#report({
        type: "retry",
        content: event.errorMessage ?? "",
        metadata: {
          attempt: event.attempt,
          maxAttempts: event.maxAttempts,
          delayMs: event.delayMs,
        },
      }),
    );
  }

  // ---- sessions ----

  #begin(ctx: AgentContext, reason: string): void {
    this.#ctx = ctx;
    const session = ctx.sessionManager.getSessionId();
    if (session === this.#session) return; // pi announces a session twice in RPC mode
    if (this.#session !== "") this.#end("switch"); // omp keeps the instance
    this.#session = session;
    this.#reset();
    this.#configure(ctx);
    if (!this.hub) return;
    this.#title = this.#pi.getSessionName?.() || this.#titleOf(firstPrompt(ctx));
    this.#model = modelOf(ctx);
    const start = () => this.#started(ctx, reason);
    this.#isSubagent = !this.hub.begin(this, session, start, (command) => this.#carry(command));
  }

  #configure(ctx: AgentContext): void {
    if (this.hub) return;
    const at = surroundings(this.program, ctx.cwd, ctx.isProjectTrusted?.() ?? true);
    try {
      const config = loadConfig(at);
      this.problem = config ? undefined : "nothing is configured: see the README of this extension";
      if (config) this.hub = hubFor(config);
      this.#policy = config?.policy;
    } catch (error) {
      this.problem = (error as Error).message;
      this.#policy = policyDespiteMistakes(at);
      this.#tell(
        `discord-notify reports nothing, and asks at the desk alone. ${this.problem}`,
        "error",
      );
    }
  }

  #started(ctx: AgentContext, reason: string): Report {
    const { link } = this.#config;
    return {
      type: "session_start",
      metadata: {
        program: this.program,
        host: hostname(),
        cwd: ctx.cwd,
        title: this.#title,
        model: this.#model,
        mode: ctx.mode,
        reason,
      },
      urgent: true,
      onSent: () => {
        if (link) void this.#linkAsConfigured(link);
      },
    };
  }

  async #linkAsConfigured(link: Link): Promise<void> {
    const outcome = await this.hub?.linkAsConfigured(link);
    if (outcome?.kind === "refused")
      this.#tell(`discord-notify: the session is not linked: ${outcome.message}`, "warning");
  }

  #end(reason: string): void {
    this.#reportTurn(true);
    for (const command of this.#given)
      this.hub?.settle(command.command_id, {
        status: "failed",
        error: "the session ended before the agent read it",
      });
    this.#given = [];
    this.hub?.end(this, { reason });
  }

  /** Resolves when the agent may go. */
  async #leave(reason: string): Promise<void> {
    if (this.#session === "") return;
    this.#atDesk.refuseAll();
    if (reason !== "reload") this.#end(reason);
    this.#session = "";
    this.#ctx = undefined;
    await this.hub?.leave(this, reason === "quit" ? EXIT_MS : 0);
  }

  #reset(): void {
    this.#title = undefined;
    this.#held = undefined;
    this.#failed = undefined;
    this.#retries = 0;
    this.#running.clear();
    this.#atDesk.refuseAll();
  }

  /** After the end some events may still come; they are nobody's. */
  #adopt(ctx: AgentContext): void {
    if (this.#session !== "") this.#begin(ctx, "switch");
  }

  /** Only of what has changed. */
  #update(changed: { title?: string | undefined; model?: string | undefined }): void {
    if (this.#isSubagent) return;
    const metadata: Record<string, string> = {};
    if (changed.title && changed.title !== this.#title) {
      metadata.title = changed.title;
      this.#title = changed.title;
    }
    if (changed.model && changed.model !== this.#model) {
      metadata.model = changed.model;
      this.#model = changed.model;
    }
    if (Object.keys(metadata).length > 0) this.#report({ type: "session_update", metadata });
  }

  // ---- what the agent does ----

  get #config(): Config {
    if (!this.hub) throw new Error("nothing is configured");
    return this.hub.config;
  }

  #report(report: Report): void {
    if (!this.hub || this.#session === "" || this.hub.muted) return;
    this.hub.report(this.#marked(report));
  }

  #marked(report: Report): Report {
    if (!this.#isSubagent) return report;
    return { ...report, metadata: { ...report.metadata, subagent: this.#session } };
  }

  #prompted(prompt: string, ctx: AgentContext): void {
    this.#adopt(ctx);
    this.#update({ title: this.#pi.getSessionName?.() || this.#title || this.#titleOf(prompt) });
  }

  /** Of a session without a name: the first line of its first prompt. */
  #titleOf(prompt: string): string | undefined {
    if (!this.hub || this.#config.report.text === 0) return undefined;
    const line = prompt.trim().split("\n", 1)[0]?.trim() ?? "";
    return beginning(line, TITLE_MAX) || undefined;
  }

  #runStarted(ctx: AgentContext): void {
    this.#adopt(ctx);
    if (this.#failed === undefined) {
      this.#runStartedMs = performance.now();
      return;
    }
    this.#reportTurn(false);
    this.#retries++;
    if (this.program === "pi")
      this.#report({ type: "retry", content: this.#failed, metadata: { attempt: this.#retries } });
    this.#failed = undefined;
  }

  /** A response of the model is reported when it is known whether it was the last one. */
  #turnEnded(message: AgentMessage | undefined, ctx: AgentContext): void {
    this.#adopt(ctx);
    if (!this.hub) return;
    this.#reportTurn(false);
    this.#update({ model: modelOf(ctx) });
    const error = message?.errorMessage;
    const aborted =
      message?.stopReason === "aborted" ||
      (message?.stopReason === "error" && (this.#abortAsked || /\babort/i.test(error ?? "")));
    this.#held = {
      text: beginning(textOf(message?.content), this.#config.report.text + MARGIN),
      usage: message?.usage,
      outcome: aborted ? "aborted" : message?.stopReason === "error" ? "error" : "completed",
      error,
      pending: ctx.hasPendingMessages(),
    };
    this.#failed = this.#held.outcome === "error" ? (error ?? "the model failed") : undefined;
    this.#watch();
  }

  #settled(ctx: AgentContext): void {
    this.#adopt(ctx);
    this.#update({ title: this.#pi.getSessionName?.() });
    this.#reportTurn(true);
    this.#abortAsked = false;
    this.#failed = undefined;
    this.#retries = 0;
    this.#running.clear();
  }

  #reportTurn(final: boolean): void {
    const held = this.#held;
    this.#held = undefined;
    if (!held || !this.hub) return;
    const usage = usageOf(held.usage);
    const isFinal = final && !this.#isSubagent;
    if (!isFinal && !usage && held.text === "") return;
    if (isFinal && held.outcome === "error")
      this.#report({ type: "error", content: held.error ?? "the model failed" });
    this.#report({
      type: "turn_end",
      content: this.#config.report.text > 0 ? held.text : "",
      limit: this.#config.report.text,
      metadata: {
        usage,
        pending: held.pending,
        final: isFinal,
        outcome: held.outcome,
        durationMs: isFinal ? Math.round(performance.now() - this.#runStartedMs) : undefined,
      },
    });
  }

  #compacted(event: AgentEvents["session_compact"]): void {
    const tokens = event.compactionEntry?.tokensBefore;
    this.#report({
      type: "compaction",
      content: tokens
        ? `The context of ${tokens} tokens was summarised.`
        : "The context was summarised.",
      metadata: { tokensBefore: tokens, reason: event.reason },
    });
  }

  #compactionFailed(event: { errorMessage?: string; aborted?: boolean }): void {
    const why = event.aborted ? "it was stopped" : (event.errorMessage ?? "no reason given");
    this.#report({
      type: "compaction",
      content: `The context could not be summarised: ${why}`,
      metadata: { isError: true },
    });
  }

  // ---- tools ----

  #toolCalled(
    event: AgentEvents["tool_call"],
    ctx: AgentContext,
  ): ToolVerdict | undefined | Promise<ToolVerdict | undefined> {
    this.#adopt(ctx);
    if (!this.#policy || this.#session === "") return undefined;
    const call = toolCall(event.toolName, event.input, ctx.cwd);
    const verdict = judge(this.#policy, call);
    const isIgnored = this.hub?.config.report.ignoreTools.includes(event.toolName);
    const running: RunningTool = {
      startedMs: performance.now(),
      reported: verdict !== undefined || !isIgnored,
      blocked: false,
    };
    if (this.#running.size < RUNNING_MAX) this.#running.set(event.toolCallId, running);
    if (this.hub && running.reported) this.#reportCall(event, call, verdict);
    if (verdict?.action === "deny") {
      running.blocked = true;
      return { block: true, reason: `Refused by the policy, because it ${verdict.reason}.` };
    }
    if (verdict?.action !== "ask") return undefined;
    return this.#ask(event, call, verdict, ctx).then((answer) => {
      running.startedMs = performance.now();
      if (answer.decision === "allow") return undefined;
      running.blocked = true;
      return { block: true, reason: refusal(answer, verdict) };
    });
  }

  #reportCall(event: AgentEvents["tool_call"], call: ToolCall, verdict: Verdict | undefined): void {
    this.#report({
      type: "tool_call",
      tool: event.toolName,
      content: this.#inputOf(event, call),
      limit: this.#config.report.input,
      metadata: {
        toolCallId: event.toolCallId,
        cwd: call.cwd,
        ...(verdict
          ? {
              destructive: true,
              rules: verdict.rules,
              reason: verdict.reason,
              action: verdict.action,
            }
          : {}),
      },
    });
  }

  #inputOf(event: AgentEvents["tool_call"], call: ToolCall): string {
    const limit = this.#config.report.input;
    if (limit === 0) return "";
    return beginning(call.script || inputText(event.input, limit + MARGIN), limit + MARGIN);
  }

  async #ask(
    event: AgentEvents["tool_call"],
    call: ToolCall,
    verdict: Verdict,
    ctx: AgentContext,
  ): Promise<Answer> {
    const { hub } = this;
    const approvals = hub?.approvals ?? this.#atDesk;
    const timeoutMs = Math.min(verdict.timeoutMs, this.#handlerLimit(ctx));
    const title = `${event.toolName} ${verdict.reason}`;
    const otherwise = verdict.fallback === "allow" ? "it runs" : "it is refused";
    const message = `${shortly(call)}\n\nWithout an answer within ${Math.round(timeoutMs / 1000)} s ${otherwise}.`;
    return await approvals.ask({
      fallback: verdict.fallback,
      timeoutMs,
      signal: ctx.signal,
      dialog: ctx.hasUI ? (signal) => ctx.ui.confirm(title, message, { signal }) : undefined,
      isUnreachable: () => !hub || hub.gateway.breaker.state === "open",
      announce: (id, onSent) =>
        hub?.report(
          this.#marked({
            type: "approval_request",
            tool: event.toolName,
            content: this.#inputOf(event, call),
            limit: this.#config.report.input,
            metadata: {
              approval_id: id,
              toolCallId: event.toolCallId,
              timeoutMs,
              default: verdict.fallback,
              reason: verdict.reason,
              rules: verdict.rules,
            },
            urgent: true,
            onSent,
          }),
        ),
      resolved: (id, { decision, by }) =>
        hub?.report(
          this.#marked({
            type: "approval_resolved",
            tool: event.toolName,
            metadata: { approval_id: id, toolCallId: event.toolCallId, decision, by },
            urgent: true,
          }),
        ),
    });
  }

  /** How long a handler of a tool call may take. */
  #handlerLimit(ctx: AgentContext): number {
    if (this.program !== "omp" || ctx.hasUI) return Number.POSITIVE_INFINITY;
    let limit: unknown;
    try {
      const { settings } =
        (this.#pi as { pi?: { settings?: { get(key: string): unknown } } }).pi ?? {};
      limit = settings?.get("extensionHandlers.toolCallTimeoutMs");
    } catch {
      // a version without this setting
    }
    return Math.max(1000, (Number(limit) > 0 ? Number(limit) : OMP_HANDLER_MS) - 1000);
  }

  #toolEnded(event: AgentEvents["tool_execution_end"]): void {
    const running = this.#running.get(event.toolCallId);
    this.#running.delete(event.toolCallId);
    if (!this.hub || running?.reported === false) return;
    const { result: limit } = this.#config.report;
    const result = event.result as { content?: unknown } | undefined;
    this.#report({
      type: "tool_result",
      tool: event.toolName,
      content: limit > 0 ? beginning(textOf(result?.content ?? result), limit + MARGIN) : "",
      limit,
      metadata: {
        toolCallId: event.toolCallId,
        isError: event.isError === true,
        durationMs: running ? Math.round(performance.now() - running.startedMs) : undefined,
        blocked: running?.blocked || undefined,
      },
    });
  }

  // ---- commands ----

  #carry(command: Command): End | undefined {
    const ctx = this.#ctx;
    if (!ctx) return { status: "failed", error: "the agent has no session" };
    switch (command.action) {
      case "steer":
      case "followUp":
        this.#give(command, command.action);
        return undefined;
      case "abort":
        if (ctx.isIdle()) return { status: "failed", error: "the agent was not running" };
        this.#abortAsked = true;
        this.hub?.approvals.refuseAll();
        ctx.abort();
        return { status: "seen" };
      case "decision":
        return this.#decide(command);
      default:
        return { status: "failed", error: `this program knows no "${command.action}"` };
    }
  }

  #give(command: Command, deliverAs: "steer" | "followUp"): void {
    if (!command.content) throw new Error("there is nothing to say");
    this.#given.push(command);
    const fail = (error: unknown) => {
      this.#given = this.#given.filter((given) => given !== command);
      const reason = (error as Error).message.slice(0, 500);
      this.hub?.settle(command.command_id, { status: "failed", error: reason });
    };
    try {
      // pi returns nothing, omp perhaps a promise
      Promise.resolve(this.#pi.sendUserMessage(command.content, { deliverAs })).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  #decide({ approval_id, decision, by, reason }: Command): End {
    if (decision !== "allow" && decision !== "deny")
      return { status: "failed", error: "a decision is allow or deny" };
    const answer: Answer = { decision, by: by ?? "somebody", reason };
    switch (this.hub?.approvals.decide(approval_id ?? "", answer)) {
      case "taken":
        return { status: "seen" };
      case "late":
        return { status: "superseded" };
      default:
        return { status: "failed", error: "this was not asked here" };
    }
  }

  /** A message joins what the model reads next: a command of ours has been read. */
  #messageStarted(message: AgentMessage | undefined): void {
    if (message?.role !== "user" || this.#given.length === 0) return;
    const text = textOf(message.content);
    const read = this.#given.filter((command) => text.includes(command.content.trim()));
    // the same text twice is two messages
    const [first] = read;
    if (!first) return;
    const seen = read.filter((command) => command === first || command.content !== first.content);
    this.#given = this.#given.filter((command) => !seen.includes(command));
    for (const command of seen) this.hub?.settle(command.command_id, { status: "seen" });
  }

  // ---- what the person at the desk hears ----

  /** Says when the gateway is away, and when it is back. */
  #watch(): void {
    const { gateway, outbox } = this.hub ?? {};
    if (!gateway || !outbox || this.#isSubagent) return;
    const isAway = gateway.breaker.state !== "closed";
    if (isAway === this.#warned) return;
    this.#warned = isAway;
    if (isAway)
      this.#tell(`Dragoman: ${gateway.lastError}; ${outbox.size} events wait.`, "warning");
    else this.#tell("Dragoman: connected again.", "info");
  }

  #tell(message: string, type: "info" | "warning" | "error"): void {
    const ctx = this.#ctx;
    if (ctx?.hasUI) ctx.ui.notify(message, type);
    else if (type !== "info") this.#log(message);
  }

  #log(message: string): void {
    if (this.#pi.logger) this.#pi.logger.error(`discord-notify: ${message}`);
    else if (this.#ctx?.hasUI) this.#ctx.ui.notify(`discord-notify: ${message}`, "error");
    else console.error(`discord-notify: ${message}`);
  }
}

function firstPrompt(ctx: AgentContext): string {
  const isPrompt = ({ type, message }: { type: string; message?: AgentMessage }) =>
    type === "message" && message?.role === "user";
  return textOf(ctx.sessionManager.getEntries().find(isPrompt)?.message?.content);
}

function modelOf(ctx: AgentContext): string | undefined {
  if (!ctx.model) return undefined;
  return ctx.model.provider ? `${ctx.model.provider}/${ctx.model.id}` : ctx.model.id;
}

/** undefined: nothing was used. */
function usageOf(usage: Usage | undefined) {
  const total = usage?.totalTokens || (usage?.input ?? 0) + (usage?.output ?? 0);
  if (!usage || total === 0) return undefined;
  return {
    totalTokens: total,
    input: usage.input,
    output: usage.output,
    cost: usage.cost?.total,
  };
}

/** For the model, which reads it as the tool's error. */
function refusal(answer: Answer, verdict: Verdict): string {
  const why = `This ${verdict.reason}.`;
  switch (answer.by) {
    case "timeout":
      return `${why} Nobody permitted it in time, so it was not run.`;
    case "unreachable":
      return `${why} Nobody could be asked, so it was not run.`;
    case "aborted":
      return `${why} The run was stopped, so it was not run.`;
    case "desk":
      return `${why} The user refused it.`;
    default:
      return `${why} ${answer.by} refused it${answer.reason ? `: ${answer.reason}` : "."}`;
  }
}
