"""What the runner of exchanges must know of each platform."""
import hashlib
import hmac
import json
import os
import time
import urllib.parse
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def look(url):
    with urllib.request.urlopen(url, timeout=60) as r:
        return json.load(r)


def listed(fields):
    """Named values on one line; None: there are none."""
    return " | ".join(f"{name}: {value}" for name, value in fields) or None


class Platform:
    webhook = "webhook"  # the last part of the address that gets posts

    @staticmethod
    def prepare(sim_url, control):
        """Sets up the simulator; control(verb, wish) asks it. Names for the exchange."""
        return {}

    @staticmethod
    def is_said(message):
        """Is it in a history because somebody wrote it?"""
        return message.get("type", 0) in (0, 19, 20)

    @staticmethod
    def sent_id(item):
        return item.get("message_id")

    @staticmethod
    def misfit(call):
        """Why a call does not fit the published description, besides what the simulator says; None: it fits."""


class Telegram(Platform):
    name, id, token = "telegram", "tg", "100000001:dragoman-simulator-token"
    quiet = {"action"}  # skipped unless named
    fields = {"text": ("message", "text"), "caption": ("message", "caption"), "topic": ("message", "message_thread_id"),
              "reply_to": ("message", "reply_to_message", "message_id"), "entities": ("message", "entities"),
              "silent": lambda item: item.get("silent", False), "emoji": lambda item: " ".join(r["emoji"] for r in item["reaction"]),
              # the id of the person whose name is a mention
              "calls": lambda item: next((e["user"]["id"] for e in item["message"].get("entities", []) if e["type"] == "text_mention"), ""),
              "buttons": lambda item: " ".join(b["text"] for row in item["message"].get("reply_markup", {}).get("inline_keyboard", []) for b in row)}

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

    @staticmethod
    def post(names, body, secret=""):
        return json.dumps(body).encode(), {"X-Telegram-Bot-Api-Secret-Token": str(secret)} if secret else {}


class Discord(Platform):
    webhook = "interactions"
    name, id, token = "discord", "dc", "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token"
    quiet = {"typing", "dm_open", "commands"}
    fields = {"everyone": ("message", "mention_everyone"), "mentions": lambda item: len(item["message"]["mentions"]),
              "fences": lambda item: item["text"].count("```"), "files": lambda item: len(item["message"]["attachments"]),
              "silent": lambda item: item["message"]["flags"] & 4096 != 0,
              "card": lambda item: Discord.embed(item).get("title"), "body": lambda item: Discord.embed(item).get("description"),
              "color": lambda item: Discord.color(item), "footer": lambda item: Discord.embed(item).get("footer", {}).get("text"),
              "fields": lambda item: listed((f["name"], f["value"]) for f in Discord.embed(item).get("fields", [])),
              "buttons": lambda item: " ".join(b["label"] for row in item["message"]["components"] for b in row["components"])}

    @staticmethod
    def embed(item):
        return next((e for e in item.get("message", {}).get("embeds", []) if e.get("type") == "rich"), {})

    @staticmethod
    def color(item):
        color = Discord.embed(item).get("color")
        return None if color is None else f"#{color:06X}"

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
        return first.get("message_id") or first.get("event_id") or first.get("channel") or first.get("guild") or first.get("user", {}).get("id")

    @staticmethod
    def call(sim_url, operation, params):
        return f"{sim_url}/api/v10{operation}", params, {"Authorization": f"Bot {Discord.token}",
                                                        "User-Agent": "DiscordBot (https://example.org, 1)"}


def manifest():
    """The app that docs/platforms/slack.md offers to paste."""
    with open(os.path.join(TOP, "docs/platforms/slack.md"), encoding="utf-8") as f:
        return json.loads(f.read().split("```json\n")[1].split("\n```")[0])


class SlackSpec:
    """Slack's own description of its methods, with those it lacks. It is read here without the simulator's code."""

    AUTOMATIC = {"token"}  # in a header

    def __init__(self):
        with open(os.path.join(TOP, "tests/data/slack_web_openapi_v2.json"), encoding="utf-8") as f:
            paths = json.load(f)["paths"]
        with open(os.path.join(TOP, "tests/data/slack_supplement.json"), encoding="utf-8") as f:
            added = json.load(f)["methods"]
        self.methods = {}
        for path, verbs in paths.items():
            for verb in verbs.values():
                self.methods[path[1:]] = {p["name"]: p for p in verb["parameters"] if p["name"] not in self.AUTOMATIC}
        for name, method in added.items():
            self.methods.setdefault(name, {}).update({**method.get("args", {}), **method.get("added_args", {})})
        # documented later than the file: https://docs.slack.dev/reference/methods
        for name in ("conversations.history", "conversations.replies"):
            self.methods[name]["include_all_metadata"] = {"type": "boolean"}
        self.methods["chat.postEphemeral"]["metadata"] = {"type": "object"}

    TYPES = {"string": str, "integer": (int, str), "number": (int, float, str), "boolean": (bool, str), "array": list,
             "object": dict}

    def misfit(self, method, args):
        known = self.methods.get(method)
        if method == "response_url":
            return None  # an address, not a method
        if known is None:
            return f"{method} is not a published method"
        for name, value in args.items():
            if name not in known:
                return f"{method} has no argument '{name}'"
            wanted = self.TYPES[known[name].get("type", "string")]
            # JSON where the description has its text
            if not isinstance(value, wanted) and not (wanted is str and isinstance(value, (list, dict, bool, int))):
                return f"{method}: '{name}' is {value!r}"
        missing = [name for name, p in known.items() if p.get("required") is True and name not in args]
        return f"{method} needs '{missing[0]}'" if missing else None


