/* The access lists of an adapter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/access/access.h"

/* The lists as the file has them, comma-separated; NULL: absent, "": []. */
struct written {
        const char *admins, *dm, *allow, *block, *channels;
};

struct lists {
        struct setting_list admins, dm, allow, block, channels;
};

static void split(const char *text, struct setting_list *out)
{
        char *copy = mem_strdup(text), *rest = copy, *word;

        *out = (struct setting_list){ .set = text != NULL };
        while (copy && *text && (word = strsep(&rest, ","))) {
                out->items = mem_realloc(out->items, (out->count + 1) * sizeof(*out->items));
                out->items[out->count++] = mem_strdup(word);
        }
        free(copy);
}

static void release(struct setting_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                free(list->items[i]);
        free(list->items);
}

struct mistake {
        char key[20], why[200];
        int count;
};

static void on_mistake(void *arg, const char *key, const char *why)
{
        struct mistake *m = arg;

        snprintf(m->key, sizeof(m->key), "%s", key);
        snprintf(m->why, sizeof(m->why), "%s", why);
        m->count++;
}

static struct access_lists lists_of(const struct written *w, struct lists *l)
{
        split(w->admins, &l->admins);
        split(w->dm, &l->dm);
        split(w->allow, &l->allow);
        split(w->block, &l->block);
        split(w->channels, &l->channels);
        return (struct access_lists){ &l->admins, &l->dm, &l->allow, &l->block, &l->channels };
}

static void release_all(struct lists *l)
{
        release(&l->admins);
        release(&l->dm);
        release(&l->allow);
        release(&l->block);
        release(&l->channels);
}

static struct access *make(const struct written *w)
{
        struct lists l;
        struct access_lists lists = lists_of(w, &l);
        struct access *a = access_new(&lists);

        release_all(&l);
        return a;
}

static struct incoming dm(const char *sender)
{
        return (struct incoming){
                .adapter = "tg", .channel = sender, .chat = CHAT_DM, .sender_id = sender
        };
}

static struct incoming group(const char *channel, const char *sender)
{
        return (struct incoming){ .adapter = "tg",
                                  .channel = channel,
                                  .guild = "g1",
                                  .chat = CHAT_GROUP,
                                  .sender_id = sender };
}

static bool allows(struct written w, struct incoming in)
{
        struct access *a = make(&w);
        bool yes = access_allows(a, &in, NULL);

        access_free(a);
        return yes;
}

#define W(...) ((struct written){ __VA_ARGS__ })

static void without_lists_no_one_is_answered(void **state)
{
        (void)state;
        assert_false(allows(W(0), dm("7")));
        assert_false(allows(W(0), group("c1", "7")));
}

static void dm_has_four_states(void **state)
{
        (void)state;
        assert_false(allows(W(.dm = NULL), dm("7")));
        assert_false(allows(W(.dm = ""), dm("7")));
        assert_false(allows(W(.dm = "none"), dm("7")));
        assert_true(allows(W(.dm = "6,7"), dm("7")));
        assert_false(allows(W(.dm = "6,7"), dm("8")));
        assert_true(allows(W(.dm = "user:7"), dm("7")));
        assert_true(allows(W(.dm = "everyone"), dm("8")));
        assert_true(allows(W(.dm = "*"), dm("8")));
        assert_false(allows(W(.dm = "everyone"), group("c1", "8"))); /* not in groups */
}

static void channels_has_four_states(void **state)
{
        (void)state;
        assert_false(allows(W(.channels = NULL), group("c1", "7")));
        assert_false(allows(W(.channels = ""), group("c1", "7")));
        assert_true(allows(W(.channels = "c0,c1"), group("c1", "7")));
        assert_false(allows(W(.channels = "c0,c1"), group("c2", "7")));
        assert_true(allows(W(.channels = "*"), group("c2", "7")));
        assert_true(allows(W(.channels = "guild:g1"), group("c2", "7")));
        assert_false(allows(W(.channels = "*"), dm("7")));
}

static void allow_has_four_states(void **state)
{
        (void)state;
        assert_false(allows(W(.allow = NULL), dm("7")));
        assert_false(allows(W(.allow = ""), dm("7")));
        assert_false(allows(W(.allow = ""), group("c1", "7")));
        assert_true(allows(W(.allow = "7"), dm("7")));
        assert_true(allows(W(.allow = "7"), group("c1", "7")));
        assert_false(allows(W(.allow = "7"), group("c1", "8")));
        assert_true(allows(W(.allow = "c1"), group("c1", "8")));
        assert_true(allows(W(.allow = "*"), dm("8")));
        assert_true(allows(W(.allow = "*"), group("c1", "8")));
}

