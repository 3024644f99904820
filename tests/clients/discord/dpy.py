#!/usr/bin/env python3
"""discord.py (Debian's python3-discord), unchanged, against the simulator."""
import asyncio
import datetime
import io
import json
import os
import sys
import urllib.request

import discord
import yarl
from discord import app_commands

ROOT = os.environ["SIM_URL"]
TOKEN = os.environ["SIM_TOKEN"]
seen = 0


def fetch(path, request=None):
    data = json.dumps(request).encode() if request is not None else None
    with urllib.request.urlopen(ROOT + "/sim/" + path, data) as answer:
        return json.load(answer)


async def ask(path, request=None):
    return await asyncio.get_running_loop().run_in_executor(None, fetch, path, request)


async def next_action(kind, matches=lambda item: True):
    """Waits for the bot's next action of this kind that matches."""
    global seen
    for _ in range(10):
        for item in (await ask("messages?after=%d&wait=1000&limit=1000" % seen))["items"]:
            seen = item["seq"]
            if item["kind"] == kind and matches(item):
                return item
    raise AssertionError("the bot did no " + kind)


async def next_message(text):
    return await next_action("message", lambda m: m["text"] == text)


async def refused(code, awaitable):
    try:
        await awaitable
    except discord.HTTPException as error:
        assert error.code == code, error
        return
    raise AssertionError("%d was expected" % code)


# The library keeps Discord's addresses in two constants.
discord.http.Route.BASE = ROOT + "/api/v10"
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(fetch("state")["gateway"])

intents = discord.Intents.default()
intents.message_content = True
client = discord.Client(intents=intents)
tree = app_commands.CommandTree(client)
happened = asyncio.Queue()


class Yes(discord.ui.View):
    @discord.ui.button(label="Yes", custom_id="yes")
    async def pressed(self, interaction, _):
        await interaction.response.edit_message(content="you said yes", view=None)


@tree.command(description="Asks something")
async def ask_me(interaction: discord.Interaction, question: str):
    await interaction.response.defer(thinking=True)
    await interaction.edit_original_response(content="about " + question)
    await interaction.followup.send("and more", ephemeral=True)


@client.event
async def on_message(message):
    if message.author == client.user or message.author.bot or message.is_system():
        return
    if message.content == "menu":
        await message.channel.send("choose", view=Yes())
    elif message.attachments:
        loud = (await message.attachments[0].read()).upper()
        await message.channel.send("here", file=discord.File(io.BytesIO(loud), "loud.txt", description="loud"))
    elif message.content == "thread":
        thread = await message.create_thread(name="A thread")
        await thread.send("in here")
    else:
        async with message.channel.typing():
            await message.reply("echo: " + message.clean_content, mention_author=False)


@client.event
async def on_message_edit(_, after):
    if after.author != client.user:
        await after.channel.send("now: " + after.content)


@client.event
async def on_message_delete(message):
    if message.author != client.user:
        await happened.put(("deleted", message.id))


@client.event
async def on_reaction_add(reaction, user):
    if user != client.user:
        await happened.put(("reaction", str(reaction.emoji), user.name))


@client.event
async def on_raw_reaction_remove(payload):
    await happened.put(("unreaction", str(payload.emoji)))


@client.event
async def on_thread_create(thread):
    await happened.put(("thread", thread.name))


@client.event
async def on_scheduled_event_create(event):
    await happened.put(("planned", event.name, event.location))


@client.event
async def on_scheduled_event_update(_, after):
    await happened.put(("replanned", after.name))


@client.event
async def on_scheduled_event_delete(event):
    await happened.put(("unplanned", event.id))


@client.event
async def on_resumed():
    await happened.put(("resumed",))


async def awaited(kind):
    while True:
        event = await asyncio.wait_for(happened.get(), 10)
        if event[0] == kind:
            return event[1:]


async def login():
    await asyncio.wait_for(client.wait_until_ready(), 10)
    assert client.user.name == "dragoman"
    assert [g.name for g in client.guilds] == ["Lab"]
    assert [c.name for c in client.guilds[0].text_channels] == ["general"]


async def receive_and_reply():
    sent = await ask("send", {"channel": "general", "text": "hi 👋"})
    reply = await next_message("echo: hi 👋")
    assert reply["reply_to"] == sent["message_id"]
    assert reply["message"]["mentions"] == []


async def direct():
    await ask("send", {"text": "psst"})
    assert (await next_message("echo: psst"))["to"] == "ada"
    ada = await client.fetch_user(42)
    await ada.send("on my own")
    await next_message("on my own")
    await ask("users", {"id": "42", "refuses": True})
    await refused(50007, ada.send("no?"))
    await ask("users", {"id": "42", "refuses": False})


async def edits_and_deletes():
    channel = client.get_channel(900000000000000002)
    message = await channel.send("frist")
    await message.edit(content="first")
    assert (await next_action("edit"))["text"] == "first"
    await message.delete()
    await next_action("delete")
    await refused(10008, message.edit(content="gone"))
    await refused(50006, channel.send(""))
    await refused(50035, channel.send("x" * 2001))
    sent = await ask("send", {"channel": "general", "text": "tpyo"})
    await next_message("echo: tpyo")
    await ask("edit", {"message_id": sent["message_id"], "text": "typo"})
    await next_message("now: typo")
    await ask("delete", {"message_id": sent["message_id"]})
    assert await awaited("deleted") == (int(sent["message_id"]),)


