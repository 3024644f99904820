/**
 * What pi and omp offer to extensions, as far as both have it and this one uses it. Their own type
 * packages are not needed: events of one program alone are simply never sent by the other.
 */

export interface TextBlock {
  type: string;
  text?: string;
}

export interface Usage {
  input?: number;
  output?: number;
  totalTokens?: number;
  cost?: { total?: number };
}

export interface AgentMessage {
  role: string;
  content?: string | TextBlock[];
  usage?: Usage;
  stopReason?: string;
  errorMessage?: string;
}

/** The events that are used, by name. Fields that only one program has are optional. */
export interface AgentEvents {
  session_start: { reason?: string };
  session_shutdown: { reason?: string };
  session_switch: { reason?: string }; // omp
  session_branch: object; // omp
  session_info_changed: { name?: string }; // pi
  before_agent_start: { prompt?: string };
  agent_start: object;
  agent_end: { willContinue?: boolean };
  agent_settled: object; // pi
  turn_start: object;
  turn_end: { message?: AgentMessage };
  message_start: { message?: AgentMessage };
  tool_call: { toolName: string; toolCallId: string; input: unknown };
  tool_execution_end: {
    toolName: string;
    toolCallId: string;
    result?: unknown;
    isError?: boolean;
  };
  session_compact: { reason?: string; compactionEntry?: { tokensBefore?: number } };
  session_compact_failed: { reason?: string; errorMessage?: string; aborted?: boolean }; // pi
  auto_compaction_end: { errorMessage?: string; aborted?: boolean; skipped?: boolean }; // omp
  auto_retry_start: {
    attempt?: number;
    maxAttempts?: number;
    delayMs?: number;
    errorMessage?: string;
  }; // omp
}

export interface ToolVerdict {
  block: true;
  reason: string;
}

export interface AgentUi {
  confirm(title: string, message: string, options?: { signal?: AbortSignal }): Promise<boolean>;
  notify(message: string, type?: "info" | "warning" | "error"): void;
}

export interface AgentContext {
  ui: AgentUi;
  mode?: string;
  hasUI: boolean;
  cwd: string;
  sessionManager: {
    getSessionId(): string;
    getEntries(): { type: string; message?: AgentMessage }[];
  };
  model?: { id: string; provider?: string } | undefined;
  signal?: AbortSignal | undefined; // pi, while the agent runs
  isIdle(): boolean;
  abort(): void;
  hasPendingMessages(): boolean;
  isProjectTrusted?(): boolean;
}

export interface AgentApi {
  // biome-ignore lint/suspicious/noExplicitAny: pi and omp type each event by an overload of its own
  on(event: string, handler: (event: any, ctx: any) => any): unknown;
  registerCommand(
    name: string,
    options: {
      description?: string;
      // biome-ignore lint/suspicious/noExplicitAny: the programs' own types of it differ
      getArgumentCompletions?: (prefix: string) => any;
      // biome-ignore lint/suspicious/noExplicitAny: as above
      handler: (args: string, ctx: any) => Promise<void>;
    },
  ): void;
  sendUserMessage(content: string, options?: { deliverAs?: "steer" | "followUp" }): unknown;
  getSessionName?(): string | undefined;
  /** omp alone has one. */
  logger?: { error(message: string): void };
}

/** The text of a message or of a tool's result. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: TextBlock | undefined) => (typeof block?.text === "string" ? block.text : ""))
    .filter((text) => text !== "")
    .join("\n");
}
