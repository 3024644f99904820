// Bolt and Slack's web client, unchanged, watch Dragoman's cards: an attachment with blocks and buttons, an edit of it, and its
// thread; then a whole coding session, steered and answered from its thread.
import assert from "node:assert/strict";
import bolt from "@slack/bolt";
import { WebClient } from "@slack/web-api";
import { buttons, card, ended, link, polled, report, send, start } from "./daemon.mjs";
import { appToken, control, logger, root, run, token } from "./control.mjs";

const to = "C0GENERAL", observer = process.env.OBSERVER_TOKEN;
const web = new WebClient(observer, { slackApiUrl: `${root}/api/`, logger });
const app = new bolt.App({
  token: observer, appToken: observer.replace("xoxb-", "xapp-"), socketMode: true, logger, clientOptions: { slackApiUrl: `${root}/api/` },
});
const heard = [];
let waiting = () => {};
app.event("message", async ({ event }) => {
  heard.push(event);
  waiting();
});
// The next event that matches.
const next = async (matches) => {
  const end = Date.now() + 60000;
  for (;;) {
    const at = heard.findIndex(matches);
    if (at >= 0) return heard.splice(0, at + 1).pop();
    assert.ok(Date.now() < end, "no such event");
    await new Promise((resolve) => { waiting = resolve; setTimeout(resolve, 1000); });
  }
};
const texts = (blocks) => blocks.flatMap((b) => b.fields ?? b.elements ?? [b.text]).map((t) => t.text?.text ?? t.text);
const labels = (blocks) => texts(blocks.filter((b) => b.type === "actions"));
const changed = (ts, matches = () => true) => next((e) => e.subtype === "message_changed" && e.message.ts === ts && matches(e.message));
let shown, sent, session;
const in_session = (title) => next((e) => e.thread_ts === session.ts && e.attachments?.[0].fallback === title);

await start("sl", { type: "slack", botToken: token, appToken, apiBase: `${root}/api`, streaming: "off" });

await run("Bolt beside Dragoman", {
  "start": () => app.start(),
  "a card is an attachment with a coloured edge, blocks and buttons": async () => {
    sent = await send("send", { to, card, buttons });
    shown = await next((e) => e.attachments);
    const [{ color, blocks }] = shown.attachments;
    assert.deepEqual([shown.text, color], [card.title, "FFA500"]);
    assert.deepEqual(texts(shown.blocks), [`*${card.title}*`]);
    assert.deepEqual(blocks.map((b) => b.type), ["section", "section", "section", "actions", "actions", "context"]);
    assert.deepEqual(texts(blocks).slice(0, 5), ["Command execution started in */home/dev*", "*Input*\n```\nrm -rf ./*\n```",
      "*Session*\nsession-xyz-123", "Stop", "Docs"]);
  },
  "an edit is seen as one": async () => {
    await send("edit", { to, deliveryId: sent, card: ended });
    const { message } = await next((e) => e.subtype === "message_changed" && e.message.ts === shown.ts);
    assert.deepEqual([message.text, message.attachments[0].color], [ended.title, "00FF00"]);
    assert.deepEqual(texts(message.attachments[0].blocks), ["*Tokens Used*\n1245"]);
  },
  "its thread has what belongs to it": async () => {
    const thread = await send("thread", { to, deliveryId: sent, name: "my session" });
    await send("send", { to, inThreadOf: thread, text: "first" });
    const first = await next((e) => e.text === "first");
    assert.equal(first.thread_ts, shown.ts);
    const { messages } = await web.conversations.replies({ channel: to, ts: shown.ts });
    assert.deepEqual(messages.map((m) => m.text), [ended.title, "first"]);
    assert.equal(messages[0].attachments[0].color, "00FF00");
  },
  "a coding session is a card with a button to stop it": async () => {
    await report("session_start", { metadata: { program: "pi", cwd: "/home/dev", title: "fix the build" } });
    await link({ channel_id: to, user_id: "U0ADA" });
    session = await next((e) => e.text === "💻 fix the build");
    const [{ color, blocks }] = session.attachments;
    assert.equal(color, "3B82F6");
    assert.deepEqual(labels(blocks), ["Stop"]);
    assert.ok(texts(blocks)[0].includes("Write in its thread to steer it, or `/dragoman followup ses-1 …`"));
  },
  "its calls are one message in its thread, that grows": async () => {
    await report("tool_call", { tool_name: "bash", content: "make", metadata: { toolCallId: "1" } });
    const { ts, attachments: [{ color, blocks }] } = await in_session("🛠️ Tool Execution: bash");
    assert.equal(color, "FFA500");
    assert.deepEqual(texts(blocks).slice(0, 3), ["Command execution started in /home/dev", "*Input*\n```\nmake\n```", "*Session*\n`s-1`"]);
    await report("tool_call", { tool_name: "read", content: '{"path":"a.c"}', metadata: { toolCallId: "2" } });
    const { message } = await changed(ts, (m) => m.text === "🛠️ 2 tool calls");
    assert.equal(texts(message.attachments[0].blocks)[0], "⏳ *bash* `make`\n⏳ *read* `a.c`");
  },
  "a turn's end calls its person": async () => {
    await report("turn_end", { content: "All **good**.", metadata: { usage: { totalTokens: 1245 }, pending: false } });
    const { text, attachments: [{ color, blocks }] } = await in_session("✅ Turn Completed");
    assert.deepEqual([text, color], ["<@U0ADA> All good.", "00FF00"]);
    assert.deepEqual(texts(blocks).slice(0, 3), ["All *good*.", "*Tokens Used*\n1245", "*Pending Messages*\nFalse"]);
  },
  "a message in the thread steers": async () => {
    await control("send", { from: "ada", channel: "general", thread: session.ts, text: "use the other branch" });
    assert.equal((await polled()).content, "use the other branch");
  },
  "a question has buttons; pressed, they reach the program and are gone": async () => {
    await report("approval_request", { tool_name: "bash", content: "rm -rf x", metadata: { approval_id: "a", timeoutMs: 300000 } });
    const { ts, attachments: [{ blocks }] } = await in_session("✋ Approval needed: bash");
    assert.deepEqual(labels(blocks), ["Approve", "Refuse", "Refuse, because…"]);
    await control("press", { from: "ada", message_id: ts, text: "Refuse" });
    const { action, approval_id, decision } = await polled();
    assert.deepEqual([action, approval_id, decision], ["decision", "a", "deny"]);
    const { message } = await changed(ts);
    assert.deepEqual([message.text, message.attachments[0].color, labels(message.attachments[0].blocks)], ["⛔ Refused: bash", "FF0000", []]);
  },
  "its end is shown": async () => {
    await report("session_end", { metadata: { reason: "quit" } });
    const { message } = await changed(session.ts, (m) => m.attachments[0].color === "808080");
    assert.deepEqual([texts(message.attachments[0].blocks)[0], labels(message.attachments[0].blocks)], ["🏁 Ended", []]);
    await web.conversations.replies({ channel: to, ts: session.ts }).then(({ messages }) => assert.ok(messages.length >= 4));
  },
  "stop": () => app.stop(),
});
