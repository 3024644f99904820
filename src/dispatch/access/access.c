#include "dispatch/access/access.h"

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

static const char *const subject_names[] = {
        [SUBJECT_USER] = "user",       [SUBJECT_PERSON] = "person", [SUBJECT_ROLE] = "role",
        [SUBJECT_CHANNEL] = "channel", [SUBJECT_GUILD] = "guild",
};

struct access_item {
        enum subject subject;
        char *id;       /* "*": any */
        int64_t person; /* of SUBJECT_PERSON */
};

struct access_list {
        struct access_item *items;
        size_t count;
};

struct access {
        struct access_list admins, dm, allow, block, channels;
        bool dm_set; /* the configuration has a "dm" */
        bool pairs;
};

struct list_kind {
        const char *key;
        /* words for all, none and pairing; NULL: no such word */
        const char *everyone, *none, *pairing;
        unsigned subjects;
        bool star;
        size_t from; /* offset in struct access_lists */
        size_t to;   /* offset in struct access */
};

#define BIT(subject) (1u << (subject))
#define PEOPLE       (BIT(SUBJECT_PLAIN) | BIT(SUBJECT_USER) | BIT(SUBJECT_PERSON))
#define CHATS        (BIT(SUBJECT_PLAIN) | BIT(SUBJECT_CHANNEL) | BIT(SUBJECT_GUILD))
#define ANYTHING     (PEOPLE | CHATS | BIT(SUBJECT_ROLE))
#define AT(field)    offsetof(struct access_lists, field), offsetof(struct access, field)

static const struct list_kind kinds[] = {
        { "admins", NULL, NULL, NULL, PEOPLE, false, AT(admins) },
        { "dm", "everyone", "none", "pairing", PEOPLE | BIT(SUBJECT_ROLE), true, AT(dm) },
        { "allow", NULL, NULL, NULL, ANYTHING, true, AT(allow) },
        { "block", NULL, NULL, NULL, ANYTHING, true, AT(block) },
        { "channels", NULL, NULL, NULL, CHATS, true, AT(channels) },
};

static const struct setting_list *configured(const struct list_kind *k,
                                             const struct access_lists *lists)
{
        return *(const struct setting_list *const *)((const char *)lists + k->from);
}

static struct access_list *compiled(const struct list_kind *k, struct access *a)
{
        return (struct access_list *)(void *)((char *)a + k->to);
}

/* ---- parsing ---- */

/* Splits "role:7"; without a known prefix the whole text is an id. */
static enum subject split(const char *text, const char **id)
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

/* Explains that a text is not an id, and what was probably meant. */
static void explain_no_id(const struct list_kind *k, const struct access_lists *lists,
                          const char *text, struct buf *why)
{
        const char *const words[] = { k->everyone, k->none, k->pairing, NULL };
        const char *near = k->everyone ? settings_nearest(text, words) : NULL;
        const char *digits = text + strcspn(text, "0123456789");

        buf_addf(why, "'%.60s' is not an id of %s", text, lists->platform);
        if (near)
                buf_addf(why, " (did you mean '%s'?)", near);
        else if (*digits && lists->is_id(digits))
                buf_addf(why, " (did you mean '%s'?)", digits);
        else if (*text == '@' || *text == '#')
                buf_addstr(why, ": names can change, so list the id that `dragoman persons` "
                                "and `dragoman why` show");
        else if (lists->is_id("1"))
                buf_addstr(why, "; ids are numbers");
        else
                buf_addstr(why, "; `dragoman persons` and `dragoman why` show ids");
}

static bool validate_entry(const struct list_kind *k, const struct access_lists *lists,
                           const char *text, size_t count, struct buf *why)
{
        const char *id;
        enum subject subject = split(text, &id);
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz");

        if (is_word(text, k->everyone) || is_word(text, k->pairing))
                return true;
        if (is_word(text, k->none)) {
                if (count > 1)
                        buf_addf(why, "'%s' cannot be combined with other entries", text);
                return count == 1;
        }
        if (*id == '\0' || strspn(id, " \t") > 0)
                buf_addstr(why, "an entry is empty or begins with a space");
        /*
         * "rle:7" would never match, and a block list would not show it. Ids with a colon of their
         * own ("@ann:example.org") do not begin with a word.
         */
        else if (subject == SUBJECT_PLAIN && n > 0 && text[n] == ':')
                buf_addf(why,
                         "'%.60s' begins with neither 'user:', 'person:', 'role:', 'channel:' nor "
                         "'guild:'",
                         text);
        else if (!(k->subjects & BIT(subject)))
                buf_addf(why, "'%.60s' has no effect here: %ss are not checked", text,
                         subject_names[subject]);
        else if (subject == SUBJECT_PERSON && person_parse_id(id) <= 0)
                buf_addf(why, "'%.60s' is not a person; expected one such as 'person:per-3'", text);
        else if (strcmp(id, "*") == 0 && !k->star)
                buf_addf(why, "'%.60s' would allow everyone; name each", text);
        else if (lists->is_id && subject != SUBJECT_PERSON && strcmp(id, "*") != 0 &&
                 !lists->is_id(id))
                explain_no_id(k, lists, id, why);
        else
                return true;
        return false;
}

