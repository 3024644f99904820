/**
 * Splits a shell script into its simple commands, as far as a policy needs it: quotes, pipes,
 * substitutions and the usual wrappers (sudo, env, xargs, sh -c) are looked through. Variables are
 * not followed, so this finds mistakes, not attacks.
 */

import { scriptsOf, unwrap } from "./wrappers.ts";

export interface Command {
  /** Without assignments and wrappers; the first is the name without its folder. */
  words: string[];
  /** Wrappers that it was under: "sudo", "xargs". */
  under: string[];
  /** Files that its output is redirected to. */
  writes: string[];
  /** Name of the command before it in the pipe. */
  pipedFrom: string | undefined;
  /** A substitution is among its words: `sh -c "$(curl …)"`, `bash <(curl …)`. */
  substituted: Command[];
}

const MAX_DEPTH = 4;
const MAX_COMMANDS = 2000;

interface Word {
  text: string;
  nested: string[]; // texts of substitutions
}

interface Scan {
  readonly text: string;
  at: number;
  resume: number; // behind the here-documents of this line
}

/** The text up to the bracket that ends it; `at` is behind its beginning, and then behind its end. */
function bracketed(scan: Scan): string {
  const begin = scan.at;
  let depth = 1;
  for (; scan.at < scan.text.length; scan.at++) {
    const c = scan.text[scan.at];
    if (c === "\\") scan.at++;
    else if (c === "'") scan.at = indexOr(scan.text, "'", scan.at + 1);
    else if (c === "(") depth++;
    else if (c === ")" && --depth === 0) break;
  }
  return scan.text.slice(begin, scan.at++);
}

function indexOr(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found;
}

/** A substitution that begins here: `$(…)`, `` `…` ``, `<(…)`. */
function substitution(scan: Scan): string | undefined {
  const c = scan.text[scan.at];
  if ((c === "$" || c === "<" || c === ">") && scan.text[scan.at + 1] === "(") {
    scan.at += 2;
    return bracketed(scan);
  }
  if (c !== "`") return undefined;
  const end = indexOr(scan.text, "`", scan.at + 1);
  const inner = scan.text.slice(scan.at + 1, end);
  scan.at = end + 1;
  return inner;
}

/** What stands for itself, taken at once. */
const PLAIN = /[^\s;&|()<>'"\\`$]+/y;
const PLAIN_QUOTED = /[^"\\`$]+/y;

function plain(scan: Scan, pattern: RegExp): string {
  pattern.lastIndex = scan.at;
  const found = pattern.exec(scan.text)?.[0] ?? "";
  scan.at += found.length;
  return found;
}

/** One character, which a backslash may stand before; at the end of a line both are nothing. */
function character(scan: Scan): string {
  const isEscaped = scan.text[scan.at] === "\\";
  if (isEscaped) scan.at++;
  const c = scan.text[scan.at++] ?? "";
  return isEscaped && c === "\n" ? "" : c;
}

function doubleQuoted(scan: Scan, word: Word): void {
  scan.at++;
  while (scan.at < scan.text.length && scan.text[scan.at] !== '"') {
    const inner = substitution(scan);
    if (inner !== undefined) word.nested.push(inner);
    else word.text += plain(scan, PLAIN_QUOTED) || character(scan);
  }
  scan.at++;
}

const ENDS_WORD = /[\s;&|()<>]/;

function readWord(scan: Scan): Word {
  const word: Word = { text: plain(scan, PLAIN), nested: [] };
  while (scan.at < scan.text.length) {
    const c = scan.text[scan.at] ?? "";
    const inner = substitution(scan);
    if (inner !== undefined) {
      word.nested.push(inner);
    } else if (ENDS_WORD.test(c)) {
      break;
    } else if (c === "'") {
      const end = indexOr(scan.text, "'", scan.at + 1);
      word.text += scan.text.slice(scan.at + 1, end);
      scan.at = end + 1;
    } else if (c === '"') {
      doubleQuoted(scan, word);
    } else {
      word.text += plain(scan, PLAIN) || character(scan);
    }
  }
  return word;
}

/** The body of a here-document, which begins on the next line; that is where reading goes on after it. */
function hereDocument(scan: Scan, delimiter: string): string {
  const { text } = scan;
  const begin = Math.max(scan.resume, indexOr(text, "\n", scan.at) + 1);
  for (let at = begin; at < text.length; ) {
    const end = indexOr(text, "\n", at);
    if (text.slice(at, end).trim() === delimiter) {
      scan.resume = end + 1;
      return text.slice(begin, at);
    }
    at = end + 1;
  }
  scan.resume = text.length;
  return text.slice(begin);
}

/** What is not the beginning of a word, or may not be. */
const SPECIAL = /[\s#;&|()<>]/;

export function parseShell(text: string, depth = 0): Command[] {
  const scan: Scan = { text, at: 0, resume: 0 };
  const commands: Command[] = [];
  let words: Word[] = [];
  let writes: string[] = [];
  let here: string[] = [];
  let pipedFrom: string | undefined;

  const end = (piped: boolean) => {
    const { words: own, under } = unwrap(words.map((word) => word.text));
    const nested = words.flatMap((word) => word.nested);
    const substituted =
      depth < MAX_DEPTH ? nested.flatMap((inner) => parseShell(inner, depth + 1)) : [];
    const scripts = depth < MAX_DEPTH ? scriptsOf(own, here) : [];
    if (own.length + under.length + writes.length > 0)
      commands.push({ words: own, under, writes, pipedFrom, substituted });
    commands.push(...substituted, ...scripts.flatMap((script) => parseShell(script, depth + 1)));
    pipedFrom = piped ? (own[0] ?? pipedFrom) : undefined;
    words = [];
    writes = [];
    here = [];
  };

  while (scan.at < scan.text.length && commands.length < MAX_COMMANDS) {
    const c = scan.text[scan.at] ?? "";
    if (!SPECIAL.test(c)) {
      words.push(readWord(scan));
      continue;
    }
    const rest = scan.text.slice(scan.at, scan.at + 3);
    if (c === "#") {
      scan.at = indexOr(scan.text, "\n", scan.at);
    } else if (rest.startsWith("<<<")) {
      scan.at += 3;
    } else if (rest.startsWith("<<")) {
      scan.at += rest === "<<-" ? 3 : 2;
      while (/[ \t]/.test(scan.text[scan.at] ?? "")) scan.at++;
      here.push(hereDocument(scan, readWord(scan).text));
    } else if (c === ">" && rest[1] !== "(") {
      scan.at += /^>[>|&]/.test(rest) ? 2 : 1;
      while (/[ \t]/.test(scan.text[scan.at] ?? "")) scan.at++;
      const target = readWord(scan).text;
      if (target && !/^(\d+|-)$/.test(target)) writes.push(target);
    } else if (c === "\n" || c === ";" || c === "&" || c === "|" || c === "(" || c === ")") {
      scan.at += rest.startsWith("&&") || rest.startsWith("||") ? 2 : 1;
      if (c === "\n") scan.at = Math.max(scan.at, scan.resume);
      if (rest.startsWith("&>")) continue;
      end(c === "|" && rest[1] !== "|");
    } else if (/\s/.test(c) || (c === "<" && rest[1] !== "(")) {
      scan.at++;
    } else {
      words.push(readWord(scan));
    }
  }
  end(false);
  return commands;
}
