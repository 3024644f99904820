#!/usr/bin/env bash
# discord.js and discord.py run unchanged against dragoman-sim discord.
platform=discord
. "$(dirname "$0")/../clients/lib.sh"
token=OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token

status=0
with_sim $token '' node "$work/discordjs.mjs" || status=1
with_sim $token '' /usr/bin/python3 tests/clients/discord/dpy.py || status=1
exit $status
