// Random cron schedules and when croner says they are due: SCHEDULE, ZONE, AFTER, DUE, tab-separated, times in Unix ms.
// Usage: node cron_cases.mjs COUNT SEED
import { Cron } from "croner";

const [count, seed] = process.argv.slice(2).map(Number);
let state = BigInt(seed);
const pick = n => {
        state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
        return Number(state >> 33n) % n;
};
const oneOf = list => list[pick(list.length)];

const zones = ["UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo",
        "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Australia/Sydney", "Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Chatham",
        "Pacific/Auckland", "Africa/Casablanca", "Pacific/Honolulu"];
const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

function field(min, max, names) {
        const value = () => min + pick(max - min + 1);
        const word = n => (names && pick(2) ? names[n - min] : String(n));
        const range = () => { const a = value(), b = value(); return [Math.min(a, b), Math.max(a, b)]; };
        switch (pick(6)) {
        case 0: case 1: return "*";
        case 2: return word(value());
        case 3: return [value(), value(), value()].map(word).join(",");
        case 4: { const [a, b] = range(); return `${word(a)}-${b ? word(b) : b}`; } // to croner, sun-sun is the whole week
        default: { const [a, b] = range(); return oneOf([`*/${1 + pick(max - min)}`, `${a}-${b}/${1 + pick(Math.max(1, b - a))}`]); }
        }
}

const offset = (zone, t) => {
        const name = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).formatToParts(t);
        return name.find(part => part.type === "timeZoneName").value;
};
// Where clocks change we have rules of our own, which other tests check.
const clocksChange = (zone, t) => offset(zone, t - 26 * 3600e3) !== offset(zone, t + 26 * 3600e3);

// croner 9.1 overlooks days right after the end of February.
const passesFebruary = (from, to) => {
        const march = year => Date.UTC(year, 2, 2);
        for (let year = new Date(from).getUTCFullYear(); march(year) - 3 * 86400e3 < to; year++)
                if (march(year) > from) return true;
        return false;
};

for (let written = 0; written < count;) {
        const fields = [field(0, 59), field(0, 23), field(1, 31), field(1, 12, months), field(0, 6, weekdays)];
        if (pick(8) === 0) fields.unshift(field(0, 59));
        if (pick(10) === 0) fields[fields.length - 3] = "L";
        if (pick(10) === 0) fields[fields.length - 1] = `${oneOf(weekdays)}#${oneOf(["1", "2", "3", "4", "5", "L"])}`;
        const schedule = fields.join(" "), zone = oneOf(zones);
        const after = Date.UTC(2000 + pick(60), pick(12), 1 + pick(28), pick(24), pick(60), pick(60));
        let due;
        try {
                due = new Cron(schedule, { timezone: zone, paused: true }).nextRun(new Date(after));
        } catch {
                continue; // a step that is too large, or a day that never comes
        }
        if (!due || passesFebruary(after, due.getTime())) continue;
        if (clocksChange(zone, after) || clocksChange(zone, due.getTime())) continue;
        console.log([schedule, zone, after, due.getTime()].join("\t"));
        written++;
}
