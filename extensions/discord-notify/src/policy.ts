/**
 * Decides whether a tool call is destructive, and what to do about it: nothing, say so, ask a
 * person, or refuse. It catches mistakes; an agent that wants to get around it can.
 */
import { homedir, tmpdir } from "node:os";
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { Action, Decision, Policy, Rule } from "./config.ts";
import { type Command, parseShell } from "./shell.ts";
import { baseName, SHELLS } from "./wrappers.ts";

export interface ToolCall {
  tool: string;
  /** What a shell gets to run. */
  script: string;
  /** Files that are written. */
  writes: string[];
  /** What patterns are compared with: the script, or the paths and the rest. */
  readonly text: string;
  cwd: string;
}

export interface Verdict {
  action: Action;
  /** Names of all rules that match. */
  rules: string[];
  reason: string;
  fallback: Decision;
  timeoutMs: number;
}

/** No shell takes more as one argument. */
const TEXT_MAX = 256 * 1024;
const WRITING_TOOLS = /write|edit|patch|create|replace|notebook/i;
const SHELL_TOOLS = /^(?:bash|sh|shell|powershell|exec|terminal|run_command)$/i;

function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** As JSON, without the ends of long texts; nothing that a tool may change later is kept. */
export function inputText(input: unknown, most: number): string {
  try {
    const json = JSON.stringify(input, (_key, value: unknown) =>
      typeof value === "string" && value.length > most ? `${value.slice(0, most)}…` : value,
    );
    return (json ?? "").slice(0, most);
  } catch {
    return String(input).slice(0, most);
  }
}

export function toolCall(tool: string, input: unknown, cwd: string): ToolCall {
  const given = (typeof input === "object" && input !== null ? input : {}) as Record<
    string,
    unknown
  >;
  const command = given.command ?? given.cmd ?? given.script;
  const script = SHELL_TOOLS.test(tool) && typeof command === "string" ? command : "";
  const paths = ["path", "paths", "file_path", "filePath", "file"].flatMap((key) =>
    strings(given[key]),
  );
  const writes = WRITING_TOOLS.test(tool) ? paths : [];
  let text: string | undefined;
  return {
    tool,
    script: script.slice(0, TEXT_MAX),
    writes,
    get text() {
      // only where there are patterns: files can be long
      text ??= (script || [...paths, inputText(input, TEXT_MAX)].join("\n")).slice(0, TEXT_MAX);
      return text;
    },
    cwd,
  };
}

// ---- what is destructive ----

interface Found {
  call: ToolCall;
  commands: Command[];
  /** All files that are written, also by redirections. */
  writes: string[];
}

interface BuiltIn {
  action: Action;
  reason: string;
  matches(found: Found): boolean;
}

const has = (command: Command, pattern: RegExp) =>
  command.words.slice(1).some((w) => pattern.test(w));
const is = (command: Command, ...names: string[]) => names.includes(command.words[0] ?? "");
/** The words after the options of git itself: `git -C dir push …`. */
function git(command: Command): string[] {
  if (!is(command, "git")) return [];
  let i = 1;
  while (command.words[i]?.startsWith("-")) i += /^-[Cc]$/.test(command.words[i] ?? "") ? 2 : 1;
  return command.words.slice(i);
}

function absolute(path: string, cwd: string): string {
  const expanded = /^(?:~|\$HOME|\$\{HOME\})(?=\/|$)/.test(path)
    ? path.replace(/^(?:~|\$HOME|\$\{HOME\})/, homedir())
    : path;
  return resolve(cwd, expanded);
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

const HARMLESS = /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/;
const SECRET_FILE =
  /(?:^|\/)(?:\.env(?:\.(?!example|sample|template)[\w.-]+)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|credentials(?:\.json)?|[^/]+\.(?:pem|key|p12|pfx|keystore))$|\/\.(?:ssh|gnupg|aws|kube|docker)\/|\/etc\/(?:passwd|shadow|sudoers)/;
const FETCHES = ["curl", "wget", "fetch", "aria2c"];
const RUNS_INPUT = /^(?:python[\d.]*|node|perl|ruby|php|bun|deno|pwsh|powershell)$/;
const BLOCK_DEVICE = /^\/dev\/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper\/|md)/;