async def reactions():
    sent = await ask("send", {"channel": "general", "text": "react"})
    await next_message("echo: react")
    channel = client.get_channel(900000000000000002)
    message = await channel.fetch_message(int(sent["message_id"]))
    await message.add_reaction("👀")
    assert (await next_action("reaction"))["emoji"] == "👀"
    await message.remove_reaction("👀", client.user)
    await next_action("reaction_removed")
    await refused(10014, message.add_reaction("no emoji"))
    await ask("react", {"message_id": sent["message_id"], "emoji": "👍"})
    assert await awaited("reaction") == ("👍", "ada")
    await ask("unreact", {"message_id": sent["message_id"], "emoji": "👍"})
    await awaited("unreaction")


async def attachments():
    await ask("send", {"channel": "general", "files": [{"content": "quiet", "file_name": "a.txt"}]})
    item = await next_message("here")
    attachment = item["message"]["attachments"][0]
    assert attachment["filename"] == "loud.txt" and attachment["description"] == "loud", attachment
    with urllib.request.urlopen(attachment["url"]) as answer:
        assert answer.read() == b"QUIET"


async def threads():
    sent = await ask("send", {"channel": "general", "text": "thread"})
    item = await next_action("thread")
    assert item["thread"] == sent["message_id"] and item["name"] == "A thread", item
    assert (await next_message("in here"))["channel"] == sent["message_id"]
    thread = client.get_channel(int(sent["message_id"]))
    await ask("send", {"channel": sent["message_id"], "text": "follow-up"})
    assert (await next_message("echo: follow-up"))["channel"] == sent["message_id"]
    await thread.edit(name="Renamed", archived=False)
    assert (await next_action("thread_change"))["change"]["name"] == "Renamed"
    await refused(160004, (await thread.parent.fetch_message(thread.id)).create_thread(name="again"))
    await ask("channels", {"name": "help", "type": "forum"})
    await ask("thread", {"channel": "help", "name": "A post", "text": "how?"})
    while await awaited("thread") != ("A post",):
        pass
    await next_message("echo: how?")
    forum = discord.utils.get(client.guilds[0].forums, name="help")
    post = await forum.create_thread(name="My post", content="like this")
    assert post.message.content == "like this" and post.thread.parent == forum


async def history():
    channel = client.get_channel(900000000000000002)
    newest = [m async for m in channel.history(limit=3)]
    assert newest[0].id > newest[1].id > newest[2].id
    after = [m.id async for m in channel.history(limit=2, after=newest[2])]
    assert after == [newest[1].id, newest[0].id], after


async def interactions():
    await ask("send", {"channel": "general", "text": "menu"})
    menu = await next_message("choose")
    await ask("press", {"message_id": menu["message_id"], "custom_id": "yes"})
    answer = await next_action("interaction_answer")
    assert answer["type"] == 7 and answer["text"] == "you said yes", answer
    await tree.sync()
    commands = (await next_action("commands"))["commands"]
    assert [c["name"] for c in commands] == ["ask_me"]
    await ask("command", {"channel": "general", "name": "ask_me", "options": {"question": "why"}})
    assert (await next_action("interaction_answer"))["type"] == 5
    assert (await next_action("interaction_edit"))["text"] == "about why"
    follow_up = await next_action("follow_up")
    assert follow_up["text"] == "and more" and follow_up["ephemeral"]


async def scheduled_events():
    begins = discord.utils.utcnow() + datetime.timedelta(hours=1)
    made = await client.guilds[0].create_scheduled_event(
        name="Catan", description="Bring snacks", start_time=begins, end_time=begins + datetime.timedelta(hours=1),
        location="Ann's", entity_type=discord.EntityType.external, privacy_level=discord.PrivacyLevel.guild_only)
    assert (await next_action("scheduled_event"))["event"]["name"] == "Catan"
    assert await awaited("planned") == ("Catan", "Ann's")
    await ask("interest", {"event_id": str(made.id)})
    # without the members intent the library reports no interest of people it does not know
    assert [u.name async for u in made.users()] == ["ada"]
    await made.edit(name="Azul")
    assert await awaited("replanned") == ("Azul",)
    theirs = await ask("event", {"name": "Go", "place": "the park"})
    assert await awaited("planned") == ("Go", "the park")
    await ask("event", {"event_id": theirs["event_id"], "name": "Chess"})
    assert await awaited("replanned") == ("Chess",)
    await made.delete()
    assert await awaited("unplanned") == (made.id,)
    await refused(10070, client.guilds[0].fetch_scheduled_event(made.id))


async def resume():
    await ask("gateway", {"action": "cut"})
    await ask("send", {"channel": "general", "text": "while away"})
    await next_message("echo: while away")
    await awaited("resumed")
    links = (await ask("links?kind=resume"))["items"]
    assert links[-1]["known"] and links[-1]["path"] == "/resume", links
    await ask("gateway", {"action": "reconnect"})
    await awaited("resumed")
    identified = (await ask("links?kind=identify"))["items"]
    assert len(identified) == 1


async def valid():
    invalid = (await ask("calls?valid=false"))["items"]
    odd = [c for c in invalid if c["code"] not in (50006, 50035)]
    assert not odd, odd


PARTS = [login, receive_and_reply, direct, edits_and_deletes, reactions, attachments, threads, history, interactions,
         scheduled_events, resume, valid]


async def main():
    running = asyncio.create_task(client.start(TOKEN))
    for part in PARTS:
        trial = asyncio.create_task(part())
        await asyncio.wait({trial, running}, return_when=asyncio.FIRST_COMPLETED, timeout=40)
        if running.done():
            running.result()
        trial.result()
        print("ok    discord.py: " + part.__name__.replace("_", " "), flush=True)
    await client.close()


asyncio.run(main())
