/* Dispatches of Discord in the shape all platforms share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"

#define SELF "42"

struct rig {
        struct dc_cache *cache;
        struct dc_event_context reader;
        json_t *d;
        struct intake_content item;
};

static json_t *parse(const char *text)
{
        struct error err = { 0 };
        json_t *j = json_read(text, strlen(text), &err);

        if (!j)
                fail_msg("%s in %s", err.text, text);
        return j;
}

static void learn(struct rig *g, const char *type, const char *text)
{
        json_t *d = parse(text);

        dc_cache_learn(g->cache, SELF, type, d);
        json_decref(d);
}

static int set_up(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        g->cache = dc_cache_new();
        g->reader = (struct dc_event_context){ .self = SELF, .cache = g->cache };
        learn(g, "GUILD_CREATE",
              "{\"id\":\"1\",\"name\":\"Home\",\"channels\":[{\"id\":\"10\",\"type\":0,"
              "\"name\":\"general\"},{\"id\":\"12\",\"type\":4,\"name\":\"Texts\"},{\"id\":\"15\","
              "\"type\":15,\"name\":\"forum\"}],\"threads\":[{\"id\":\"11\",\"type\":11,"
              "\"name\":\"topic\",\"parent_id\":\"10\"}],\"members\":[{\"user\":{\"id\":\"42\"},"
              "\"roles\":[\"77\"]}]}");
        *state = g;
        return 0;
}

static void forget(struct rig *g)
{
        intake_content_release(&g->item);
        json_decref(g->d);
        g->d = NULL;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        forget(g);
        dc_cache_free(g->cache);
        free(g);
        return 0;
}

/* Reads a dispatch; returns its only event, or NULL. */
static const struct incoming *read_one(struct rig *g, const char *type, const char *text)
{
        forget(g);
        g->d = parse(text);
        dc_event_read(&g->item, &g->reader,
                      &(struct dc_dispatch){ .type = type, .d = g->d, .session = "s", .seq = 9 });
        if (g->item.event_count == 0)
                assert_non_null(g->item.ignored);
        return g->item.event_count ? g->item.events : NULL;
}

#define ANN "\"author\":{\"id\":\"5\",\"username\":\"ann\",\"global_name\":\"Ann\"}"
#define IN  "\"id\":\"1000\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":0," ANN

static const struct incoming *message(struct rig *g, const char *more)
{
        char *text = mem_printf("{" IN "%s}", more);
        const struct incoming *in = read_one(g, "MESSAGE_CREATE", text);

        free(text);
        return in;
}

/* ---- messages ---- */

static void a_message_has_sender_channel_and_roles(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = message(
                g,
                ",\"content\":\"hello\",\"member\":{\"nick\":\"Annie\",\"roles\":[\"7\",\"8\"]}");

        assert_non_null(in);
        assert_string_equal(in->key, "1000");
        assert_string_equal(in->id, "1000");
        assert_string_equal(in->channel, "10");
        assert_null(in->thread);
        assert_string_equal(in->chat_name, "general");
        assert_string_equal(in->guild, "1");
        assert_int_equal(in->chat, CHAT_GROUP);
        assert_string_equal(in->sender_id, "5");
        assert_string_equal(in->sender_username, "ann");
        assert_string_equal(in->sender_name, "Annie");
        assert_string_equal(in->text, "hello");
        assert_null(in->raw_text);
        assert_false(in->is_mention || in->is_reply || in->is_own || in->sender_is_bot);
        assert_int_equal(json_array_size(json_object_get(g->item.metadata, "roles")), 2);
        assert_string_equal(json_str(g->item.metadata, "guildName", ""), "Home");
}

static void a_direct_message_is_a_dm(void **state)
{
        const struct incoming *in = read_one(
                *state, "MESSAGE_CREATE",
                "{\"id\":\"1000\",\"channel_id\":\"500\",\"type\":0,\"content\":\"hi\"," ANN "}");

        assert_int_equal(in->chat, CHAT_DM);
        assert_null(in->guild);
        assert_string_equal(in->channel, "500");
        assert_string_equal(in->sender_name, "Ann");
}

