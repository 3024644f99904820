#!/usr/bin/env bash
# The systemd unit has every limit that SECURITY.md names, and systemd knows all of its settings.
. "$(dirname "$0")/lib.sh"

unit=$top/packaging/dragoman.service
for line in NoNewPrivileges=yes CapabilityBoundingSet= ProtectSystem=strict ProtectHome=yes ProtectProc=invisible ProcSubset=pid PrivateUsers=yes PrivateTmp=yes \
        PrivateDevices=yes PrivateIPC=yes RestrictNamespaces=yes RestrictSUIDSGID=yes MemoryDenyWriteExecute=yes SystemCallFilter=@system-service MemoryMax= TasksMax= \
        WatchdogSec= LimitCORE=0 UMask=0077; do
        grep -q "^$line" "$unit" || fail "the unit lacks $line"
done
# without these the daemon could not confine itself
grep -q '^SystemCallFilter=.*landlock_restrict_self.*seccomp' "$unit" || fail "the unit forbids Landlock or seccomp"

command -v systemd-analyze >/dev/null || exit 0
sed -e "s|^ExecStart=/usr/local/bin/dragoman|ExecStart=$DRAGOMAN|" -e '/^Documentation=/d' "$unit" >"$dir/dragoman.service"
warnings=$(systemd-analyze verify "$dir/dragoman.service" 2>&1 | grep 'dragoman.service' || true)
[ -z "$warnings" ] || fail "systemd does not accept the unit: $warnings"
# 0 is locked, 100 is open
systemd-analyze security --offline=true --no-pager --threshold=15 "$dir/dragoman.service" >"$dir/out" 2>&1 || fail "too exposed: $(tail -1 "$dir/out")"
