#include "dispatch/access/access.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "dispatch/people/persons.h"

enum subject {
        SUBJECT_PLAIN,
        SUBJECT_USER,
        SUBJECT_PERSON,
        SUBJECT_ROLE,
        SUBJECT_CHANNEL,
        SUBJECT_GUILD
};

#define BIT(subject) (1u << (subject))

static const char *const subject_names[] = {
        [SUBJECT_USER] = "user",       [SUBJECT_PERSON] = "person", [SUBJECT_ROLE] = "role",
        [SUBJECT_CHANNEL] = "channel", [SUBJECT_GUILD] = "guild",
};

struct entry {
        enum subject subject;
        char *id;       /* "*": any */
        int64_t person; /* of SUBJECT_PERSON */
};

struct entries {
        struct entry *items;
        size_t count;
};

struct access {
        struct entries admins, dm, allow, block, channels;
        bool dm_written;
        bool pairs; /* strangers who write a direct message get a code */
};

/* What may stand in a list. */
struct list_kind {
        const char *key;
        const char *everybody, *nobody,
                /*
                 * words that stand for all, for none, and for whoever has a code; NULL: there is no
                 * such word
                 */
                *pairing;
        unsigned subjects;
        bool star;
        size_t list;    /* offset in struct access_lists */
        size_t entries; /* offset in struct access */
};

#define ROW(field) offsetof(struct access_lists, field), offsetof(struct access, field)
#define PEOPLE     (BIT(SUBJECT_PLAIN) | BIT(SUBJECT_USER) | BIT(SUBJECT_PERSON))
#define PLACES     (BIT(SUBJECT_PLAIN) | BIT(SUBJECT_CHANNEL) | BIT(SUBJECT_GUILD))
#define ANYTHING   (PEOPLE | PLACES | BIT(SUBJECT_ROLE))

static const struct list_kind kinds[] = {
        { "admins", NULL, NULL, NULL, PEOPLE, false, ROW(admins) },
        { "dm", "everyone", "none", "pairing", PEOPLE | BIT(SUBJECT_ROLE), true, ROW(dm) },
        { "allow", NULL, NULL, NULL, ANYTHING, true, ROW(allow) },
        { "block", NULL, NULL, NULL, ANYTHING, true, ROW(block) },
        { "channels", NULL, NULL, NULL, PLACES, true, ROW(channels) },
};

/* ---- reading ---- */

static const struct setting_list *list_of(const struct list_kind *k,
                                          const struct access_lists *lists)
{
        return *(const struct setting_list *const *)((const char *)lists + k->list);
}

/* Splits "role:7"; text without a known word before its colon is an id as a whole. */
static enum subject subject_of(const char *text, const char **id)
{
        for (size_t i = SUBJECT_USER; i < COUNT(subject_names); i++) {
                size_t n = strlen(subject_names[i]);

                if (strncmp(text, subject_names[i], n) == 0 && text[n] == ':') {
                        *id = text + n + 1;
                        return (enum subject)i;
                }
        }
        *id = text;
        return SUBJECT_PLAIN;
}

static bool is_word(const char *text, const char *word)
{
        return word && strcmp(text, word) == 0;
}

/*
 * "rle:7" would never match anything, and in a block list nobody would notice. Ids with a colon
 * ("@ann:example.org") are no such word.
 */
static bool misspelt_subject(const char *text)
{
        size_t n = 0;

        while (islower((unsigned char)text[n]))
                n++;
        return n > 0 && text[n] == ':';
}

static bool check_entry(const struct list_kind *k, const char *text, size_t count, struct buf *why)
{
        const char *id;
        enum subject subject = subject_of(text, &id);

        if (is_word(text, k->everybody) || is_word(text, k->pairing))
                return true;
        if (is_word(text, k->nobody)) {
                if (count > 1)
                        buf_addf(why, "'%s' does not go together with other entries", text);
                return count == 1;
        }
        if (*id == '\0' || strspn(id, " \t") > 0)
                buf_addstr(why, "an entry is empty or begins with a space");
        else if (subject == SUBJECT_PLAIN && misspelt_subject(text))
                buf_addf(
                        why,
                        "'%.60s' begins with neither 'user:', 'person:', 'role:', 'channel:' nor 'guild:'",
                        text);
        else if (!(k->subjects & BIT(subject)))
                buf_addf(why, "'%.60s' has no meaning here: a %s is not looked at", text,
                         subject_names[subject]);
        else if (subject == SUBJECT_PERSON && person_parse_id(id) <= 0)
                buf_addf(why, "'%.60s' is no person; expected one such as 'person:per-3'", text);
        else if (strcmp(id, "*") == 0 && !k->star)
                buf_addf(why, "'%.60s' would let everybody in; name each", text);
        else
                return true;
        return false;
}