static void threads_and_posts_belong_to_their_channel(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1000\",\"channel_id\":\"11\",\"guild_id\":\"1\",\"content\":\"x\"," ANN
                "}");

        assert_string_equal(in->channel, "10");
        assert_string_equal(in->thread, "11");
        assert_string_equal(in->chat_name, "general");
        assert_string_equal(json_str(g->item.metadata, "threadName", ""), "topic");
        learn(g, "THREAD_CREATE",
              "{\"id\":\"16\",\"type\":11,\"guild_id\":\"1\",\"parent_id\":\"15\","
              "\"name\":\"post\"}");
        in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"16\",\"channel_id\":\"16\",\"guild_id\":\"1\",\"content\":\"x\"," ANN
                "}");
        assert_string_equal(in->channel, "15");
        assert_string_equal(in->thread, "16");
        learn(g, "THREAD_LIST_SYNC",
              "{\"guild_id\":\"1\",\"threads\":[{\"id\":\"17\",\"type\":12,"
              "\"parent_id\":\"10\"}]}");
        in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"18\",\"channel_id\":\"17\",\"guild_id\":\"1\",\"content\":\"x\"," ANN
                "}");
        assert_string_equal(in->channel, "10");
        assert_string_equal(in->thread, "17");
}

static void notices_of_discord_are_ignored(void **state)
{
        struct rig *g = *state;

        for (int type = 0; type < 50; type++) {
                char *text = mem_printf(
                        "{\"id\":\"1000\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":%d,"
                        "\"content\":\"new name\"," ANN "}",
                        type);

                assert_int_equal(read_one(g, "MESSAGE_CREATE", text) != NULL,
                                 type == 0 || type == 19);
                free(text);
        }
}

static void mentions_of_the_bot_are_recognised_and_removed(void **state)
{
        static const struct {
                const char *content, *text;
        } rows[] = {
                { "<@42> hello", "hello" },
                { "<@!42>   hello", "hello" },
                { "hello <@42>", "hello" },
                { "so <@42> what?", "so what?" },
                { "ask <@5> about <#10> and <#999>", "ask @Ann about #general and <#999>" },
                { "<:smile:123> <a:dance:124> </ask:125>", ":smile: :dance: /ask" },
                { "a < b, <@> <@x> <@42", "a < b, <@> <@x> <@42" },
                { "<t:1600000000:R> <@&77>", "<t:1600000000:R> <@&77>" },
                { "<@42>", NULL },
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *more = mem_printf(
                        ",\"content\":\"%s\",\"mentions\":[{\"id\":\"42\",\"username\":\"bot\"},"
                        "{\"id\":\"5\",\"username\":\"ann\",\"global_name\":\"Ann\"}]",
                        rows[i].content);
                const struct incoming *in = message(g, more);

                free(more);
                assert_non_null(in);
                assert_true(in->is_mention);
                if (rows[i].text)
                        assert_string_equal(in->text, rows[i].text);
                else
                        assert_null(in->text);
                if (rows[i].text && strcmp(rows[i].text, rows[i].content) != 0)
                        assert_string_equal(in->raw_text, rows[i].content);
        }
}

/* Catch-up keeps such messages beyond its limit. */
static void messages_to_the_bot_are_recognised(void **state)
{
        static const struct {
                const char *message;
                bool role_mentions, to_us;
        } rows[] = {
                { "{\"channel_id\":\"10\"}", true, false },
                { "{\"channel_id\":\"10\",\"mentions\":[{\"id\":\"5\"}]}", true, false },
                { "{\"channel_id\":\"10\",\"mentions\":[{\"id\":\"42\"}]}", false, true },
                { "{\"channel_id\":\"10\",\"mention_roles\":[\"77\"]}", false, false },
                { "{\"channel_id\":\"10\",\"mention_roles\":[\"77\"]}", true, true },
                { "{\"channel_id\":\"10\",\"referenced_message\":{\"author\":{\"id\":\"5\"}}}",
                  true, false },
                { "{\"channel_id\":\"10\",\"referenced_message\":{\"author\":{\"id\":\"42\"}}}",
                  false, true },
                { "{\"channel_id\":\"99\"}", false, true }, /* a DM, or unknown */
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *message = parse(rows[i].message);

                g->reader.role_mentions = rows[i].role_mentions;
                if (dc_event_is_to_us(&g->reader, message) != rows[i].to_us)
                        fail_msg("%s", rows[i].message);
                json_decref(message);
        }
}

