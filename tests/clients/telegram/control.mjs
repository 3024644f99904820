// The control API: acts as users and reads what the bot did.
import assert from "node:assert/strict";

export const root = process.env.SIM_URL;
export const token = process.env.SIM_TOKEN;

export async function control(what, request) {
  const answer = await fetch(`${root}/sim/${what}`, { method: "POST", body: JSON.stringify(request) });
  const body = await answer.json();
  assert.equal(body.ok, true, `${what}: ${body.error}`);
  return body;
}

let seen = 0;

// Waits for the bot's next action of this kind that matches, skipping others.
export async function bot(kind, matches = () => true) {
  const deadline = Date.now() + 10000;
  while (Date.now() < deadline) {
    const answer = await fetch(`${root}/sim/messages?after=${seen}&wait=2000&limit=1`);
    const { items } = await answer.json();
    for (const item of items) {
      seen = item.seq;
      if (item.kind === kind && matches(item)) return item;
    }
  }
  throw new Error(`the bot did no ${kind}`);
}

export async function invalidCalls() {
  const answer = await fetch(`${root}/sim/calls?valid=false`);
  return (await answer.json()).items;
}

// Runs the parts in order and exits with 0 or 1.
// `oddities` lists what the client sends beyond the description; the real server ignores it.
export async function run(name, parts, oddities = []) {
  const timer = setTimeout(() => {
    console.error(`${name}: timed out after a minute`);
    process.exit(1);
  }, 60000);
  try {
    for (const [what, part] of Object.entries(parts)) {
      await part();
      console.log(`ok    ${name}: ${what}`);
    }
    const invalid = (await invalidCalls()).filter((call) => !oddities.some((o) => call.problem.includes(o)));
    assert.deepEqual(invalid, []);
    console.log(`ok    ${name}: every call was valid${oddities.length ? `, but for ${oddities}` : ""}`);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  clearTimeout(timer);
  process.exit(0);
}
