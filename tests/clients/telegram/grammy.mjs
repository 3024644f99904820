// grammY, unchanged, against the simulator.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Bot, GrammyError, InlineKeyboard, InputFile, webhookCallback } from "grammy";
import { bot as did, control, root, run, token } from "./simulator.mjs";

const client = new Bot(token, { client: { apiRoot: root } });
const allowed = ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member"];

client.command("start", (ctx) => ctx.reply("welcome", { reply_parameters: { message_id: ctx.message.message_id } }));
client.command("bold", (ctx) => ctx.reply("<b>bold</b> &amp; <i>italic</i>", { parse_mode: "HTML" }));
client.command("menu", (ctx) =>
  ctx.reply("choose", { reply_markup: new InlineKeyboard().text("Yes", "yes").text("No", "no") }));
client.command("album", (ctx) => ctx.replyWithMediaGroup([
  { type: "document", media: new InputFile(Buffer.from("one"), "1.txt") },
  { type: "document", media: new InputFile(Buffer.from("two"), "2.txt"), caption: "both" },
]));
client.callbackQuery("yes", async (ctx) => {
  await ctx.answerCallbackQuery({ text: "good" });
  await ctx.editMessageText("you said yes");
});
client.on("message:document", async (ctx) => {
  const file = await ctx.getFile();
  const answer = await fetch(`${root}/file/bot${token}/${file.file_path}`);
  const text = await answer.text();
  await ctx.replyWithDocument(new InputFile(Buffer.from(text.toUpperCase()), "loud.txt"), { caption: "here" });
});
client.on("message:photo", (ctx) => ctx.replyWithPhoto(ctx.message.photo.at(-1).file_id, { caption: "yours" }));
client.reaction("👍", (ctx) => ctx.reply("thanks for the thumb"));
client.on("edited_message", (ctx) => ctx.reply(`now: ${ctx.editedMessage.text}`));
client.hears("react", (ctx) => ctx.react("👀"));
client.on("message:text", (ctx) => ctx.reply(`echo: ${ctx.message.text}`,
  ctx.message.message_thread_id ? { message_thread_id: ctx.message.message_thread_id } : {}));
client.catch((error) => {
  console.error(error);
  process.exit(1);
});

const said = (text) => did("message", (m) => m.message.text === text);

await run("grammy", {
  "polling and text": async () => {
    client.start({ allowed_updates: allowed });
    await control("send", { from: 42, text: "hi 👋" });
    await said("echo: hi 👋");
  },
  "commands and replies": async () => {
    const sent = await control("send", { from: 42, text: "/start" });
    const reply = await said("welcome");
    assert.equal(reply.message.reply_to_message.message_id, sent.message_id);
  },
  "markup": async () => {
    await control("send", { from: 42, text: "/bold" });
    const { message } = await said("bold & italic");
    assert.deepEqual(message.entities.map((e) => [e.type, e.offset, e.length]), [["bold", 0, 4], ["italic", 7, 6]]);
    await assert.rejects(client.api.sendMessage(42, "<b>oops", { parse_mode: "HTML" }), (e) =>
      e instanceof GrammyError && e.description.includes("can't parse entities"));
  },
  "buttons and edits": async () => {
    await control("send", { from: 42, text: "/menu" });
    const menu = await said("choose");
    const press = await control("press", { chat: 42, message_id: menu.message_id, data: "yes" });
    const answer = await did("callback_answer");
    assert.equal(answer.callback_query_id, press.callback_query_id);
    assert.equal((await did("edit")).message.text, "you said yes");
    await assert.rejects(client.api.editMessageText(42, menu.message_id, "you said yes"), /message is not modified/);
  },
  "files up and down": async () => {
    await control("send", { from: 42, document: { content: "quiet", file_name: "a.txt" } });
    const loud = await did("message", (m) => m.message.document);
    assert.equal(loud.message.caption, "here");
    const file = await client.api.getFile(loud.message.document.file_id);
    const answer = await fetch(`${root}/file/bot${token}/${file.file_path}`);
    assert.equal(await answer.text(), "QUIET");
    await control("send", { from: 42, photo: {} });
    assert.equal((await did("message", (m) => m.message.photo)).message.caption, "yours");
    await control("send", { from: 42, text: "/album" });
    const first = await did("message", (m) => m.message.document);
    const second = await did("message", (m) => m.message.document);
    assert.equal(first.message.media_group_id, second.message.media_group_id);
  },
  "reactions": async () => {
    const sent = await control("send", { from: 42, text: "react" });
    assert.deepEqual((await did("reaction")).reaction, [{ type: "emoji", emoji: "👀" }]);
    await control("react", { chat: 42, message_id: sent.message_id, reaction: ["👍"] });
    await said("thanks for the thumb");
    await assert.rejects(client.api.setMessageReaction(42, sent.message_id, [{ type: "emoji", emoji: "✅" }]),
      /REACTION_INVALID/);
  },
  "edited messages": async () => {
    const sent = await control("send", { from: 42, text: "frist" });
    await said("echo: frist");
    await control("edit", { chat: 42, message_id: sent.message_id, text: "first" });
    await said("now: first");
  },
  "topics": async () => {
    const { chat } = await control("chats", { title: "Forum", forum: true, bot_status: "administrator" });
    const topic = await client.api.createForumTopic(chat.id, "News");
    await control("send", { chat: chat.id, message_thread_id: topic.message_thread_id, text: "in here" });
    const echo = await said("echo: in here");
    assert.equal(echo.message.message_thread_id, topic.message_thread_id);
    await assert.rejects(client.api.sendMessage(chat.id, "x", { message_thread_id: 1 }), /message thread not found/);
    await client.api.closeForumTopic(chat.id, topic.message_thread_id);
  },
  "blocked": async () => {
    await control("block", { user: 42, blocked: true });
    await assert.rejects(client.api.sendMessage(42, "hello?"), /bot was blocked by the user/);
    await control("block", { user: 42, blocked: false });
  },
  "webhook": async () => {
    await client.stop();
    const answer = webhookCallback(client, "http", { secretToken: "s3cret" });
    const server = createServer(answer);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    await client.api.setWebhook(`http://127.0.0.1:${server.address().port}/hook`, { secret_token: "s3cret" });
    await assert.rejects(client.api.getUpdates(), /can't use getUpdates method while webhook is active/);
    await control("send", { from: 42, text: "by hook" });
    await said("echo: by hook");
    assert.equal((await client.api.getWebhookInfo()).pending_update_count, 0);
    await client.api.deleteWebhook();
    server.close();
  },
});