static void role_mentions_count_only_when_configured(void **state)
{
        struct rig *g = *state;
        const char *more = ",\"content\":\"<@&77> hello\",\"mention_roles\":[\"77\"]",
                   *other = ",\"content\":\"<@&78> hello\",\"mention_roles\":[\"78\"]";

        assert_false(message(g, more)->is_mention);
        g->reader.role_mentions = true;
        assert_true(message(g, more)->is_mention);
        assert_string_equal(g->item.events->text, "hello");
        assert_false(message(g, other)->is_mention);
        assert_false(
                message(g, ",\"content\":\"@everyone\",\"mention_everyone\":true")->is_mention);
}

/* It does not name the guild; the channel is known. */
static void a_role_mention_in_a_message_read_back_is_removed(void **state)
{
        struct rig *g = *state;
        const struct incoming *in;

        g->reader.role_mentions = true;
        in = read_one(g, "MESSAGE_CREATE",
                      "{\"id\":\"1000\",\"channel_id\":\"10\",\"type\":0," ANN
                      ",\"content\":\"<@&77> hello\",\"mention_roles\":[\"77\"]}");
        assert_string_equal(in->guild, "1");
        assert_true(in->is_mention);
        assert_string_equal(in->text, "hello");
}

static void assert_missing_member(const char *type, const char *text, const char *wanted)
{
        json_t *d = json_read(text, strlen(text), NULL);
        const char *who = dc_event_missing_member(type, d);

        assert_string_equal(who ? who : "none", wanted);
        json_decref(d);
}

static void a_missing_member_is_recognised(void **state)
{
#define EDITED ",\"content\":\"x\",\"edited_timestamp\":\"2026-01-02T03:04:05.000000+00:00\""
        struct rig *g = *state;

        assert_missing_member("MESSAGE_CREATE", "{\"author\":{\"id\":\"5\"}}", "5");
        assert_missing_member("MESSAGE_CREATE",
                              "{\"author\":{\"id\":\"5\"},\"member\":{\"roles\":[]}}", "none");
        assert_missing_member("MESSAGE_CREATE", "{\"author\":{\"id\":\"5\"},\"webhook_id\":\"5\"}",
                              "none");
        assert_missing_member("MESSAGE_CREATE", "{\"author\":{\"id\":\"5\"},\"type\":7}", "none");
        assert_missing_member("MESSAGE_CREATE", "[]", "none");
        assert_missing_member("MESSAGE_UPDATE", "{\"author\":{\"id\":\"5\"}}", "none");
        assert_missing_member("MESSAGE_UPDATE", "{\"author\":{\"id\":\"5\"}" EDITED "}", "5");
        assert_missing_member("MESSAGE_REACTION_ADD",
                              "{\"user_id\":\"5\",\"member\":{\"roles\":[]}}", "none");
        assert_missing_member("MESSAGE_REACTION_REMOVE", "{\"user_id\":\"5\"}", "5");
        assert_missing_member("MESSAGE_REACTION_REMOVE", "{\"user_id\":\"../5\"}", "none");
        assert_missing_member("MESSAGE_DELETE", "{\"id\":\"5\"}", "none");
        assert_non_null(read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1000\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"content\":\"hi\","
                "\"author\":{\"id\":\"5\"},\"member\":null}"));
        assert_true(json_flag(g->item.metadata, "rolesUnknown", false));
#undef EDITED
}

