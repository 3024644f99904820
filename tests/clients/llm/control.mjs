// The control API of dragoman-sim llm at SIM_URL.
import assert from "node:assert/strict";

export const url = process.env.SIM_URL;
export const key = process.env.SIM_TOKEN;

export async function control(path, request) {
        const answer = await fetch(`${url}/sim/${path}`, request && { method: "POST", body: JSON.stringify(request) });
        const body = await answer.json();
        assert.ok(answer.ok, JSON.stringify(body));
        return body;
}

export const fault = (kind, more = {}) => control("faults", { kind, ...more });

// How many requests of this kind came during the action.
export async function calls(kind, action) {
        const before = (await control("state")).counters.last_call;
        await action();
        return (await control(`calls?kind=${kind}&after=${before}`)).items.length;
}

// The simulator refused exactly these requests, by reason.
export async function refusedOnly(expected) {
        assert.deepEqual((await control("state")).refused, expected);
}
