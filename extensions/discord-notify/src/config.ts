/**
 * The configuration: a file of the user, which may hold the key; a file of the project, which may
 * only make the policy stricter and report less; and the environment.
 */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { BUILT_IN_NAMES, type BuiltInName } from "./policy.ts";
import * as read from "./settings.ts";
import { ConfigError } from "./settings.ts";

export type Action = "allow" | "flag" | "ask" | "deny";
export type Decision = "allow" | "deny";

export interface Rule {
  name: string;
  /** Names of tools, with `*` for any characters; none: every tool. */
  tools: readonly string[];
  pattern: RegExp | undefined;
  action: Action;
  /** What no answer means; of `ask`. */
  fallback: Decision | undefined;
  timeoutSeconds: number | undefined;
  reason: string | undefined;
}

export interface Policy {
  enabled: boolean;
  fallback: Decision;
  timeoutSeconds: number;
  builtIn: Partial<Record<BuiltInName, Action>>;
  /** Of the user: the first that matches decides. */
  rules: readonly Rule[];
  /** Of the project: they can only be stricter. */
  projectRules: readonly Rule[];
}

export interface Link {
  adapter?: string;
  channel?: string;
  thread?: string;
  user?: string;
}

export interface Config {
  url: string;
  key: string;
  stream: boolean;
  pollSeconds: number;
  timeoutSeconds: number;
  muted: boolean;
  link: Link | undefined;
  /** Bytes of each kind of text; 0: it is left out. */
  report: { input: number; result: number; text: number; ignoreTools: readonly string[] };
  redact: readonly RegExp[];
  queue: { events: number; bytes: number; spool: boolean };
  policy: Policy;
}

const ruleShape = (...actions: Action[]) =>
  read.object({
    name: read.text(60),
    tool: (value: unknown, at: string): string[] =>
      Array.isArray(value) ? read.list(read.text(100), 50)(value, at) : [read.text(100)(value, at)],
    pattern: read.pattern(""),
    action: read.choice(...actions),
    default: read.choice("allow", "deny"),
    timeoutSeconds: read.whole(1, 86_400),
    reason: read.text(300),
  });

const ruleReader =
  (...actions: Action[]): read.Reader<Rule> =>
  (value, at) => {
    const rule = ruleShape(...actions)(value, at);
    if (!rule.action) throw new ConfigError(`${at}.action`, `one of ${actions.join(", ")}`);
    if (!rule.tool && !rule.pattern) throw new ConfigError(at, "a tool, a pattern or both");
    return {
      name: rule.name ?? at,
      tools: rule.tool ?? [],
      pattern: rule.pattern,
      action: rule.action,
      fallback: rule.default,
      timeoutSeconds: rule.timeoutSeconds,
      reason: rule.reason,
    };
  };

const reportReader = read.object({
  input: read.whole(0, 65_536),
  result: read.whole(0, 65_536),
  text: read.whole(0, 65_536),
  ignoreTools: read.list(read.text(100), 50),
});

const actions = read.choice<Action>("allow", "flag", "ask", "deny");

const userReader = read.object({
  url: read.text(500),
  key: read.secret,
  keyFile: read.text(1000),
  allowPlainHttp: read.flag,
  stream: read.flag,
  pollSeconds: read.whole(1, 300),
  timeoutSeconds: read.whole(1, 60),
  muted: read.flag,
  link: read.object({
    adapter: read.text(128),
    channel: read.id,
    thread: read.id,
    user: read.id,
  }),
  report: reportReader,
  redact: read.list(read.pattern("g"), 50),
  queue: read.object({
    events: read.whole(10, 100_000),
    bytes: read.whole(65_536, 268_435_456),
    spool: read.flag,
  }),
  policy: read.object({
    enabled: read.flag,
    default: read.choice("allow", "deny"),
    timeoutSeconds: read.whole(1, 86_400),
    builtIn: read.named(BUILT_IN_NAMES, actions),
    rules: read.list(ruleReader("allow", "flag", "ask", "deny"), 200),
  }),
});

/** A repository is somebody else's: it may not say where to report, nor allow anything. */
const projectReader = read.object({
  report: reportReader,
  redact: read.list(read.pattern("g"), 50),
  policy: read.object({ rules: read.list(ruleReader("flag", "ask", "deny"), 200) }),
});

export interface Surroundings {
  env: Record<string, string | undefined>;
  home: string;
  program: "pi" | "omp";
  cwd: string;
  /** May the project's file be read? */
  trusted: boolean;
}

const KEY = Symbol.for("dragoman.discord-notify.key");

/** Takes the key out of the environment, which commands of the agent inherit. */
export function takeKey(): string | undefined {
  const place = globalThis as { [KEY]?: string };
  if (process.env.DRAGOMAN_KEY) place[KEY] = process.env.DRAGOMAN_KEY;
  delete process.env.DRAGOMAN_KEY;
  return place[KEY];
}

export function surroundings(program: "pi" | "omp", cwd: string, trusted: boolean): Surroundings {
  const env = { ...process.env, DRAGOMAN_KEY: takeKey() };
  return { env, home: homedir(), program, cwd, trusted };
}

/** Where the user's file may be; the first that exists counts. */
export function userFiles({ env, home, program }: Surroundings): string[] {
  if (env.DRAGOMAN_CONFIG) return [env.DRAGOMAN_CONFIG];
  return [
    join(env.PI_CODING_AGENT_DIR || join(home, `.${program}`, "agent"), "discord-notify.json"),
    join(env.XDG_CONFIG_HOME || join(home, ".config"), "dragoman", "discord-notify.json"),
  ];
}