bool access_validate(const struct access_lists *lists, const char **key, struct buf *why)
{
        for (size_t i = 0; i < COUNT(kinds); i++) {
                const struct setting_list *list = list_of(&kinds[i], lists);

                *key = kinds[i].key;
                for (size_t j = 0; list && j < list->count; j++) {
                        if (!check_entry(&kinds[i], list->items[j], list->count, why))
                                return false;
                }
        }
        return true;
}

static void add_entry(struct entries *to, const struct list_kind *k, const char *text)
{
        struct entry *e = &to->items[to->count];
        const char *id;

        if (is_word(text, k->nobody) || is_word(text, k->pairing))
                return;
        e->subject = subject_of(text, &id);
        e->id = mem_strdup(is_word(text, k->everybody) ? "*" : id);
        e->person = e->subject == SUBJECT_PERSON ? person_parse_id(id) : 0;
        to->count++;
}

struct access *access_new(const struct access_lists *lists)
{
        struct access *a = mem_zalloc(sizeof(*a));
        const char *key;
        struct buf why;
        bool fine;

        buf_init(&why, 0);
        fine = access_validate(lists, &key, &why);
        buf_release(&why);
        a->dm_written = lists->dm && lists->dm->set;
        for (size_t i = 0; fine && i < COUNT(kinds); i++) {
                const struct setting_list *list = list_of(&kinds[i], lists);
                struct entries *to = (struct entries *)(void *)((char *)a + kinds[i].entries);

                if (!list || list->count == 0)
                        continue;
                to->items = mem_array(list->count, sizeof(*to->items));
                for (size_t j = 0; j < list->count; j++) {
                        add_entry(to, &kinds[i], list->items[j]);
                        a->pairs = a->pairs || is_word(list->items[j], kinds[i].pairing);
                }
        }
        return a;
}

void access_free(struct access *a)
{
        if (!a)
                return;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                struct entries *e = (struct entries *)(void *)((char *)a + kinds[i].entries);

                for (size_t j = 0; j < e->count; j++)
                        free(e->items[j].id);
                free(e->items);
        }
        free(a);
}

/* ---- asking ---- */

static bool is_star(const struct entry *e)
{
        return strcmp(e->id, "*") == 0;
}

static bool same_id(const struct entry *e, const char *id)
{
        return id && (is_star(e) || strcmp(e->id, id) == 0);
}

/* unknown: what holds when nobody could tell the roles. */
static bool has_role(const struct entry *e, const struct incoming *in, bool unknown)
{
        struct error err;
        json_t *metadata =
                in->metadata ? json_read(in->metadata, strlen(in->metadata), &err) : NULL;
        const json_t *roles = json_object_get(metadata, "roles"), *role;
        bool found = unknown && json_flag(metadata, "rolesUnknown", false);
        size_t i;

        json_array_foreach(roles, i, role) {
                found = found || same_id(e, json_string_value(role));
        }
        json_decref(metadata);
        return found;
}

static bool entry_matches(const struct entry *e, const struct incoming *in)
{
        switch (e->subject) {
        case SUBJECT_PLAIN:
                return is_star(e) || same_id(e, in->sender_id) || same_id(e, in->channel);
        case SUBJECT_USER:
                return same_id(e, in->sender_id);
        case SUBJECT_PERSON:
                return in->person > 0 && in->person == e->person;
        case SUBJECT_ROLE:
                return has_role(e, in, false);
        case SUBJECT_CHANNEL:
                return same_id(e, in->channel);
        case SUBJECT_GUILD:
                return same_id(e, in->guild);
        }
        return false;
}

/* Rather one too many is kept out than one let in who may be meant. */
static const struct entry *find_blocked(const struct entries *block, const struct incoming *in)
{
        for (size_t i = 0; i < block->count; i++) {
                const struct entry *e = &block->items[i];

                if (e->subject == SUBJECT_ROLE ? has_role(e, in, true) : entry_matches(e, in))
                        return e;
        }
        return NULL;
}

static const struct entry *find(const struct entries *list, const struct incoming *in)
{
        for (size_t i = 0; i < list->count; i++) {
                if (entry_matches(&list->items[i], in))
                        return &list->items[i];
        }
        return NULL;
}

bool access_is_admin(const struct access *a, const struct incoming *in)
{
        for (size_t i = 0; i < a->admins.count; i++) {
                const struct entry *e = &a->admins.items[i];

                if (e->subject == SUBJECT_PERSON ? entry_matches(e, in) : same_id(e, in->sender_id))
                        return true;
        }
        return false;
}

