/** What a command is without what stands before it, and what it runs itself. */

/** Words that another command follows, with the options of theirs that take a value. */
const WRAPPERS: Readonly<Record<string, string>> = {
  sudo: "ugpChDrtT",
  doas: "uC",
  env: "uCS",
  nohup: "",
  time: "fo",
  timeout: "ks",
  nice: "n",
  ionice: "cnp",
  stdbuf: "ioe",
  xargs: "ILnPdaEs",
  command: "",
  builtin: "",
  exec: "a",
  setsid: "",
  busybox: "",
};
/** Words that a command, or nothing, follows. */
export const KEYWORDS: ReadonlySet<string> = new Set(
  "if then elif else fi while until do done for in case esac { } ! function".split(" "),
);
export const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "zsh", "dash", "ksh", "fish"]);
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Removes what stands before the command itself. */
export function unwrap(words: string[]): { words: string[]; under: string[] } {
  const under: string[] = [];
  let i = 0;
  for (;;) {
    const word = words[i];
    if (word === undefined) break;
    const name = baseName(word);
    const takesValue = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
    if (takesValue !== undefined) {
      under.push(name);
      i = afterOptions(words, i + 1, takesValue);
      if (name === "timeout") i++; // its duration
    } else if (KEYWORDS.has(word) || ASSIGNMENT.test(word)) {
      i++;
    } else {
      break;
    }
  }
  const rest = words.slice(i);
  if (rest[0] !== undefined) rest[0] = baseName(rest[0]);
  return { words: rest, under };
}

function afterOptions(words: string[], from: number, takesValue: string): number {
  let i = from;
  while (words[i]?.startsWith("-")) {
    const option = words[i] ?? "";
    const last = option.at(-1) ?? "";
    i += /^-[A-Za-z]+$/.test(option) && takesValue.includes(last) ? 2 : 1;
  }
  return i;
}

/** The position of `-c` among the words of a shell; 0: it reads its script from a file or its input. */
function scriptOption(words: string[]): number {
  return Math.max(
    0,
    words.findIndex((word, i) => i > 0 && /^-[a-z]*c[a-z]*$/.test(word)),
  );
}

/** Does a command run what is on its input? */
export function runsInput(words: string[]): boolean {
  return SHELLS.has(words[0] ?? "") && scriptOption(words) === 0;
}

/** The script among the words of a command: of `sh -c` and `eval`. */
export function scriptOf(words: string[]): string | undefined {
  const name = words[0] ?? "";
  if (name === "eval") return words.slice(1).join(" ");
  const option = SHELLS.has(name) ? scriptOption(words) : 0;
  return option > 0 ? words[option + 1] : undefined;
}

/** The commands among the words of a command: of `find -exec`. */
export function commandsOf(words: string[]): string[][] {
  const found: string[][] = [];
  if (words[0] !== "find") return found;
  for (let i = 1; i < words.length; i++) {
    if (!/^-(?:exec|ok)(?:dir)?$/.test(words[i] ?? "")) continue;
    const end = words.findIndex((word, at) => at > i && /^[;+]$/.test(word));
    found.push(words.slice(i + 1, end < 0 ? words.length : end));
    if (end < 0) break;
    i = end;
  }
  return found;
}
