// The control API: acts as people and reads what the bot did.
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

let seen = 0;

// Waits for the bot's next action of this kind that matches, skipping others.
export async function bot(kind, matches = () => true) {
  for (let i = 0; i < 10; i++) {
    const { items } = await view(`messages?after=${seen}&wait=1000&limit=1000`);
    for (const item of items) {
      seen = item.seq;
      if (item.kind === kind && matches(item)) return item;
    }
  }
  throw new Error(`the bot did no ${kind}`);
}

// Runs the parts in order and exits with 0 or 1.
// `expected` lists the error codes the parts provoke.
export async function run(name, parts, expected = []) {
  const timer = setTimeout(() => {
    console.error(`${name}: timed out after a minute`);
    process.exit(1);
  }, 60000);
  try {
    for (const [what, part] of Object.entries(parts)) {
      await part();
      console.log(`ok    ${name}: ${what}`);
    }
    const { items } = await view("calls?valid=false");
    assert.deepEqual(items.filter((call) => !expected.includes(call.code)), []);
    console.log(`ok    ${name}: every call was valid`);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  clearTimeout(timer);
  process.exit(0);
}
