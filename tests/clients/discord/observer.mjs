// discord.js, unchanged, watches Dragoman plan a game night: a message with buttons, and a scheduled event that follows it;
// then embeds with buttons, and threads; then a whole coding session, steered and answered from its thread.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Client, Events, GatewayIntentBits as I } from "discord.js";
import { buttons, card, ended, link, polled, report, send, start } from "./daemon.mjs";
import { control, root, run, token } from "./simulator.mjs";

await start("dc", { type: "discord", botToken: token, apiBase: `${root}/api/v10`, slashCommands: false });

const client = new Client({
  intents: [I.Guilds, I.GuildMessages, I.GuildMessageReactions, I.MessageContent, I.GuildScheduledEvents],
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
const to = "900000000000000002"; // general
let announced, planned, shown, thread, first, session, dora;
const card_of = (message) => message.embeds[0] ?? {};
const in_session = (title) => next(Events.MessageCreate, (m) => m.channelId === session?.id && card_of(m).title === title);

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
  "a card is an embed with buttons": async () => {
    const message = next(Events.MessageCreate, (m) => m.embeds.length > 0);
    shown = { id: await send("send", { to, text: "look", card, buttons }), message: await message };
    const { content, embeds: [embed], components: [row, link] } = shown.message;
    assert.equal(content, "look");
    assert.deepEqual([embed.title, embed.hexColor, embed.description], [card.title, "#ffa500", card.body]);
    assert.deepEqual(embed.fields, [{ name: "Input", value: card.fields[0].value, inline: false },
      { name: "Session", value: "session-xyz-123", inline: true }]);
    assert.deepEqual([embed.footer.text, embed.timestamp], [card.footer, "2026-01-31T12:00:00+00:00"]);
    assert.deepEqual([row.components[0].label, row.components[0].customId, link.components[0].url],
      ["Stop", "stop it", "https://example.org/"]);
  },
  "its thread is a thread, and takes cards": async () => {
    const created = next(Events.ThreadCreate, (t) => t.name === "my session");
    const inside = next(Events.MessageCreate, (m) => m.content === "first" && m.embeds.length === 0);
    const begun = await send("thread", { to, deliveryId: shown.id, name: "my session" });
    first = await send("send", { to, inThreadOf: begun, text: "first" });
    await created;
    thread = { begun, channel: await client.channels.fetch(shown.message.id) };
    assert.ok(thread.channel.isThread());
    assert.equal(thread.channel.parentId, to);
    assert.equal((await inside).channelId, thread.channel.id);
  },
  "an edit is seen as one": async () => {
    const edited = next(Events.MessageUpdate, (_, m) => m.id === shown.message.id);
    await send("edit", { to, deliveryId: shown.id, card: ended });
    const { content, embeds: [embed], components } = await edited;
    assert.deepEqual([content, embed.title, embed.color, components.length], ["", ended.title, 0x00ff00, 0]);
  },
  "a closed thread is archived, and opened by a message": async () => {
    const archived = next(Events.ThreadUpdate, (_, t) => t.archived);
    await send("thread/change", { to, inThreadOf: thread.begun, name: "done", closed: true });
    assert.equal((await archived).name, "done");
    const inside = next(Events.MessageCreate, (m) => m.content === "second");
    await send("send", { to, inThreadOf: first, text: "second" });
    assert.equal((await inside).channel.archived, false);
  },
  "a coding session is a card with a button to stop it, and a thread": async () => {
    const root = next(Events.MessageCreate, (m) => card_of(m).title === "💻 fix the build");
    const created = next(Events.ThreadCreate, (t) => t.name === "fix the build (ses-1)");
    dora = (await control("users", { username: "dora", guild: "Lab" })).user.id;
    await report("session_start", { metadata: { program: "pi", cwd: "/home/dev", title: "fix the build" } });
    await link({ channel_id: to, user_id: dora });
    const { embeds: [embed], components: [row] } = await root;
    await created;
    session = await client.channels.fetch((await root).id);
    assert.equal(embed.hexColor, "#3b82f6");
    assert.deepEqual(embed.fields.map((f) => [f.name, f.value]), [["Program", "pi"], ["Folder", "`/home/dev`"], ["Session", "`s-1`"]]);
    assert.deepEqual([row.components[0].label, row.components[0].customId], ["Stop", "say:/abort ses-1"]);
    assert.equal(session.name, "fix the build (ses-1)");
  },
  "its calls are one message in the thread, that grows": async () => {
    const message = in_session("🛠️ Tool Execution: bash");
    await report("tool_call", { tool_name: "bash", content: "make", metadata: { toolCallId: "1" } });
    const { id, embeds: [embed] } = await message;
    assert.deepEqual([embed.hexColor, embed.description], ["#ffa500", "Command execution started in /home/dev"]);
    assert.deepEqual(embed.fields.map((f) => [f.name, f.value]), [["Input", "```bash\nmake\n```"], ["Session", "`s-1`"]]);
    const edited = next(Events.MessageUpdate, (_, m) => m.id === id && card_of(m).title === "🛠️ 2 tool calls");
    await report("tool_call", { tool_name: "read", content: '{"path":"a.c"}', metadata: { toolCallId: "2" } });
    assert.equal(card_of(await edited).description, "⏳ **bash** `make`\n⏳ **read** `a.c`");
  },
  "a turn's end calls its person": async () => {
    const message = in_session("✅ Turn Completed");
    await report("turn_end", { content: "All **good**.", metadata: { usage: { totalTokens: 1245 }, pending: false } });
    const { content, mentions, embeds: [embed] } = await message;
    assert.equal(content, `<@${dora}> All good.`);
    assert.deepEqual([...mentions.users.keys()], [dora]);
    assert.deepEqual([embed.hexColor, embed.description], ["#00ff00", "All **good**."]);
    assert.deepEqual(embed.fields.map((f) => [f.name, f.value]), [["Tokens Used", "1245"], ["Pending Messages", "False"]]);
  },
  "a message in the thread steers, and shows how far it came": async () => {
    const reacted = next(Events.MessageReactionAdd, (r) => r.emoji.name === "📨");
    await control("send", { from: "dora", channel: session.id, text: "use the other branch" });
    assert.equal((await polled()).content, "use the other branch");
    await reacted;
  },
  "a question has buttons; pressed, they reach the program and are gone": async () => {
    const message = in_session("✋ Approval needed: bash");
    await report("approval_request", { tool_name: "bash", content: "rm -rf x", metadata: { approval_id: "a", timeoutMs: 300000 } });
    const { id, components: [row] } = await message;
    assert.deepEqual(row.components.map((b) => b.label), ["Approve", "Refuse"]);
    const edited = next(Events.MessageUpdate, (_, m) => m.id === id && m.components.length === 0);
    await control("press", { from: "dora", message_id: id, custom_id: row.components[1].customId });
    const { action, approval_id, decision } = await polled();
    assert.deepEqual([action, approval_id, decision], ["decision", "a", "deny"]);
    assert.deepEqual([card_of(await edited).title, card_of(await edited).hexColor], ["⛔ Refused: bash", "#ff0000"]);
  },
  "its end archives the thread": async () => {
    const archived = next(Events.ThreadUpdate, (_, t) => t.id === session.id && t.archived);
    const root = next(Events.MessageUpdate, (_, m) => m.id === session.id && m.components.length === 0);
    await report("session_end", { metadata: { reason: "quit" } });
    await archived;
    assert.equal(card_of(await root).description, "🏁 Ended");
  },
});
