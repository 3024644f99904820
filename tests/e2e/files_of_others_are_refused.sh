#!/usr/bin/env bash
# A data directory, state, key or configuration that others own or may write is refused, and none of its commands run.
. "$(dirname "$0")/lib.sh"

data=$dir/data
marker=$dir/ran
# refused WORDS COMMAND...: exit 78 with these words, and no command of the configuration ran.
refused() {
        local words=$1 rc=0
        shift
        "$DRAGOMAN" "$@" --dir "$data" >"$dir/out" 2>&1 || rc=$?
        [ $rc -eq 78 ] || fail "$* ended with $rc: $(cat "$dir/out")"
        contains "$(cat "$dir/out")" "$words"
        [ ! -e "$marker" ] || fail "$* ran a command of the configuration"
}
mkdir -p "$data"
cat >"$data/config.json" <<J
{ "agents": { "hook": { "type": "webhook", "url": "http://127.0.0.1:9/", "secret": "cmd:sh -c 'touch $marker; echo 0123456789abcdef'" } } }
J
chmod 666 "$data/config.json"
for command in run "config check" doctor; do refused "chmod go-w '$data/config.json'" $command; done
chmod 644 "$data/config.json"
chmod 777 "$data"
for command in run "config check" doctor; do refused "chmod go-w '$data'" $command; done
chmod 755 "$data"
if [ "$(id -u)" = 0 ]; then
        chown 12345 "$data/config.json"
        refused "belongs to 12345" run
        chown 0 "$data/config.json"
        chown 12345 "$data"
        refused "belongs to 12345" run
        chown 0 "$data"
fi
# with the right owner and mode it starts, also through a link of ours
"$DRAGOMAN" config check --dir "$data" >/dev/null
[ -e "$marker" ] || fail "the command did not run"
rm "$marker"
mv "$data/config.json" "$dir/real.json"
ln -s ../real.json "$data/config.json"
"$DRAGOMAN" config check --dir "$data" >/dev/null
rm "$data/config.json" "$marker"

# state: neither a link nor writable
mkdir "$dir/elsewhere"
ln -s ../elsewhere "$data/state"
refused "is a symbolic link" run
rm "$data/state"
mkdir -m 770 "$data/state"
refused "chmod go-w '$data/state'" run
contains "$("$DRAGOMAN" doctor --dir "$data" || true)" "chmod go-w '$data/state'"
chmod 700 "$data/state"
# the workspace: not writable
mkdir -p "$data/workspace"
chmod 777 "$data/workspace"
refused "chmod go-w '$data/workspace'" run
chmod 755 "$data/workspace"
# the key: neither a link nor writable
echo dgm_0123456789012345678901234567890123456789 >"$dir/key"
ln -s "$dir/key" "$data/state/operator.key"
refused "is a symbolic link" run
rm "$data/state/operator.key"
cp "$dir/key" "$data/state/operator.key"
chmod 660 "$data/state/operator.key"
refused "chmod go-w '$data/state/operator.key'" run
rm "$data/state/operator.key"

# an address of an earlier run is removed as soon as the lock is taken, long before the new one is known
echo 127.0.0.1:9 >"$data/state/http.addr"
printf 'this is no database, and longer than the hundred bytes of a header: %0100d' 0 >"$data/state/main.db"
rc=0
"$DRAGOMAN" run "$data" --listen 127.0.0.1:0 >"$dir/out" 2>&1 || rc=$?
[ $rc -eq 1 ] || fail "a damaged store ended with $rc"
[ ! -e "$data/state/http.addr" ] || fail "the old address is still there"
# and commands follow no link to a file of somebody else
echo 127.0.0.1:9 >"$dir/address"
ln -s "$dir/address" "$data/state/http.addr"
rc=0
flock "$data/state/lock" "$DRAGOMAN" status --dir "$data" >"$dir/out" 2>&1 || rc=$?
contains "$(cat "$dir/out")" "is a link"
