// Reads the calendar that test_calendar_ics writes, with a parser of others.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import ICAL from "ical.js";

const root = new ICAL.Component(ICAL.parse(readFileSync(process.argv[2], "utf8")));
assert.equal(root.getFirstPropertyValue("version"), "2.0");
const [night, tea] = root.getAllSubcomponents("vevent").map(c => new ICAL.Event(c));

assert.equal(night.uid, "cal-3@dragoman");
assert.equal(night.sequence, 2);
assert.equal(night.summary, "Game night: Catan, Azul; \\o/");
assert.equal(night.description, "Bring:\n- snacks\n- a long evening, because it will be a very long one " + "🎲".repeat(14));
assert.equal(night.location, "Ann's, 2nd floor");
assert.equal(night.startDate.toJSDate().toISOString(), "2026-11-20T20:00:00.000Z");
assert.equal(night.endDate.toJSDate().toISOString(), "2026-11-20T23:00:00.000Z");
assert.equal(night.component.getFirstProperty("organizer").getParameter("cn"), 'Ann "the" Host, Esq.');
const people = night.attendees.map(a => [a.getFirstValue(), a.getParameter("cn"), a.getParameter("partstat")]);
assert.deepEqual(people, [
        ["urn:x-dragoman:discord:123", "Bo", "ACCEPTED"],
        ["urn:x-dragoman:telegram:42", "Çem;D", "TENTATIVE"],
        ["urn:x-dragoman:person:per-3", "Di", "DECLINED"],
        ["urn:x-dragoman:guest:Grandma%20Eve", "Grandma Eve", "NEEDS-ACTION"],
        ["urn:x-dragoman:slack:U%2F1", undefined, "TENTATIVE"],
]);
assert.equal(night.component.getFirstSubcomponent("valarm").getFirstPropertyValue("trigger").toSeconds(), -3600);
assert.equal(tea.component.getFirstPropertyValue("status"), "CANCELLED");
assert.equal(tea.component.getFirstSubcomponent("valarm"), null);
