// The control API of a simulated platform: acts as people and reads what the bot did.
import assert from "node:assert/strict";

export const root = process.env.SIM_URL;
export const token = process.env.SIM_TOKEN;

export async function view(what) {
  return (await fetch(`${root}/sim/${what}`)).json();
}

export async function control(what, request) {
  const answer = await fetch(`${root}/sim/${what}`, { method: "POST", body: JSON.stringify(request) });
  const body = await answer.json();
  assert.equal(body.ok, true, `${what}: ${body.error}`);
  return body;
}

const seen = {}; // the last entry of each list

// Waits for the next entry of this kind ("a|b": of either) that matches, skipping others.
export async function entry(list, kind, matches = () => true) {
  for (let i = 0; i < 30; i++) {
    const { items } = await view(`${list}?after=${seen[list] ?? 0}&wait=1000&limit=1000`);
    for (const item of items) {
      seen[list] = item.seq;
      if (kind.split("|").includes(item.kind) && matches(item)) return item;
    }
  }
  throw new Error(`${list}: no ${kind}`);
}

// Waits for the bot's next action.
export const bot = (kind, matches) => entry("messages", kind, matches);

// Runs the parts in order and exits with 0 or 1. `expected` accepts the invalid calls that the parts provoke.
export async function run(name, parts, expected = () => false) {
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
    assert.deepEqual(items.filter((call) => !expected(call)), []);
    console.log(`ok    ${name}: every call was valid`);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  clearTimeout(timer);
  process.exit(0);
}