static void an_empty_allow_does_not_close_what_dm_and_channels_open(void **state)
{
        (void)state;
        assert_true(allows(W(.allow = "", .dm = "everyone"), dm("7")));
        assert_true(allows(W(.allow = "", .channels = "c1"), group("c1", "7")));
}

static void a_written_dm_beats_an_allow_of_everyone(void **state)
{
        (void)state;
        assert_false(allows(W(.dm = "none", .allow = "*"), dm("7")));
        assert_false(allows(W(.dm = "", .allow = "*"), dm("7")));
        assert_true(allows(W(.dm = "none", .allow = "7"), dm("7")));
        assert_true(allows(W(.dm = "none", .allow = "*"), group("c1", "7")));
}

static void an_entry_with_a_kind_means_that_kind_only(void **state)
{
        struct incoming in = group("7", "8");

        (void)state;
        assert_true(allows(W(.allow = "7"), in));
        assert_false(allows(W(.allow = "user:7"), in));
        assert_true(allows(W(.allow = "channel:7"), in));
        assert_false(allows(W(.allow = "guild:g2"), in));
        assert_true(allows(W(.allow = "guild:g1"), in));
        assert_false(allows(W(.allow = "role:r1"), in));
        in.metadata = "{\"roles\": [\"r0\", \"r1\"]}";
        assert_true(allows(W(.allow = "role:r1"), in));
        assert_false(allows(W(.allow = "role:r2"), in));
        in.metadata = "not json";
        assert_false(allows(W(.allow = "role:r1"), in));
}

static void admins_are_answered_everywhere(void **state)
{
        (void)state;
        assert_true(allows(W(.admins = "42"), dm("42")));
        assert_true(allows(W(.admins = "42", .dm = "none", .allow = ""), dm("42")));
        assert_true(allows(W(.admins = "42"), group("c1", "42")));
        assert_false(allows(W(.admins = "42"), dm("43")));
        assert_false(allows(W(.admins = "42"), group("42", "43"))); /* a channel is not an admin */
}

static void block_beats_everything(void **state)
{
        struct incoming in = group("c1", "7");

        (void)state;
        assert_false(allows(W(.block = "7", .dm = "everyone"), dm("7")));
        assert_false(allows(W(.block = "7", .dm = "7"), dm("7")));
        assert_false(allows(W(.block = "7", .allow = "*", .channels = "*"), group("c1", "7")));
        assert_false(allows(W(.block = "42", .admins = "42"), dm("42")));
        assert_false(allows(W(.block = "channel:c1", .channels = "*"), group("c1", "7")));
        assert_true(allows(W(.block = "channel:c1", .channels = "*"), group("c2", "7")));
        assert_false(allows(W(.block = "guild:g1", .admins = "7"), group("c1", "7")));
        assert_false(allows(W(.block = "*", .admins = "7"), dm("7")));
        assert_true(allows(W(.block = "", .dm = "everyone"), dm("7")));
        in.metadata = "{\"roles\": [\"muted\"]}";
        assert_false(allows(W(.block = "role:muted", .allow = "*"), in));
        assert_false(allows(W(.block = "rle:muted", .dm = "everyone"), dm("7"))); /* a mistake */
}

/* When a platform did not provide the roles, block everyone. */
static void unknown_roles_are_not_allowed_and_are_blocked(void **state)
{
        struct incoming in = group("c1", "7");

        (void)state;
        in.metadata = "{\"rolesUnknown\": true}";
        assert_false(allows(W(.block = "role:muted", .allow = "*"), in));
        assert_false(allows(W(.allow = "role:friends"), in));
        assert_true(allows(W(.allow = "user:7"), in));
        assert_true(allows(W(.block = "user:8", .allow = "*"), in));
        in.metadata = "{\"roles\": []}";
        assert_true(allows(W(.block = "role:muted", .allow = "*"), in));
}

static void an_event_without_sender_is_allowed_by_its_chat(void **state)
{
        (void)state;
        assert_true(allows(W(.channels = "c1"), group("c1", NULL)));
        assert_false(allows(W(.allow = "7"), group("c1", NULL)));
        assert_false(allows(W(.allow = "user:*"), group("c1", NULL)));
}

