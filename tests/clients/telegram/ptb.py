#!/usr/bin/env python3
"""python-telegram-bot (Debian's python3-python-telegram-bot), unchanged, against the simulator."""
import io
import json
import os
import sys
import time
import urllib.request

from telegram import (Bot, InlineKeyboardButton, InlineKeyboardMarkup, InputMediaDocument, ParseMode)
from telegram.error import BadRequest, Unauthorized
from telegram.ext import (CallbackQueryHandler, CommandHandler, Filters, MessageHandler, Updater)

ROOT = os.environ["SIM_URL"]
TOKEN = os.environ["SIM_TOKEN"]
seen = 0


def ask(path, request=None):
    data = json.dumps(request).encode() if request is not None else None
    with urllib.request.urlopen(ROOT + "/sim/" + path, data) as answer:
        return json.load(answer)


def next_action(kind, matches=lambda item: True):
    """Waits for the bot's next action of this kind that matches."""
    global seen
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for item in ask("messages?after=%d&wait=2000&limit=1" % seen)["items"]:
            seen = item["seq"]
            if item["kind"] == kind and matches(item):
                return item
    raise AssertionError("the bot did no " + kind)


def next_message(text):
    return next_action("message", lambda m: m["message"].get("text") == text)


def refused(kind, words, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind as error:
        assert words.lower() in str(error).lower(), error
        return
    raise AssertionError("%s was expected" % words)


def on_text(update, _):
    update.message.reply_text("echo: " + update.message.text, quote=True)


def on_menu(update, _):
    update.message.reply_text("choose", reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]]))


def on_press(update, _):
    update.callback_query.answer("good")
    update.callback_query.edit_message_text("you said yes")


def on_document(update, _):
    content = bytes(update.message.document.get_file().download_as_bytearray())
    update.message.reply_document(io.BytesIO(content.upper()), filename="loud.txt", caption="here")


def add_handlers(updater):
    updater.dispatcher.add_handler(CommandHandler("menu", on_menu))
    updater.dispatcher.add_handler(CallbackQueryHandler(on_press))
    updater.dispatcher.add_handler(MessageHandler(Filters.document, on_document))
    updater.dispatcher.add_handler(MessageHandler(Filters.text, on_text))


def polling():
    updater = Updater(TOKEN, base_url=ROOT + "/bot", base_file_url=ROOT + "/file/bot")
    add_handlers(updater)
    updater.start_polling(timeout=1)
    ask("send", {"from": 42, "text": "hi"})
    assert next_message("echo: hi")["message"]["reply_to_message"]["text"] == "hi"
    ask("send", {"from": 42, "text": "/menu"})
    menu = next_message("choose")
    ask("press", {"chat": 42, "message_id": menu["message_id"], "data": "yes"})
    assert next_action("callback_answer")["text"] == "good"
    assert next_action("edit")["message"]["text"] == "you said yes"
    ask("send", {"from": 42, "document": {"content": "quiet", "file_name": "a.txt"}})
    assert next_action("message", lambda m: "document" in m["message"])["message"]["caption"] == "here"
    updater.stop()


def calls():
    bot = Bot(TOKEN, base_url=ROOT + "/bot", base_file_url=ROOT + "/file/bot")
    assert bot.get_me().username == "dragoman_sim_bot"
    bold = bot.send_message(42, "<b>bold</b>", parse_mode=ParseMode.HTML)
    assert bold.entities[0].type == "bold"
    refused(BadRequest, "can't parse entities", bot.send_message, 42, "<b>", parse_mode=ParseMode.HTML)
    refused(BadRequest, "chat not found", bot.send_message, 4711, "x")
    refused(BadRequest, "message is not modified", bold.edit_text, "<b>bold</b>", parse_mode=ParseMode.HTML)
    album = bot.send_media_group(42, [InputMediaDocument(io.BytesIO(b"1"), filename="1.txt"),
                                      InputMediaDocument(io.BytesIO(b"2"), filename="2.txt")])
    assert bytes(album[1].document.get_file().download_as_bytearray()) == b"2"
    voice = bot.send_voice(42, io.BytesIO(b"OggS"), duration=3)
    assert voice.voice.duration == 3
    place = bot.send_location(42, 52.5, 13.4)
    assert round(place.location.latitude, 1) == 52.5
    assert bot.set_my_commands([("start", "begin")]) and bot.get_my_commands()[0].command == "start"
    # newer than this library: call it by name
    bot._post("setMessageReaction", {"chat_id": 42, "message_id": bold.message_id,
                                     "reaction": [{"type": "emoji", "emoji": "👌"}]})
    assert next_action("reaction")["reaction"][0]["emoji"] == "👌"
    forum = ask("chats", {"title": "Forum", "forum": True, "bot_status": "administrator"})["chat"]["id"]
    topic = bot._post("createForumTopic", {"chat_id": forum, "name": "News"})["message_thread_id"]
    inside = bot.send_message(forum, "in here", api_kwargs={"message_thread_id": topic})
    assert inside.text == "in here"
    assert next_message("in here")["message"]["message_thread_id"] == topic
    assert bold.delete()
    ask("block", {"user": 42})
    refused(Unauthorized, "blocked", bot.send_message, 42, "x")
    ask("block", {"user": 42, "blocked": False})


def webhook():
    updater = Updater(TOKEN, base_url=ROOT + "/bot", base_file_url=ROOT + "/file/bot")
    add_handlers(updater)
    port = int(os.environ["HOOK_PORT"])
    updater.start_webhook(listen="127.0.0.1", port=port, url_path="hook", webhook_url="http://127.0.0.1:%d/hook" % port)
    ask("send", {"from": 42, "text": "by hook"})
    next_message("echo: by hook")
    updater.bot.delete_webhook()
    updater.stop()


def main():
    for part in (polling, calls, webhook):
        part()
        print("ok    python-telegram-bot: " + part.__name__)
    invalid = ask("calls?valid=false")["items"]
    assert not invalid, invalid
    print("ok    python-telegram-bot: every call was valid")


if __name__ == "__main__":
    try:
        main()
        code = 0
    except BaseException as error:  # threads of the library would keep us alive
        print("FAIL  python-telegram-bot: %r" % error, file=sys.stderr)
        import traceback
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