export function projectFile(cwd: string): string {
  return join(cwd, ".dragoman", "discord-notify.json");
}

/** undefined: there is none. Throws a ConfigError that names the file. */
function readFile<T>(file: string, reader: read.Reader<T>, required: boolean): T | undefined {
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw new ConfigError(file, `a file that can be read (${message})`);
  }
  try {
    return reader(JSON.parse(content), "");
  } catch (error) {
    if (error instanceof SyntaxError) throw new ConfigError(file, "JSON that can be read");
    throw new Error(`${file}: ${(error as Error).message}`);
  }
}

/** Others on the machine must not be able to read a key. */
function checkPrivate(file: string): void {
  if (process.platform === "win32") return;
  if ((statSync(file).mode & 0o077) !== 0)
    throw new ConfigError(file, `a file that only you can read, since it holds a key: chmod 600`);
}

function readKeyFile(file: string, home: string): string {
  const path = file.startsWith("~/") ? join(home, file.slice(2)) : file;
  let content: string;
  try {
    checkPrivate(path);
    content = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError("keyFile", `a file that can be read (${(error as Error).message})`);
  }
  return read.secret(content.trim(), `keyFile ${path}`);
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

function checkUrl(value: string, at: string, allowPlainHttp: boolean): string {
  const expected = "an address such as https://dragoman.example.org";
  if (!URL.canParse(value)) throw new ConfigError(at, expected, value);
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new ConfigError(at, "an address that begins with https:// or http://", value);
  if (url.username || url.password || url.search || url.hash)
    throw new ConfigError(at, `${expected}, without a name, password or parameters`);
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowPlainHttp)
    throw new ConfigError(
      at,
      "https:// for another machine, since plain http shows the key to the network (allowPlainHttp permits it)",
      value,
    );
  return url.href.replace(/\/+$/, "");
}

/** `keys`: of files and variables. The first that is set counts; undefined: none is. */
function findKey(at: Surroundings, file: string, key?: string, keyFile?: string) {
  if (at.env.DRAGOMAN_KEY) return read.secret(at.env.DRAGOMAN_KEY, "DRAGOMAN_KEY");
  if (at.env.DRAGOMAN_KEY_FILE) return readKeyFile(at.env.DRAGOMAN_KEY_FILE, at.home);
  if (key) checkPrivate(file);
  return key ?? (keyFile ? readKeyFile(keyFile, at.home) : undefined);
}

type UserSettings = ReturnType<typeof userReader>;
type ProjectSettings = ReturnType<typeof projectReader>;

/** Throws a ConfigError. */
function readUserFile(at: Surroundings): { user: UserSettings; from: string } {
  for (const from of userFiles(at)) {
    const user = readFile(from, userReader, Boolean(at.env.DRAGOMAN_CONFIG));
    if (user) return { user, from };
  }
  return { user: {}, from: "" };
}

function policyOf({ policy }: UserSettings, project?: ProjectSettings): Policy {
  return {
    enabled: policy?.enabled ?? true,
    fallback: policy?.default ?? "deny",
    timeoutSeconds: policy?.timeoutSeconds ?? 300,
    builtIn: policy?.builtIn ?? {},
    rules: policy?.rules ?? [],
    projectRules: project?.policy?.rules ?? [],
  };
}

/** What holds while something is wrong: the user's policy, or the default if it cannot be read. */
export function policyDespiteMistakes(at: Surroundings): Policy {
  try {
    return policyOf(readUserFile(at).user);
  } catch {
    return policyOf({});
  }
}

/** Throws a ConfigError. undefined: nothing is configured, and nothing is reported. */
export function loadConfig(at: Surroundings): Config | undefined {
  const { user, from } = readUserFile(at);
  const address = at.env.DRAGOMAN_URL || user.url;
  if (!address) return undefined;
  const allowPlain = user.allowPlainHttp || at.env.DRAGOMAN_ALLOW_PLAIN_HTTP === "1";
  const url = checkUrl(address, at.env.DRAGOMAN_URL ? "DRAGOMAN_URL" : `${from}: url`, allowPlain);
  const key = findKey(at, from, user.key, user.keyFile);
  if (!key)
    throw new ConfigError("key", "a key, a keyFile, or DRAGOMAN_KEY_FILE in the environment");
  const project = at.trusted ? readFile(projectFile(at.cwd), projectReader, false) : undefined;
  return {
    url,
    key,
    stream: user.stream ?? true,
    pollSeconds: user.pollSeconds ?? 5,
    timeoutSeconds: user.timeoutSeconds ?? 10,
    muted: user.muted ?? false,
    link: user.link,
    report: {
      input: least(8192, user.report?.input, project?.report?.input),
      result: least(2048, user.report?.result, project?.report?.result),
      text: least(8192, user.report?.text, project?.report?.text),
      ignoreTools: [...(user.report?.ignoreTools ?? []), ...(project?.report?.ignoreTools ?? [])],
    },
    redact: [...(user.redact ?? []), ...(project?.redact ?? [])],
    queue: {
      events: user.queue?.events ?? 2000,
      bytes: user.queue?.bytes ?? 4 * 1024 * 1024,
      spool: user.queue?.spool ?? true,
    },
    policy: policyOf(user, project),
  };
}

/** A project can only lower what the user has set. */
function least(fallback: number, user: number | undefined, project: number | undefined): number {
  return Math.min(user ?? fallback, project ?? Number.POSITIVE_INFINITY);
}
