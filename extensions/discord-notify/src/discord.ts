/** `/discord`: shows and changes how this session is reported. */
import type { AgentContext } from "./agent.ts";
import type { Hub } from "./hub.ts";
import type { Reporter } from "./reporter.ts";

interface Subcommand {
  name: string;
  usage: string;
  help: string;
  run(hub: Hub, reporter: Reporter, args: string[]): string | Promise<string>;
}

const FLUSH_MS = 10_000;

const SUBCOMMANDS: readonly Subcommand[] = [
  {
    name: "status",
    usage: "status",
    help: "is the session reported, and what waits",
    run: (hub, reporter) => status(hub, reporter),
  },
  {
    name: "link",
    usage: "link CHANNEL[/THREAD] [ADAPTER] [USER]",
    help: "show the session in this chat; USER, your id on that platform, may steer it",
    run: async (hub, _reporter, [chat, adapter, user]) => {
      if (!chat) return "Which chat? /discord link CHANNEL[/THREAD] [ADAPTER] [USER]";
      const [channel = "", thread] = chat.split("/", 2);
      const outcome = await hub.link({
        channel,
        ...(thread ? { thread } : {}),
        ...(adapter ? { adapter } : {}),
        ...(user ? { user } : {}),
      });
      return outcome.kind === "ok"
        ? `The session is shown in ${chat}.`
        : `Not linked: ${outcome.message}`;
    },
  },
  {
    name: "mute",
    usage: "mute",
    help: "report only beginning, end and questions",
    run: (hub) => {
      hub.muted = true;
      return "Muted: only the session's beginning and end and questions are reported.";
    },
  },
  {
    name: "unmute",
    usage: "unmute",
    help: "report everything again",
    run: (hub) => {
      hub.muted = false;
      return "Everything is reported again.";
    },
  },
  {
    name: "flush",
    usage: "flush",
    help: "send now what waits",
    run: async (hub) =>
      (await hub.sender.flush(FLUSH_MS))
        ? "Everything is sent."
        : `${hub.outbox.size} events still wait: ${hub.gateway.lastError ?? "no answer yet"}.`,
  },
];

function status(hub: Hub, reporter: Reporter): string {
  const { gateway, outbox, sender, approvals } = hub;
  const state = gateway.breaker.state;
  const seconds = Math.round((Date.now() - gateway.lastAnswerMs) / 1000);
  const pause = Math.ceil(gateway.breaker.pauseMs / 1000);
  const connection =
    state !== "closed"
      ? `away (breaker ${state}${pause > 0 ? `, next try in ${pause} s` : ""})`
      : gateway.lastAnswerMs > 0
        ? `connected, answered ${seconds} s ago`
        : "no answer yet";
  const lines = [
    `Gateway: ${gateway.url}, ${connection}`,
    `Session: ${hub.session || "none"}${hub.muted ? ", muted" : ""}`,
    `Commands: ${{ stream: "by stream", poll: "by polling", no: "not yet" }[hub.receiving]}`,
    `Queue: ${outbox.size} events, ${Math.ceil(outbox.bytes / 1024)} KiB; ${outbox.droppedTotal} dropped, ${sender.refused} refused`,
  ];
  if (sender.isForeign(hub.session))
    lines.push("Problem: another key of the daemon has this session; begin a new one");
  if (approvals.size > 0) lines.push(`Questions: ${approvals.size} wait for an answer`);
  if (gateway.lastError) lines.push(`Last error: ${gateway.lastError}`);
  if (hub.spoolError) lines.push(`Queue on disk: ${hub.spoolError}`);
  if (reporter.problem) lines.push(`Problem: ${reporter.problem}`);
  return lines.join("\n");
}

export function completions(prefix: string) {
  const found = SUBCOMMANDS.filter(({ name }) => name.startsWith(prefix.trimStart()));
  if (found.length === 0) return null;
  return found.map(({ name, usage, help }) => ({ value: name, label: usage, description: help }));
}

export async function discord(reporter: Reporter, args: string, ctx: AgentContext): Promise<void> {
  const [name = "status", ...rest] = args.split(/\s+/).filter((word) => word !== "");
  const subcommand = SUBCOMMANDS.find((one) => one.name === name);
  const say = (text: string) => {
    if (ctx.hasUI) ctx.ui.notify(text, "info");
    else console.log(text);
  };
  if (!subcommand) {
    say(SUBCOMMANDS.map(({ usage, help }) => `/discord ${usage}: ${help}`).join("\n"));
  } else if (!reporter.hub) {
    say(`Nothing is reported: ${reporter.problem ?? "there is no session yet"}`);
  } else {
    say(await subcommand.run(reporter.hub, reporter, rest));
  }
}
