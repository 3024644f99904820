#!/usr/bin/env bash
# Due times against croner (npm) and GNU date, over zones and years; calendars against the parser ical.js.
# SEED and COUNT may be given; a failure names the schedule.
platform=schedule
. "$(dirname "$0")/../clients/lib.sh"
[ -d "$build/asan/tests/schedule" ] && build=$build/asan VARIANT=asan
for name in references calendar_ics; do
        [ -x "$build/tests/schedule/test_$name" ] || make -j2 VARIANT="${VARIANT:-plain}" "$build/tests/schedule/test_$name" || exit 1
done

node "$work/cron_cases.mjs" "${COUNT:-1000}" "${SEED:-1}" >"$work/cron.tsv" || exit 1

# Every 8 days and some hours from 1970 to 2100, and each hour around changes of clocks and leap days.
{
        seq 20000 716213 4102444800
        for t in 951782400 1325160000 1774742400 1775314800 1791036000 1792882800 1793505600 1835352000; do seq $((t - 86400)) 1800 $((t + 86400)); done
} | sed 's/^/@/' >"$work/instants"
for zone in UTC Europe/Berlin America/New_York America/St_Johns Asia/Kolkata Asia/Kathmandu Australia/Sydney Australia/Lord_Howe Pacific/Apia \
        Pacific/Chatham Africa/Casablanca Asia/Beirut; do
        TZ=$zone date -f "$work/instants" "+$zone%t%Y-%m-%d%t%H:%M:%S%t%s"
done >"$work/date.tsv"

CRON_CASES=$work/cron.tsv DATE_CASES=$work/date.tsv "$build/tests/schedule/test_references" || exit 1
rm -f "$work/games.ics"
ICS_OUT=$work/games.ics "$build/tests/schedule/test_calendar_ics" >/dev/null || exit 1
node "$work/check_ics.mjs" "$work/games.ics"
