#!/usr/bin/env bash
# A person on Discord asks; the simulated model calls the tools that the message names. Files, commands, jobs, the history,
# a file for the chat and the platform's tools work together, and no request to the model or to Discord is refused.
cd "$(dirname "$0")/../.."
. tests/e2e/lib.sh
start_agent_on_discord

says 'call write {\"path\":\"notes/a.txt\",\"content\":\"one\\ntwo\\n\"}\ncall edit {\"path\":\"notes/a.txt\",\"oldText\":\"two\",\"newText\":\"three\"}\nuse bash: cat notes/a.txt | tr a-z A-Z | tee b.txt\ncall read {\"path\":\"b.txt\"}\nsay Written.'
next message Written.
contains "$(requests)" 'Created notes/a.txt (8 bytes)'
contains "$(requests)" 'Replaced 1 piece of notes/a.txt, from line 2 on'
contains "$(requests)" 'ONE\nTHREE\n'

says 'call attach {\"path\":\"b.txt\",\"title\":\"The *file*\"}\nuse bash: rm b.txt\nsay Sent.'
next message b.txt
next message Sent.
contains "$(requests)" 'Attached b.txt (10 bytes) to the chat.'

says 'call bash {\"command\":\"cat; echo fed\",\"background\":true}\ncall job {\"action\":\"write\",\"id\":1,\"input\":\"hay\\n\",\"close\":true}\ncall job {\"action\":\"read\",\"id\":1,\"wait\":60}\nsay Fed.'
next message Fed.
contains "$(requests)" 'Started as job 1.'
contains "$(requests)" 'hay\n'

says 'call search_history {\"query\":\"WRITTEN\"}\nsay Found.'
next message Found.
contains "$(requests)" '[you] (evt-'

# mistakes are answers: the model goes on
says 'call edit {\"path\":\"notes/a.txt\"}\ncall read {\"path\":\"../../../../etc/passwd\"}\nuse bash: exit 7\nsay Went on.'
next message 'Went on.'
contains "$(requests)" 'edit takes either oldText and newText'
contains "$(requests)" 'outside of what this tool reaches'
contains "$(requests)" 'The command exited with code 7'

# the platform's tools: in this chat, not elsewhere
channel=$(printf '%s' "$shown" | sed -n 's/.*"channel_id":"\([0-9]*\)".*/\1/p' | head -1)
says "call discord_read {\\\"channel_id\\\":\\\"$channel\\\",\\\"limit\\\":2}\\ncall discord_read {\\\"channel_id\\\":\\\"1\\\"}\\nsay Read."
next message Read.
contains "$(requests)" "reaches only this chat"
contains "$(requests)" '\"text\": \"Went on.\"'
case $(requests) in *discord_list_guilds*) fail "a tool that reaches everything was offered" ;; esac

# /stop ends a command with its children
seconds=$((1000000 + $$))
says "use bash: (setsid sleep $seconds &) ; sleep $seconds"
await sleeps $seconds
says /stop
await sleeps_no_more $seconds
says 'say Still here.'
await sh -c "curl -sS '$sim/sim/messages?kind=message&limit=1000' | grep -q 'Still here.'"

every_call_was_valid
sim=$model
every_call_was_valid
stop
