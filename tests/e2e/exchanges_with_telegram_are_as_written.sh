#!/usr/bin/env bash
# Every file of tests/exchanges/telegram, and every call the adapter makes valid for the official list of methods.
exec python3 "$(dirname "$0")/../exchanges/run" telegram
