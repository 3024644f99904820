/* Rows of an update of the Bot API and the events it becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"
#include "road/channel_folder.h"

#define ANN                                                                                 \
        "\"from\":{\"id\":7,\"is_bot\":false,\"first_name\":\"Ann\",\"last_name\":\"Lee\"," \
        "\"username\":"                                                                     \
        "\"ann\"}"
#define DM "\"chat\":{\"id\":7,\"type\":\"private\",\"first_name\":\"Ann\"}"
#define GROUP \
        "\"chat\":{\"id\":-100200,\"type\":\"supergroup\",\"title\":\"Lab\",\"is_forum\":true}"
#define CHANNEL \
        "\"chat\":{\"id\":-100300,\"type\":\"channel\",\"title\":\"News\",\"username\":\"news\"}"
#define HEAD  "\"message_id\":5,\"date\":1000,"
#define FILE_ "\"file_id\":\"F\",\"file_unique_id\":\"U\""

static void show_flag(struct buf *b, bool yes, const char *name)
{
        if (yes)
                buf_addf(b, " %s", name);
}

static void show_text(struct buf *b, const char *name, const char *text)
{
        if (text)
                buf_addf(b, " %s=%s", name, text);
}

static void show_event(struct buf *b, const struct incoming *in)
{
        static const char *const chats[] = { "dm", "group", "channel" };

        buf_addf(b, "%s key=%s %s=%s", in->type, in->key, chats[in->chat], in->channel);
        show_text(b, "name", in->chat_name);
        show_text(b, "id", in->id);
        show_text(b, "thread", in->thread);
        buf_addf(b, " from=%s", in->sender_id ? in->sender_id : "?");
        show_text(b, "as", in->sender_name);
        show_text(b, "user", in->sender_username);
        show_flag(b, in->sender_is_bot, "bot");
        show_flag(b, in->is_mention, "mention");
        show_flag(b, in->is_reply, "reply");
        show_text(b, "to", in->reply_to);
        show_text(b, "emoji", in->emoji);
        show_flag(b, in->emoji_custom, "custom");
        if (in->time_ms > 0)
                buf_addf(b, " at=%" PRId64, in->time_ms / 1000);
        show_text(b, "text", in->text);
        show_text(b, "raw", in->raw_text);
}

static void show_update(struct buf *b, const struct tg_update *u)
{
        const struct intake_content *c = &u->base.content;

        for (size_t i = 0; i < c->event_count; i++) {
                buf_addstr(b, i > 0 ? " | " : "");
                show_event(b, &c->events[i]);
        }
        for (size_t i = 0; i < c->attachment_count; i++) {
                buf_addf(b, " [%s", c->attachments[i].kind);
                show_text(b, "name", c->attachments[i].name);
                show_text(b, "mime", c->attachments[i].mime);
                show_text(b, "file", c->attachments[i].source);
                buf_addstr(b, "]");
        }
        show_text(b, "album", u->album);
        show_text(b, "callback", u->callback);
        show_text(b, "moved", u->migrated);
        if (c->event_count == 0)
                buf_addf(b, "nothing: %s", c->ignored);
}

/* The events of an update as one line; yours to free. */
static char *read_update(const char *update)
{
        const struct tg_self self = { .id = 42, .username = "TestBot" };
        struct error err = { 0 };
        json_t *j = json_read(update, strlen(update), &err);
        struct tg_update u = { 0 };
        struct buf b;

        if (!j)
                fail_msg("%s: %s", err.text, update);
        buf_init(&b, 0);
        tg_update_read(&u, &self, j);
        show_update(&b, &u);
        tg_update_release(&u);
        json_decref(j);
        return buf_take(&b);
}

struct row {
        const char *update, *events;
};

static void check(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char *got = read_update(rows[i].update);

                assert_string_equal(got, rows[i].events);
                free(got);
        }
}

