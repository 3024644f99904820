// @slack/socket-mode and @slack/web-api, unchanged, against the simulator.
import assert from "node:assert/strict";
import { once } from "node:events";
import { SocketModeClient } from "@slack/socket-mode";
import { WebClient } from "@slack/web-api";
import { WebSocket } from "undici";
import { appToken, bot as did, control, link, logger, root, run, token, view } from "./control.mjs";

const general = "C0GENERAL";
const options = { slackApiUrl: `${root}/api/`, logger };
const web = new WebClient(token, options);
const socket = new SocketModeClient({ appToken, clientOptions: options, logger, clientPingTimeout: 1500 });
socket.on("error", () => {}); // of cut connections
// not events.once, which rejects on "error"
const next = (event) => new Promise((done, fail) => {
  const timer = setTimeout(() => fail(new Error(`no ${event}`)), 20000);
  socket.once(event, (value) => { clearTimeout(timer); done(value); });
});
const seen = [];
let acks = true;

socket.on("slack_event", async ({ ack, body, type, retry_num, retry_reason }) => {
  if (acks) await ack(type === "slash_commands" ? { text: `about ${body.text}` } : undefined);
  seen.push({ type, what: body.event?.type ?? body.type, id: body.event_id, retry_num, retry_reason });
});

// The next event of this type; `act` provokes it.
async function heard(type, act) {
  const event = next(type);
  const result = await act();
  const { event: inner, body, ack } = await event;
  return { result, event: inner ?? body, body, ack };
}

