#!/usr/bin/env bash
# Plays tests/exchanges/telegram; every call must be valid by the official list of methods.
exec python3 "$(dirname "$0")/../exchanges/run" telegram
