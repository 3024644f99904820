/**
 * Dragoman's extension for pi and oh-my-pi: reports what the agent does to a Dragoman daemon, and
 * carries out what people tell it from their chats.
 *
 *     agent's events ──► reporter ──► hub: outbox ──► sender ──► POST /api/webhook/event
 *     agent ◄── reporter ◄── commands ◄── GET /api/commands/stream, or poll
 *     tool call ──► policy ──► approvals: the chat, the desk or the clock
 */
import type { AgentApi, AgentContext } from "./agent.ts";
import { takeKey } from "./config.ts";
import { completions, discord } from "./discord.ts";
import { Reporter } from "./reporter.ts";

export default function extension(pi: AgentApi): void {
  takeKey();
  const reporter = new Reporter(pi);
  reporter.listen();
  pi.registerCommand("discord", {
    description: "How this session is reported to Dragoman: status, link, mute, unmute, flush",
    getArgumentCompletions: completions,
    handler: (args: string, ctx: AgentContext) => discord(reporter, args, ctx),
  });
}