static void replies_to_the_bot_are_recognised(void **state)
{
        struct rig *g = *state;
        const struct incoming *in;

        in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1000\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":19,\"content\":"
                "\"yes\"," ANN ",\"message_reference\":{\"message_id\":\"900\"},"
                "\"referenced_message\":{\"id\":\"900\",\"content\":\"sure?\","
                "\"author\":{\"id\":\"42\",\"username\":\"bot\"}}}");
        assert_true(in->is_reply);
        assert_string_equal(in->reply_to, "900");
        assert_string_equal(json_str(json_object_get(g->item.metadata, "replyTo"), "text", ""),
                            "sure?");
        in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1000\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":19,\"content\":"
                "\"yes\"," ANN
                ",\"message_reference\":{\"message_id\":\"900\"},\"referenced_message\":null}");
        assert_false(in->is_reply);
        assert_string_equal(in->reply_to, "900");
}

static void bots_webhooks_and_own_messages_differ(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1\",\"channel_id\":\"10\",\"content\":\"x\",\"author\":{\"id\":\"42\","
                "\"bot\":true}}");

        assert_true(in->is_own && in->sender_is_bot);
        in = read_one(
                g, "MESSAGE_CREATE",
                "{\"id\":\"1\",\"channel_id\":\"10\",\"content\":\"x\",\"author\":{\"id\":\"6\","
                "\"bot\":true}}");
        assert_true(!in->is_own && in->sender_is_bot);
        in = read_one(g, "MESSAGE_CREATE",
                      "{\"id\":\"1\",\"channel_id\":\"10\",\"content\":\"x\",\"webhook_id\":\"42\","
                      "\"author\":{\"id\":\"42\"}}");
        assert_true(!in->is_own && in->sender_is_bot);
}

static void stickers_polls_and_embeds_are_described(void **state)
{
        struct rig *g = *state;

        assert_string_equal(
                message(g, ",\"content\":\"\",\"sticker_items\":[{\"id\":\"1\",\"name\":\"Wave\"}]")
                        ->text,
                "[sticker: Wave]");
        assert_string_equal(message(g, ",\"content\":\"look\",\"embeds\":[{\"title\":\"A "
                                       "page\",\"description\":\"about "
                                       "it\",\"fields\":[{\"name\":\"n\",\"value\":\"v\"}]}]")
                                    ->text,
                            "look\n[embed: A page\nabout it\nn: v]");
        assert_string_equal(message(g,
                                    ",\"content\":\"\",\"poll\":{\"question\":{\"text\":\"Tea?\"},"
                                    "\"answers\":[{\"poll_media\":{\"text\":\"yes\"}},"
                                    "{\"poll_media\":{\"text\":\"no\"}}]}")
                                    ->text,
                            "[poll: Tea?: yes, no]");
        assert_string_equal(
                message(g,
                        ",\"content\":\"\",\"message_snapshots\":[{\"message\":{\"content\":\"old "
                        "news\"}}]")
                        ->text,
                "[forwarded message] old news");
        assert_null(message(g, ",\"content\":\"\""));
}

static void attachments_are_listed(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = message(
                g, ",\"content\":\"\",\"attachments\":[{\"id\":\"70\",\"filename\":\"a.png\","
                   "\"size\":12,\"content_type\":\"image/png\",\"url\":\"https://cdn/a.png\"},"
                   "{\"id\":\"71\",\"filename\":\"b\",\"size\":3,\"url\":\"https://cdn/b\"}]");

        assert_int_equal(in->attachment_count, 2);
        assert_string_equal(in->attachments[0].kind, "image");
        assert_string_equal(in->attachments[0].name, "a.png");
        assert_int_equal(in->attachments[0].size, 12);
        assert_string_equal(in->attachments[1].kind, "document");
        assert_string_equal(in->attachments[1].source, "https://cdn/b");
        in = message(g, ",\"content\":\"\",\"flags\":8192,\"attachments\":[{\"id\":\"70\","
                        "\"filename\":\"v.ogg\",\"content_type\":\"audio/ogg\","
                        "\"url\":\"https://cdn/v\"}]");
        assert_string_equal(in->attachments[0].kind, "voice");
}

/* ---- edits, deletions, reactions ---- */