bool access_validate(const struct access_lists *lists, access_mistake_fn *report, void *arg)
{
        bool valid = true;
        struct buf why;

        buf_init(&why, 0);
        for (size_t i = 0; i < COUNT(kinds); i++) {
                const struct setting_list *list = configured(&kinds[i], lists);

                for (size_t j = 0; list && j < list->count; j++) {
                        buf_clear(&why);
                        if (validate_entry(&kinds[i], lists, list->items[j], list->count, &why))
                                continue;
                        valid = false;
                        if (report)
                                report(arg, kinds[i].key, why.data);
                }
        }
        buf_release(&why);
        return valid;
}

static void compile_list(struct access *a, const struct list_kind *k,
                         const struct setting_list *list)
{
        struct access_list *to = compiled(k, a);

        to->items = mem_array(list->count, sizeof(*to->items));
        for (size_t i = 0; i < list->count; i++) {
                const char *text = list->items[i], *id;
                enum subject subject = split(text, &id);

                if (is_word(text, k->pairing))
                        a->pairs = true;
                else if (!is_word(text, k->none))
                        to->items[to->count++] = (struct access_item){
                                subject, mem_strdup(is_word(text, k->everyone) ? "*" : id),
                                subject == SUBJECT_PERSON ? person_parse_id(id) : 0
                        };
        }
}

struct access *access_new(const struct access_lists *lists)
{
        struct access *a = mem_zalloc(sizeof(*a));
        bool valid = access_validate(lists, NULL, NULL);

        a->dm_set = lists->dm && lists->dm->set;
        for (size_t i = 0; valid && i < COUNT(kinds); i++) {
                const struct setting_list *list = configured(&kinds[i], lists);

                if (list && list->count > 0)
                        compile_list(a, &kinds[i], list);
        }
        return a;
}

void access_free(struct access *a)
{
        if (!a)
                return;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                struct access_list *list = compiled(&kinds[i], a);

                for (size_t j = 0; j < list->count; j++)
                        free(list->items[j].id);
                free(list->items);
        }
        free(a);
}

void access_resolve(struct access *a, const struct persons *persons)
{
        for (size_t i = 0; a && i < COUNT(kinds); i++) {
                struct access_list *list = compiled(&kinds[i], a);

                for (size_t j = 0; j < list->count; j++) {
                        struct access_item *e = &list->items[j];

                        if (e->subject == SUBJECT_PERSON)
                                e->person = persons_current(persons, person_parse_id(e->id));
                }
        }
}

/* ---- matching ---- */

static bool is_star(const struct access_item *e)
{
        return strcmp(e->id, "*") == 0;
}

static bool same_id(const struct access_item *e, const char *id)
{
        return id && (is_star(e) || strcmp(e->id, id) == 0);
}

/* if_unknown: the result while roles are unknown. */
static bool has_role(const struct access_item *e, const struct incoming *in, bool if_unknown)
{
        struct error err;
        json_t *metadata =
                in->metadata ? json_read(in->metadata, strlen(in->metadata), &err) : NULL;
        const json_t *roles = json_object_get(metadata, "roles"), *role;
        bool found = if_unknown && json_flag(metadata, "rolesUnknown", false);
        size_t i;

        json_array_foreach(roles, i, role) {
                found = found || same_id(e, json_string_value(role));
        }
        json_decref(metadata);
        return found;
}

