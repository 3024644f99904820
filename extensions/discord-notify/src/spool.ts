/**
 * Keeps events that could not be sent over a restart of the agent: one file for each process, that
 * only the user may read. A later process takes over the files of those that have ended.
 */
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const NAME = /^queue-(\d+)\.jsonl$/;
const AGE_MAX_MS = 7 * 24 * 3600 * 1000;

export function spoolFolder(env: Record<string, string | undefined> = process.env): string {
  const state = env.XDG_STATE_HOME || join(homedir(), ".local", "state");
  return join(state, "dragoman", "discord-notify");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

export class Spool {
  readonly #folder: string;
  readonly #file: string;
  readonly #bytes: number;

  /** `name`: of the gateway and key, so that events are not sent elsewhere. */
  constructor(folder: string, name: string, bytes: number) {
    this.#folder = join(folder, name);
    this.#file = join(this.#folder, `queue-${process.pid}.jsonl`);
    this.#bytes = bytes;
  }

  /** The newest lines, as far as there is room. Throws. */
  save(lines: readonly string[]): void {
    if (lines.length === 0) {
      rmSync(this.#file, { force: true });
      return;
    }
    let room = this.#bytes;
    let first = lines.length;
    while (first > 0 && room >= (lines[first - 1]?.length ?? 0) + 1) {
      first--;
      room -= (lines[first]?.length ?? 0) + 1;
    }
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const draft = `${this.#file}.tmp`;
    writeFileSync(draft, `${lines.slice(first).join("\n")}\n`, { mode: 0o600 });
    renameSync(draft, this.#file);
  }

  /** What earlier processes left, oldest first; their files are gone afterwards. */
  takeOver(): string[] {
    let names: string[];
    try {
      names = readdirSync(this.#folder);
    } catch {
      return [];
    }
    const left = names
      .flatMap((name) => {
        const pid = Number(NAME.exec(name)?.[1]);
        if (!pid || (pid !== process.pid && isAlive(pid))) return [];
        const path = join(this.#folder, name);
        return [{ path, ...this.#stat(path) }];
      })
      .sort((a, b) => a.mtimeMs - b.mtimeMs);
    return left.flatMap(({ path, mtimeMs, size }) =>
      this.#take(path, Date.now() - mtimeMs < AGE_MAX_MS && size <= 2 * this.#bytes),
    );
  }

  #stat(path: string): { mtimeMs: number; size: number } {
    try {
      return statSync(path);
    } catch {
      return { mtimeMs: 0, size: 0 };
    }
  }

  /** Another process may be faster: who can rename it has it. */
  #take(path: string, wanted: boolean): string[] {
    const mine = `${path}.${process.pid}.taken`;
    try {
      renameSync(path, mine);
      const content = wanted ? readFileSync(mine, "utf8") : "";
      rmSync(mine);
      return content.split("\n").filter((line) => line !== "");
    } catch {
      return [];
    }
  }
}