static void edits_are_events_and_link_previews_are_not(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(
                g, "MESSAGE_UPDATE",
                "{" IN ",\"content\":\"now\",\"edited_timestamp\":\"2026-11-15T10:00:00Z\"}");

        assert_string_equal(in->type, EVENT_MESSAGE_EDITED);
        assert_string_equal(in->key, "1000:edit:2026-11-15T10:00:00Z");
        assert_string_equal(in->text, "now");
        assert_null(read_one(g, "MESSAGE_UPDATE",
                             "{" IN ",\"content\":\"now\",\"edited_timestamp\":null}"));
        assert_null(read_one(g, "MESSAGE_UPDATE",
                             "{\"id\":\"1000\",\"channel_id\":\"10\",\"embeds\":[]}"));
}

static void deletions_name_their_messages(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(
                g, "MESSAGE_DELETE", "{\"id\":\"1000\",\"channel_id\":\"11\",\"guild_id\":\"1\"}");

        assert_string_equal(in->type, EVENT_MESSAGE_DELETED);
        assert_string_equal(in->id, "1000");
        assert_string_equal(in->key, "1000:delete");
        assert_string_equal(in->thread, "11");
        read_one(g, "MESSAGE_DELETE_BULK",
                 "{\"ids\":[\"1\",\"2\",\"3\"],\"channel_id\":\"10\",\"guild_id\":\"1\"}");
        assert_int_equal(g->item.event_count, 3);
        assert_string_equal(g->item.events[2].key, "3:delete");
}

static void a_reaction_added_again_is_a_new_event(void **state)
{
        struct rig *g = *state;
        const struct incoming *in =
                read_one(g, "MESSAGE_REACTION_ADD",
                         "{\"user_id\":\"5\",\"channel_id\":\"10\",\"message_id\":\"1000\","
                         "\"guild_id\":\"1\",\"member\":{"
                         "\"user\":{\"id\":\"5\",\"username\":\"ann\"},\"roles\":[\"7\"]},"
                         "\"emoji\":{\"id\":null,\"name\":"
                         "\"\xf0\x9f\x94\xac\"},\"message_author_id\":\"42\"}");

        assert_string_equal(in->type, EVENT_REACTION_RECEIVED);
        assert_string_equal(in->emoji, "\xf0\x9f\x94\xac");
        assert_false(in->emoji_custom);
        assert_string_equal(in->sender_username, "ann");
        assert_true(in->is_reply);
        assert_string_equal(in->key, "1000:5:\xf0\x9f\x94\xac:+:s:9");
        in = read_one(g, "MESSAGE_REACTION_REMOVE",
                      "{\"user_id\":\"5\",\"channel_id\":\"500\",\"message_id\":\"1000\","
                      "\"emoji\":{\"id\":\"88\",\"name\":\"party\"}}");
        assert_string_equal(in->type, EVENT_REACTION_REMOVED);
        assert_int_equal(in->chat, CHAT_DM);
        assert_string_equal(in->emoji, "party:88");
        assert_string_equal(in->emoji_name, "party");
        assert_true(in->emoji_custom);
        assert_string_equal(in->key, "1000:5:88:-:s:9");
        in = read_one(g, "MESSAGE_REACTION_ADD",
                      "{\"user_id\":\"42\",\"channel_id\":\"500\",\"message_id\":\"1000\","
                      "\"emoji\":{\"name\":\"x\"}}");
        assert_true(in->is_own);
}

/* ---- interactions ---- */

#define BY                                                               \
        "\"token\":\"secret\",\"channel_id\":\"10\",\"guild_id\":\"1\"," \
        "\"member\":{\"user\":{\"id\":\"5\","                            \
        "\"username\":\"ann\"},\"roles\":[\"7\"]}"

