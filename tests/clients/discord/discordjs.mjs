// discord.js, unchanged, against the simulator.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  ActionRowBuilder, AttachmentBuilder, ButtonBuilder, ButtonStyle, ChannelType, Client, EmbedBuilder, Events,
  GatewayIntentBits as I, GuildScheduledEventEntityType, GuildScheduledEventPrivacyLevel, MessageFlags, Partials, SlashCommandBuilder,
} from "discord.js";
import { bot as did, view, control, root, run, token } from "./simulator.mjs";

const general = "900000000000000002";
const client = new Client({
  intents: [I.Guilds, I.GuildMessages, I.GuildMessageReactions, I.GuildMessageTyping, I.DirectMessages,
    I.DirectMessageReactions, I.MessageContent, I.GuildScheduledEvents],
  partials: [Partials.Channel, Partials.Message, Partials.Reaction],
  allowedMentions: { parse: [] },
  rest: { api: `${root}/api` },
});
client.on(Events.Error, (error) => {
  console.error(error);
  process.exit(1);
});

const answers = {
  menu: (message) => message.channel.send({
    content: "choose",
    components: [new ActionRowBuilder().addComponents(
      new ButtonBuilder().setCustomId("yes").setLabel("Yes").setStyle(ButtonStyle.Primary))],
  }),
  embed: (message) => message.channel.send({ embeds: [new EmbedBuilder().setTitle("Title").setDescription("Text")] }),
  thread: async (message) => {
    const thread = await message.startThread({ name: "A thread", autoArchiveDuration: 60 });
    await thread.send("in here");
  },
};

client.on(Events.MessageCreate, async (message) => {
  if (message.author.bot || message.system) return;
  if (message.attachments.size > 0) {
    const file = await fetch(message.attachments.first().url);
    const loud = Buffer.from((await file.text()).toUpperCase());
    await message.channel.send({ content: "here", files: [new AttachmentBuilder(loud, { name: "loud.txt", description: "loud" })] });
    return;
  }
  if (answers[message.content]) {
    await answers[message.content](message);
    return;
  }
  await message.channel.sendTyping();
  await message.reply(`echo: ${message.cleanContent}`);
});
client.on(Events.InteractionCreate, async (interaction) => {
  if (interaction.isButton()) {
    await interaction.update({ content: "you said yes", components: [] });
  } else if (interaction.isChatInputCommand()) {
    await interaction.deferReply();
    await interaction.editReply(`about ${interaction.options.getString("question")}`);
    await interaction.followUp({ content: "and more", flags: MessageFlags.Ephemeral });
  }
});

const said = (text) => did("message", (m) => m.text === text);
const next = async (event) => (await once(client, event, { signal: AbortSignal.timeout(10000) }))[0];
const refused = (code, promise) => assert.rejects(promise, (e) => e.code === code || (console.error(e), false));

