#!/usr/bin/env bash
# Plays tests/exchanges/slack with the app of the manifest; every call must be valid by Slack's own description.
exec python3 "$(dirname "$0")/../exchanges/run" slack
