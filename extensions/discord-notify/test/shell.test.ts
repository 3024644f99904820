/**
 * Scripts that are put together at random, read by us and run by bash, with an `rm` that notes that
 * it was called. SEED and RUNS are taken from the environment.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseShell } from "../src/shell.ts";
import { temporary } from "./rig.ts";

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const RUNS = Number(process.env.RUNS ?? 150);

// ---- scripts ----

let state = SEED;
/** A whole number below n (mulberry32). */
function below(n: number): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const oneOf = <T>(choices: readonly T[]): T => choices[below(choices.length)] as T;

/** Each would do something else if it were read as a part of the script. */
const TEXTS = [
  ...["plain", "don't", "(half", "half)", 'a "word', "# none", "back\\slash", "two\nlines"],
  ...["; rm -rf x", "$(rm -rf x)", "`rm -rf x", "<<EOF", "case a in", "esac", "$'", "${", "}"],
];

const inSingleQuotes = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const escaped = (text: string, special: RegExp) => text.replace(special, "\\$&");
const LITERAL = /[\\$`]/g;

function quotedPiece(depth: number, special = /[\\$`"]/g): string {
  switch (depth > 0 ? below(5) : 4) {
    case 0:
      return substitution(script(depth - 1));
    case 1:
      return `$((1 << 2))`;
    case 2:
      return `\${none:-${oneOf(["plain", "'}'", '"}"', "$'}'"])} ${substitution(script(depth - 1))}}`;
    case 3:
      return `\`${escaped(script(0), special)}\``;
    default:
      return escaped(oneOf(TEXTS), special);
  }
}

function word(depth: number): string {
  switch (below(depth > 0 ? 7 : 5)) {
    case 0:
      return inSingleQuotes(oneOf(TEXTS));
    case 1:
      return `$'${escaped(oneOf(TEXTS), /[\\']/g)}'`;
    case 2:
      return escaped(oneOf(TEXTS).replace("\n", ""), /[^\w]/g);
    case 3:
      return "bare";
    case 4:
      return `"${quotedPiece(depth)} ${quotedPiece(depth)}"`;
    case 5:
      return substitution(script(depth - 1));
    default:
      return word(depth - 1) + word(depth - 1);
  }
}

/** `$((…` would be arithmetic. */
const substitution = (inner: string, by = "$") =>
  `${by}(${inner.startsWith("(") ? " " : ""}${inner})`;

let delimiters = 0;

/** The line that has it may go on. */
function hereDocument(command: string, isLiteral: boolean, body: string, more = ""): string {
  const name = `END${++delimiters}`;
  return `${command} <<${isLiteral ? `'${name}'` : name}${more}\n${body}\n${name}\n`;
}

/** What scripts run, besides what deletes nothing. */
let dangerous = "rm -rf x";

/** Ends with a line if another command must not follow on it. */
function command(depth: number): string {
  const inner = () => script(depth - 1);
  switch (below(depth > 0 ? 23 : 6)) {
    case 0:
      return dangerous;
    case 1:
      return `echo ${word(depth)} ${word(depth)}`;
    case 2:
      return hereDocument("cat", true, oneOf(TEXTS));
    case 3:
      return hereDocument("cat", false, escaped(oneOf(TEXTS), LITERAL), `; echo ${word(0)}`);
    case 4:
      return `echo ${word(depth)} # ${oneOf(TEXTS).replace("\n", "")}\n`;
    case 5:
      return oneOf(["(( y = 1 << 2 ))", "[[ a =~ ^(a|b)$ && a < b ]]", "y=(a b)", "y=$((1 << 2))"]);
    case 6:
      return `git commit -m "$(${hereDocument("cat", true, oneOf(TEXTS))})"`;
    case 7:
      return hereDocument("cat", false, quotedPiece(depth, LITERAL));
    case 8:
      return `( ${inner()}\n)`;
    case 9:
      return `{ ${inner()}\n}`;
    case 10:
      return `if true; then ${inner()}\nfi`;
    case 11:
      return `case a in a) ${inner()}\n;; esac`;
    case 12:
      return `case b in\n(a|b)\n${inner()}\n;;\nesac`;
    case 13:
      return `f() { ${inner()}\n}; f`;
    case 14:
      return `for ((i = 0; i < 1; i++)); do ${inner()}\ndone`;
    case 15:
      return `bash -c ${inSingleQuotes(inner())}`;
    case 16:
      return `eval ${inSingleQuotes(inner())}`;
    case 17:
      return hereDocument("bash", true, inner());
    case 18:
      return `bash <<< ${inSingleQuotes(inner())}`;
    case 19:
      return `find . -maxdepth 0 -exec bash -c ${inSingleQuotes(inner())} \\;`;
    case 20:
      return `echo x | xargs bash -c ${inSingleQuotes(inner())}`;
    case 21:
      return `cat ${substitution(inner(), "<")}`;
    default:
      return `cat ${word(depth)} /dev/null 2> "${quotedPiece(depth - 1)}" || true`;
  }
}

function script(depth: number): string {
  let text = "";
  for (let n = 1 + below(2); n > 0; n--) {
    if (text !== "" && !text.endsWith("\n")) text += oneOf(["; ", "\n", " && "]);
    text += command(depth);
  }
  return text;
}

// ---- bash ----

const home = temporary();
const bin = join(home, "bin");
const work = join(home, "work");
mkdirSync(bin);
mkdirSync(work);
for (const program of ["bash", "cat", "find", "xargs"]) {
  const path = ["/bin", "/usr/bin"].map((folder) => join(folder, program)).find(existsSync);
  if (path) symlinkSync(path, join(bin, program));
}
writeFileSync(join(bin, "git"), "#!/bin/sh\n", { mode: 0o755 });
writeFileSync(join(bin, "rm"), '#!/bin/sh\n[ "$1" != -rf ] || : >"$NOTE"\n', { mode: 0o755 });

let notes = 0;

function runsIt(text: string): boolean {
  const note = join(home, `note-${++notes}`); // one of its own: a substitution may outlive its script
  spawnSync(join(bin, "bash"), ["-c", text], {
    cwd: work,
    env: { PATH: bin, NOTE: note },
    stdio: "ignore",
    timeout: 20_000,
  });
  return existsSync(note);
}

const isFound = (text: string) =>
  parseShell(text).some(({ words }) => words[0] === "rm" && words[1] === "-rf");

test("a command is found if bash runs it, in whatever brackets and quotes", () => {
  for (let run = 0; run < RUNS; run++) {
    const text = script(3);
    if (runsIt(text)) assert.ok(isFound(text), `SEED=${SEED}, script ${run}:\n${text}`);
  }
});

test("a command is found if bash runs it in a script that has a mistake", () => {
  for (let run = 0; run < RUNS; run++) {
    const whole = script(3);
    const at = below(whole.length);
    const text = whole.slice(0, at) + whole.slice(at + 1);
    if (runsIt(text)) assert.ok(isFound(text), `SEED=${SEED}, script ${run}:\n${text}`);
  }
});

test("a text that speaks of a command is not taken for it", () => {
  dangerous = "rm x";
  for (let run = 0; run < 20 * RUNS; run++) {
    const text = script(3);
    assert.ok(!isFound(text), `SEED=${SEED}, script ${run}:\n${text}`);
  }
});