class Slack(Platform):
    spec = SlackSpec()
    webhook = "events"
    name, id, token = "slack", "sl", "xoxb-simulator-token"
    quiet = {"status", "open"}
    fields = {"thread": ("thread_ts",), "message_id": ("ts",), "blocks": lambda item: Slack.blocks(item),
              "files": lambda item: len(item["message"].get("files", [])), "fences": lambda item: item["text"].count("```"),
              "key": ("message", "metadata", "event_type"), "broadcast": ("message", "subtype"),
              # the parts of a card: the title is the text, or in the attachment alone
              "color": lambda item: "#" + Slack.attachment(item).get("color", ""), "body": lambda item: Slack.inside(item, "section", "text"),
              "fields": lambda item: Slack.inside(item, "section", "fields"), "footer": lambda item: Slack.inside(item, "context", "elements"),
              "buttons": lambda item: " ".join(e["text"]["text"] for b in item["message"].get("blocks", []) + Slack.attachment(item).get("blocks", [])
                                               if b["type"] == "actions" for e in b["elements"])}

    @staticmethod
    def attachment(item):
        return next(iter(item.get("message", {}).get("attachments") or []), {})

    @staticmethod
    def inside(item, kind, member):
        """The texts of an attachment's blocks; None: there are none."""
        found = [b[member] for b in Slack.attachment(item).get("blocks", []) if b["type"] == kind and member in b]
        texts = [text["text"] for f in found for text in (f if isinstance(f, list) else [f])]
        return " | ".join(texts) or None

    @staticmethod
    def blocks(item):
        return " ".join(block["type"] for block in item["message"].get("blocks", []))

    @staticmethod
    def adapter(sim_url):
        # short waits; exchanges about waiting set their own
        return {"type": "slack", "botToken": Slack.token, "appToken": Slack.token.replace("xoxb", "xapp"),
                "apiBase": f"{sim_url}/api", "dm": "everyone", "channels": ["*"], "rateLimit": {"turns": 0},
                "debounceMs": 200, "slowReactionMs": 0, "autoThreadChars": 0, "conversationSeconds": 30,
                "streaming": "off", "pace": {"perSecond": 0, "perChatPerSecond": 0}}

    @staticmethod
    def prepare(sim_url, control):
        """The app has the scopes and events of the manifest, and no others."""
        app = manifest()
        control("apps", {"app": "dragoman", "scopes": app["oauth_config"]["scopes"]["bot"],
                         "events": app["settings"]["event_subscriptions"]["bot_events"]})
        return {"signing_secret": look(f"{sim_url}/sim/state")["apps"][0]["signing_secret"]}

    @staticmethod
    def made(answer):
        first = answer.get("results", [answer])[0]
        return first.get("message_id") or first.get("channel") or first.get("user") or first.get("app")

    @staticmethod
    def is_said(message):
        return message.get("subtype", "file_share") in ("file_share", "thread_broadcast", "bot_message")

    @staticmethod
    def sent_id(item):
        return item.get("ts")

    @staticmethod
    def misfit(call):
        return Slack.spec.misfit(call["method"], call.get("args", {}))

    @staticmethod
    def call(sim_url, method, params):
        return f"{sim_url}/api/{method}", params, {"Authorization": f"Bearer {Slack.token}",
                                                   "Content-Type": "application/json; charset=utf-8"}

    @staticmethod
    def post(names, body, secret="", age=0, form="", retry=0):
        """Signed as Slack does; with `form` as the member of a form."""
        secret = secret or names["signing_secret"]
        raw = urllib.parse.urlencode({form: json.dumps(body)}) if form else json.dumps(body)
        at = str(int(time.time()) - int(age))
        signature = hmac.new(str(secret).encode(), f"v0:{at}:{raw}".encode(), hashlib.sha256).hexdigest()
        return raw.encode(), {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={signature}",
                              "Content-Type": "application/x-www-form-urlencoded" if form else "application/json",
                              **({"X-Slack-Retry-Num": str(retry)} if retry else {})}


PLATFORMS = {platform.name: platform for platform in (Telegram, Discord, Slack)}
