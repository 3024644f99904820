#!/usr/bin/env bash
# The reference MCP servers from npm work with our client, over stdio and HTTP; so does a tool in TypeScript.
platform=mcp
. "$(dirname "$0")/../clients/lib.sh"
. tests/lib/ports.sh
work=$(realpath "$work")
make -j2 BUILD="$build" "$build/tests/agent/test_mcp_servers" "$build/tests/agent/test_custom_examples" >/dev/null || exit 1

reserve_port everything
reserve_port modern
PORT=$everything node "$work/node_modules/@modelcontextprotocol/server-everything/dist/index.js" streamableHttp >"$work/everything.log" 2>&1 &
first=$!
PORT=$modern node "$work/modern.mjs" >"$work/modern.log" 2>&1 &
second=$!
trap 'kill $first $second 2>/dev/null' EXIT
for port in $everything $modern; do
        until (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do
                kill -0 $first && kill -0 $second || { cat "$work"/*.log; exit 1; }
                sleep 0.05
        done
done

export MCP_SERVERS=$work EVERYTHING_URL=http://127.0.0.1:$everything/mcp MODERN_URL=http://127.0.0.1:$modern/mcp TYPESCRIPT=$work
for program in test_mcp_servers test_custom_examples; do
        timeout 300 "$build/tests/agent/$program" >"$work/$program.log" 2>&1 || { cat "$work/$program.log"; exit 1; }
        grep -q SKIPPED "$work/$program.log" && { cat "$work/$program.log"; exit 1; }
done
exit 0
