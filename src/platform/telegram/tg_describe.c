#include "platform/telegram/tg_describe.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

/* What is being said, and to whom. */
struct saying {
        struct arena *arena;
        const struct tg_self *self;
        struct tg_words *out;
        struct buf text;
};

const char *tg_full_name(struct arena *arena, const json_t *who)
{
        const char *first = json_str(who, "first_name", NULL),
                   *last = json_str(who, "last_name", NULL);

        if (first && *first && last && *last)
                return arena_printf(arena, "%s %s", first, last);
        if (first && *first)
                return first;
        return json_str(who, "title", json_str(who, "username", NULL));
}

/* ---- in a line ---- */

static void add_place(struct saying *s, const json_t *location)
{
        buf_addf(&s->text, "%.6f, %.6f", json_number_value(json_object_get(location, "latitude")),
                 json_number_value(json_object_get(location, "longitude")));
}

static void say_location(struct saying *s, const json_t *body)
{
        buf_addstr(&s->text, "Location: ");
        add_place(s, body);
}

static void say_venue(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Venue: %s, %s (", json_str(body, "title", ""),
                 json_str(body, "address", ""));
        add_place(s, json_object_get(body, "location"));
        buf_addstr(&s->text, ")");
}

static void say_contact(struct saying *s, const json_t *body)
{
        const char *name = tg_full_name(s->arena, body);

        buf_addf(&s->text, "Contact: %s %s", name ? name : "", json_str(body, "phone_number", ""));
}

static void say_poll(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Poll: %s", json_str(body, "question", ""));
}

static void say_dice(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "%s %" PRId64, json_str(body, "emoji", ""), json_int(body, "value", 0));
}

static void say_checklist(struct saying *s, const json_t *body)
{
        const json_t *tasks = json_object_get(body, "tasks");

        buf_addf(&s->text, "Checklist: %s", json_str(body, "title", ""));
        for (size_t i = 0; i < json_array_size(tasks); i++) {
                const json_t *task = json_array_get(tasks, i);

                buf_addf(&s->text, "\n%s %s",
                         json_int(task, "completion_date", 0) > 0 ? "[x]" : "[ ]",
                         json_str(task, "text", ""));
        }
}

static void say_story(struct saying *s, const json_t *body)
{
        const char *whose = tg_full_name(s->arena, json_object_get(body, "chat"));

        buf_addf(&s->text, "Story of %s", whose ? whose : "somebody");
}

static void say_game(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Game: %s", json_str(body, "title", ""));
}

static void say_invoice(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Invoice: %s", json_str(body, "title", ""));
}

static void say_paid_media(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Paid media for %" PRId64 " stars", json_int(body, "star_count", 0));
}

static void say_giveaway(struct saying *s, const json_t *body)
{
        buf_addf(&s->text, "Giveaway: %s", json_str(body, "prize_description", ""));
}

/* ---- rich messages ---- */

static bool is_ours(const struct tg_self *self, const char *name)
{
        return self->username && name && strcasecmp(self->username, name + (*name == '@')) == 0;
}

/*
 * Text inside of text: a string, a list, or an object around another one. The depth is that of the
 * JSON.
 */
static void add_rich_text(struct saying *s, const json_t *rich)
{
        if (json_is_string(rich))
                buf_addstr(&s->text, json_string_value(rich));
        for (size_t i = 0; i < json_array_size(rich); i++)
                add_rich_text(s, json_array_get(rich, i));
        if (!json_is_object(rich))
                return;
        add_rich_text(s, json_object_get(rich, "text"));
        buf_addstr(&s->text, json_str(rich, "alternative_text", json_str(rich, "expression", "")));
        if (is_ours(s->self, json_str(rich, "username", NULL)) ||
            json_int(json_object_get(rich, "user"), "id", 0) == s->self->id)
                s->out->mention = true;
}

/* Text that has a line of its own, if there is any. */
static void add_rich_line(struct saying *s, const json_t *rich)
{
        size_t before = s->text.len;

        add_rich_text(s, rich);
        if (s->text.len > before)
                buf_addch(&s->text, '\n');
}

static void add_rich_row(struct saying *s, const json_t *cells)
{
        for (size_t i = 0; i < json_array_size(cells); i++) {
                if (i > 0)
                        buf_addstr(&s->text, " | ");
                add_rich_text(s, json_object_get(json_array_get(cells, i), "text"));
        }
        buf_addch(&s->text, '\n');
}

/*
 * The members of a block that show text, in the order they are shown; those that are lists of
 * blocks are read likewise.
 */
static void add_rich_block(struct saying *s, const json_t *block)
{
        static const char *const before[] = { "summary", "text", "expression" };
        static const char *const inside[] = { "blocks", "items" };
        static const char *const behind[] = { "caption", "credit" };
        const json_t *rows = json_object_get(block, "cells"), *list;
        const char *label = json_str(block, "label", NULL);

        for (size_t i = 0; i < COUNT(before); i++)
                add_rich_line(s, json_object_get(block, before[i]));
        if (label)
                buf_addf(&s->text, "%s ", label);
        for (size_t i = 0; i < COUNT(inside); i++) {
                list = json_object_get(block, inside[i]);
                for (size_t j = 0; j < json_array_size(list); j++)
                        add_rich_block(s, json_array_get(list, j));
        }
        for (size_t i = 0; i < json_array_size(rows); i++)
                add_rich_row(s, json_array_get(rows, i));
        for (size_t i = 0; i < COUNT(behind); i++)
                add_rich_line(s, json_object_get(block, behind[i]));
}

static void say_rich(struct saying *s, const json_t *body)
{
        add_rich_block(s, body);
        while (s->text.len > 0 && s->text.data[s->text.len - 1] == '\n')
                buf_truncate(&s->text, s->text.len - 1);
        if (s->text.len == 0)
                buf_addstr(&s->text, "Rich message without text");
}

/* ---- which ---- */

/* clang-format off */
static const struct {
        const char *field;
        const char *kind;
        void (*say)(struct saying *s, const json_t *body);
} kinds[] = {
        { "venue",        "location", say_venue      }, /* comes with a location of its own */
        { "location",     "location", say_location   },
        { "contact",      "contact",  say_contact    },
        { "poll",         NULL,       say_poll       },
        { "dice",         NULL,       say_dice       },
        { "rich_message", NULL,       say_rich       },
        { "checklist",    NULL,       say_checklist  },
        { "story",        NULL,       say_story      },
        { "game",         NULL,       say_game       },
        { "invoice",      NULL,       say_invoice    },
        { "paid_media",   NULL,       say_paid_media },
        { "giveaway",     NULL,       say_giveaway   },
};
/* clang-format on */

bool tg_words_read(struct arena *arena, const struct tg_self *self, const json_t *message,
                   struct tg_words *out)
{
        struct saying s = { .arena = arena, .self = self, .out = out };

        for (size_t i = 0; i < COUNT(kinds); i++) {
                const json_t *body = json_object_get(message, kinds[i].field);

                if (!json_is_object(body))
                        continue;
                *out = (struct tg_words){ .field = kinds[i].field, .kind = kinds[i].kind };
                buf_init(&s.text, 0);
                kinds[i].say(&s, body);
                out->text = arena_strdup(arena, s.text.data);
                buf_release(&s.text);
                return true;
        }
        return false;
}