static bool item_matches(const struct access_item *e, const struct incoming *in,
                         bool if_roles_unknown)
{
        switch (e->subject) {
        case SUBJECT_PLAIN:
                return is_star(e) || same_id(e, in->sender_id) || same_id(e, in->channel);
        case SUBJECT_USER:
                return same_id(e, in->sender_id);
        case SUBJECT_PERSON:
                return in->person > 0 && in->person == e->person;
        case SUBJECT_ROLE:
                return has_role(e, in, if_roles_unknown);
        case SUBJECT_CHANNEL:
                return same_id(e, in->channel);
        case SUBJECT_GUILD:
                return same_id(e, in->guild);
        }
        return false;
}

static const struct access_item *find(const struct access_list *list, const struct incoming *in,
                                      bool if_roles_unknown)
{
        for (size_t i = 0; i < list->count; i++) {
                if (item_matches(&list->items[i], in, if_roles_unknown))
                        return &list->items[i];
        }
        return NULL;
}

bool access_blocks(const struct access *a, const struct incoming *in, struct buf *why)
{
        const struct access_item *e = find(&a->block, in, true);
        const char *subject = e ? subject_names[e->subject] : NULL;

        if (e && why) {
                buf_addf(why, "'block' names '%s%s%s'", subject ? subject : "", subject ? ":" : "",
                         e->id);
                if (e->subject == SUBJECT_ROLE && !has_role(e, in, false))
                        buf_addstr(why, ", and the sender's roles are unknown");
        }
        return e != NULL;
}

bool access_is_admin(const struct access *a, const struct incoming *in)
{
        for (size_t i = 0; i < a->admins.count; i++) {
                const struct access_item *e = &a->admins.items[i];

                if (e->subject == SUBJECT_PERSON ? item_matches(e, in, false)
                                                 : same_id(e, in->sender_id))
                        return true;
        }
        return false;
}

static bool may_dm(const struct access *a, const struct incoming *in)
{
        if (find(&a->dm, in, false))
                return true;
        for (size_t i = 0; i < a->allow.count; i++) {
                const struct access_item *e = &a->allow.items[i];

                /* a configured "dm" decides about strangers */
                if (!(is_star(e) && a->dm_set) && item_matches(e, in, false))
                        return true;
        }
        return false;
}

bool access_pairs(const struct access *a)
{
        return a->pairs;
}

bool access_allows(const struct access *a, const struct incoming *in, struct buf *why)
{
        const char *sender = in->sender_id ? in->sender_id : "";

        if (access_blocks(a, in, why))
                return false;
        if (access_is_admin(a, in) ||
            (in->chat == CHAT_DM ? may_dm(a, in)
                                 : find(&a->channels, in, false) || find(&a->allow, in, false)))
                return true;
        if (!why)
                return false;
        if (in->chat != CHAT_DM)
                buf_addf(why,
                         "channel '%s' is not in 'channels', and 'allow' names neither it nor the "
                         "sender '%s'",
                         in->channel ? in->channel : "", sender);
        else if (a->dm.count == 0)
                buf_addf(why, "'dm' allows only admins, and 'allow' does not name the sender '%s'",
                         sender);
        else
                buf_addf(why, "the sender '%s' is neither in 'dm' nor in 'allow'", sender);
        return false;
}

/* ---- describing ---- */

static bool any_star(const struct access_list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                if (is_star(&list->items[i]))
                        return true;
        }
        return false;
}

void access_describe(const struct access *a, struct buf *out)
{
        bool allow_all = any_star(&a->allow);
        bool dm_all = any_star(&a->dm) || (!a->dm_set && allow_all);
        size_t dms = a->dm.count + a->allow.count - allow_all, admins = a->admins.count;
        size_t groups = a->channels.count + a->allow.count;

        buf_addstr(out, "DMs: ");
        if (dm_all)
                buf_addstr(out, "everyone");
        else if (dms + admins == 0)
                buf_addstr(out, "none");
        if (!dm_all && dms > 0)
                buf_addf(out, "%zu %s of 'dm' and 'allow'", dms, dms == 1 ? "entry" : "entries");
        if (!dm_all && admins > 0)
                buf_addf(out, "%s%zu %s", dms > 0 ? ", " : "", admins,
                         admins == 1 ? "admin" : "admins");
        if (a->pairs)
                buf_addstr(out, ", others by pairing");
        buf_addstr(out, "; groups: ");
        if (any_star(&a->channels) || allow_all)
                buf_addstr(out, "all");
        else if (groups == 0)
                buf_addstr(out, "none");
        else
                buf_addf(out, "%zu %s of 'channels' and 'allow'", groups,
                         groups == 1 ? "entry" : "entries");
        if (a->block.count > 0)
                buf_addf(out, "; %zu blocked", a->block.count);
}
