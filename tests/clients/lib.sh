# Shared by the scripts that run third-party clients against a simulator. Set `platform` before sourcing.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
sim=$build/dragoman-sim
work=$build/$platform-clients
[ -x "$sim" ] || make -j2 BUILD="$build" "$sim" || exit 1
tools/install clients || exit 1

# The npm packages of tests/clients/PLATFORM, fetched once; scripts that share them may run side by side.
mkdir -p "$work"
(
        flock 9
        for file in tests/clients/simulator.mjs tests/clients/$platform/{package.json,package-lock.json,.npmrc,*.mjs}; do
                cmp -s "$file" "$work/$(basename "$file")" || cp "$file" "$work/" || exit 1
        done
        if ! cmp -s "$work/package-lock.json" "$work/.installed"; then
                (cd "$work" && npm ci --no-audit --no-fund >npm.log 2>&1) || { tail -20 "$work/npm.log"; exit 1; }
                cp "$work/package-lock.json" "$work/.installed"
        fi
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
