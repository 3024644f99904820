/**
 * Splits a shell script into its simple commands, as far as a policy needs it: quotes, pipes,
 * substitutions, here-documents and the usual wrappers (sudo, env, xargs, sh -c) are looked
 * through. Variables are not followed, so this finds mistakes, not attacks.
 *
 * Only a reader of what is in a bracket knows where the bracket ends: an apostrophe is no quote in
 * a comment or a here-document, and `)` no end in a `case`. So brackets are read by recursion, as
 * shells do. Where the end of something is not found, this reader and the shell may disagree about
 * what is quoted; then the script is also read as if nothing were.
 */
import { commandsOf, KEYWORDS, runsInput, scriptOf, unwrap } from "./wrappers.ts";

export interface Command {
  /** Without assignments and wrappers; the first is the name without its folder. */
  words: readonly string[];
  /** Wrappers that it was under: "sudo", "xargs". */
  under: readonly string[];
  /** Files that its output is redirected to. */
  writes: readonly string[];
  /** Name of the command before it in the pipe. */
  pipedFrom: string | undefined;
  /** A substitution is among its words: `sh -c "$(curl …)"`, `bash <(curl …)`. */
  substituted: readonly Command[];
}

/** Of scripts in scripts: `sh -c "sh -c …"`. */
const SCRIPTS_MAX = 8;
/** Open at once. No script of a person has as many; the stack has room for more. */
const BRACKETS_MAX = 30;

interface Word {
  text: string;
  isQuoted: boolean;
  /** By substitutions in it. */
  runs: Command[] | undefined;
}

interface Redirection {
  operator: string;
  /** The file, the text of a here-string, or what ends a here-document. */
  word: Word;
  /** A here-document is the input of a shell. */
  isScript: boolean;
}