await run("socket-mode", {
  "hello": async () => {
    const hello = next("connected");
    const { url } = await socket.start();
    await hello;
    assert.match(url, /^ws:.*[?]ticket=/);
    assert.equal((await link("hello")).connections, 1);
  },
  "a ticket is good for one connection": async () => {
    const { url } = await new WebClient(appToken, options).apps.connections.open({});
    const first = new WebSocket(url), second = new WebSocket(url);
    const [[one], [two]] = await Promise.all([once(first, "message"), once(second, "close")]);
    assert.equal(JSON.parse(one.data).num_connections, 2);
    assert.equal(two.code, 1008);
    first.close();
    await link("gone");
  },
  "a message in a channel": async () => {
    const { result, event, body } = await heard("message", () => control("send", { channel: "general", text: "hi & <bye>" }));
    assert.deepEqual([event.text, event.ts, event.channel, event.channel_type, event.user],
      ["hi & <bye>", result.message_id, general, "channel", "U0ADA"]);
    assert.match(event.client_msg_id, /^[0-9a-f]{8}-/);
    assert.match(body.event_id, /^Ev/);
    assert.equal(body.authorizations[0].user_id, (await web.auth.test()).user_id);
    assert.ok((await link("ack", (l) => l.event_id === body.event_id)).attempt === 0);
  },
  "a mention comes twice, under two event ids": async () => {
    const [mention, message] = await Promise.all([next("app_mention"), next("message"),
      control("send", { channel: "general", text: "<@dragoman> hello" })]);
    assert.equal(mention.event.ts, message.event.ts);
    assert.notEqual(mention.body.event_id, message.body.event_id);
    assert.equal(mention.event.text, `<@${message.body.authorizations[0].user_id}> hello`);
  },
  "direct messages, group direct messages, threads": async () => {
    const direct = await heard("message", () => control("send", { text: "psst" }));
    assert.deepEqual([direct.event.channel_type, direct.event.channel[0]], ["im", "D"]);
    const group = await heard("message", () => control("send", { users: ["bob"], text: "we" }));
    assert.equal(group.event.channel_type, "mpim");
    const thread = direct.event.ts;
    const reply = await heard("message", () => control("send", { text: "and", thread }));
    assert.equal(reply.event.thread_ts, thread);
    const { result: first } = await heard("message", () => control("send", { channel: "general", text: "a root" }));
    const { event } = await heard("message", () => control("send",
      { channel: "general", thread: first.message_id, broadcast: true, text: "for all" }));
    assert.deepEqual([event.subtype, event.thread_ts], ["thread_broadcast", first.message_id]);
  },
  "edits, previews, deletions and reactions": async () => {
    const { result: sent } = await heard("message", () => control("send", { channel: "general", text: "tpyo" }));
    const edited = await heard("message", () => control("edit", { message_id: sent.message_id, text: "typo" }));
    assert.deepEqual([edited.event.subtype, edited.event.message.text, edited.event.previous_message.text],
      ["message_changed", "typo", "tpyo"]);
    assert.equal(edited.event.message.edited.user, "U0ADA");
    const preview = await heard("message", () => control("edit", { message_id: sent.message_id, unfurl: "https://example.org/" }));
    assert.equal(preview.event.message.attachments[0].from_url, "https://example.org/");
    const liked = await heard("reaction_added", () => control("react", { message_id: sent.message_id, emoji: "thumbsup" }));
    assert.deepEqual([liked.event.reaction, liked.event.item.ts], ["thumbsup", sent.message_id]);
    await heard("reaction_removed", () => control("unreact", { message_id: sent.message_id, emoji: "thumbsup" }));
    const gone = await heard("message", () => control("delete", { message_id: sent.message_id }));
    assert.deepEqual([gone.event.subtype, gone.event.deleted_ts], ["message_deleted", sent.message_id]);
  },
  "files": async () => {
    const { event } = await heard("message", () => control("send", { text: "look", files: [{ content: "quiet", file_name: "a.txt" }] }));
    assert.deepEqual([event.subtype, event.files[0].name, event.files[0].size], ["file_share", "a.txt", 5]);
  },
  "joining and leaving": async () => {
    const joined = await heard("member_joined_channel", () => control("members", { from: "carol", channel: "general" }));
    assert.equal(joined.event.channel, general);
    await heard("member_left_channel", () => control("members", { from: "carol", channel: "general", leave: true }));
  },
  "a message under two timestamps": async () => {
    const both = new Promise((done) => {
      const got = [];
      socket.on("message", function listen({ event }) {
        if (event.text !== "stutter" || got.push(event) < 2) return;
        socket.off("message", listen);
        done(got);
      });
    });
    await control("send", { channel: "general", text: "stutter", twice: true });
    const [one, two] = await both;
    assert.equal(one.client_msg_id, two.client_msg_id);
    assert.notEqual(one.ts, two.ts);
  },
  "a slash command is answered in its ack": async () => {
    const { event } = await heard("slash_commands", () => control("command", { channel: "general", name: "/ask", text: "why" }));
    assert.deepEqual([event.command, event.text, event.channel_name], ["/ask", "why", "general"]);
    assert.equal((await did("ephemeral")).text, "about why");
  },
  "assistant threads": async () => {
    const started = await heard("assistant_thread_started", () => control("assistant", { context: "general" }));
    const { channel_id, thread_ts, context } = started.event.assistant_thread;
    assert.equal(context.channel_id, general);
    const changed = await heard("assistant_thread_context_changed", () => control("assistant", { thread: thread_ts }));
    assert.equal(changed.event.assistant_thread.channel_id, channel_id);
    await heard("app_home_opened", () => control("home", { tab: "messages" }));
  },
  "what is not acknowledged is retried three times": async () => {
    await control("settings", { ack_ms: 100, retry_2_ms: 50, retry_3_ms: 50 });
    seen.length = acks = 0;
    await control("send", { channel: "general", text: "anyone?" });
    await link("dropped", (l) => l.what === "message");
    assert.deepEqual(seen.map((e) => [e.retry_num, e.retry_reason]), [[0, ""], [1, "timeout"], [2, "timeout"], [3, "timeout"]]);
    assert.equal(new Set(seen.map((e) => e.id)).size, 1);
    acks = true;
    await control("settings", { ack_ms: 3000 });
  },
  "duplicates, delays, reordering and gaps on request": async () => {
    const texts = async (n, act) => {
      const all = new Promise((done) => {
        const got = [];
        socket.on("message", function listen({ event }) {
          if (got.push(event.text) < n) return;
          socket.off("message", listen);
          done(got);
        });
      });
      await act();
      return all;
    };
    await control("faults", { kind: "duplicate", method: "message" });
    assert.deepEqual(await texts(2, () => control("send", { text: "echo" })), ["echo", "echo"]);
    await control("faults", { kind: "reorder", method: "message" });
    assert.deepEqual(await texts(2, () => control("send", [{ text: "one" }, { text: "two" }])), ["two", "one"]);
    await control("faults", { kind: "drop", method: "message", next: 2 });
    assert.deepEqual(await texts(1, () => control("send", [{ text: "lost" }, { text: "lost" }, { text: "kept" }])), ["kept"]);
    await control("faults", { kind: "slow", method: "message", ms: 50 });
    assert.deepEqual(await texts(2, () => control("send", [{ text: "late" }, { text: "soon" }])), ["soon", "late"]);
  },
  "a warning, a cut and a storm of disconnects": async () => {
    for (const act of [{ action: "disconnect", reason: "warning" }, { action: "disconnect", reason: "refresh_requested" }, { action: "cut" }]) {
      const connected = next("connected");
      await control("gateway", act);
      await connected;
    }
    await control("faults", { kind: "close", method: "hello", next: 2 });
    const connected = new Promise((done) => {
      let left = 3;
      socket.on("connected", () => --left || done());
    });
    await control("gateway", { action: "cut" });
    await connected;
    const { event } = await heard("message", () => control("send", { text: "still there?" }));
    assert.equal(event.text, "still there?");
  },
  "pings, and a connection that is dead without a close": async () => {
    await control("settings", { ping_ms: 100 });
    const { link: muted } = (await view("state")).links.find((l) => l.greeted && !l.closing);
    const connected = next("connected");
    await control("gateway", { action: "mute", ms: 2500 });
    await connected;
    await link("gone", (l) => l.link === muted);
    const { event } = await heard("message", () => control("send", { text: "back?" }));
    assert.equal(event.text, "back?");
  },
  "no more than ten connections": async () => {
    const opened = [];
    const web = new WebClient(appToken, options);
    for (let i = 0; i < 10; i++) {
      const one = new WebSocket((await web.apps.connections.open({})).url);
      opened.push(JSON.parse((await once(one, "message"))[0].data));
      one.onmessage = null;
    }
    assert.deepEqual([opened[8].num_connections, opened[9].type, opened[9].reason], [10, "disconnect", "too_many_websockets"]);
    const connected = next("connected");
    await control("gateway", { action: "cut" });
    await connected;
  },
  "switched off": async () => {
    await control("gateway", { action: "disconnect", reason: "link_disabled" });
    for (let i = 0; i < 2; i++) await link("disconnect", (l) => l.reason === "link_disabled"); // now, and when it comes back
  },
});
