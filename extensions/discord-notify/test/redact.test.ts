import assert from "node:assert/strict";
import { test } from "node:test";
import { redactor } from "../src/redact.ts";

const redact = redactor([/internal-\d+/g], ["drg_the_key_of_the_gateway"]);
const HIDDEN = "[redacted]";

const SECRETS: [string, string][] = [
  ["the gateway's key drg_the_key_of_the_gateway!", `the gateway's key ${HIDDEN}!`],
  ["host internal-4711 is up", `host ${HIDDEN} is up`],
  ["curl -H 'Authorization: Bearer abc.def' x", `curl -H 'Authorization: Bearer ${HIDDEN}' x`],
  ["export API_KEY=abc123", `export API_KEY=${HIDDEN}`],
  ['{"password": "a b c", "user": "ada"}', `{"password": ${HIDDEN}, "user": "ada"}`],
  ["DB_PASSWORD='x y' make", `DB_PASSWORD=${HIDDEN} make`],
  ["tool --token abcdef --quiet", `tool --token ${HIDDEN} --quiet`],
  ["psql postgres://ada:geheim@db/x", `psql postgres://ada:${HIDDEN}@db/x`],
  ["curl -u ada:geheim https://x", `curl -u ada:${HIDDEN} https://x`],
  [`sk-${"a1".repeat(12)}`, HIDDEN],
  ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", HIDDEN],
  ["xoxb-123456789012-abcdef", HIDDEN],
  ["AKIAABCDEFGHIJKLMNOP", HIDDEN],
  ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh123", HIDDEN],
  [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz\n-----END RSA PRIVATE KEY-----\nrest",
    `${HIDDEN}\nrest`,
  ],
  ["-----BEGIN PRIVATE KEY-----\nMIIE cut off here", HIDDEN],
];

for (const [text, expected] of SECRETS)
  test(`of ${JSON.stringify(text.slice(0, 30))} the secret is hidden`, () =>
    assert.equal(redact(text), expected));

test("what only looks like a secret stays", () => {
  for (const text of [
    "git commit -m 'explain tokens and passwords'",
    "max_tokens 4096",
    "const sk = 1",
    "http://localhost:8080/path",
    "-u ada",
    "12345:67890",
  ])
    assert.equal(redact(text), text);
});

test("no text takes long", () => {
  for (const piece of [
    "a.",
    "token",
    "-----BEGIN PRIVATE KEY-----",
    "eyJaaaaaaaaa.",
    "http://a:",
    "--token ",
  ]) {
    const began = performance.now();
    redact(piece.repeat(70_000 / piece.length));
    assert.ok(performance.now() - began < 5000, piece);
  }
});
