import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, Approvals, type Question } from "../src/approvals.ts";

/** A question whose parties the test plays. */
function rig(given: Partial<Question> & { dialogs?: boolean } = {}) {
  const approvals = new Approvals(50);
  const resolved: (Answer & { id: string })[] = [];
  let id = "";
  let sent = () => {};
  let answerDesk: (yes: boolean) => void = () => {};
  let failDesk: (error: Error) => void = () => {};
  let withdrawn = false;
  const answer = approvals.ask({
    fallback: "deny",
    timeoutMs: 60_000,
    signal: undefined,
    dialog: given.dialogs
      ? (signal) =>
          new Promise((resolve, reject) => {
            answerDesk = resolve;
            failDesk = reject;
            signal.addEventListener("abort", () => {
              withdrawn = true;
              resolve(false); // as pi and omp do
            });
          })
      : undefined,
    announce: (given_id, onSent) => {
      id = given_id;
      sent = onSent;
    },
    resolved: (of, by) => resolved.push({ id: of, ...by }),
    isUnreachable: () => false,
    ...given,
  });
  return {
    approvals,
    answer,
    resolved,
    id,
    sent: () => sent(),
    desk: (yes: boolean) => answerDesk(yes),
    failDesk: (error: Error) => failDesk(error),
    isWithdrawn: () => withdrawn,
    chat: (decision: "allow" | "deny") => approvals.decide(id, { decision, by: "ada" }),
  };
}

test("an answer from a chat withdraws the dialog, and is not reported back", async () => {
  const q = rig({ dialogs: true });
  assert.equal(q.chat("allow"), "taken");
  assert.deepEqual(await q.answer, { decision: "allow", by: "ada" });
  assert.ok(q.isWithdrawn());
  assert.deepEqual(q.resolved, []);
  assert.equal(q.approvals.size, 0);
});

test("an answer at the desk is reported, and what the chat says later is late", async () => {
  const q = rig({ dialogs: true });
  q.desk(true);
  assert.deepEqual(await q.answer, { decision: "allow", by: "desk" });
  assert.deepEqual(q.resolved, [{ id: q.id, decision: "allow", by: "desk" }]);
  assert.equal(q.chat("deny"), "late");
  assert.equal(q.chat("deny"), "late");
});

test("of two answers at the same time one counts", async () => {
  for (const first of ["desk", "chat"] as const) {
    const q = rig({ dialogs: true });
    let outcome = "";
    if (first === "desk") q.desk(false);
    outcome = q.chat("allow");
    if (first === "chat") q.desk(false);
    const answer = await q.answer;
    // the desk's answer travels by a promise, so that the chat's is first in both cases
    assert.deepEqual([answer.decision, outcome], ["allow", "taken"]);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(q.resolved, []);
  }
});

test("without an answer the policy decides, and a decision after it is late", async () => {
  for (const fallback of ["allow", "deny"] as const) {
    const q = rig({ dialogs: true, timeoutMs: 20, fallback });
    assert.deepEqual(await q.answer, { decision: fallback, by: "timeout" });
    assert.deepEqual(q.resolved, [{ id: q.id, decision: fallback, by: "timeout" }]);
    assert.ok(q.isWithdrawn());
    assert.equal(q.chat("allow"), "late");
  }
});

test("a decision counts once, however often it comes", async () => {
  const q = rig();
  assert.deepEqual([q.chat("deny"), q.chat("allow"), q.chat("deny")], ["taken", "late", "late"]);
  assert.equal((await q.answer).decision, "deny");
  assert.equal(q.approvals.decide("never asked", { decision: "allow", by: "ada" }), "unknown");
});

test("with nobody at the desk, a gateway that cannot be asked means the policy's default", async () => {
  const known = rig({ isUnreachable: () => true, fallback: "allow" });
  assert.deepEqual(await known.answer, { decision: "allow", by: "unreachable" });
  const found = rig(); // announced, and never sent
  assert.deepEqual(await found.answer, { decision: "deny", by: "unreachable" });
});

test("a question that the gateway has waits, also while the gateway restarts", async () => {
  const q = rig({ timeoutMs: 60_000 });
  q.sent();
  await new Promise((resolve) => setTimeout(resolve, 120)); // longer than the gateway has to take it
  assert.equal(q.approvals.size, 1);
  q.chat("allow");
  assert.equal((await q.answer).decision, "allow");
});

test("a gateway that is away does not matter while somebody is at the desk", async () => {
  const q = rig({ dialogs: true, isUnreachable: () => true });
  await new Promise((resolve) => setTimeout(resolve, 120));
  q.desk(true);
  assert.equal((await q.answer).by, "desk");
});

test("a dialog that breaks leaves the question to the chat", async () => {
  const q = rig({ dialogs: true });
  q.sent();
  q.failDesk(new Error("no terminal"));
  await new Promise((resolve) => setTimeout(resolve, 120));
  q.chat("allow");
  assert.equal((await q.answer).by, "ada");
});

test("with the agent's run its questions end", async () => {
  const stop = new AbortController();
  const q = rig({ signal: stop.signal, dialogs: true, fallback: "allow" });
  stop.abort();
  assert.deepEqual(await q.answer, { decision: "deny", by: "aborted" });
  const other = rig({ fallback: "allow" });
  other.approvals.refuseAll();
  assert.deepEqual(await other.answer, { decision: "deny", by: "aborted" });
  const late = rig({ signal: stop.signal, fallback: "allow" });
  assert.equal((await late.answer).by, "aborted");
});
