// discord.js, unchanged, watches Dragoman plan a game night: a message with buttons, and a scheduled event that follows it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Events, GatewayIntentBits as I } from "discord.js";
import { control, root, run, token } from "./simulator.mjs";

const dir = mkdtempSync(join(tmpdir(), "dragoman-"));
writeFileSync(join(dir, "config.json"), JSON.stringify({
  http: { listen: "127.0.0.1:0" },
  agents: { echo: { type: "echo" } },
  adapters: { dc: { type: "discord", botToken: token, apiBase: `${root}/api/v10`, channels: ["*"], slashCommands: false } },
}));
const daemon = spawn(process.env.DRAGOMAN, ["run", dir], { stdio: "ignore" });
process.on("exit", () => {
  daemon.kill("SIGKILL");
  rmSync(dir, { recursive: true, force: true });
});

const client = new Client({
  intents: [I.Guilds, I.GuildMessages, I.MessageContent, I.GuildScheduledEvents],
  rest: { api: `${root}/api` },
});
const next = (event, matches = () => true) => new Promise((resolve, reject) => {
  const timer = setTimeout(() => reject(new Error(`no ${event}`)), 60000);
  client.on(event, function listen(...args) {
    if (!matches(...args)) return;
    client.off(event, listen);
    clearTimeout(timer);
    resolve(args.at(-1));
  });
});
const connected = async () => {
  for (;;) {
    const { sessions } = await (await fetch(`${root}/sim/state`)).json();
    if (sessions.length > 1) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const say = (text) => control("send", { from: "ada", channel: "general", text: `<@dragoman> ${text}` });
let announced, planned;

await run("discord.js beside Dragoman", {
  "login": async () => {
    const ready = once(client, Events.ClientReady);
    await client.login(process.env.OBSERVER_TOKEN);
    await ready;
    await connected();
  },
  "an event has buttons and is a scheduled event": async () => {
    const message = next(Events.MessageCreate, (m) => m.components.length > 0);
    const event = next(Events.GuildScheduledEventCreate);
    await say("/event new in 3 days Catan; place Ann's");
    [announced, planned] = await Promise.all([message, event]);
    assert.deepEqual(announced.components[0].components.map((b) => b.customId),
      ["yes", "maybe", "no"].map((word) => `say:/event ${word} cal-1`));
    assert.deepEqual([planned.name, planned.entityMetadata.location], ["Catan", "Ann's"]);
    assert.equal(planned.creatorId, announced.author.id);
  },
  "a pressed button changes the announcement": async () => {
    const edited = next(Events.MessageUpdate, (_, m) => m.id === announced.id && m.content.includes("bob"));
    await control("press", { from: "bob", message_id: announced.id, custom_id: "say:/event yes cal-1" });
    await edited;
  },
  "interest changes it, too": async () => {
    const edited = next(Events.MessageUpdate, (_, m) => m.id === announced.id && m.content.includes("cleo"));
    await control("interest", { from: "cleo", event_id: planned.id });
    await edited;
  },
  "a change follows": async () => {
    const changed = next(Events.GuildScheduledEventUpdate, (_, e) => e.name === "Azul");
    await say("/event change cal-1 title Azul");
    await changed;
  },
  "a cancelled event is deleted": async () => {
    const gone = next(Events.GuildScheduledEventDelete);
    await say("/event cancel cal-1");
    assert.equal((await gone).id, planned.id);
  },
});
