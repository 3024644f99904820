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

/** Of scripts in scripts: `sh -c "sh -c …"`. */
const SCRIPTS_MAX = 8;
/** Open at once. No script of a person has as many; the stack has room for more. */
const BRACKETS_MAX = 30;

interface Word {
  text: string;
  isQuoted: boolean;
  /** By substitutions in it. */
  runs: Command[];
}

interface HereDocument {
  delimiter: string;
  /** `<<-`: lines may begin with tabs. */
  isIndented: boolean;
  /** Substitutions are not made in it. */
  isLiteral: boolean;
  /** It is the input of a shell. */
  isScript: boolean;
}

/** What is read of a command, or of nothing between two operators. */
interface Draft {
  words: Word[];
  /** Of redirections. */
  targets: Word[];
  writes: string[];
  hereStrings: string[];
  hereDocuments: HereDocument[];
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
function append<T>(to: T[], more: readonly T[]): void {
  for (const one of more) to.push(one);
}

function newDraft(): Draft {
  return { words: [], targets: [], writes: [], hereStrings: [], hereDocuments: [] };
}

class Reader {
  readonly #text: string;
  readonly #depth: number;
  #at = 0;
  #brackets: number;
  #substitutions = 0; // of the brackets
  /** They begin behind the end of this line. */
  #pending: HereDocument[] = [];
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
    let draft = newDraft();
    let pipedFrom = input;
    let isBegun = false; // something other than keywords was read of this command
    let cases = 0; // in which `)` ends a pattern

    const end = (isPiped = false) => {
      const command = this.#finish(draft, pipedFrom, found);
      // a group has no name: `{ curl …; } | sh`. After `|` lines may be empty
      if (isPiped) pipedFrom = (command ?? found.at(-1))?.words[0];
      else if (command) pipedFrom = undefined;
      draft = newDraft();
      isBegun = false;
    };

    for (;;) {
      this.#take(BLANKS);
      if (this.#at >= this.#text.length) break;
      const operator = this.#take(OPERATOR);
      switch (operator) {
        case "": {
          const word = this.#word();
          const keyword = word.isQuoted ? "" : word.text;
          const isAfterIn = draft.words.at(-1)?.text === "in";
          if (keyword === "case" && !isBegun) cases++;
          else if (keyword === "esac" && (!isBegun || isAfterIn) && cases > 0) cases--;
          isBegun ||= !KEYWORDS.has(keyword);
          draft.words.push(word);
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
        case "<<":
        case "<<-": {
          const { text, isQuoted } = this.#target(draft);
          const here = {
            delimiter: text,
            isIndented: operator === "<<-",
            isLiteral: isQuoted,
            isScript: false,
          };
          draft.hereDocuments.push(here);
          this.#pending.push(here);
          break;
        }
        case "<<<":
          draft.hereStrings.push(this.#target(draft).text);
          break;
        case "<":
        case "<&":
          break; // what follows is among the words
        default:
          if (operator.includes(">")) {
            const { text } = this.#target(draft);
            if (text && !/^(?:\d+|-)$/.test(text)) draft.writes.push(text);
          } else {
            end(operator === "|" || operator === "|&");
          }
      }
    }
    end();
    if (isBracketed || this.#pending.length > 0) this.isLost = true;
    return found;
  }

  /** Adds what the words are and run to those that are found. undefined: they are no command. */
  #finish(draft: Draft, pipedFrom: string | undefined, found: Command[]): Command | undefined {
    const { writes, hereDocuments, hereStrings } = draft;
    const substituted = [...draft.words, ...draft.targets].flatMap(({ runs }) => runs);
    append(found, substituted);
    const words = draft.words.map((word) => word.text);
    const around = { writes, pipedFrom, substituted };
    const [command, ...runs] = withWhatItRuns(words, this.#depth, around, hereStrings);
    if (!command) return undefined;
    if (runsInput(command.words)) for (const here of hereDocuments) here.isScript = true;
    found.push(command);
    append(found, runs);
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
    const word: Word = { text: "", isQuoted: true, runs: [] };
    while (reader.#at < text.length) reader.#quotedPiece(word);
    this.isLost ||= reader.isLost;
    return word.runs;
  }

  // ---- here-documents ----

  /** Those of the line that has ended. */
  #hereDocuments(): Command[] {
    return this.#pending.splice(0).flatMap((here) => {
      const body = this.#body(here);
      if (here.isScript) return parseShell(body, this.#depth + 1);
      return here.isLiteral ? [] : this.#substitutionsIn(body);
    });
  }

  #body({ delimiter, isIndented }: HereDocument): string {
    const text = this.#text;
    const begin = this.#at;
    while (this.#at < text.length) {
      const lineEnd = indexOr(text, "\n", this.#at);
      const line = text.slice(this.#at, lineEnd).replace(isIndented ? /^\t+/ : "", "");
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

  #target(draft: Draft): Word {
    this.#take(BLANKS);
    const word = this.#word();
    draft.targets.push(word);
    return word;
  }

  #word(): Word {
    const word: Word = { text: "", isQuoted: false, runs: [] };
    for (;;) {
      word.text += this.#take(PLAIN);
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
    }
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
    append(word.runs, (mayBeArithmetic && this.#arithmetic()) || this.#bracketed());
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
    const inner: Word = { text: "", isQuoted, runs: word.runs };
    while (this.#at < this.#text.length && this.#text[this.#at] !== "}") {
      const c = this.#text[this.#at];
      const hasEscapes = c === "$" && this.#text[this.#at + 1] === "'";
      if (c === "'" || hasEscapes) {
        this.#at += hasEscapes ? 2 : 1;
        const text = this.#upTo("'", hasEscapes);
        // in `"${x:-'}$(a)'}"` it hides the bracket, and not the substitution
        if (isQuoted) append(word.runs, this.#substitutionsIn(text));
      } else if (c === '"') {
        this.#doubleQuoted(inner);
      } else if (!this.#expansion(inner, isQuoted)) {
        this.#at += c === "\\" ? 2 : 1;
      }
    }
    this.#close();
    this.#brackets--;
    word.text += this.#text.slice(begin, this.#at);
  }

  #backquoted(word: Word, isQuoted: boolean): void {
    this.#at++;
    const script = this.#upTo("`", true).replace(isQuoted ? /\\([$`"\\])/g : /\\([$`\\])/g, "$1");
    append(word.runs, parseShell(script, this.#depth + 1));
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
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #one(): string {
    return this.#text[this.#at++] ?? "";
  }
}

function indexOr(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from);
  return found < 0 ? text.length : found;
}

type Around = Omit<Command, "words" | "under">;
const NOTHING: Around = { writes: [], pipedFrom: undefined, substituted: [] };

/** The command of these words, and then what it runs; nothing if there is no command. */
function withWhatItRuns(
  words: string[],
  depth: number,
  around: Around = NOTHING,
  hereStrings: string[] = [],
): Command[] {
  const { words: own, under } = unwrap(words);
  if (depth > SCRIPTS_MAX || own.length + under.length + around.writes.length === 0) return [];
  const script = scriptOf(own);
  const scripts = script === undefined ? [] : [script];
  if (runsInput(own)) scripts.push(...hereStrings);
  return [
    { words: own, under, ...around },
    ...scripts.flatMap((text) => parseShell(text, depth + 1)),
    ...commandsOf(own).flatMap((inner) => withWhatItRuns(inner, depth + 1)),
  ];
}
