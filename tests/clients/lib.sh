# Shared by the scripts that run third-party clients against a simulator. Set `platform` before sourcing. `from` is another folder with a package.json.
# Where npm does not have the packages (tools/npm-packages), the script ends well, and says why.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
sim=$build/dragoman-sim
from=${from:-tests/clients/$platform}
work=$build/npm/$(basename "$from")
[ -x "$sim" ] || make -j2 BUILD="$build" "$sim" || exit 1
tools/install clients || exit 1

[ -n "${NPM_FETCHED:-}" ] || tools/npm-packages "$from" || true # ./test has fetched all of them
if [ -e "$work/.missing" ]; then
        echo "SKIPPED: $(cat "$work/.missing")"
        exit 0
fi
cmp -s "$from/package-lock.json" "$work/.installed" || {
        echo "the packages of $from are not there:"
        tail -20 "$work/npm.log"
        exit 1
}
# scripts that share a set may run side by side
(
        flock 9
        shopt -s nullglob
        for file in tests/clients/{simulator,daemon}.mjs "$from"/*.mjs; do
                cmp -s "$file" "$work/$(basename "$file")" || cp "$file" "$work/" || exit 1
        done
) 9>"$work/.lock" || exit 1

# with_sim TOKEN OPTION COMMAND...: a fresh simulator for each client
with_sim() {
        local out=$work/sim.out token=$1 option=$2 pid rc
        shift 2
        rm -f "$out"
        "$sim" $platform --port 0 --no-limits --quiet --token $token $option >"$out" &
        pid=$!
        until [ -s "$out" ]; do kill -0 $pid && sleep 0.02 || return 1; done
        SIM_URL=$(head -n 1 "$out") SIM_TOKEN=$token timeout 120 "$@"
        rc=$?
        kill $pid
        wait $pid || rc=1
        return $rc
}
