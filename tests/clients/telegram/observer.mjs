// grammY, unchanged, reads Dragoman's cards: one with buttons, an edit of it, and its topic; then a whole coding session, steered
// and answered from its topic. Telegram tells no bot of another's messages, so grammY gets them as updates, and calls with
// Dragoman's token.
import assert from "node:assert/strict";
import { Api, Context } from "grammy";
import { ask, buttons, card, ended, link, polled, report, send, start } from "./daemon.mjs";
import { bot as did, control, root, run, token } from "./simulator.mjs";

const api = new Api(token, { apiRoot: root });
let me, lab, topic, sent, session;
const labels = (ctx) => ctx.msg.reply_markup?.inline_keyboard.flat().map((b) => b.text);
// What the bot says, or edits, in the session's topic.
const shows = async (kind, begins) => seen((await did(kind, (item) => item.message.text.includes(begins))).message);
const seen = (message) => new Context({ update_id: 1, message }, api, me);
const entities = (ctx, type) => ctx.entities(type).map((e) => e.text);

await start("tg", { type: "telegram", botToken: token, apiBase: root, pollSeconds: 1,
  pace: { perSecond: 0, perChatPerSecond: 0, perGroupPerMinute: 0 } });

await run("grammY beside Dragoman", {
  "a forum has topics": async () => {
    me = await api.getMe();
    lab = (await control("chats", { type: "supergroup", title: "Lab", forum: true, bot_status: "administrator" })).chat.id;
    assert.equal((await api.getChat(lab)).is_forum, true);
    assert.equal((await api.getChatMember(lab, me.id)).can_manage_topics, true);
    assert.equal((await ask(`instances/tg/channels/${lab}`)).data.threads, "name");
  },
  "a card is a formatted message with buttons in its topic": async () => {
    topic = await send("thread", { to: `${lab}`, name: "my session" });
    sent = await send("send", { to: `${lab}`, inThreadOf: topic, card, buttons });
    const { topic: { message_thread_id: id } } = await did("topic");
    const ctx = seen((await did("message")).message);
    assert.ok(ctx.has("message:is_topic_message"));
    assert.equal(ctx.msg.message_thread_id, id);
    assert.deepEqual(entities(ctx, "bold"), [card.title, "/home/dev", "Input", "Session"]);
    const [code] = ctx.entities("pre");
    assert.deepEqual([code.text, code.language], ["rm -rf ./*", "bash"]);
    assert.ok(ctx.msg.text.endsWith("OMP Agent System · 2026-01-31 12:00 UTC"));
    assert.deepEqual(ctx.msg.reply_markup.inline_keyboard.flat().map((b) => [b.text, b.callback_data ?? b.url]),
      [["Stop", "stop it"], ["Docs", "https://example.org/"]]);
    const copy = await api.forwardMessage(lab, lab, ctx.msg.message_id, { message_thread_id: id });
    assert.equal(copy.text, ctx.msg.text);
    await did("message");
  },
  "an edit is seen as one": async () => {
    await send("edit", { to: `${lab}`, deliveryId: sent, card: ended });
    const ctx = seen((await did("edit")).message);
    assert.equal(ctx.msg.text, `${ended.title}\nTokens Used: 1245`);
    assert.equal(ctx.msg.reply_markup, undefined);
  },
  "a closed topic can be opened by others with the right": async () => {
    await send("thread/change", { to: `${lab}`, inThreadOf: topic, closed: true });
    const { message_thread_id: id } = await did("topic_change");
    await assert.rejects(api.closeForumTopic(lab, id), /TOPIC_NOT_MODIFIED/);
    assert.equal(await api.reopenForumTopic(lab, id), true);
  },
  "a coding session is a topic that begins with a card": async () => {
    await report("session_start", { metadata: { program: "pi", cwd: "/home/dev", title: "fix the build" } });
    await link({ channel_id: lab, user_id: 42 });
    session = (await did("topic")).topic;
    assert.equal(session.name, "fix the build (ses-1)");
    const ctx = await shows("message", "💻 fix the build");
    assert.equal(ctx.msg.message_thread_id, session.message_thread_id);
    assert.deepEqual(entities(ctx, "bold"), ["💻 fix the build", "Program", "Folder", "Session"]);
    assert.deepEqual(labels(ctx), ["Stop"]);
  },
  "its calls are one message, that grows": async () => {
    await report("tool_call", { tool_name: "bash", content: "make", metadata: { toolCallId: "1" } });
    const ctx = await shows("message", "🛠️ Tool Execution: bash");
    assert.deepEqual(entities(ctx, "pre"), ["make"]);
    await report("tool_call", { tool_name: "read", content: '{"path":"a.c"}', metadata: { toolCallId: "2" } });
    const grown = await shows("edit", "🛠️ 2 tool calls");
    assert.equal(grown.msg.message_id, ctx.msg.message_id);
    assert.deepEqual([entities(grown, "bold"), entities(grown, "code")], [["🛠️ 2 tool calls", "bash", "read"], ["make", "a.c"]]);
  },
  "a turn's end calls its person": async () => {
    await report("turn_end", { content: "All **good**.", metadata: { usage: { totalTokens: 1245 }, pending: false } });
    const ctx = await shows("message", "✅ Turn Completed");
    assert.deepEqual(ctx.entities("text_mention").map((e) => e.user.id), [42]);
    assert.ok(ctx.msg.text.includes("All good.\n\nTokens Used: 1245\nPending Messages: False"));
  },
  "a message in the topic steers, and shows how far it came": async () => {
    await control("send", { from: 42, chat: lab, message_thread_id: session.message_thread_id, text: "use the other branch" });
    assert.equal((await polled()).content, "use the other branch");
    await did("reaction", (item) => item.reaction[0].emoji === "🕊");
  },
  "a question has buttons; pressed, they reach the program and are gone": async () => {
    await report("approval_request", { tool_name: "bash", content: "rm -rf x", metadata: { approval_id: "a", timeoutMs: 300000 } });
    const ctx = await shows("message", "✋ Approval needed: bash");
    assert.deepEqual(labels(ctx), ["Approve", "Refuse"]);
    await control("press", { from: 42, chat: lab, message_id: ctx.msg.message_id, text: "Refuse" });
    const { action, approval_id, decision } = await polled();
    assert.deepEqual([action, approval_id, decision], ["decision", "a", "deny"]);
    const edited = await shows("edit", "⛔ Refused: bash");
    assert.deepEqual([edited.msg.message_id, labels(edited)], [ctx.msg.message_id, undefined]);
  },
  "its end closes the topic": async () => {
    await report("session_end", { metadata: { reason: "quit" } });
    await did("topic_change", (item) => item.method === "closeForumTopic");
    await assert.rejects(api.closeForumTopic(lab, session.message_thread_id), /TOPIC_NOT_MODIFIED/);
  },
});
