"""What simulated chats show of coding sessions, and whether the daemon has shown all of it."""
import json
import re

# Gauges that are 0 once the daemon has done, and stored, all that it knows of
WORK = re.compile(r"^dragoman_(?:events_waiting|turns_queued|turns_running|deliveries_open|session_views|store_pending) (?!0$).*", re.M)
COUNTED = {"calls": r"🛠️ (Tool Execution)|🛠️ (\d+) tool call|⏩ (\d+) tool call",
           "turns": r"✅ (Turn Completed)|⏩[^\n\"]*?(\d+) turn",
           "errors": r"❌ (Error)\b|❌ (\d+) Errors|⏩[^\n\"]*?(\d+) error",
           "ended": r"💻.*🏁 (Ended)"}  # first messages that say so


def _count(pattern, text):
    found = re.search(pattern, text)
    parts = [part for part in found.groups() if part] if found else []
    return sum(int(part) if part.isdigit() else 1 for part in parts)


def totals(actions, names=COUNTED):
    """The sums over all messages as they are after these actions of the bot."""
    shown = {}
    for item in actions:
        message = item.get("message", {})
        chat = item.get("channel") or message.get("chat", {}).get("id")  # ids are those of a chat
        shown[chat, item.get("message_id") or item.get("ts") or item["seq"]] = json.dumps(message, ensure_ascii=False)
    return {name: sum(_count(COUNTED[name], text) for text in shown.values()) for name in names}
