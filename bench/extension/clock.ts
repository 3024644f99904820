// Loaded into pi or omp before and after Dragoman's extension: what lies between the two is the time of its handlers, per tool call.
import { appendFileSync } from "node:fs";

const place = globalThis as unknown as { clock?: { began: number; sums: Map<string, number> } };

export default function clock(pi: { on(event: string, handler: (event: { toolCallId: string }) => void): void }) {
  const isFirst = place.clock === undefined;
  place.clock ??= { began: 0, sums: new Map() };
  const { clock } = place;
  for (const event of ["tool_call", "tool_execution_end"]) {
    pi.on(event, ({ toolCallId }) => {
      if (isFirst) clock.began = performance.now();
      else clock.sums.set(toolCallId, (clock.sums.get(toolCallId) ?? 0) + performance.now() - clock.began);
    });
  }
  if (!isFirst)
    pi.on("session_shutdown", () => appendFileSync(process.env.CLOCK_FILE ?? "/dev/null", JSON.stringify([...clock.sums.values()])));
}