const BLANKS = /(?:[^\S\n]|\\\n|#[^\n]*)+/y;
const OPERATOR = /&>>?|>[>|&]|>(?!\()|<<<|<<-?|<[>&]|<(?!\()|;;?&?|&&?|\|[|&]?|[()\n]/y;
/** What stands for itself, taken at once. */
const PLAIN = /[^\s;&|()<>'"\\`$]+/y;
const PLAIN_QUOTED = /[^"\\`$]+/y;
/** All that may begin or end something that quotes; an unquoted reading is without it. */
const QUOTING = /['"`#)}]|[$<>]?[({]|<<[<-]?/g;

export function parseShell(text: string, depth = 0): Command[] {
  if (depth > SCRIPTS_MAX) return [];
  const reader = new Reader(text, depth);
  const found = reader.commands();
  // blanks keep `rm "-rf" x` one command; by ends of lines `'rm -rf x` becomes one
  if (reader.isLost)
    for (const mark of [" ", "\n"])
      append(found, new Reader(text.replace(QUOTING, mark), depth).commands());
  return found;
}

/** Not by spreading: there may be more than a call takes arguments. */
function append<T>(to: T[], more: readonly T[] | undefined): void {
  if (more) for (const one of more) to.push(one);
}

class Reader {
  readonly #text: string;
  readonly #depth: number;
  #at = 0;
  #brackets: number;
  #substitutions = 0; // of the brackets
  /** They begin behind the end of this line. */
  #pending: Redirection[] = [];
  /** Something has no end, or is too deep. */
  isLost = false;

  constructor(text: string, depth: number, brackets = 0) {
    this.#text = text;
    this.#depth = depth;
    this.#brackets = brackets;
  }

  /** Up to the bracket that ends them, or the end of the text. */
  commands(isBracketed = false, input?: string): Command[] {
    const found: Command[] = [];
    let words: Word[] = [];
    let redirections: Redirection[] = [];
    let pipedFrom = input;
    let isBegun = false; // something other than keywords was read of this command
    let cases = 0; // in which `)` ends a pattern

    const end = (isPiped = false) => {
      const command = this.#finish(words, redirections, pipedFrom, found);
      // a group has no name: `{ curl …; } | sh`. After `|` lines may be empty
      if (isPiped) pipedFrom = (command ?? found.at(-1))?.words[0];
      else if (command) pipedFrom = undefined;
      if (words.length > 0) words = [];
      if (redirections.length > 0) redirections = [];
      isBegun = false;
    };

    for (;;) {
      this.#skip(BLANKS);
      if (this.#at >= this.#text.length) break;
      const operator = this.#take(OPERATOR);
      switch (operator) {
        case "": {
          const word = this.#word();
          const keyword = word.isQuoted ? "" : word.text;
          const isAfterIn = words.at(-1)?.text === "in";
          if (keyword === "case" && !isBegun) cases++;
          else if (keyword === "esac" && (!isBegun || isAfterIn) && cases > 0) cases--;
          isBegun ||= !KEYWORDS.has(keyword);
          words.push(word);
          break;
        }
        case "\n":
          end();
          append(found, this.#hereDocuments());
          break;
        case "(":
          end();
          append(found, this.#arithmetic() ?? this.#bracketed(pipedFrom));
          pipedFrom = undefined;
          break;
        case ")":
          end();
          if (cases > 0) break;
          if (isBracketed) return found;
          this.isLost = true;
          break;
        case "<":
        case "<&":
          break; // what follows is among the words
        default:
          if (/[<>]/.test(operator)) redirections.push(this.#redirection(operator));
          else end(operator === "|" || operator === "|&");
      }
    }
    end();
    if (isBracketed || this.#pending.length > 0) this.isLost = true;
    return found;
  }

  #redirection(operator: string): Redirection {
    this.#skip(BLANKS);
    const redirection = { operator, word: this.#word(), isScript: false };
    if (operator === "<<" || operator === "<<-") this.#pending.push(redirection);
    return redirection;
  }

  /** Adds what the words are and run to those that are found. undefined: they are no command. */
  #finish(
    words: readonly Word[],
    redirections: readonly Redirection[],
    pipedFrom: string | undefined,
    found: Command[],
  ): Command | undefined {
    if (words.length + redirections.length === 0) return undefined;
    const substituted: Command[] = [];
    for (const { runs } of words) append(substituted, runs);
    for (const { word } of redirections) append(substituted, word.runs);
    append(found, substituted);
    const writes = redirections.flatMap(({ operator, word: { text } }) =>
      operator.includes(">") && text && !/^(?:\d+|-)$/.test(text) ? [text] : [],
    );
    const { words: own, under } = unwrap(words.map(({ text }) => text));
    if (own.length + under.length + writes.length === 0) return undefined;
    const command = { words: own, under, writes, pipedFrom, substituted };
    found.push(command);
    if (runsInput(own))
      for (const redirection of redirections) {
        redirection.isScript = true;
        if (redirection.operator === "<<<")
          append(found, parseShell(redirection.word.text, this.#depth + 1));
      }
    appendRuns(found, own, this.#depth);
    return command;
  }

  // ---- brackets ----

  /** What is in the bracket that has been read. */
  #bracketed(input?: string): Command[] {
    if (this.#brackets >= BRACKETS_MAX) {
      this.isLost = true;
      return [];
    }
    this.#brackets++;
    const found = this.commands(true, input);
    this.#brackets--;
    return found;
  }

  /** What `((…))` runs, whose first bracket has been read; undefined: it is a bracket in a bracket. */
  #arithmetic(): Command[] | undefined {
    const text = this.#text;
    if (text[this.#at] !== "(" || this.#brackets >= BRACKETS_MAX) return undefined;
    let depth = 0;
    for (let at = this.#at + 1; at < text.length; at++) {
      const c = text[at];
      if (c === "\\") at++;
      else if (c === "'" || c === '"') at = indexOr(text, c, at + 1);
      else if (c === "(") depth++;
      else if (c === ")" && depth-- === 0) {
        if (text[at + 1] !== ")") return undefined;
        const inner = text.slice(this.#at + 1, at);
        this.#at = at + 2;
        return this.#substitutionsIn(inner);
      }
    }
    return undefined;
  }

  /** What a text runs that is not of commands itself. */
  #substitutionsIn(text: string): Command[] {
    const reader = new Reader(text, this.#depth, this.#brackets + 1);
    const word: Word = { text: "", isQuoted: true, runs: undefined };
    while (reader.#at < text.length) reader.#quotedPiece(word);
    this.isLost ||= reader.isLost;
    return word.runs ?? [];
  }

  // ---- here-documents ----

  /** Those of the line that has ended. */
  #hereDocuments(): Command[] {
    return this.#pending.splice(0).flatMap((here) => {
      const body = this.#body(here);
      if (here.isScript) return parseShell(body, this.#depth + 1);
      return here.word.isQuoted ? [] : this.#substitutionsIn(body);
    });
  }

  #body({ operator, word: { text: delimiter } }: Redirection): string {
    const text = this.#text;
    const tabs = operator === "<<-" ? /^\t+/ : "";
    const begin = this.#at;
    while (this.#at < text.length) {
      const lineEnd = indexOr(text, "\n", this.#at);
      const line = text.slice(this.#at, lineEnd).replace(tabs, "");
      const ends = line === delimiter;
      // bash ends it also by `EOF)`
      const endsWithBracket =
        this.#substitutions > 0 && line.startsWith(delimiter) && line.includes(")");
      if (ends || endsWithBracket) {
        const body = text.slice(begin, this.#at);
        this.#at = ends ? lineEnd + 1 : lineEnd - line.length + delimiter.length;
        return body;
      }
      this.#at = lineEnd + 1;
    }
    this.isLost = true;
    return text.slice(begin);
  }

  // ---- words ----

  #word(): Word {
    const word: Word = { text: this.#take(PLAIN), isQuoted: false, runs: undefined };
    for (;;) {
      const c = this.#text[this.#at];
      if (c === "'") {
        this.#at++;
        word.isQuoted = true;
        word.text += this.#upTo("'", false);
      } else if (c === '"') {
        this.#doubleQuoted(word);
      } else if (c === "\\") {
        word.isQuoted = true;
        const escaped = this.#text[this.#at + 1] ?? "";
        if (escaped !== "\n") word.text += escaped;
        this.#at += 2;
      } else if (c === "$" || c === "`") {
        if (!this.#expansion(word, false)) word.text += this.#one();
      } else if ((c === "<" || c === ">") && this.#text[this.#at + 1] === "(") {
        this.#substitution(word);
      } else {
        return word;
      }
      word.text += this.#take(PLAIN);
    }
  }

  #ran(word: Word, commands: readonly Command[]): void {
    word.runs ??= [];
    append(word.runs, commands);
  }

  #doubleQuoted(word: Word): void {
    this.#at++;
    word.isQuoted = true;
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"') this.#quotedPiece(word);
    this.#close();
  }

  #quotedPiece(word: Word): void {
    if (this.#expansion(word, true)) return;
    const two = this.#text.slice(this.#at, this.#at + 2);
    if (/^\\[$`"\\\n]$/.test(two)) {
      this.#at += 2;
      if (two[1] !== "\n") word.text += two[1];
    } else {
      word.text += this.#take(PLAIN_QUOTED) || this.#one();
    }
  }

  /** What begins here with `$` or `` ` ``, if so. */
  #expansion(word: Word, isQuoted: boolean): boolean {
    const two = this.#text.slice(this.#at, this.#at + 2);
    if (two === "$(") this.#substitution(word);
    else if (two === "${") this.#parameter(word, isQuoted);
    else if (two[0] === "`") this.#backquoted(word, isQuoted);
    else if (two === "$'" && !isQuoted) this.#escapes(word);
    else if (two === '$"' && !isQuoted) this.#at++;
    else return false;
    return true;
  }

  #substitution(word: Word): void {
    const mayBeArithmetic = this.#text[this.#at] === "$";
    const pending = this.#pending.splice(0); // of the line outside
    this.#at += 2;
    this.#substitutions++;
    this.#ran(word, (mayBeArithmetic && this.#arithmetic()) || this.#bracketed());
    this.#substitutions--;
    this.#pending = [...pending, ...this.#pending];
  }

  /** `${…}`, which stays as it is. */
  #parameter(word: Word, isQuoted: boolean): void {
    const begin = this.#at;
    this.#at += 2;
    if (this.#brackets >= BRACKETS_MAX) {
      this.isLost = true;
      return;
    }
    this.#brackets++;
    const inner: Word = { text: "", isQuoted, runs: undefined };
    while (this.#at < this.#text.length && this.#text[this.#at] !== "}") {
      const c = this.#text[this.#at];
      const hasEscapes = c === "$" && this.#text[this.#at + 1] === "'";
      if (c === "'" || hasEscapes) {
        this.#at += hasEscapes ? 2 : 1;
        const text = this.#upTo("'", hasEscapes);
        // in `"${x:-'}$(a)'}"` it hides the bracket, and not the substitution
        if (isQuoted) this.#ran(inner, this.#substitutionsIn(text));
      } else if (c === '"') {
        this.#doubleQuoted(inner);
      } else if (!this.#expansion(inner, isQuoted)) {
        this.#at += c === "\\" ? 2 : 1;
      }
    }
    this.#close();
    this.#brackets--;
    if (inner.runs) this.#ran(word, inner.runs);
    word.text += this.#text.slice(begin, this.#at);
  }

  #backquoted(word: Word, isQuoted: boolean): void {
    this.#at++;
    const script = this.#upTo("`", true).replace(isQuoted ? /\\([$`"\\])/g : /\\([$`\\])/g, "$1");
    this.#ran(word, parseShell(script, this.#depth + 1));
  }

  /** `$'…'`. Of its escapes only those that hide the end, and lines. */
  #escapes(word: Word): void {
    this.#at += 2;
    word.isQuoted = true;
    word.text += this.#upTo("'", true).replace(/\\(.)/gs, (_, c) => (c === "n" ? "\n" : c));
  }

  /** What is before this character; reads on behind it. */
  #upTo(end: string, hasEscapes: boolean): string {
    const begin = this.#at;
    while (this.#at < this.#text.length && this.#text[this.#at] !== end)
      this.#at += hasEscapes && this.#text[this.#at] === "\\" ? 2 : 1;
    const found = this.#text.slice(begin, this.#at);
    this.#close();
    return found;
  }

  /** Reads what ends a quote. */
  #close(): void {
    if (this.#at >= this.#text.length) this.isLost = true;
    this.#at++;
  }

  #take(pattern: RegExp): string {
    const begin = this.#at;
    this.#skip(pattern);
    return this.#text.slice(begin, this.#at);
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    if (pattern.test(this.#text)) this.#at = pattern.lastIndex;
  }

  #one(): string {
    return this.#text[this.#at++] ?? "";
  }
}

function indexOr(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found;
}

/** Adds what the words of a command let it run. */
function appendRuns(found: Command[], words: string[], depth: number): void {
  const script = scriptOf(words);
  if (script !== undefined) append(found, parseShell(script, depth + 1));
  if (depth >= SCRIPTS_MAX) return;
  for (const inner of commandsOf(words)) {
    const { words: own, under } = unwrap(inner);
    found.push({ words: own, under, writes: [], pipedFrom: undefined, substituted: [] });
    appendRuns(found, own, depth + 1);
  }
}