static void commands_are_messages_without_their_token(void **state)
{
        static const struct {
                const char *data, *text;
        } rows[] = {
                { "{\"name\":\"ask\",\"options\":[{\"name\":\"text\",\"type\":3,"
                  "\"value\":\"why?\"}]}",
                  "why?" },
                { "{\"name\":\"new\"}", "/new" },
                { "{\"name\":\"remind\",\"options\":[{\"name\":\"what\",\"value\":\"9 lives\"},"
                  "{\"name\":\"when\",\"value\":\"tomorrow\"}]}",
                  "/remind tomorrow to 9 lives" },
                { "{\"name\":\"steer\",\"options\":[{\"name\":\"text\",\"value\":\"go left\"},"
                  "{\"name\":\"session\",\"value\":\"ses-3\"}]}",
                  "/steer ses-3 go left" },
                { "{\"name\":\"steer\",\"options\":[{\"name\":\"text\",\"value\":\"go left\"}]}",
                  "/steer go left" },
                { "{\"name\":\"abort\",\"options\":[{\"name\":\"session\",\"value\":\"ses-3\"}]}",
                  "/abort ses-3" },
                { "{\"name\":\"remind\",\"options\":[{\"name\":\"text\",\"value\":\"5m tea\"}]}",
                  "/remind 5m tea" },
                { "{\"name\":\"event\",\"options\":[{\"name\":\"text\",\"value\":\"list\"}]}",
                  "/event list" },
                { "{\"name\":\"a\",\"options\":[{\"name\":\"b\",\"type\":1,"
                  "\"options\":[{\"name\":\"n\",\"value\":3},{\"name\":\"y\",\"value\":true}]}]}",
                  "/a b 3 yes" },
                { "{\"name\":\"Explain\",\"type\":3,\"target_id\":\"9\","
                  "\"resolved\":{\"messages\":{\"9\":{\"content\":\"E=mc2\"}}}}",
                  "/Explain E=mc2" },
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{\"id\":\"2000\",\"type\":2," BY ",\"data\":%s}",
                                        rows[i].data),
                     *dump;
                const struct incoming *in = read_one(g, "INTERACTION_CREATE", text);

                free(text);
                assert_non_null(in);
                assert_string_equal(in->text, rows[i].text);
                assert_string_equal(in->id, "2000");
                assert_string_equal(in->key, "interaction:2000");
                assert_true(in->is_mention);
                assert_string_equal(in->sender_id, "5");
                dump = json_text(g->item.metadata);
                assert_null(strstr(dump, "secret"));
                assert_non_null(strstr(dump, "\"interaction\":{\"id\":\"2000\""));
                free(dump);
        }
}

static void buttons_are_messages_or_custom_events(void **state)
{
        struct rig *g = *state;
        const struct incoming *in =
                read_one(g, "INTERACTION_CREATE",
                         "{\"id\":\"2000\",\"type\":3," BY
                         ",\"message\":{\"id\":\"900\"},\"data\":{\"custom_id\":\"say:yes\"}}");

        assert_string_equal(in->text, "yes");
        assert_null(in->type);
        assert_string_equal(in->id, "900");
        in = read_one(g, "INTERACTION_CREATE",
                      "{\"id\":\"2000\",\"type\":3," BY
                      ",\"message\":{\"id\":\"900\"},\"data\":{\"custom_id\":\"x\"}}");
        assert_string_equal(in->type, "custom.discord.component");
        assert_null(read_one(g, "INTERACTION_CREATE",
                             "{\"id\":\"2000\",\"type\":4," BY ",\"data\":{}}"));
        assert_null(read_one(g, "INTERACTION_CREATE", "{\"id\":\"2000\",\"type\":1}"));
}

static void forms_are_messages_of_their_values(void **state)
{
        const struct incoming *in =
                read_one(*state, "INTERACTION_CREATE",
                         "{\"id\":\"2000\",\"type\":5," BY
                         ",\"data\":{\"custom_id\":\"f\",\"components\":[{\"type\":1,"
                         "\"components\":[{\"custom_id\":\"q\",\"value\":\"how?\"}]}]}}");

        assert_string_equal(in->text, "how?");
}

/* ---- nonsense, and the cache ---- */

static void nonsense_gives_no_event(void **state)
{
        static const char *const types[] = { "MESSAGE_CREATE",       "MESSAGE_UPDATE",
                                             "MESSAGE_DELETE",       "MESSAGE_DELETE_BULK",
                                             "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE",
                                             "INTERACTION_CREATE",   "TYPING_START" };
        static const char *const texts[] = {
                "{}",
                "[]",
                "{\"id\":5,\"channel_id\":{}}",
                "{\"id\":\"x/../y\",\"channel_id\":\"10\"}",
                "{\"id\":\"1\",\"channel_id\":\"../10\",\"content\":\"x\",\"type\":2}",
        };

        for (size_t i = 0; i < COUNT(types); i++)
                for (size_t k = 0; k < COUNT(texts); k++)
                        assert_null(read_one(*state, types[i], texts[k]));
}