static bool may_dm(const struct access *a, const struct incoming *in)
{
        if (find(&a->dm, in))
                return true;
        for (size_t i = 0; i < a->allow.count; i++) {
                const struct entry *e = &a->allow.items[i];

                /* whoever wrote "dm" has decided about strangers there */
                if (!(is_star(e) && a->dm_written) && entry_matches(e, in))
                        return true;
        }
        return false;
}

static const char *shown(const char *id)
{
        return id ? id : "";
}

static void say_blocked(const struct entry *e, const struct incoming *in, struct buf *why)
{
        const char *subject = subject_names[e->subject];

        buf_addf(why, "'block' names '%s%s%s'", subject ? subject : "", subject ? ":" : "", e->id);
        if (e->subject == SUBJECT_ROLE && !has_role(e, in, false))
                buf_addstr(why, ", and nobody could tell which roles the sender has");
}

static void say_no_dm(const struct access *a, const struct incoming *in, struct buf *why)
{
        if (a->dm.count == 0)
                buf_addf(
                        why,
                        "'dm' lets nobody but admins write here, and 'allow' does not name the sender '%s'",
                        shown(in->sender_id));
        else
                buf_addf(why, "the sender '%s' is neither in 'dm' nor in 'allow'",
                         shown(in->sender_id));
}

bool access_blocks(const struct access *a, const struct incoming *in, struct buf *why)
{
        const struct entry *blocked = find_blocked(&a->block, in);

        if (blocked && why)
                say_blocked(blocked, in, why);
        return blocked != NULL;
}

void access_resolve(struct access *a, const struct persons *persons)
{
        for (size_t i = 0; a && i < COUNT(kinds); i++) {
                struct entries *e = (struct entries *)(void *)((char *)a + kinds[i].entries);

                for (size_t j = 0; j < e->count; j++) {
                        if (e->items[j].subject == SUBJECT_PERSON)
                                e->items[j].person =
                                        persons_current(persons, person_parse_id(e->items[j].id));
                }
        }
}

bool access_pairs(const struct access *a)
{
        return a->pairs;
}

bool access_allows(const struct access *a, const struct incoming *in, struct buf *why)
{
        if (access_blocks(a, in, why))
                return false;
        if (access_is_admin(a, in))
                return true;
        if (in->chat == CHAT_DM ? may_dm(a, in) : find(&a->channels, in) || find(&a->allow, in))
                return true;
        if (why && in->chat == CHAT_DM)
                say_no_dm(a, in, why);
        else if (why)
                buf_addf(
                        why,
                        "channel '%s' is not in 'channels', and 'allow' names neither it nor the sender '%s'",
                        shown(in->channel), shown(in->sender_id));
        return false;
}

bool access_is_open(const struct access *a)
{
        return a->pairs || a->admins.count + a->dm.count + a->allow.count + a->channels.count > 0;
}

/* ---- telling ---- */

static bool any_star(const struct entries *list)
{
        for (size_t i = 0; i < list->count; i++) {
                if (is_star(&list->items[i]))
                        return true;
        }
        return false;
}

static void add_count(struct buf *out, size_t n, const char *one, const char *many)
{
        buf_addf(out, "%zu %s", n, n == 1 ? one : many);
}

static void describe_dms(const struct access *a, struct buf *out)
{
        bool all = any_star(&a->dm) || (!a->dm_written && any_star(&a->allow));
        size_t named = a->dm.count + a->allow.count - any_star(&a->allow);

        buf_addstr(out, "DMs from ");
        if (all)
                buf_addstr(out, "everyone");
        else if (named > 0)
                add_count(out, named, "entry of 'dm' and 'allow'", "entries of 'dm' and 'allow'");
        else
                buf_addstr(out, "nobody");
        if (!all && a->admins.count > 0) {
                buf_addstr(out, named > 0 ? " and " : " but ");
                add_count(out, a->admins.count, "admin", "admins");
        }
        if (a->pairs)
                buf_addstr(out, ", others by pairing");
}

static void describe_groups(const struct access *a, struct buf *out)
{
        buf_addstr(out, "; groups: ");
        if (any_star(&a->channels) || any_star(&a->allow))
                buf_addstr(out, "all");
        else if (a->channels.count + a->allow.count == 0)
                buf_addstr(out, "none");
        else
                add_count(out, a->channels.count + a->allow.count,
                          "entry of 'channels' and 'allow'", "entries of 'channels' and 'allow'");
}

void access_describe(const struct access *a, struct buf *out)
{
        describe_dms(a, out);
        describe_groups(a, out);
        if (a->block.count > 0)
                buf_addf(out, "; %zu blocked", a->block.count);
}
