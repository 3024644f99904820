#include "platform/telegram/tg_update.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

struct description_writer {
        struct arena *arena;
        const struct tg_self *self;
        struct buf text;
        bool mention;
};

const char *tg_describe_name(struct arena *arena, const json_t *who)
{
        const char *first = json_str(who, "first_name", NULL),
                   *last = json_str(who, "last_name", NULL);

        if (first && *first && last && *last)
                return arena_printf(arena, "%s %s", first, last);
        if (first && *first)
                return first;
        return json_str(who, "title", json_str(who, "username", NULL));
}

enum chat_kind tg_describe_kind(const json_t *chat)
{
        const char *type = json_str(chat, "type", "");

        if (strcmp(type, "private") == 0)
                return CHAT_DM;
        return strcmp(type, "channel") == 0 ? CHAT_BROADCAST : CHAT_GROUP;
}

/* ---- one-line descriptions ---- */

static void add_location(struct description_writer *w, const json_t *location)
{
        buf_addf(&w->text, "%.6f, %.6f", json_number_value(json_object_get(location, "latitude")),
                 json_number_value(json_object_get(location, "longitude")));
}

static void add_venue(struct description_writer *w, const json_t *venue)
{
        buf_addf(&w->text, "%s, %s (", json_str(venue, "title", ""),
                 json_str(venue, "address", ""));
        add_location(w, json_object_get(venue, "location"));
        buf_addch(&w->text, ')');
}

static void add_contact(struct description_writer *w, const json_t *contact)
{
        const char *name = tg_describe_name(w->arena, contact);

        buf_addf(&w->text, "%s %s", name ? name : "", json_str(contact, "phone_number", ""));
}

static void add_dice(struct description_writer *w, const json_t *dice)
{
        buf_addf(&w->text, "%s %" PRId64, json_str(dice, "emoji", ""), json_int(dice, "value", 0));
}

static void add_checklist(struct description_writer *w, const json_t *checklist)
{
        const json_t *tasks = json_object_get(checklist, "tasks");

        buf_addstr(&w->text, json_str(checklist, "title", ""));
        for (size_t i = 0; i < json_array_size(tasks); i++) {
                const json_t *task = json_array_get(tasks, i);

                buf_addf(&w->text, "\n%s %s",
                         json_int(task, "completion_date", 0) > 0 ? "[x]" : "[ ]",
                         json_str(task, "text", ""));
        }
}

static void add_story(struct description_writer *w, const json_t *story)
{
        const char *owner = tg_describe_name(w->arena, json_object_get(story, "chat"));

        buf_addstr(&w->text, owner ? owner : "an unknown chat");
}

static void add_paid_media(struct description_writer *w, const json_t *media)
{
        buf_addf(&w->text, "%" PRId64 " stars", json_int(media, "star_count", 0));
}

/* ---- rich messages ---- */

/*
 * Nested text: a string, a list, or an object around either. The JSON reader bounds the depth.
 */
static void add_rich_text(struct description_writer *w, const json_t *rich)
{
        const char *name = json_str(rich, "username", NULL);

        if (json_is_string(rich))
                buf_addstr(&w->text, json_string_value(rich));
        for (size_t i = 0; i < json_array_size(rich); i++)
                add_rich_text(w, json_array_get(rich, i));
        if (!json_is_object(rich))
                return;
        add_rich_text(w, json_object_get(rich, "text"));
        buf_addstr(&w->text, json_str(rich, "alternative_text", json_str(rich, "expression", "")));
        if ((w->self->username && name &&
             strcasecmp(w->self->username, name + (*name == '@')) == 0) ||
            json_int(json_object_get(rich, "user"), "id", 0) == w->self->id)
                w->mention = true;
}

static void add_rich_line(struct description_writer *w, const json_t *rich)
{
        size_t before = w->text.len;

        add_rich_text(w, rich);
        if (w->text.len > before)
                buf_addch(&w->text, '\n');
}