static void the_cache_forgets_removed_guilds_not_outages(void **state)
{
        struct rig *g = *state;
        struct dc_channel_info place;

        learn(g, "GUILD_DELETE", "{\"id\":\"1\",\"unavailable\":true}");
        assert_true(dc_cache_channel(g->cache, "11", &place));
        learn(g, "THREAD_DELETE", "{\"id\":\"11\",\"guild_id\":\"1\"}");
        assert_false(dc_cache_channel(g->cache, "11", &place));
        assert_false(dc_cache_channel(g->cache, "12", &place)); /* categories have no messages */
        learn(g, "GUILD_DELETE", "{\"id\":\"1\"}");
        assert_int_equal(dc_cache_size(g->cache), 0);
        assert_null(dc_cache_guild_name(g->cache, "1"));
}

/* A thread mistaken for a channel would escape the rules of its channel. */
static void a_full_cache_makes_room(void **state)
{
        struct rig *g = *state;
        struct dc_channel_info place;
        char id[24];

        for (unsigned i = 0; i < 200010; i++) {
                json_t *thread;

                snprintf(id, sizeof(id), "%u", i + 1);
                thread = json_pack("{s:s, s:i, s:s}", "id", id, "type", 11, "parent_id", "5");
                dc_cache_add(g->cache, "1", thread);
                json_decref(thread);
        }
        assert_int_equal(dc_cache_size(g->cache), 200000);
        assert_true(dc_cache_channel(g->cache, "200010", &place));
        assert_string_equal(place.parent, "5");
}

/* ---- scheduled events ---- */

#define PLANNED                                                                          \
        "\"id\":\"77\",\"guild_id\":\"1\",\"name\":\"Catan\","                           \
        "\"scheduled_start_time\":\"2126-11-20T18:00:00+00:00\",\"scheduled_end_time\":" \
        "\"2126-11-20T21:00:00+00:00\""

static void a_scheduled_event_is_read_whole(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(
                g, "GUILD_SCHEDULED_EVENT_UPDATE",
                "{" PLANNED ",\"description\":\"Bring snacks\",\"status\":2,\"entity_metadata\":"
                "{\"location\":\"Ann's\"},\"recurrence_rule\":{\"frequency\":2}}");

        assert_string_equal(in->type, EVENT_CALENDAR);
        assert_string_equal(in->key, "scheduled:77:s:9");
        assert_string_equal(in->channel, "guild:1");
        assert_string_equal(in->guild, "1");
        assert_string_equal(in->chat_name, "Home");
        assert_string_equal(in->id, "77");
        assert_null(in->sender_id); /* Discord does not say who changed it */
        assert_string_equal(in->metadata,
                            "{\"op\":\"put\",\"guildId\":\"1\",\"eventId\":\"77\",\"state\":"
                            "\"active\",\"title\":\"Catan\",\"description\":\"Bring snacks\","
                            "\"place\":\"Ann's\",\"startsAt\":\"2126-11-20T18:00:00.000Z\","
                            "\"endsAt\":\"2126-11-20T21:00:00.000Z\",\"recurs\":true}");
}

static void the_place_may_be_a_channel_or_unknown(void **state)
{
        struct rig *g = *state;
        const struct incoming *in =
                read_one(g, "GUILD_SCHEDULED_EVENT_UPDATE",
                         "{" PLANNED ",\"channel_id\":\"10\",\"entity_metadata\":null}");

        assert_non_null(strstr(in->metadata, "\"place\":\"#general\""));
        in = read_one(g, "GUILD_SCHEDULED_EVENT_UPDATE",
                      "{" PLANNED ",\"entity_metadata\":{\"location\":\"To be announced\"}}");
        assert_null(strstr(in->metadata, "place"));
}

