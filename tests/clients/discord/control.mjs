// The other side of the simulator: plays the people and looks at what the bot did.
import assert from "node:assert/strict";

export const root = process.env.SIM_URL;
export const token = process.env.SIM_TOKEN;

export async function look(what) {
  return (await fetch(`${root}/sim/${what}`)).json();
}

export async function play(what, wish) {
  const answer = await fetch(`${root}/sim/${what}`, { method: "POST", body: JSON.stringify(wish) });
  const body = await answer.json();
  assert.equal(body.ok, true, `${what}: ${body.error}`);
  return body;
}

let seen = 0;

// Waits for the bot's next act of this kind that fits, skipping others.
export async function bot(kind, fits = () => true) {
  for (let i = 0; i < 10; i++) {
    const { items } = await look(`messages?after=${seen}&wait=1000&limit=1000`);
    for (const item of items) {
      seen = item.seq;
      if (item.kind === kind && fits(item)) return item;
    }
  }
  throw new Error(`the bot did no ${kind}`);
}

// Runs the parts one after the other and ends the program with 0 or 1.
// `expected` are the codes of the refusals a part provokes.
export async function run(name, parts, expected = []) {
  const timer = setTimeout(() => {
    console.error(`${name}: no end within a minute`);
    process.exit(1);
  }, 60000);
  try {
    for (const [what, part] of Object.entries(parts)) {
      await part();
      console.log(`ok    ${name}: ${what}`);
    }
    const { items } = await look("calls?valid=false");
    assert.deepEqual(items.filter((call) => !expected.includes(call.code)), []);
    console.log(`ok    ${name}: every call was valid`);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  clearTimeout(timer);
  process.exit(0);
}
