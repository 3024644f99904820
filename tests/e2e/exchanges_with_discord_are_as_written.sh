#!/usr/bin/env bash
# Every file of tests/exchanges/discord, and every call the adapter makes valid for Discord's own description.
exec python3 "$(dirname "$0")/../exchanges/run" discord