static void a_cancelled_event_is_deleted(void **state)
{
        struct rig *g = *state;
        const struct incoming *in = read_one(g, "GUILD_SCHEDULED_EVENT_UPDATE",
                                             "{" PLANNED ",\"status\":4,\"creator_id\":\"42\"}");

        assert_string_equal(in->metadata, "{\"op\":\"delete\",\"guildId\":\"1\",\"eventId\":"
                                          "\"77\",\"byUs\":true}");
}

static void a_created_event_names_its_creator(void **state)
{
        struct rig *g = *state;
        const struct incoming *in =
                read_one(g, "GUILD_SCHEDULED_EVENT_CREATE",
                         "{" PLANNED
                         ",\"creator_id\":\"5\",\"creator\":{\"id\":\"5\",\"username\":\"ann\"}}");

        assert_string_equal(in->key, "scheduled:77:create");
        assert_string_equal(in->sender_id, "5");
        assert_string_equal(in->sender_name, "ann");
        assert_false(in->is_own);
}

static void damaged_scheduled_events_are_ignored(void **state)
{
        static const char *const wrong[][2] = {
                { "GUILD_SCHEDULED_EVENT_CREATE", "{}" },
                { "GUILD_SCHEDULED_EVENT_CREATE", "{\"id\":\"77\",\"guild_id\":\"1\"}" },
                { "GUILD_SCHEDULED_EVENT_UPDATE",
                  "{\"id\":\"77\",\"guild_id\":\"1\",\"name\":\"x\","
                  "\"scheduled_start_time\":\"soon\"}" },
                { "GUILD_SCHEDULED_EVENT_DELETE", "{\"id\":\"x\",\"guild_id\":\"1\"}" },
                { "GUILD_SCHEDULED_EVENT_USER_ADD", "{\"guild_id\":\"1\",\"user_id\":\"5\"}" },
                { "GUILD_CREATE", "{\"guild_scheduled_events\":[]}" },
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(wrong); i++)
                assert_null(read_one(g, wrong[i][0], wrong[i][1]));
        /* a deletion needs no more than the id */
        assert_non_null(
                read_one(g, "GUILD_SCHEDULED_EVENT_DELETE", "{\"id\":\"77\",\"guild_id\":\"1\"}"));
}

/* More than Discord permits: what is missing in the list may still be there. */
static void a_list_that_is_too_long_ends_nothing(void **state)
{
        struct rig *g = *state;
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "{\"guild_id\":\"1\",\"guild_scheduled_events\":[");
        for (int i = 0; i < 101; i++)
                buf_addf(&b, "%s{" PLANNED "}", i ? "," : "");
        buf_addstr(&b, "]}");
        read_one(g, "GUILD_CREATE", b.data);
        buf_release(&b);
        assert_int_equal(g->item.event_count, 100);
        assert_non_null(strstr(g->item.events[99].metadata, "\"op\":\"put\""));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(a_message_has_sender_channel_and_roles),
                T(a_direct_message_is_a_dm),
                T(threads_and_posts_belong_to_their_channel),
                T(notices_of_discord_are_ignored),
                T(mentions_of_the_bot_are_recognised_and_removed),
                T(messages_to_the_bot_are_recognised),
                T(role_mentions_count_only_when_configured),
                T(a_role_mention_in_a_message_read_back_is_removed),
                T(a_missing_member_is_recognised),
                T(replies_to_the_bot_are_recognised),
                T(bots_webhooks_and_own_messages_differ),
                T(stickers_polls_and_embeds_are_described),
                T(attachments_are_listed),
                T(edits_are_events_and_link_previews_are_not),
                T(deletions_name_their_messages),
                T(a_reaction_added_again_is_a_new_event),
                T(commands_are_messages_without_their_token),
                T(buttons_are_messages_or_custom_events),
                T(forms_are_messages_of_their_values),
                T(nonsense_gives_no_event),
                T(the_cache_forgets_removed_guilds_not_outages),
                T(a_full_cache_makes_room),
                T(a_scheduled_event_is_read_whole),
                T(the_place_may_be_a_channel_or_unknown),
                T(a_cancelled_event_is_deleted),
                T(a_created_event_names_its_creator),
                T(damaged_scheduled_events_are_ignored),
                T(a_list_that_is_too_long_ends_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
