// telegraf, unchanged, against the simulator.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Markup, Telegraf } from "telegraf";
import { bot as did, control, root, run, token } from "./simulator.mjs";

const client = new Telegraf(token, { telegram: { apiRoot: root } });

client.start((ctx) => ctx.reply("welcome"));
client.command("menu", (ctx) => ctx.reply("choose", Markup.inlineKeyboard([Markup.button.callback("Yes", "yes")])));
client.action("yes", async (ctx) => {
  await ctx.answerCbQuery("good");
  await ctx.editMessageText("you said yes");
});
client.on("photo", async (ctx) => {
  const link = await ctx.telegram.getFileLink(ctx.message.photo.at(-1).file_id);
  const bytes = Buffer.from(await (await fetch(link)).arrayBuffer());
  await ctx.replyWithPhoto({ source: bytes }, { caption: "yours" });
});
client.on("message_reaction", (ctx) => ctx.reply("seen"));
client.on("text", async (ctx) => {
  await ctx.sendChatAction("typing");
  await ctx.replyWithMarkdownV2(`*echo*: ${ctx.message.text}`, { reply_parameters: { message_id: ctx.message.message_id } });
});
client.catch((error) => {
  console.error(error);
  process.exit(1);
});

const said = (text) => did("message", (m) => m.message.text === text);

// What the client sends beyond the description; the real server ignores it.
const oddities = ['unknown field "hide" in InlineKeyboardButton', 'unknown parameter "method"'];

await run("telegraf", {
  "polling, text and typing": async () => {
    client.launch({ allowedUpdates: ["message", "callback_query", "message_reaction"] });
    await control("send", { from: 42, text: "hi" });
    assert.equal((await did("action")).action, "typing");
    const { message } = await said("echo: hi");
    assert.equal(message.entities[0].type, "bold");
  },
  "commands": async () => {
    await control("send", { from: 42, text: "/start" });
    await said("welcome");
  },
  "buttons and edits": async () => {
    await control("send", { from: 42, text: "/menu" });
    const menu = await said("choose");
    await control("press", { chat: 42, message_id: menu.message_id, text: "Yes" });
    assert.equal((await did("callback_answer")).text, "good");
    assert.equal((await did("edit")).message.text, "you said yes");
  },
  "files up and down": async () => {
    await control("send", { from: 42, photo: {}, caption: "look" });
    const photo = await did("message", (m) => m.message.photo);
    assert.equal(photo.message.caption, "yours");
    const document = await client.telegram.sendDocument(42, { source: Buffer.from("bytes"), filename: "b.bin" });
    const link = await client.telegram.getFileLink(document.document.file_id);
    assert.equal(await (await fetch(link)).text(), "bytes");
    const album = await client.telegram.sendMediaGroup(42, [
      { type: "document", media: { source: Buffer.from("1"), filename: "1" } },
      { type: "document", media: document.document.file_id },
    ]);
    assert.equal(album.length, 2);
  },
  "reactions": async () => {
    const sent = await control("send", { from: 42, text: "nice" });
    await said("echo: nice");
    await control("react", { chat: 42, message_id: sent.message_id, reaction: ["🔥"] });
    await said("seen");
    await client.telegram.callApi("setMessageReaction",
      { chat_id: 42, message_id: sent.message_id, reaction: [{ type: "emoji", emoji: "👌" }] });
    assert.equal((await did("reaction")).reaction[0].emoji, "👌");
  },
  "topics": async () => {
    const { chat } = await control("chats", { title: "Forum", forum: true, bot_status: "administrator" });
    const topic = await client.telegram.createForumTopic(chat.id, "News");
    const sent = await client.telegram.sendMessage(chat.id, "in here", { message_thread_id: topic.message_thread_id });
    assert.equal(sent.is_topic_message, true);
  },
  "webhook, with the call in its answer": async () => {
    client.stop();
    const server = createServer(client.webhookCallback("/hook", { secretToken: "s3cret" }));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address();
    await client.telegram.setWebhook(`http://127.0.0.1:${port}/hook`, { secret_token: "s3cret" });
    await control("send", { from: 42, text: "hooked" });
    await said("echo: hooked");
    await client.telegram.deleteWebhook();
    server.close();
  },
}, ({ problem }) => oddities.some((oddity) => problem.includes(oddity)));
