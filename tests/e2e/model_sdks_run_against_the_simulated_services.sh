#!/usr/bin/env bash
# The SDKs of Anthropic and OpenAI run unchanged against dragoman-sim llm: streams, tools, parallel calls, caching, errors, retries.
platform=llm
. "$(dirname "$0")/../clients/lib.sh"

status=0
with_sim sk-sim '' node "$work/anthropic.mjs" || status=1
with_sim sk-sim '' node "$work/openai.mjs" || status=1
exit $status
