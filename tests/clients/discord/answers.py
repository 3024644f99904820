#!/usr/bin/env python3
"""The simulator's answers match Discord's own description."""
import json
import os
import sys
import urllib.request

ROOT = os.environ["SIM_URL"]
TOKEN = os.environ["SIM_TOKEN"]
HERE = os.path.dirname(os.path.abspath(__file__))
GUILD, GENERAL, BOT = "900000000000000001", "900000000000000002", "900000000000000000"

with open(os.path.join(HERE, "../../data/discord_openapi.json"), encoding="utf-8") as f:
    SPEC = json.load(f)
OPERATIONS = {op["operationId"]: (method.upper(), path, op) for path, item in SPEC["paths"].items()
              for method, op in item.items() if isinstance(op, dict) and "operationId" in op}


def fetch(url, method, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "Bot " + TOKEN, "User-Agent": "DiscordBot (https://example.org, 1)", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as answer:
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def control(what, request):
    return fetch(ROOT + "/sim/" + what, "POST", request)[1]


def resolve(schema):
    while "$ref" in schema:
        schema = SPEC["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def problems(schema, value, path):
    """Lists the violations of a value."""
    schema = resolve(schema)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    choices = schema.get("oneOf") or schema.get("anyOf") or []
    constants = [c["const"] for c in choices if "const" in c] or schema.get("enum", [])
    if value is None:
        return [] if "null" in kinds or any(c.get("type") == "null" for c in choices) else [path + " is null"]
    if constants:
        return [] if value in constants else [f"{path} is {value!r}"]
    if choices:
        return min((problems(c, value, path) for c in choices if c.get("type") != "null"), key=len)
    if "allOf" in schema:
        return problems(schema["allOf"][0], value, path)
    if "object" in kinds:
        return object_problems(schema, value, path)
    if "array" in kinds and isinstance(value, list):
        return [p for i, item in enumerate(value) for p in problems(schema.get("items", {}), item, f"{path}[{i}]")]
    wanted = tuple({"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list}[k] for k in kinds if k != "null")
    return [] if not wanted or isinstance(value, wanted) else [f"{path} is {value!r}"]


def object_problems(schema, value, path):
    if not isinstance(value, dict):
        return [path + " is no object"]
    found = [f"{path}.{name} is missing" for name in schema.get("required", []) if name not in value]
    for name, below in schema.get("properties", {}).items():
        if name in value:
            found += problems(below, value[name], f"{path}.{name}")
    return found


def ask(name, body=None, query="", **ids):
    """Calls an operation and checks its answer against the description."""
    method, path, op = OPERATIONS[name]
    status, answer = fetch(ROOT + "/api/v10" + path.format(**ids) + query, method, body)
    described = op["responses"][str(status)].get("content", {}).get("application/json")
    wrong = problems(described["schema"], answer, name) if described else []
    assert not wrong, "\n".join(sorted(set(wrong)))
    print("ok    answers: " + name, flush=True)
    return answer


buttons = [{"type": 1, "components": [{"type": 2, "style": 1, "label": "Yes", "custom_id": "yes"}]}]
control("channels", {"name": "help", "type": "forum"})
first = ask("create_message", {"content": "x", "embeds": [{"title": "t"}], "components": buttons}, channel_id=GENERAL)
ask("create_message", {"content": "<@42>", "message_reference": {"message_id": first["id"]}}, channel_id=GENERAL)
ask("add_my_message_reaction", channel_id=GENERAL, message_id=first["id"], emoji_name="%F0%9F%91%8D")
ask("update_message", {"content": "y"}, channel_id=GENERAL, message_id=first["id"])
ask("get_message", channel_id=GENERAL, message_id=first["id"])
ask("create_thread_from_message", {"name": "T"}, channel_id=GENERAL, message_id=first["id"])
ask("list_messages", channel_id=GENERAL)
ask("get_channel", channel_id=GENERAL)
ask("trigger_typing_indicator", channel_id=GENERAL)
dm = ask("create_dm", {"recipient_id": "42"})
control("send", {"text": "look", "files": [{}], "extra": {}})
ask("list_messages", channel_id=dm["id"])
channels = ask("list_guild_channels", guild_id=GUILD)
forum = next(c for c in channels if c["name"] == "help")
ask("create_thread", {"name": "A post", "message": {"content": "q"}}, channel_id=forum["id"])
ask("get_active_guild_threads", guild_id=GUILD)
for name in ("get_my_user", "list_my_guilds", "get_gateway", "get_bot_gateway", "get_my_application"):
    ask(name)
ask("get_user", user_id="42")
ask("get_guild", guild_id=GUILD)
ask("list_guild_roles", guild_id=GUILD)
ask("get_guild_member", guild_id=GUILD, user_id="42")
command = {"name": "ask", "description": "Asks", "options": [{"type": 3, "name": "q", "description": "What"}]}
ask("bulk_set_application_commands", [command], application_id=BOT)
ask("list_application_commands", application_id=BOT)
made = control("command", {"channel": "general", "name": "ask", "options": {"q": "x"}})
ask("create_interaction_response", {"type": 4, "data": {"content": "z"}}, "?with_response=true",
    interaction_id=made["interaction"], interaction_token=made["token"])
ask("update_original_webhook_message", {"content": "edited"}, webhook_id=BOT, webhook_token=made["token"])
ask("execute_webhook", {"content": "more"}, "?wait=true", webhook_id=BOT, webhook_token=made["token"])
plan = {"name": "Catan", "description": "x", "privacy_level": 2, "entity_type": 3, "entity_metadata": {"location": "Ann's"},
        "scheduled_start_time": "2126-11-20T18:00:00Z", "scheduled_end_time": "2126-11-20T21:00:00Z"}
planned = ask("create_guild_scheduled_event", plan, guild_id=GUILD)
which = {"guild_id": GUILD, "guild_scheduled_event_id": planned["id"]}
control("interest", {"event_id": planned["id"]})
ask("update_guild_scheduled_event", {"name": "Azul", "description": None}, **which)
ask("get_guild_scheduled_event", query="?with_user_count=true", **which)
ask("list_guild_scheduled_events", guild_id=GUILD)
ask("list_guild_scheduled_event_users", query="?with_member=true&limit=100", **which)
ask("delete_guild_scheduled_event", **which)
ask("delete_message", channel_id=GENERAL, message_id=first["id"])
sys.exit(0)
