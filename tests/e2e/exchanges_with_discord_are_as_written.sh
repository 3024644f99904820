#!/usr/bin/env bash
# Plays tests/exchanges/discord; every call must be valid by Discord's own description.
exec python3 "$(dirname "$0")/../exchanges/run" discord
