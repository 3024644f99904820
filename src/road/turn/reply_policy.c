/*
 * terms: how a turn is run and answered, by its rule or by what was noted of a rule that is gone.
 *
 * A rule is asked whenever its terms count, so that a change of it counts at once. A rule that was
 * removed, renamed or switched off can no longer be asked; the turns it began end as they began:
 * what it said is noted with each, unless it said nothing that differs from a plain reply.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road_private.h"

/* A note that was read. */
struct noted_terms {
        json_t *json; /* holds the strings */
        struct setting_list silence;
};

static const char *const mode_names[] = {
        [MODE_REPLY] = "reply",
        [MODE_THREAD] = "thread",
        [MODE_AMBIENT] = "ambient",
        [MODE_SILENT] = "silent",
};

const char *reply_mode_name(enum reply_mode mode)
{
        return mode_names[mode];
}

bool reply_mode_parse(const char *name, enum reply_mode *out)
{
        for (size_t i = 0; i < COUNT(mode_names); i++) {
                if (strcmp(mode_names[i], name) == 0) {
                        *out = (enum reply_mode)i;
                        return true;
                }
        }
        return false;
}

bool reply_mode_answers(enum reply_mode mode)
{
        return mode == MODE_REPLY || mode == MODE_THREAD;
}

static void ask(struct road *r, const char *adapter, const char *rule, enum chat_kind chat,
                struct turn_terms *out)
{
        *out = (struct turn_terms){ 0 };
        if (r->platforms.terms)
                r->platforms.terms(r->platforms.adapters, adapter, chat, out);
        if (r->dispatch.terms)
                r->dispatch.terms(r->dispatch.dispatch, adapter, rule, chat, out);
}

/* ---- the note ---- */

static bool is_plain(const struct turn_terms *terms)
{
        return terms->mode == MODE_REPLY && !terms->prompt && !terms->silence;
}

char *terms_note(struct road *r, const struct incoming *in, const char *rule)
{
        struct turn_terms terms;
        struct buf b;

        ask(r, in->adapter, rule, in->chat, &terms);
        if (is_plain(&terms))
                return NULL;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "mode", reply_mode_name(terms.mode));
        jsonw_opt(&b, "prompt", terms.prompt);
        jsonw_int(&b, "recall", terms.recall_messages);
        if (terms.silence) {
                jsonw_open_member(&b, "silence", '[');
                for (size_t i = 0; i < terms.silence->count; i++)
                        jsonw_str(&b, NULL, terms.silence->items[i]);
                jsonw_close(&b, ']');
        }
        jsonw_close(&b, '}');
        return buf_take(&b);
}

void terms_free(struct noted_terms *n)
{
        if (!n)
                return;
        json_decref(n->json);
        free(n->silence.items);
        free(n);
}

static struct noted_terms *read_note(const char *note)
{
        struct noted_terms *n = mem_zalloc(sizeof(*n));
        const json_t *words;

        n->json = json_loads(note, 0, NULL);
        words = json_object_get(n->json, "silence");
        n->silence.set = words != NULL;
        n->silence.items = mem_array(json_array_size(words), sizeof(char *));
        for (size_t i = 0; i < json_array_size(words); i++)
                n->silence.items[n->silence.count++] =
                        (char *)json_string_value(json_array_get(words, i));
        return n;
}

static void recollect(struct turn *t, struct turn_terms *out)
{
        const struct noted_terms *n;

        if (!t->noted)
                t->noted = read_note(t->terms_note);
        n = t->noted;
        if (!reply_mode_parse(json_str(n->json, "mode", ""), &out->mode))
                out->mode = MODE_REPLY;
        out->prompt = json_str(n->json, "prompt", NULL);
        out->recall_messages = json_int(n->json, "recall", 0);
        out->silence = n->silence.set ? &n->silence : NULL;
}

/* ---- asking ---- */

enum reply_mode terms_mode(struct road *r, const struct incoming *in, const char *rule)
{
        struct turn_terms terms;

        ask(r, in->adapter, rule, in->chat, &terms);
        return terms.mode;
}

void turn_terms(struct turn *t, struct turn_terms *out)
{
        ask(t->road, t->adapter, t->rule, t->inputs[t->input_count - 1]->chat, out);
        if (!out->has_rule && t->terms_note)
                recollect(t, out);
        if (t->has_mode)
                out->mode = t->run.mode;
}