#define U(kind, body) "{\"update_id\":9,\"" kind "\":{" body "}}"
#define FROM_ANN      " from=7 as=Ann Lee user=ann"
/* clang-format off */

static void messages_of_every_kind_of_chat_are_read(void **state)
{
        static const struct row rows[] = {
                { U("message", HEAD ANN "," DM ",\"text\":\"hi\""),
                  "message.received key=7:5 dm=7 name=Ann id=5" FROM_ANN " at=1000 text=hi" },
                { U("message", HEAD ANN "," GROUP ",\"text\":\"hi\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5" FROM_ANN
                  " at=1000 text=hi" },
                { U("channel_post", HEAD "\"sender_chat\":{\"id\":-100300,\"title\":\"News\","
                  "\"username\":\"news\"}," CHANNEL ",\"text\":\"hi\""),
                  "message.received key=-100300:5 channel=-100300 name=News id=5 from=-100300 "
                  "as=News user=news at=1000 text=hi" },
                { U("channel_post", HEAD CHANNEL ",\"text\":\"hi\""),
                  "message.received key=-100300:5 channel=-100300 name=News id=5 from=-100300 "
                  "as=News user=news at=1000 text=hi" },
                /* an anonymous administrator is the group, not the placeholder bot */
                { U("message", HEAD "\"from\":{\"id\":1087968824,\"is_bot\":true,"
                  "\"first_name\":\"Group\"},"
                    "\"sender_chat\":{\"id\":-100200,\"title\":\"Lab\"}," GROUP ",\"text\":\"hi\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5 from=-100200 as=Lab "
                  "at=1000 text=hi" },
                { U("message", HEAD "\"from\":{\"id\":8,\"is_bot\":true,\"first_name\":\"Other\"},"
                  GROUP ",\"text\":\"hi\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5 from=8 as=Other bot "
                  "at=1000 text=hi" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void only_real_topics_are_threads(void **state)
{
        static const struct row rows[] = {
                { U("message", HEAD ANN "," GROUP ",\"is_topic_message\":true,"
                  "\"message_thread_id\":11,\"text\":\"t\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5 thread=11" FROM_ANN
                  " at=1000 text=t" },
                { U("message", HEAD ANN "," GROUP ",\"is_topic_message\":true,"
                  "\"message_thread_id\":1,\"text\":\"general\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5" FROM_ANN
                  " at=1000 text=general" },
                { U("message", HEAD ANN "," GROUP ",\"message_thread_id\":3,\"text\":\"a thread of "
                  "replies\""),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5" FROM_ANN
                  " at=1000 text=a thread of replies" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void mentions_are_found_by_entities(void **state)
{
#define SAYS(text, entities) U("message", HEAD ANN "," GROUP ",\"text\":\"" text \
        "\",\"entities\":[" entities "]")
#define EVENT "message.received key=-100200:5 group=-100200 name=Lab id=5" FROM_ANN
        static const struct row rows[] = {
                { SAYS("@testbot hi", "{\"type\":\"mention\",\"offset\":0,\"length\":8}"),
                  EVENT " mention at=1000 text=hi raw=@testbot hi" },
                { SAYS("@TESTBOT, hi", "{\"type\":\"mention\",\"offset\":0,\"length\":8}"),
                  EVENT " mention at=1000 text=hi raw=@TESTBOT, hi" },
                { SAYS("tell me @TestBot now", "{\"type\":\"mention\",\"offset\":8,\"length\":8}"),
                  EVENT " mention at=1000 text=tell me now raw=tell me @TestBot now" },
                { SAYS("hi @TestBot", "{\"type\":\"mention\",\"offset\":3,\"length\":8}"),
                  EVENT " mention at=1000 text=hi raw=hi @TestBot" },
                /* offsets count UTF-16 units: the rocket has two */
                { SAYS("🚀é @TestBot go", "{\"type\":\"mention\",\"offset\":4,\"length\":8}"),
                  EVENT " mention at=1000 text=🚀é go raw=🚀é @TestBot go" },
                { SAYS("@testbot2 hi", "{\"type\":\"mention\",\"offset\":0,\"length\":9}"), EVENT
                  " at=1000 text=@testbot2 hi" },
                { SAYS("@testbot hi", ""), EVENT " at=1000 text=@testbot hi" },
                { SAYS("Robot, hi", "{\"type\":\"text_mention\",\"offset\":0,\"length\":5,"
                  "\"user\":{\"id\":42}}"),
                  EVENT " mention at=1000 text=hi raw=Robot, hi" },
                { SAYS("Bob, hi", "{\"type\":\"text_mention\",\"offset\":0,\"length\":3,"
                  "\"user\":{\"id\":43}}"),
                  EVENT " at=1000 text=Bob, hi" },
                { SAYS("/ask@TestBot why", "{\"type\":\"bot_command\",\"offset\":0,\"length\":12}"),
                  EVENT " mention at=1000 text=/ask why raw=/ask@TestBot why" },
                { SAYS("/ask@other why", "{\"type\":\"bot_command\",\"offset\":0,\"length\":10}"),
                  EVENT " at=1000 text=/ask@other why" },
                /* nonsense is skipped */
                { SAYS("hi", "{\"type\":\"mention\",\"offset\":90,\"length\":8},"
                  "{\"type\":\"mention\",\"offset\":-1,\"length\":2},"
                       "{\"type\":7},null,{\"type\":\"mention\",\"offset\":9223372036854775807,"
                       "\"length\":9223372036854775807}"),
                  EVENT " at=1000 text=hi" },
                { U("message", HEAD ANN "," GROUP ",\"caption\":\"@testbot look\","
                  "\"caption_entities\":[{\"type\":\"mention\","
                    "\"offset\":0,\"length\":8}],\"voice\":{" FILE_ "}"),
                  EVENT " mention at=1000 text=look raw=@testbot look [voice name=voice.ogg "
                          "mime=audio/ogg file=F]" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void an_answer_to_the_bot_is_a_reply(void **state)
{
        static const struct row rows[] = {
                { U("message", HEAD ANN "," GROUP ",\"text\":\"yes\","
                  "\"reply_to_message\":{\"message_id\":4,\"from\":{\"id\":42},\"text\":\"?\"}"),
                  EVENT " reply to=4 at=1000 text=yes" },
                { U("message", HEAD ANN "," GROUP ",\"text\":\"yes\","
                  "\"reply_to_message\":{\"message_id\":4,\"from\":{\"id\":8}}"),
                  EVENT " to=4 at=1000 text=yes" },
                /* in a topic opened by the bot every message looks like a reply to the bot */
                { U("message", HEAD ANN "," GROUP ",\"text\":\"yes\",\"is_topic_message\":true,"
                  "\"message_thread_id\":4,"
                    "\"reply_to_message\":{\"message_id\":4,\"from\":{\"id\":42},"
                  "\"forum_topic_created\":{\"name\":\"x\"}}"),
                  "message.received key=-100200:5 group=-100200 name=Lab id=5 thread=4" FROM_ANN
                  " at=1000 text=yes" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void files_become_attachments(void **state)
{
#define BRINGS(body) U("message", HEAD ANN "," DM "," body)
#define GOT "message.received key=7:5 dm=7 name=Ann id=5" FROM_ANN " at=1000"
        static const struct row rows[] = {
                { BRINGS("\"photo\":[{\"file_id\":\"S\",\"width\":9,\"height\":9},{" FILE_
                  ",\"width\":90,\"height\":90}],\"caption\":\"sea\""),
                  GOT " text=sea [image name=photo.jpg mime=image/jpeg file=F]" },
                { BRINGS("\"audio\":{" FILE_ ",\"file_name\":\"song.flac\","
                  "\"mime_type\":\"audio/flac\"}"),
                  GOT " [audio name=song.flac mime=audio/flac file=F]" },
                { BRINGS("\"voice\":{" FILE_ "}"), GOT " [voice name=voice.ogg mime=audio/ogg "
                  "file=F]" },
                { BRINGS("\"video\":{" FILE_ "}"), GOT " [video name=video.mp4 mime=video/mp4 "
                  "file=F]" },
                { BRINGS("\"video_note\":{" FILE_ "}"), GOT " [video name=video_note.mp4 "
                  "mime=video/mp4 file=F]" },
                { BRINGS("\"document\":{" FILE_ ",\"file_name\":\"a.pdf\","
                  "\"mime_type\":\"application/pdf\"}"),
                  GOT " [document name=a.pdf mime=application/pdf file=F]" },
                { BRINGS("\"animation\":{" FILE_ "},\"document\":{" FILE_ "}"), GOT
                  " [video name=animation.mp4 mime=video/mp4 file=F]" },
                { BRINGS("\"sticker\":{" FILE_ ",\"emoji\":\"😀\",\"is_animated\":true}"),
                  GOT " text=😀 [sticker name=sticker.webp mime=application/x-tgsticker file=F]" },
                { BRINGS("\"location\":{\"latitude\":52.5,\"longitude\":13.25}"), GOT
                  " text=Location: 52.500000, 13.250000 [location]" },
                { BRINGS("\"contact\":{\"first_name\":\"Bo\",\"phone_number\":\"+1\"}"), GOT
                  " text=Contact: Bo +1 [contact]" },
                { BRINGS("\"checklist\":{\"title\":\"Trip\",\"tasks\":[{\"text\":\"pack\","
                  "\"completion_date\":5},{\"text\":\"go\"}]}"),
                  GOT " text=Checklist: Trip\n[x] pack\n[ ] go" },
                { BRINGS("\"story\":{\"chat\":{\"id\":8,\"first_name\":\"Bo\"},\"id\":1}"), GOT
                  " text=Story of Bo" },
                { BRINGS("\"game\":{\"title\":\"Chess\"}"), GOT " text=Game: Chess" },
                { BRINGS("\"invoice\":{\"title\":\"Tea\"}"), GOT " text=Invoice: Tea" },
                { BRINGS("\"paid_media\":{\"star_count\":3}"), GOT " text=Paid media for 3 stars" },
                { BRINGS("\"paid_media\":{\"star_count\":3},\"caption\":\"look\""), GOT
                  " text=look" },
                { BRINGS("\"giveaway\":{\"prize_description\":\"a book\"}"), GOT
                  " text=Giveaway: a book" },
                { BRINGS("\"media_group_id\":\"g\",\"photo\":[{" FILE_ "}]"),
                  GOT " [image name=photo.jpg mime=image/jpeg file=F] album=g" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void a_rich_message_is_read_line_by_line(void **state)
{
#define RICH(blocks) U("message", HEAD ANN "," DM ",\"rich_message\":{\"blocks\":[" blocks "]}")
        static const struct row rows[] = {
                { RICH("{\"type\":\"section_heading\",\"text\":\"Plan\"},"
                       "{\"type\":\"paragraph\",\"text\":[\"do \",{\"type\":\"bold\","
                       "\"text\":[\"it \",{\"type\":\"italic\",\"text\":\"now\"}]}]}"),
                  GOT " text=Plan\ndo it now" },
                { RICH("{\"type\":\"list\",\"items\":[{\"label\":\"1.\","
                  "\"blocks\":[{\"type\":\"paragraph\",\"text\":\"a\"}]},"
                       "{\"label\":\"2.\",\"blocks\":[{\"type\":\"paragraph\",\"text\":\"b\"}]}]}"),
                  GOT " text=1. a\n2. b" },
                { RICH("{\"type\":\"table\",\"cells\":[[{\"text\":\"a\"},{\"text\":\"b\"}],"
                  "[{\"text\":\"c\"},{}]],\"caption\":\"T\"}"),
                  GOT " text=a | b\nc | \nT" },
                { RICH("{\"type\":\"paragraph\",\"text\":[{\"type\":\"mention\","
                  "\"text\":\"@TestBot\",\"username\":\"testbot\"},\" hi \","
                       "{\"type\":\"mathematical_expression\",\"expression\":\"x^2\"}]}"),
                  "message.received key=7:5 dm=7 name=Ann id=5" FROM_ANN
                  " mention at=1000 text=@TestBot hi x^2" },
                { RICH("{\"type\":\"divider\"}"), GOT " text=Rich message without text" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void telegram_details_are_in_the_metadata(void **state)
{
        static const struct row rows[] = {
                { U("message", HEAD ANN "," GROUP ",\"text\":\"/ask it\","
                  "\"entities\":[{\"type\":\"bot_command\",\"offset\":0,\"length\":4}]"),
                  "{\"chatType\":\"supergroup\",\"command\":\"ask\","
                  "\"entities\":[{\"length\":4,\"offset\":0,\"type\":\"bot_command\"}],"
                  "\"updateId\":9}" },
                { U("message", HEAD ANN "," DM ",\"text\":\"x\","
                  "\"forward_origin\":{\"type\":\"hidden_user\"},\"via_bot\":{\"username\":\"gif\"}"
                  ","
                    "\"external_reply\":{\"message_id\":3},\"author_signature\":\"A\","
                  "\"is_automatic_forward\":true,\"media_group_id\":\"g\""),
                  "{\"authorSignature\":\"A\",\"chatType\":\"private\","
                  "\"externalReply\":{\"message_id\":3},\"forward\":{\"type\":\"hidden_user\"},"
                  "\"isAutomaticForward\":true,\"mediaGroupId\":\"g\",\"updateId\":9,"
                  "\"viaBot\":\"gif\"}" },
                { U("message", HEAD ANN "," DM ",\"text\":\"x\",\"quote\":{\"text\":\"some\"},"
                  "\"reply_to_message\":{\"message_id\":3,"
                    "\"caption\":\"some words\",\"from\":{\"id\":8,\"first_name\":\"Bo\"}}"),
                  "{\"chatType\":\"private\",\"replyTo\":{\"from\":\"Bo\",\"quote\":\"some\","
                  "\"text\":\"some words\"},\"updateId\":9}" },
                { U("message_reaction", "\"message_id\":5,\"date\":1000," GROUP
                  ",\"actor_chat\":{\"id\":-100200},\"old_reaction\":[],"
                    "\"new_reaction\":[{\"type\":\"emoji\",\"emoji\":\"👀\"}]"),
                  "{\"anonymous\":true,\"chatType\":\"supergroup\",\"updateId\":9}" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct tg_self self = { .id = 42, .username = "TestBot" };
                json_t *update = json_read(rows[i].update, strlen(rows[i].update), NULL);
                struct tg_update u = { 0 };
                char *text;

                tg_update_read(&u, &self, update);
                text = json_dumps(u.base.content.metadata, JSON_COMPACT | JSON_SORT_KEYS);
                assert_string_equal(text, rows[i].events);
                free(text);
                tg_update_release(&u);
                json_decref(update);
        }
}

static void the_update_id_is_found_in_broken_json(void **state)
{
        static const struct {
                const char *text;
                int64_t number;
        } rows[] = {
                { "{\"ok\":true,\"result\":[{\"update_id\":123,\"message\":{\"a\":1,\"a\":2}}]}",
                  123 },
                { "{\"update_id\": 7", 7 },
                { "{\"text\":\"\\\"update_id\\\":5\"}", -1 },
                { "{\"update_id\":\"7\"}", -1 },
                { "{\"update_id\":", -1 },
                { "", -1 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(tg_update_first_id(rows[i].text, strlen(rows[i].text)),
                        rows[i].number);
}

static void edits_have_keys_of_their_own(void **state)
{
#define EDITED(date, text) U("edited_message", HEAD ANN "," DM ",\"edit_date\":" date \
        ",\"text\":\"" text "\"")
        char *one = read_update(EDITED("2000", "b")), *same = read_update(EDITED("2000", "b"));
        char *other = read_update(EDITED("2000", "c")), *later = read_update(EDITED("2001", "b"));
        size_t key = strcspn(one, " ") + 1; /* "message.edited key=... dm=7" */
        size_t n = strcspn(one + key, " ");

        (void)state;
        assert_non_null(strstr(one, "message.edited key=7:5:edit:2000:"));
        assert_non_null(strstr(one, " at=2000 text=b"));
        assert_string_equal(one, same);
        assert_int_not_equal(strncmp(one + key, other + key, n), 0);
        assert_int_not_equal(strncmp(one + key, later + key, n), 0);
        free(one);
        free(same);
        free(other);
        free(later);
}

static void reactions_are_the_difference_of_two_lists(void **state)
{
#define E(emoji)         "{\"type\":\"emoji\",\"emoji\":\"" emoji "\"}"
#define CUSTOM           "{\"type\":\"custom_emoji\",\"custom_emoji_id\":\"777\"}"
#define REACTS(old, new) U("message_reaction", "\"message_id\":5,\"date\":1000," DM \
        ",\"user\":{\"id\":7,\"first_name\":\"Ann\"}," \
                           "\"old_reaction\":[" old "],\"new_reaction\":[" new "]")
#define ON " dm=7 name=Ann id=5 from=7 as=Ann emoji="
        static const struct row rows[] = {
                { REACTS("", E("👍")), "reaction.received key=7:5:reaction:9:+👍" ON "👍 at=1000" },
                { REACTS(E("👍"), ""), "reaction.removed key=7:5:reaction:9:-👍" ON "👍 at=1000" },
                { REACTS(E("👍"), E("🔥")), "reaction.removed key=7:5:reaction:9:-👍" ON "👍 at=1000 | "
                                            "reaction.received key=7:5:reaction:9:+🔥" ON
                                            "🔥 at=1000" },
                { REACTS(E("👍"), E("👍") "," CUSTOM), "reaction.received key=7:5:reaction:9:+777" ON
                  "777 custom at=1000" },
                { REACTS("", "{\"type\":\"paid\"}"), "reaction.received key=7:5:reaction:9:+⭐" ON
                  "⭐ at=1000" },
                { REACTS(E("👍"), E("👍")), "nothing: it says nothing" },
                { U("message_reaction", "\"message_id\":5,\"date\":1000," GROUP
                  ",\"actor_chat\":{\"id\":-100200,\"title\":\"Lab\"},"
                    "\"old_reaction\":[],\"new_reaction\":[" E("👀") "]"),
                  "reaction.received key=-100200:5:reaction:9:+👀 group=-100200 name=Lab id=5 "
                  "from=-100200 as=Lab emoji=👀 at=1000" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void buttons_and_membership_are_events(void **state)
{
#define PRESSED(data) U("callback_query", "\"id\":\"c1\"," ANN ",\"data\":\"" data \
        "\",\"message\":{\"message_id\":5," DM "}")
        static const struct row rows[] = {
                { PRESSED("say:yes please"),
                  "message.received key=callback:c1 dm=7 name=Ann id=5" FROM_ANN
                  " mention reply to=5 text=yes please callback=c1" },
                { PRESSED("approve:1"), "custom.telegram.callback key=callback:c1 dm=7 name=Ann "
                  "id=5" FROM_ANN " to=5 callback=c1" },
                { U("callback_query", "\"id\":\"c1\"," ANN ",\"inline_message_id\":\"i\","
                  "\"data\":\"x\""),
                  " callback=c1nothing: the pressed button belongs to no message of a chat" },
                { U("my_chat_member", "\"date\":1000," DM "," ANN
                  ",\"old_chat_member\":{\"status\":\"member\"},"
                  "\"new_chat_member\":{\"status\":\"kicked\"}"),
                  "custom.telegram.member key=7:member:9 dm=7 name=Ann" FROM_ANN
                  " at=1000 text=the user has blocked the bot" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void service_updates_give_no_event(void **state)
{
        static const struct row rows[] = {
                { U("message", HEAD ANN "," GROUP ",\"new_chat_members\":[{\"id\":8}]"),
                  "nothing: it is a service message" },
                { U("message", HEAD ANN "," GROUP ",\"pinned_message\":{\"text\":\"x\"}"),
                  "nothing: it is a service message" },
                { U("message", HEAD ANN "," GROUP ",\"migrate_to_chat_id\":-100999"),
                  " moved=-100999nothing: it is a service message" },
                { U("message", HEAD "\"from\":{\"id\":42}," GROUP ",\"text\":\"me\""),
                  "nothing: it is our own message" },
                { U("message", ANN "," GROUP ",\"text\":\"me\""), "nothing: it has no message id" },
                { U("message", HEAD ANN ",\"text\":\"x\""), "nothing: it has no chat" },
                { U("message", "\"message_id\":5,\"chat\":{\"id\":1e99}"),
                  "nothing: it has no chat" },
                { "{\"update_id\":9,\"poll\":{}}", "nothing: it is of a kind we did not ask for" },
                { "{}", "nothing: it is of a kind we did not ask for" },
                { "[]", "nothing: it is of a kind we did not ask for" },
        };

        (void)state;
        check(rows, COUNT(rows));
}

static void our_html_becomes_plain_text(void **state)
{
        static const struct { const char *html, *plain; } rows[] = {
                { "<b>bold</b> &amp; <a href=\"https://x.org/?a=1&amp;b=2\">link</a>",
                  "bold & link" },
                { "a &lt; b &gt; c &quot;d&quot;", "a < b > c \"d\"" },
                { "1 < 2 & 3", "1 < 2 & 3" },
                { "", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *plain = tg_text_plain(rows[i].html);

                assert_string_equal(plain, rows[i].plain);
                free(plain);
        }
}

static void file_names_cannot_leave_their_folder(void **state)
{
        static const struct { const char *name, *safe; } rows[] = {
                { "report.pdf", "report.pdf" }, { "../../etc/passwd", "_._.._etc_passwd" }, {
                  ".hidden", "_hidden" },
                { "a\nb", "a_b" }, { "über.txt", "über.txt" }, { "c:\\x", "c__x" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *safe = channel_folder_safe_name(rows[i].name);

                assert_null(strchr(safe, '/'));
                assert_int_not_equal(safe[0], '.');
                assert_string_equal(safe, rows[i].safe);
                free(safe);
        }
}
/* clang-format on */

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_of_every_kind_of_chat_are_read),
                cmocka_unit_test(only_real_topics_are_threads),
                cmocka_unit_test(mentions_are_found_by_entities),
                cmocka_unit_test(an_answer_to_the_bot_is_a_reply),
                cmocka_unit_test(files_become_attachments),
                cmocka_unit_test(a_rich_message_is_read_line_by_line),
                cmocka_unit_test(telegram_details_are_in_the_metadata),
                cmocka_unit_test(the_update_id_is_found_in_broken_json),
                cmocka_unit_test(edits_have_keys_of_their_own),
                cmocka_unit_test(reactions_are_the_difference_of_two_lists),
                cmocka_unit_test(buttons_and_membership_are_events),
                cmocka_unit_test(service_updates_give_no_event),
                cmocka_unit_test(our_html_becomes_plain_text),
                cmocka_unit_test(file_names_cannot_leave_their_folder),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
