// Bolt for JavaScript, unchanged, against the simulator: over Socket Mode, then with its HTTP receiver.
import assert from "node:assert/strict";
import { once } from "node:events";
import bolt from "@slack/bolt";
import { appToken, bot as did, control, link, logger, root, run, token, view } from "./control.mjs";

const general = "C0GENERAL";
const modal = {
  type: "modal", callback_id: "survey", title: { type: "plain_text", text: "Survey" },
  submit: { type: "plain_text", text: "Send" },
  blocks: [{ type: "input", block_id: "who", label: { type: "plain_text", text: "Who?" },
    element: { type: "plain_text_input", action_id: "name" } }],
};
const buttons = [{ type: "actions", block_id: "choice", elements: [
  { type: "button", action_id: "yes", value: "1", text: { type: "plain_text", text: "Yes" } }] }];

// The same app for both ways to receive.
function listen(app) {
  const heard = [];
  app.message("hello", async ({ message, say }) => say({ text: `hello <@${message.user}>`, thread_ts: message.ts }));
  app.event("app_mention", async ({ event, say }) => say(`mentioned by <@${event.user}>`));
  app.event("reaction_added", async ({ event, client }) => client.reactions.add(
    { channel: event.item.channel, timestamp: event.item.ts, name: event.reaction }));
  app.message("menu", async ({ say }) => say({ text: "choose", blocks: buttons }));
  app.action("yes", async ({ ack, body, client, respond }) => {
    await ack();
    await client.views.open({ trigger_id: body.trigger_id, view: modal });
    await respond({ text: "chosen", replace_original: true });
  });
  app.view("survey", async ({ ack, view, body, client }) => {
    const name = view.state.values.who.name.value;
    if (!name) {
      await ack({ response_action: "errors", errors: { who: "needed" } });
      return;
    }
    await ack();
    await client.chat.postMessage({ channel: body.user.id, text: `thank you, ${name}` });
  });
  app.command("/ask", async ({ ack, command, respond }) => {
    await ack(`asking ${command.text}`);
    await respond({ text: "because", response_type: "in_channel" });
  });
  app.use(async ({ body, next }) => {
    heard.push(body);
    await next();
  });
  return heard;
}

const said = (text) => did("message", (m) => m.text === text);

// What people do and what the app answers, however it receives.
const conversation = (heard) => ({
  "a message is answered in its thread": async () => {
    const { message_id } = await control("send", { channel: "general", text: "hello" });
    assert.equal((await said("hello <@U0ADA>")).thread_ts, message_id);
  },
  "a mention": async () => {
    await control("send", { channel: "general", text: "<@dragoman> are you there?" });
    await said("mentioned by <@U0ADA>");
  },
  "a reaction": async () => {
    const { message_id } = await control("send", { channel: "general", text: "nice" });
    await control("react", { message_id, emoji: "tada" });
    assert.equal((await did("reaction")).emoji, "tada");
  },
  "a direct message": async () => {
    await control("send", { text: "hello" });
    await said("hello <@U0ADA>");
  },
  "a button opens a modal": async () => {
    await control("send", { channel: "general", text: "menu" });
    const { message_id } = await said("choose");
    await control("press", { message_id, action_id: "yes" });
    await did("view");
    assert.equal((await did("edit")).text, "chosen");
    await control("modal", { values: {} });
    assert.equal((await did("view_response")).action, "errors");
    await control("modal", { values: { name: "Ada" } });
    await said("thank you, Ada");
  },
  "a slash command": async () => {
    await control("command", { channel: "general", name: "/ask", text: "why" });
    // the ack and the response go different ways, so either may be first
    const first = await did("ephemeral|message", (m) => ["asking why", "because"].includes(m.text));
    await (first.kind === "message" ? did("ephemeral", (m) => m.text === "asking why") : said("because"));
  },
  "own messages come, too, and are ignored": async () => {
    assert.ok(heard.every((body) => !body.event?.bot_id)); // by Bolt's own middleware
  },
});

const options = { token, logger, clientOptions: { slackApiUrl: `${root}/api/` } };
const socket = new bolt.App({ ...options, appToken, socketMode: true });
const heard = listen(socket);
const secret = (await view("state")).apps[0].signing_secret;
const http = new bolt.App({ ...options, signingSecret: secret });
const heardByHttp = listen(http);

const named = (where, parts) => Object.fromEntries(Object.entries(parts).map(([name, part]) => [`${where}: ${name}`, part]));

await run("bolt", {
  ...named("socket", {
    "start": () => socket.start(),
    ...conversation(heard),
    "stop": () => socket.stop(),
  }),
  ...named("http", {
    "the request URL is verified": async () => {
      const server = await http.start(0);
      if (!server.listening) await once(server, "listening");
      await control("endpoint", { url: `http://127.0.0.1:${server.address().port}/slack/events` });
      assert.deepEqual([(await link("verified")).good], [true]);
    },
    ...conversation(heardByHttp),
    "forged requests are refused": async () => {
      for (const what of ["signature", "timestamp", "unsigned"]) {
        await control("gateway", { action: "forge", what });
        assert.equal((await link("forged")).status, 401);
      }
    },
    "a failed post is repeated": async () => {
      await control("settings", { retry_2_ms: 50, retry_3_ms: 50 });
      await http.stop();
      await control("send", { channel: "general", text: "hello" });
      const entry = await link("dropped");
      assert.deepEqual([entry.attempt, entry.reason], [3, "connection_failed"]);
    },
  }),
});
