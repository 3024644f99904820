// @slack/web-api, unchanged, against the simulator.
import assert from "node:assert/strict";
import { ErrorCode, LogLevel, WebClient } from "@slack/web-api";
import { bot as did, control, logger, root, run, token } from "./control.mjs";

const channel = "C0GENERAL";
const options = { slackApiUrl: `${root}/api/`, logger, logLevel: LogLevel.ERROR };
const web = new WebClient(token, options);
const refused = (error, promise) => assert.rejects(promise, (e) => e.data?.error === error || (console.error(e), false));

await run("web-api", {
  "who am I": async () => {
    const { user_id, team, bot_id } = await web.auth.test();
    assert.deepEqual([user_id, team], ["U0DRAGOMAN", "Lab"]);
    assert.equal((await web.bots.info({ bot: bot_id })).bot.user_id, user_id);
    assert.equal((await web.users.info({ user: "U0ADA" })).user.name, "ada");
    await refused("invalid_auth", new WebClient("xoxb-wrong", options).auth.test());
    await refused("not_allowed_token_type", web.apps.connections.open({}));
  },
  "post, change, delete": async () => {
    const { ts, message } = await web.chat.postMessage({ channel, text: "a &lt; b &amp; c" });
    assert.equal(message.text, "a &lt; b &amp; c");
    await web.chat.update({ channel, ts, text: "changed" });
    assert.equal((await did("edit")).text, "changed");
    await web.chat.delete({ channel, ts });
    await did("delete");
    await refused("message_not_found", web.chat.update({ channel, ts, text: "gone" }));
    await refused("channel_not_found", web.chat.postMessage({ channel: "C0NOWHERE", text: "x" }));
    await refused("no_text", web.chat.postMessage({ channel }));
    await refused("msg_too_long", (async () => {
      const { ts } = await web.chat.postMessage({ channel, text: "short" });
      await web.chat.update({ channel, ts, text: "x".repeat(4001) });
    })());
  },
  "threads and metadata": async () => {
    const root = await web.chat.postMessage({ channel, text: "root" });
    const metadata = { event_type: "dragoman_delivery", event_payload: { id: "7" } };
    const reply = await web.chat.postMessage({ channel, text: "reply", thread_ts: root.ts, reply_broadcast: true, metadata });
    const { messages } = await web.conversations.replies({ channel, ts: root.ts, include_all_metadata: true });
    assert.deepEqual(messages.map((m) => m.text), ["root", "reply"]);
    assert.deepEqual(messages[1].metadata, metadata);
    const plain = await web.conversations.replies({ channel, ts: root.ts });
    assert.equal(plain.messages[1].metadata?.event_payload, undefined);
    const history = await web.conversations.history({ channel, latest: reply.ts, inclusive: true, limit: 1 });
    assert.equal(history.messages[0].subtype, "thread_broadcast");
  },
  "history in pages": async () => {
    await control("send", Array.from({ length: 25 }, (_, i) => ({ channel: "general", text: `number ${i}` })));
    const texts = [];
    for await (const page of web.paginate("conversations.history", { channel, limit: 10 }))
      texts.push(...page.messages.map((m) => m.text));
    assert.deepEqual(texts.slice(0, 25), Array.from({ length: 25 }, (_, i) => `number ${24 - i}`));
  },
  "reactions": async () => {
    const { message_id: timestamp } = await control("send", { channel: "general", text: "nice" });
    await web.reactions.add({ channel, timestamp, name: "eyes" });
    await refused("already_reacted", web.reactions.add({ channel, timestamp, name: "eyes" }));
    await web.reactions.remove({ channel, timestamp, name: "eyes" });
    await refused("no_reaction", web.reactions.remove({ channel, timestamp, name: "eyes" }));
  },
  "direct messages and notices": async () => {
    const { channel: im } = await web.conversations.open({ users: "U0ADA" });
    await web.chat.postMessage({ channel: im.id, text: "psst" });
    assert.equal((await did("message", (m) => m.text === "psst")).to, "ada");
    await web.chat.postEphemeral({ channel, user: "U0ADA", text: "only you" });
    assert.equal((await did("ephemeral")).user, "U0ADA");
  },
  "files up and down": async () => {
    await web.filesUploadV2({ channel_id: channel, filename: "loud.txt", content: "QUIET", initial_comment: "here" });
    const { message } = await did("message", (m) => m.message.files?.length > 0);
    const [file] = message.files;
    assert.deepEqual([message.text, file.name], ["here", "loud.txt"]);
    const fetched = await fetch(file.url_private_download, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(await fetched.text(), "QUIET");
    assert.notEqual(await (await fetch(file.url_private_download)).text(), "QUIET");
  },
  "streams": async () => {
    const { ts: thread_ts } = await web.chat.postMessage({ channel, text: "a question" });
    const stream = web.chatStream({ channel, thread_ts, recipient_user_id: "U0ADA", recipient_team_id: "T0SIM" });
    await stream.append({ markdown_text: "**one** " });
    await stream.append({ markdown_text: "two" });
    await stream.stop();
    const { messages } = await web.conversations.replies({ channel, ts: thread_ts });
    assert.match(messages[1].text, /one.* two/);
  },
  "the assistant": async () => {
    const { channel: channel_id, message_id: thread_ts } = await control("assistant", { context: "general" });
    await web.assistant.threads.setStatus({ channel_id, thread_ts, status: "is thinking" });
    await web.assistant.threads.setTitle({ channel_id, thread_ts, title: "A talk" });
    await web.assistant.threads.setSuggestedPrompts({ channel_id, thread_ts, prompts: [{ title: "Why", message: "Why?" }] });
  },
  "rate limits are waited for": async () => {
    await control("faults", { kind: "flood", method: "chat.postMessage", retry_after: 1 });
    await web.chat.postMessage({ channel, text: "in the end" });
    await did("message", (m) => m.text === "in the end");
    const impatient = new WebClient(token, { ...options, rejectRateLimitedCalls: true });
    await control("faults", { kind: "flood", method: "chat.postMessage", retry_after: 7 });
    await assert.rejects(impatient.chat.postMessage({ channel, text: "now" }),
      (e) => e.code === ErrorCode.RateLimitedError && e.retryAfter === 7);
  },
  "a revoked token": async () => {
    await control("gateway", { action: "revoke" });
    await refused("token_revoked", web.auth.test());
    await control("gateway", { action: "enable" });
    await web.auth.test();
  },
}, ({ error }) => ["no_text", "msg_too_long", "channel_not_found", "not_allowed_token_type", "invalid_auth",
                   "message_not_found"].includes(error));
