import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig, policyDespiteMistakes, type Surroundings } from "../src/config.ts";
import { temporary } from "./rig.ts";

const URL = "http://127.0.0.1:8420";

/** A home with these files, none of which others may read. */
function home(user?: unknown, project?: unknown): Surroundings {
  const folder = temporary();
  const at = {
    env: {},
    home: folder,
    program: "pi" as const,
    cwd: join(folder, "src"),
    trusted: true,
  };
  const write = (path: string, content: unknown) => {
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content), {
      mode: 0o600,
    });
  };
  if (user !== undefined) write(join(folder, ".config/dragoman/discord-notify.json"), user);
  if (project !== undefined) write(join(folder, "src/.dragoman/discord-notify.json"), project);
  return at;
}

const problem = (at: Surroundings): string => {
  try {
    loadConfig(at);
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
};

test("without an address nothing is configured", () => {
  assert.equal(loadConfig(home()), undefined);
  assert.equal(loadConfig(home({})), undefined);
});

test("a file with address and key is enough", () => {
  const config = loadConfig(home({ url: `${URL}/`, key: "drg_1" }));
  assert.equal(config?.url, URL);
  assert.equal(config?.key, "drg_1");
  assert.deepEqual(
    [config?.stream, config?.pollSeconds, config?.policy.fallback],
    [true, 5, "deny"],
  );
});

test("the environment comes before the file, and the agent's folder before the common one", () => {
  const at = home({ url: URL, key: "drg_file" });
  assert.equal(loadConfig({ ...at, env: { DRAGOMAN_KEY: "drg_env" } })?.key, "drg_env");
  assert.equal(
    loadConfig({ ...at, env: { DRAGOMAN_URL: "https://x.example" } })?.url,
    "https://x.example",
  );
  const agent = join(at.home, "agent");
  mkdirSync(agent);
  writeFileSync(
    join(agent, "discord-notify.json"),
    JSON.stringify({ url: URL, key: "drg_agent" }),
    { mode: 0o600 },
  );
  assert.equal(loadConfig({ ...at, env: { PI_CODING_AGENT_DIR: agent } })?.key, "drg_agent");
});

test("a key that others on the machine can read is refused", () => {
  const at = home({ url: URL, keyFile: "~/key" });
  writeFileSync(join(at.home, "key"), "drg_1\n", { mode: 0o644 });
  chmodSync(join(at.home, "key"), 0o644);
  assert.match(problem(at), /only you can read.*chmod 600/);
  chmodSync(join(at.home, "key"), 0o600);
  assert.equal(loadConfig(at)?.key, "drg_1");
  chmodSync(join(at.home, ".config/dragoman/discord-notify.json"), 0o644);
  assert.equal(loadConfig(at)?.key, "drg_1"); // no key in it
});

test("the key is not sent in plain text to another machine", () => {
  const of = (url: string, more = {}) => problem(home({ url, key: "k", ...more }));
  assert.match(of("http://10.0.0.5:8420"), /url: expected https:\/\/ for another machine/);
  assert.match(of("http://localhost.example.org"), /https/);
  assert.equal(of("http://10.0.0.5:8420", { allowPlainHttp: true }), "none");
  for (const url of [
    "https://dragoman.example.org",
    "http://localhost:1",
    "http://[::1]:1",
    "http://127.9.9.9",
  ])
    assert.equal(of(url), "none");
  for (const url of ["ftp://x", "file:///etc/passwd", "x", "https://u:p@x", "https://x?key=1"])
    assert.match(of(url), /url: expected an address/);
});

const MISTAKES: [object, RegExp][] = [
  [{ pollSecond: 5 }, /pollSecond: expected no such key, but one of url, key, keyFile/],
  [{ pollSeconds: 0 }, /pollSeconds: expected a whole number from 1 to 300, not 0/],
  [{ stream: "yes" }, /stream: expected true or false, not "yes"/],
  [{ queue: { bytes: 1 } }, /queue\.bytes: expected a whole number from 65536/],
  [{ link: { channel: 2 ** 63 } }, /link\.channel: expected an id in quotes/],
  [{ redact: ["("] }, /redact\[0\]: expected a regular expression/],
  [{ policy: { default: "maybe" } }, /policy\.default: expected one of allow, deny, not "maybe"/],
  [
    { policy: { builtIn: { "rm-rf": "ask" } } },
    /policy\.builtIn\.rm-rf: expected .*recursive-delete/,
  ],
  [
    { policy: { rules: [{ tool: "bash" }] } },
    /policy\.rules\[0\]\.action: expected one of allow, flag, ask, deny/,
  ],
  [
    { policy: { rules: [{ action: "ask" }] } },
    /policy\.rules\[0\]: expected a tool, a pattern or both/,
  ],
];

for (const [mistake, expected] of MISTAKES)
  test(`the mistake in ${JSON.stringify(mistake)} is named`, () => {
    const said = problem(home({ url: URL, key: "drg_secret", ...mistake }));
    assert.match(said, expected);
    assert.match(said, /discord-notify\.json/);
    assert.doesNotMatch(said, /drg_secret/);
  });

test("a key that is no key is not shown", () => {
  assert.doesNotMatch(problem(home({ url: URL, key: "geheim mit Leerzeichen" })), /geheim/);
  assert.match(problem(home({ url: URL })), /^key: expected a key/);
  assert.match(problem(home("{")), /expected JSON/);
});

test("a project reports less and asks more, and nothing else", () => {
  const user = { url: URL, key: "k", report: { result: 1000 } };
  const rules = [{ pattern: "deploy", action: "ask" }];
  const config = loadConfig(home(user, { report: { result: 0, text: 60_000 }, policy: { rules } }));
  assert.deepEqual([config?.report.result, config?.report.text], [0, 8192]);
  assert.equal(config?.policy.projectRules.length, 1);
  for (const project of [
    { url: "https://evil.example" },
    { key: "k" },
    { link: { user: "1" } },
    { muted: true },
  ])
    assert.match(problem(home(user, project)), /expected no such key/);
  const allow = { policy: { rules: [{ pattern: ".", action: "allow" }] } };
  assert.match(problem(home(user, allow)), /expected one of flag, ask, deny/);
  assert.equal(
    loadConfig({ ...home(user, { policy: { rules } }), trusted: false })?.policy.projectRules
      .length,
    0,
  );
});

test("the user's policy holds while something else is wrong, and the default while it cannot be read", () => {
  const policy = { builtIn: { privilege: "deny" } };
  const held = (user: unknown, project?: unknown) => {
    const at = home(user, project);
    assert.notEqual(problem(at), "none");
    return policyDespiteMistakes(at);
  };
  assert.deepEqual(held({ url: URL, keyFile: "~/none", policy }).builtIn, policy.builtIn);
  assert.deepEqual(held({ url: URL, key: "k", policy }, "{").builtIn, policy.builtIn);
  const fallback = held("{");
  assert.deepEqual([fallback.enabled, fallback.fallback, fallback.builtIn], [true, "deny", {}]);
});
