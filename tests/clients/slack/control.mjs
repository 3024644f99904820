// The control API: acts as people and reads what the app did and how its connections went.
import assert from "node:assert/strict";

export const root = process.env.SIM_URL;
export const token = process.env.SIM_TOKEN;
export const appToken = token.replace("xoxb-", "xapp-");
export const logger = {
  debug() {}, info() {}, warn() {}, setLevel() {}, setName() {}, getLevel: () => "error",
  error: (...words) => process.env.VERBOSE && console.error(...words),
};

export async function view(what) {
  return (await fetch(`${root}/sim/${what}`)).json();
}

export async function control(what, request) {
  const answer = await fetch(`${root}/sim/${what}`, { method: "POST", body: JSON.stringify(request) });
  const body = await answer.json();
  assert.equal(body.ok, true, `${what}: ${body.error}`);
  return body;
}

const seen = { messages: 0, links: 0 };

// Waits for the next entry of this kind ("a|b": of either) that matches, skipping others.
async function entry(list, kind, matches) {
  for (let i = 0; i < 30; i++) {
    const { items } = await view(`${list}?after=${seen[list]}&wait=1000&limit=1000`);
    for (const item of items) {
      seen[list] = item.seq;
      if (kind.split("|").includes(item.kind) && matches(item)) return item;
    }
  }
  throw new Error(`${list}: no ${kind}`);
}

export const bot = (kind, matches = () => true) => entry("messages", kind, matches);
export const link = (kind, matches = () => true) => entry("links", kind, matches);

// Runs the parts in order and exits with 0 or 1. `expected` lists the errors the parts provoke.
export async function run(name, parts, expected = []) {
  const timer = setTimeout(() => {
    console.error(`${name}: timed out after 100 seconds`);
    process.exit(1);
  }, 100000);
  try {
    for (const [what, part] of Object.entries(parts)) {
      await part();
      console.log(`ok    ${name}: ${what}`);
    }
    const { items } = await view("calls?valid=false");
    assert.deepEqual(items.filter((call) => !expected.includes(call.error)), []);
    console.log(`ok    ${name}: every call was valid`);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  clearTimeout(timer);
  process.exit(0);
}