/* Adds the members of a block that show text, in order. Blocks are nested. */
static void add_rich_block(struct description_writer *w, const json_t *block)
{
        static const char *const before[] = { "summary", "text", "expression" };
        static const char *const inside[] = { "blocks", "items" };
        static const char *const after[] = { "caption", "credit" };
        const json_t *rows = json_object_get(block, "cells");
        const char *label = json_str(block, "label", NULL);

        for (size_t i = 0; i < COUNT(before); i++)
                add_rich_line(w, json_object_get(block, before[i]));
        if (label)
                buf_addf(&w->text, "%s ", label);
        for (size_t i = 0; i < COUNT(inside); i++) {
                const json_t *list = json_object_get(block, inside[i]);

                for (size_t j = 0; j < json_array_size(list); j++)
                        add_rich_block(w, json_array_get(list, j));
        }
        for (size_t i = 0; i < json_array_size(rows); i++) {
                const json_t *cells = json_array_get(rows, i);

                for (size_t j = 0; j < json_array_size(cells); j++) {
                        if (j > 0)
                                buf_addstr(&w->text, " | ");
                        add_rich_text(w, json_object_get(json_array_get(cells, j), "text"));
                }
                buf_addch(&w->text, '\n');
        }
        for (size_t i = 0; i < COUNT(after); i++)
                add_rich_line(w, json_object_get(block, after[i]));
}

static void add_rich_message(struct description_writer *w, const json_t *message)
{
        add_rich_block(w, message);
        while (w->text.len > 0 && w->text.data[w->text.len - 1] == '\n')
                buf_truncate(&w->text, w->text.len - 1);
        if (w->text.len == 0)
                buf_addstr(&w->text, "Rich message without text");
}

/* ---- kinds of content ---- */

/* A prefix, then a member of the content or what a function adds. */
/* clang-format off */
static const struct {
        const char *field, *kind, *prefix, *member;
        void (*add)(struct description_writer *w, const json_t *body);
} kinds[] = {
        /* a venue has a location too */
        { "venue",        "location", "Venue: ",        NULL,                add_venue        },
        { "location",     "location", "Location: ",     NULL,                add_location     },
        { "contact",      "contact",  "Contact: ",      NULL,                add_contact      },
        { "poll",         NULL,       "Poll: ",         "question",          NULL             },
        { "dice",         NULL,       "",               NULL,                add_dice         },
        { "rich_message", NULL,       "",               NULL,                add_rich_message },
        { "checklist",    NULL,       "Checklist: ",    NULL,                add_checklist    },
        { "story",        NULL,       "Story of ",      NULL,                add_story        },
        { "game",         NULL,       "Game: ",         "title",             NULL             },
        { "invoice",      NULL,       "Invoice: ",      "title",             NULL             },
        { "paid_media",   NULL,       "Paid media for ", NULL,               add_paid_media   },
        { "giveaway",     NULL,       "Giveaway: ",     "prize_description", NULL             },
};
/* clang-format on */

bool tg_describe(struct arena *arena, const struct tg_self *self, const json_t *message,
                 struct tg_description *out)
{
        struct description_writer w = { .arena = arena, .self = self };

        for (size_t i = 0; i < COUNT(kinds); i++) {
                const json_t *body = json_object_get(message, kinds[i].field);

                if (!json_is_object(body))
                        continue;
                buf_init(&w.text, 0);
                buf_addstr(&w.text, kinds[i].prefix);
                if (kinds[i].member)
                        buf_addstr(&w.text, json_str(body, kinds[i].member, ""));
                else
                        kinds[i].add(&w, body);
                *out = (struct tg_description){ .text = arena_strdup(arena, w.text.data),
                                                .field = kinds[i].field,
                                                .kind = kinds[i].kind,
                                                .mention = w.mention };
                buf_release(&w.text);
                return true;
        }
        return false;
}