static void a_refusal_has_a_sentence(void **state)
{
        static const struct {
                struct written w;
                bool dm;
                const char *why;
        } rows[] = {
                { { .dm = NULL },
                  true,
                  "'dm' allows only admins, and 'allow' does not name the sender '7'" },
                { { .dm = "6" }, true, "the sender '7' is neither in 'dm' nor in 'allow'" },
                { { .dm = "6" },
                  false,
                  "channel 'c1' is not in 'channels', and 'allow' names neither it nor the sender "
                  "'7'" },
                { { .dm = "7", .block = "user:7" }, true, "'block' names 'user:7'" },
                { { .dm = "7", .block = "1,7" }, true, "'block' names '7'" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct access *a = make(&rows[i].w);
                struct incoming in = rows[i].dm ? dm("7") : group("c1", "7");
                struct buf why;

                buf_init(&why, 0);
                assert_false(access_allows(a, &in, &why));
                assert_string_equal(why.data, rows[i].why);
                buf_release(&why);
                access_free(a);
        }
}

static void the_lists_in_force_are_described(void **state)
{
        static const struct {
                struct written w;
                const char *text;
        } rows[] = {
                { { 0 }, "DMs: none; groups: none" },
                { { .admins = "42", .dm = "none" }, "DMs: 1 admin; groups: none" },
                { { .admins = "1,2", .dm = "everyone", .channels = "a" },
                  "DMs: everyone; groups: 1 entry of 'channels' and 'allow'" },
                { { .admins = "1", .dm = "5,6", .allow = "7" },
                  "DMs: 3 entries of 'dm' and 'allow', 1 admin; groups: 1 entry of 'channels' and "
                  "'allow'" },
                { { .dm = "none", .allow = "*", .block = "9" },
                  "DMs: none; groups: all; 1 blocked" },
                { { .allow = "*" }, "DMs: everyone; groups: all" },
                { { .dm = "pairing", .admins = "1" },
                  "DMs: 1 admin, others by pairing; groups: none" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct access *a = make(&rows[i].w);
                struct buf text;

                buf_init(&text, 0);
                access_describe(a, &text);
                assert_string_equal(text.data, rows[i].text);
                buf_release(&text);
                access_free(a);
        }
}

static void entries_that_would_never_match_are_refused(void **state)
{
        static const struct {
                struct written w;
                const char *key, *why;
        } rows[] = {
                { { .block = "rle:7" },
                  "block",
                  "'rle:7' begins with neither 'user:', 'person:', 'role:', 'channel:' nor "
                  "'guild:'" },
                { { .admins = "*" }, "admins", "'*' would allow everyone; name each" },
                { { .admins = "role:1" },
                  "admins",
                  "'role:1' has no effect here: roles are not checked" },
                { { .dm = "guild:1" },
                  "dm",
                  "'guild:1' has no effect here: guilds are not checked" },
                { { .dm = "none,7" }, "dm", "'none' cannot be combined with other entries" },
                { { .channels = "user:1" },
                  "channels",
                  "'user:1' has no effect here: users are not checked" },
                { { .allow = "7, 8" }, "allow", "an entry is empty or begins with a space" },
                { { .allow = "user:" }, "allow", "an entry is empty or begins with a space" },
                { { .allow = "person:ann" },
                  "allow",
                  "'person:ann' is not a person; expected one such as 'person:per-3'" },
                { { .allow = "person:evt-3" },
                  "allow",
                  "'person:evt-3' is not a person; expected one such as 'person:per-3'" },
                { { .allow = "person:per-03" },
                  "allow",
                  "'person:per-03' is not a person; expected one such as 'person:per-3'" },
                { { .channels = "person:3" },
                  "channels",
                  "'person:3' has no effect here: persons are not checked" },
                { { .dm = "pairing,7", .block = "person:per-3", .admins = "person:4" },
                  NULL,
                  NULL },
                { { .allow = "@ann:example.org", .dm = "everyone", .admins = "user:1" },
                  NULL,
                  NULL },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct lists l;
                struct access_lists lists = lists_of(&rows[i].w, &l);
                struct mistake m = { 0 };

                assert_int_equal(access_validate(&lists, on_mistake, &m), rows[i].key == NULL);
                assert_int_equal(m.count, rows[i].key ? 1 : 0);
                if (rows[i].key) {
                        assert_string_equal(m.key, rows[i].key);
                        assert_string_equal(m.why, rows[i].why);
                }
                release_all(&l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_lists_no_one_is_answered),
                cmocka_unit_test(dm_has_four_states),
                cmocka_unit_test(channels_has_four_states),
                cmocka_unit_test(allow_has_four_states),
                cmocka_unit_test(an_empty_allow_does_not_close_what_dm_and_channels_open),
                cmocka_unit_test(a_written_dm_beats_an_allow_of_everyone),
                cmocka_unit_test(an_entry_with_a_kind_means_that_kind_only),
                cmocka_unit_test(admins_are_answered_everywhere),
                cmocka_unit_test(block_beats_everything),
                cmocka_unit_test(unknown_roles_are_not_allowed_and_are_blocked),
                cmocka_unit_test(an_event_without_sender_is_allowed_by_its_chat),
                cmocka_unit_test(a_refusal_has_a_sentence),
                cmocka_unit_test(the_lists_in_force_are_described),
                cmocka_unit_test(entries_that_would_never_match_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
