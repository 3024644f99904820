"""What the runner of exchanges must know of each platform."""
import json
import urllib.request


def look(url):
    with urllib.request.urlopen(url, timeout=60) as r:
        return json.load(r)


class Telegram:
    name, id, token = "telegram", "tg", "100000001:dragoman-simulator-token"
    quiet = {"action"}  # skipped unless named
    fields = {"text": ("message", "text"), "caption": ("message", "caption"), "topic": ("message", "message_thread_id"),
              "reply_to": ("message", "reply_to_message", "message_id"), "entities": ("message", "entities")}

    @staticmethod
    def adapter(sim_url):
        return {"type": "telegram", "botToken": Telegram.token, "apiBase": sim_url, "dm": "everyone", "channels": ["*"],
                "rateLimit": {"turns": 0}, "pace": {"perSecond": 0, "perChatPerSecond": 0, "perGroupPerMinute": 0},
                "pollSeconds": 1, "reconcileAfterMs": 100}

    @staticmethod
    def made(answer):
        """The id that a control call returned."""
        first, chat = answer.get("results", [answer])[0], answer.get("chat")
        return chat["id"] if isinstance(chat, dict) else first.get("message_id") or answer.get("message_thread_id") or chat

    @staticmethod
    def call(sim_url, method, params):
        return f"{sim_url}/bot{Telegram.token}/{method}", params, {}


class Discord:
    name, id, token = "discord", "dc", "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token"
    quiet = {"typing", "dm_open", "commands"}
    fields = {"everyone": ("message", "mention_everyone"), "mentions": lambda item: len(item["message"]["mentions"]),
              "fences": lambda item: item["text"].count("```"), "files": lambda item: len(item["message"]["attachments"])}

    @staticmethod
    def adapter(sim_url):
        # short waits; exchanges about waiting set their own
        return {"type": "discord", "botToken": Discord.token, "apiBase": f"{sim_url}/api/v10",
                "dm": "everyone", "channels": ["*"],
                "rateLimit": {"turns": 0}, "debounceMs": 200, "slowReactionMs": 0, "autoThreadChars": 0,
                "conversationSeconds": 30, "streaming": False, "slashCommands": False}

    @staticmethod
    def made(answer):
        first = answer.get("results", [answer])[0]
        return first.get("message_id") or first.get("channel") or first.get("guild") or first.get("user", {}).get("id")

    @staticmethod
    def call(sim_url, operation, params):
        return f"{sim_url}/api/v10{operation}", params, {"Authorization": f"Bot {Discord.token}",
                                                        "User-Agent": "DiscordBot (https://example.org, 1)"}


PLATFORMS = {platform.name: platform for platform in (Telegram, Discord)}