const BUILT_IN = {
  "recursive-delete": {
    action: "ask",
    reason: "deletes folders",
    matches: ({ commands }) =>
      commands.some(
        (c) =>
          (is(c, "rm") && has(c, /^-[a-z]*[rR]|^--recursive$/)) ||
          (is(c, "find") && has(c, /^-delete$/)) ||
          is(c, "rimraf", "srm") ||
          (is(c, "Remove-Item", "ri", "del", "rd", "rmdir") && has(c, /^-r(?:ec\w*)?$|^\/s$/i)),
      ),
  },
  "force-push": {
    action: "ask",
    reason: "rewrites or deletes what others have on the server",
    matches: ({ commands }) =>
      commands.some((c) => {
        const [verb, ...rest] = git(c);
        return (
          verb === "push" &&
          rest.some((w) => /^(?:-[a-z]*[fd][a-z]*|--force.*|--delete|--mirror|\+.+|:.+)$/.test(w))
        );
      }),
  },
  "discard-changes": {
    action: "flag",
    reason: "discards work that is not committed or pushed",
    matches: ({ commands }) =>
      commands.some((c) => {
        const [verb, ...rest] = git(c);
        const any = (pattern: RegExp) => rest.some((w) => pattern.test(w));
        return (
          (verb === "reset" && any(/^--hard$/)) ||
          (verb === "clean" && any(/^-[a-z]*f|^--force$/)) ||
          (verb === "checkout" && any(/^(?:\.|--|-f|--force)$/)) ||
          (verb === "restore" && !any(/^--staged$/)) ||
          (verb === "branch" && any(/^-[a-z]*D/)) ||
          (verb === "stash" && any(/^(?:drop|clear)$/)) ||
          verb === "filter-branch" ||
          verb === "filter-repo"
        );
      }),
  },
  "disk-write": {
    action: "ask",
    reason: "overwrites disks or files beyond recovery",
    matches: ({ commands, writes }) =>
      writes.some((path) => BLOCK_DEVICE.test(path)) ||
      commands.some(
        (c) =>
          (is(c, "dd") && has(c, /^of=(?!\/dev\/(?:null|stdout)$)/)) ||
          /^mkfs(?:\.|$)/.test(c.words[0] ?? "") ||
          is(c, "wipefs", "fdisk", "sfdisk", "sgdisk", "parted", "shred", "blkdiscard", "mkswap"),
      ),
  },
  privilege: {
    action: "ask",
    reason: "runs with the rights of another user",
    matches: ({ commands }) =>
      commands.some(
        (c) => c.under.some((w) => w === "sudo" || w === "doas") || is(c, "su", "pkexec", "runas"),
      ),
  },
  "pipe-to-shell": {
    action: "ask",
    reason: "runs what it downloads",
    matches: ({ commands }) =>
      commands.some((c) => {
        const name = c.words[0] ?? "";
        const runs = SHELLS.has(name) || RUNS_INPUT.test(name) || is(c, "eval", "source", ".");
        return (
          runs &&
          (FETCHES.includes(c.pipedFrom ?? "") ||
            c.substituted.some((inner) => is(inner, ...FETCHES)))
        );
      }),
  },
  "power-off": {
    action: "ask",
    reason: "stops the machine, or all processes",
    matches: ({ commands }) =>
      commands.some(
        (c) =>
          is(c, "shutdown", "reboot", "halt", "poweroff") ||
          (is(c, "init", "telinit") && has(c, /^[06]$/)) ||
          (is(c, "systemctl") && has(c, /^(?:poweroff|reboot|halt|kexec)$/)) ||
          (is(c, "kill") && c.words.length > 2 && c.words.at(-1) === "-1"),
      ),
  },
  permissions: {
    action: "flag",
    reason: "changes rights or owners of whole folders",
    matches: ({ commands }) =>
      commands.some(
        (c) => is(c, "chmod", "chown", "chgrp", "setfacl") && has(c, /^-[a-z]*R|^--recursive$/),
      ),
  },
  database: {
    action: "flag",
    reason: "deletes tables or their rows",
    matches: ({ call }) =>
      /\b(?:drop\s{1,9}(?:table|database|schema)|truncate\s{1,9}(?:table\s{1,9})?\w|flushall|dropDatabase\()/i.test(
        call.script,
      ),
  },
  secrets: {
    action: "ask",
    reason: "changes a file that holds secrets",
    matches: ({ call, writes }) =>
      writes.some((path) => SECRET_FILE.test(absolute(path, call.cwd))),
  },
  "outside-cwd": {
    action: "flag",
    reason: "writes outside of the working directory",
    matches: ({ call, writes }) =>
      writes.some((path) => {
        const target = absolute(path, call.cwd);
        // a scheme is no path: omp has tools that write to local:// and the like
        const harmless = HARMLESS.test(target) || /^[a-z][a-z0-9+.-]+:\/\//.test(path);
        return !harmless && !isBelow(target, call.cwd) && !isBelow(target, tmpdir());
      }),
  },
} satisfies Record<string, BuiltIn>;

export type BuiltInName = keyof typeof BUILT_IN;
export const BUILT_IN_NAMES = Object.keys(BUILT_IN) as BuiltInName[];

/** Commands that write to the files in their words. */
function commandWrites(command: Command): string[] {
  const files = command.words.slice(1).filter((word) => !word.startsWith("-"));
  if (is(command, "tee", "truncate", "touch")) return files;
  if (is(command, "cp", "mv", "install", "ln", "rsync")) return files.slice(-1);
  if (is(command, "sed", "perl") && has(command, /^-[a-z]*i/)) return files.slice(1);
  return [];
}

// ---- the decision ----

const STRICTNESS: readonly Action[] = ["allow", "flag", "ask", "deny"];
const strictness = (action: Action) => STRICTNESS.indexOf(action);

function toolMatches(rule: Rule, tool: string): boolean {
  return (
    rule.tools.length === 0 ||
    rule.tools.some((name) => {
      const escaped = name.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
      return new RegExp(`^${escaped}$`, "i").test(tool);
    })
  );
}

function matches(rule: Rule, call: ToolCall): boolean {
  return toolMatches(rule, call.tool) && (!rule.pattern || rule.pattern.test(call.text));
}

interface Match {
  name: string;
  action: Action;
  reason: string;
  rule?: Rule;
}

function builtInMatches(policy: Policy, call: ToolCall): Match[] {
  const commands = call.script ? parseShell(call.script) : [];
  const writes = [...call.writes, ...commands.flatMap((c) => [...c.writes, ...commandWrites(c)])];
  const found: Match[] = [];
  for (const name of BUILT_IN_NAMES) {
    const rule: BuiltIn = BUILT_IN[name];
    const action = policy.builtIn[name] ?? rule.action;
    if (action !== "allow" && rule.matches({ call, commands, writes }))
      found.push({ name, action, reason: rule.reason });
  }
  return found;
}

/** undefined: nothing matches, or a rule of the user allows it. */
export function judge(policy: Policy, call: ToolCall): Verdict | undefined {
  if (!policy.enabled) return undefined;
  const own = policy.rules.find((rule) => matches(rule, call));
  const of = (rule: Rule): Match => ({
    name: rule.name,
    action: rule.action,
    reason: rule.reason ?? `matches the rule "${rule.name}"`,
    rule,
  });
  const found = [
    ...(own ? [of(own)] : builtInMatches(policy, call)),
    ...policy.projectRules.filter((rule) => matches(rule, call)).map(of),
  ].filter((match) => match.action !== "allow");
  const decisive = found.reduce<Match | undefined>(
    (most, match) => (most && strictness(most.action) >= strictness(match.action) ? most : match),
    undefined,
  );
  if (!decisive) return undefined;
  return {
    action: decisive.action,
    rules: found.map((match) => match.name),
    reason: decisive.reason,
    fallback: decisive.rule?.fallback ?? policy.fallback,
    timeoutMs: (decisive.rule?.timeoutSeconds ?? policy.timeoutSeconds) * 1000,
  };
}

/** For people: what a call does, in a line. */
export function shortly(call: ToolCall): string {
  const what = call.script || call.writes.map(baseName).join(", ") || call.text;
  const line = what.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}