await run("discord.js", {
  "login": async () => {
    const ready = next(Events.ClientReady);
    await client.login(token);
    await ready;
    assert.equal(client.user.username, "dragoman");
    assert.deepEqual(client.guilds.cache.map((g) => g.name), ["Lab"]);
    assert.equal(client.channels.cache.get(general).name, "general");
  },
  "receive and reply": async () => {
    const sent = await control("send", { channel: "general", text: "hi 👋" });
    const reply = await said("echo: hi 👋");
    assert.equal(reply.reply_to, sent.message_id);
    assert.deepEqual(reply.message.mentions, []);
  },
  "replies ping no one": async () => {
    const channel = client.channels.cache.get(general);
    await channel.send("@everyone <@42>");
    const { message } = await said("@everyone <@42>");
    assert.equal(message.mention_everyone, false);
    assert.deepEqual(message.mentions, []);
    await channel.send({ content: "<@42>!", allowedMentions: { users: ["42"] } });
    assert.deepEqual((await said("<@42>!")).message.mentions.map((u) => u.username), ["ada"]);
  },
  "a nonce is used once": async () => {
    const channel = client.channels.cache.get(general);
    const first = await channel.send({ content: "once", nonce: "7", enforceNonce: true });
    const second = await channel.send({ content: "once", nonce: "7", enforceNonce: true });
    assert.equal(first.id, second.id);
  },
  "direct messages": async () => {
    await control("send", { text: "psst" });
    assert.equal((await said("echo: psst")).to, "ada");
    const ada = await client.users.fetch("42");
    await ada.send("on my own");
    await said("on my own");
    await control("users", { id: "42", refuses: true });
    await refused(50007, ada.send("no?"));
    await control("users", { id: "42", refuses: false });
  },
  "edits and deletes": async () => {
    const channel = client.channels.cache.get(general);
    const message = await channel.send("frist");
    await message.edit("first");
    assert.equal((await did("edit")).text, "first");
    await message.delete();
    await did("delete");
    await refused(10008, message.edit("gone"));
    await refused(50035, channel.send("x".repeat(2001)));
    await refused(10003, client.channels.fetch("1"));
    const sent = await control("send", { channel: "general", text: "tpyo" });
    await said("echo: tpyo");
    const edited = next(Events.MessageUpdate);
    await control("edit", { message_id: sent.message_id, text: "typo" });
    assert.equal((await edited).id, sent.message_id);
    const deleted = next(Events.MessageDelete);
    await control("delete", { message_id: sent.message_id });
    assert.equal((await deleted).id, sent.message_id);
  },
  "replies to deleted messages": async () => {
    const channel = client.channels.cache.get(general);
    await refused(50035, channel.send({ content: "x", reply: { messageReference: "5" } }));
    await channel.send({ content: "anyway", reply: { messageReference: "5", failIfNotExists: false } });
    assert.equal((await said("anyway")).reply_to, undefined);
  },
  "embeds": async () => {
    await control("send", { channel: "general", text: "embed" });
    const { message } = await did("message", (m) => m.message.embeds.length > 0);
    assert.equal(message.embeds[0].title, "Title");
  },
  "reactions": async () => {
    const sent = await control("send", { channel: "general", text: "react" });
    await said("echo: react");
    const message = await client.channels.cache.get(general).messages.fetch(sent.message_id);
    const reaction = await message.react("👀");
    assert.equal((await did("reaction")).emoji, "👀");
    await reaction.users.remove(client.user.id);
    await did("reaction_removed");
    const added = next(Events.MessageReactionAdd);
    await control("react", { message_id: sent.message_id, emoji: "👍" });
    assert.equal((await added).emoji.name, "👍");
    const removed = next(Events.MessageReactionRemove);
    await control("unreact", { message_id: sent.message_id, emoji: "👍" });
    assert.equal((await removed).emoji.name, "👍");
    const direct = await control("send", { text: "react here" });
    const private_ = next(Events.MessageReactionAdd);
    await control("react", { message_id: direct.message_id, emoji: "❤️" });
    assert.equal((await private_).emoji.name, "❤️");
  },
  "files up and down": async () => {
    await control("send", { channel: "general", files: [{ content: "quiet", file_name: "a.txt" }] });
    const { message } = await said("here");
    const [attachment] = message.attachments;
    assert.deepEqual([attachment.filename, attachment.description], ["loud.txt", "loud"]);
    assert.equal(await (await fetch(attachment.url)).text(), "QUIET");
  },
  "threads": async () => {
    const sent = await control("send", { channel: "general", text: "thread" });
    const item = await did("thread");
    assert.deepEqual([item.thread, item.name], [sent.message_id, "A thread"]);
    assert.equal((await said("in here")).channel, sent.message_id);
    await control("send", { channel: sent.message_id, text: "follow-up" });
    assert.equal((await said("echo: follow-up")).channel, sent.message_id);
    const message = await client.channels.cache.get(general).messages.fetch(sent.message_id);
    await assert.rejects(message.startThread({ name: "again" }), { code: "MessageExistingThread" });
    const renamed = next(Events.ThreadUpdate);
    await control("rename", { channel: sent.message_id, name: "Renamed" });
    await renamed;
    assert.equal(client.channels.cache.get(sent.message_id).name, "Renamed");
    const made = next(Events.ChannelCreate);
    await control("channels", { name: "help", type: "forum" });
    const forum = await made;
    assert.equal(forum.type, ChannelType.GuildForum);
    await control("thread", { channel: "help", name: "A post", text: "how?" });
    await said("echo: how?");
    const post = await forum.threads.create({ name: "My post", message: { content: "like this" } });
    assert.equal((await post.fetchStarterMessage()).content, "like this");
  },
  "slash commands and buttons": async () => {
    await control("send", { channel: "general", text: "menu" });
    const menu = await said("choose");
    await control("press", { message_id: menu.message_id, custom_id: "yes" });
    const pressed = await did("interaction_answer");
    assert.deepEqual([pressed.type, pressed.text], [7, "you said yes"]);
    const ask = new SlashCommandBuilder().setName("ask").setDescription("Asks something")
      .addStringOption((o) => o.setName("question").setDescription("What").setRequired(true));
    await client.application.commands.set([ask]);
    assert.deepEqual((await did("commands")).commands.map((c) => c.name), ["ask"]);
    await control("command", { channel: "general", name: "ask", options: { question: "why" } });
    assert.equal((await did("interaction_answer")).type, 5);
    assert.equal((await did("interaction_edit")).text, "about why");
    const more = await did("follow_up");
    assert.deepEqual([more.text, more.ephemeral], ["and more", true]);
  },
  "scheduled events": async () => {
    const events = client.guilds.cache.first().scheduledEvents;
    const plan = {
      name: "Catan", description: "Bring snacks", scheduledStartTime: Date.now() + 3600000,
      scheduledEndTime: Date.now() + 7200000, privacyLevel: GuildScheduledEventPrivacyLevel.GuildOnly,
      entityType: GuildScheduledEventEntityType.External, entityMetadata: { location: "Ann's" },
    };
    const made = await events.create(plan);
    assert.equal((await did("scheduled_event")).event.name, "Catan");
    assert.equal(made.entityMetadata.location, "Ann's");
    const joined = next(Events.GuildScheduledEventUserAdd);
    await control("interest", { event_id: made.id });
    assert.equal((await joined).id, made.id);
    const users = await events.fetchSubscribers(made, { withMember: true });
    assert.deepEqual(users.map((u) => u.user.username), ["ada"]);
    const left = next(Events.GuildScheduledEventUserRemove);
    await control("interest", { event_id: made.id, interested: false });
    await left;
    const changed = next(Events.GuildScheduledEventUpdate);
    await made.edit({ name: "Azul" });
    await changed;
    assert.equal(events.cache.get(made.id).name, "Azul");
    await made.delete();
    await refused(10070, events.fetch({ guildScheduledEvent: made.id, force: true }));
    const seen = next(Events.GuildScheduledEventCreate);
    const theirs = await control("event", { name: "Go", place: "the park" });
    assert.equal((await seen).creatorId, "42");
    const gone = next(Events.GuildScheduledEventDelete);
    await control("event", { event_id: theirs.event_id, delete: true });
    assert.equal((await gone).id, theirs.event_id);
    await control("permissions", { guild: "Lab", deny: ["CREATE_EVENTS"] });
    await refused(50013, events.create(plan));
    await control("permissions", { guild: "Lab", deny: [] });
    await refused(50035, events.create({ ...plan, scheduledStartTime: Date.now() - 1000 }));
  },
  "resume after a cut": async () => {
    const resumed = next(Events.ShardResume);
    await control("gateway", { action: "cut" });
    await control("send", { channel: "general", text: "while away" });
    await said("echo: while away");
    await resumed;
    const again = next(Events.ShardResume);
    await control("gateway", { action: "reconnect" });
    await again;
    assert.equal((await view("links?kind=identify")).items.length, 1);
    assert.ok((await view("links?kind=resume")).items.every((l) => l.known && l.path === "/resume"));
  },
  "a new session": async () => {
    const ready = next(Events.ShardReady);
    await control("gateway", { action: "invalid_session", resumable: false });
    await ready;
    await control("send", { channel: "general", text: "still there?" });
    await said("echo: still there?");
  },
}, ({ code }) => [50035, 50006].includes(code));
