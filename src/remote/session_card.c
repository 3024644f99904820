#include "remote/session_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "remote/session_text.h"
#include "road/outbox/card.h"

/* of the blueprint */
#define ORANGE 0xffa500
#define GREEN  0x00ff00
#define RED    0xff0000
/* ours */
#define BLUE           0x3b82f6
#define GREY           0x808080
#define AMBER          0xffc107

#define HEADLINE_CHARS 120
#define FOOTER_CHARS   40  /* of a name */
#define ASKED_CHARS    900 /* of the input of a question */
#define USD_MICRO      1e6
#define SECOND_MS      1000
#define PRECISE_MS     10000 /* with a decimal */
#define MINUTE_MS      60000
#define HOUR_MS        3600000
#define BLUEPRINT_IS   "Agent System"

/* A card under construction. */
struct draft {
        struct card card;
        struct arena arena;
};

static void draft_init(struct draft *d, const struct session_row *row, int64_t time_ms,
                       const struct session_card_place *place)
{
        char *name = session_card_name(row), *brief = session_text_line(name, FOOTER_CHARS);

        *d = (struct draft){ 0 };
        arena_init(&d->arena);
        d->card.time_ms = time_ms;
        d->card.footer = arena_printf(&d->arena, "%s " BLUEPRINT_IS " · ses-%lld%s%s",
                                      row->program ? row->program : "OMP", (long long)row->id,
                                      place->named ? " " : "", place->named ? brief : "");
        free(brief);
        free(name);
}

static char *draft_take(struct draft *d)
{
        char *json = card_json(&d->card);

        arena_release(&d->arena);
        return json;
}

/* Takes over a buffer. */
static const char *keep(struct draft *d, struct buf *b)
{
        const char *text = arena_strdup(&d->arena, b->data);

        buf_release(b);
        return text;
}

static void add_field(struct draft *d, const char *name, const char *value, bool is_inline)
{
        if (value && *value && d->card.field_count < CARD_FIELDS_MAX)
                d->card.fields[d->card.field_count++] =
                        (struct card_field){ name, value, is_inline };
}

static void add_plain_field(struct draft *d, const char *name, const char *value, bool is_inline)
{
        struct buf b;

        if (!value)
                return;
        buf_init(&b, 0);
        session_text_add_plain(&b, value);
        add_field(d, name, keep(d, &b), is_inline);
}

static void add_span_field(struct draft *d, const char *name, const char *value, bool is_inline)
{
        struct buf b;

        if (!value || !*value)
                return;
        buf_init(&b, 0);
        session_text_add_span(&b, value);
        add_field(d, name, keep(d, &b), is_inline);
}

static void add_block_field(struct draft *d, const char *name, const char *language,
                            const char *text)
{
        struct buf b;

        if (!text)
                return;
        buf_init(&b, 0);
        session_text_add_block(&b, language, text);
        add_field(d, name, keep(d, &b), false);
}

static void add_session_field(struct draft *d, const struct session_row *row)
{
        add_span_field(d, "Session", row->session, true);
}

/* ---- words ---- */

/* "1 min 5 s", "2 h" */
static void add_units(struct buf *b, int64_t large, const char *large_unit, int64_t small,
                      const char *small_unit)
{
        buf_addf(b, "%lld %s", (long long)large, large_unit);
        if (small > 0)
                buf_addf(b, " %lld %s", (long long)small, small_unit);
}

static void add_duration(struct buf *b, int64_t ms)
{
        if (ms < PRECISE_MS)
                buf_addf(b, "%.1f s", (double)ms / SECOND_MS);
        else if (ms < MINUTE_MS)
                buf_addf(b, "%lld s", (long long)(ms / SECOND_MS));
        else if (ms < HOUR_MS)
                add_units(b, ms / MINUTE_MS, "min", ms % MINUTE_MS / SECOND_MS, "s");
        else
                add_units(b, ms / HOUR_MS, "h", ms % HOUR_MS / MINUTE_MS, "min");
}

static const char *duration(struct draft *d, int64_t ms)
{
        struct buf b;

        if (ms <= 0)
                return NULL;
        buf_init(&b, 0);
        add_duration(&b, ms);
        return keep(d, &b);
}

static const char *number(struct draft *d, int64_t n)
{
        return n > 0 ? arena_printf(&d->arena, "%lld", (long long)n) : NULL;
}

static const char *dollars(struct draft *d, int64_t microusd)
{
        double usd = (double)microusd / USD_MICRO;

        if (microusd <= 0)
                return NULL;
        return arena_printf(&d->arena, usd < 0.1 ? "$%.4f" : "$%.2f", usd);
}

static const char *count_of(struct draft *d, size_t n, const char *one, const char *many)
{
        return arena_printf(&d->arena, "%zu %s", n, n == 1 ? one : many);
}

static const char *language_of(const char *tool, const char *input)
{
        if (input && *input == '{')
                return "json";
        return strcmp(tool, "bash") == 0 || strcmp(tool, "shell") == 0 ? "bash" : "";
}

char *session_card_name(const struct session_row *row)
{
        const char *slash = row->cwd ? strrchr(row->cwd, '/') : NULL;
        const char *name = row->title              ? row->title
                           : slash && slash[1]     ? slash + 1
                           : row->cwd && *row->cwd ? row->cwd
                                                   : row->session;
        char *line = session_text_line(name, SESSION_NAME_CHARS);

        return line ? line : mem_printf("ses-%lld", (long long)row->id);
}

/* ---- the first message ---- */

char *session_card_root(const struct session_row *row, const struct session_card_place *place)
{
        static const char *const states[] = {
                [SESSION_ACTIVE] = "🟢 Active",
                [SESSION_ARCHIVED] = "💤 Quiet, archived until it goes on",
                [SESSION_ENDED] = "🏁 Ended",
        };
        char *name = session_card_name(row);
        struct draft d;

        draft_init(&d, row, row->created_ms, place);
        d.card.title = arena_printf(&d.arena, "💻 %s", name);
        d.card.color = row->state == SESSION_ACTIVE ? BLUE : GREY;
        d.card.body = row->state == SESSION_ENDED || !place->ways_to_steer
                              ? states[row->state]
                              : arena_printf(&d.arena, "%s\n%s", states[row->state],
                                             place->ways_to_steer);
        add_plain_field(&d, "Program", row->program, true);
        add_plain_field(&d, "Host", row->host, true);
        add_plain_field(&d, "Model", row->model, true);
        add_span_field(&d, "Folder", row->cwd, false);
        add_field(&d, "Turns", number(&d, row->turns), true);
        add_field(&d, "Tokens Used", number(&d, row->tokens), true);
        add_field(&d, "Cost", dollars(&d, row->cost_microusd), true);
        add_session_field(&d, row);
        free(name);
        return draft_take(&d);
}

/* ---- work ---- */

static const char *mark_of(const struct page_call *c)
{
        static const char *const marks[] = {
                [CALL_RUNS] = "⏳", [CALL_DONE] = "✅", [CALL_FAILED] = "❌", [CALL_BLOCKED] = "⛔"
        };

        return marks[c->state];
}

/* "✅ **bash** `make test` (1.2 s)" */
static void add_line(struct buf *b, const struct page_call *c)
{
        buf_addf(b, "%s ", mark_of(c));
        if (c->subagent) {
                session_text_add_plain(b, c->subagent);
                buf_addstr(b, ": ");
        }
        buf_addstr(b, "**");
        session_text_add_plain(b, c->tool);
        buf_addstr(b, "**");
        if (c->gist) {
                buf_addch(b, ' ');
                session_text_add_span(b, c->gist);
        }
        if (c->took_ms >= 0) {
                buf_addstr(b, " (");
                add_duration(b, c->took_ms);
                buf_addch(b, ')');
        }
        if (c->warning) {
                buf_addstr(b, " ⚠️ ");
                session_text_add_plain(b, c->warning);
        }
}

static void add_notes(struct buf *b, const struct page *p)
{
        for (size_t i = 0; i < page_note_count(p); i++)
                buf_addf(b, "%s%s", b->len ? "\n" : "", page_note(p, i));
}

/* "bash 9, read 3" */
static const char *tools_text(struct draft *d, const struct page *p)
{
        struct buf b;

        buf_init(&b, 0);
        for (size_t i = 0; i < PAGE_TOOLS && p->tools[i].name; i++) {
                buf_addstr(&b, i > 0 ? ", " : "");
                session_text_add_plain(&b, p->tools[i].name);
                buf_addf(&b, " %zu", p->tools[i].count);
        }
        return keep(d, &b);
}

/* The blueprint's alert: one call, with its input. */
static void draw_call(struct draft *d, const struct session_row *row, const struct page *p)
{
        const struct page_call *c = page_line(p, 0);
        const char *cwd = c->cwd ? c->cwd : row->cwd;
        struct buf b;

        d->card.title = arena_printf(&d->arena, "🛠️ Tool Execution: %s", c->tool);
        buf_init(&b, 0);
        if (c->subagent) {
                session_text_add_plain(&b, c->subagent);
                buf_addstr(&b, ": ");
        }
        buf_addf(&b, "%s execution started",
                 strcmp(language_of(c->tool, c->input), "bash") == 0 ? "Command" : "Tool");
        if (cwd) {
                buf_addstr(&b, " in ");
                session_text_add_plain(&b, cwd);
        }
        if (c->warning) {
                buf_addstr(&b, "\n⚠️ ");
                session_text_add_plain(&b, c->warning);
        }
        add_notes(&b, p);
        d->card.body = keep(d, &b);
        add_block_field(d, "Input", language_of(c->tool, c->input), c->input);
        add_session_field(d, row);
        if (c->state == CALL_RUNS)
                return;
        buf_init(&b, 0);
        buf_addf(&b, "%s %s", mark_of(c),
                 c->state == CALL_DONE     ? "done"
                 : c->state == CALL_FAILED ? "failed"
                                           : "not run");
        if (c->took_ms >= 0) {
                buf_addstr(&b, ", ");
                add_duration(&b, c->took_ms);
        }
        if (c->output) {
                buf_addch(&b, '\n');
                session_text_add_block(&b, "", c->output);
        }
        add_field(d, "Result", keep(d, &b), false);
}

static void draw_calls(struct draft *d, const struct page *p)
{
        size_t shown = page_line_count(p);
        struct buf b;

        d->card.title = p->calls > 0
                                ? arena_printf(&d->arena, "🛠️ %s",
                                               count_of(d, p->calls, "tool call", "tool calls"))
                        : shown > 0 ? "🛠️ Tool results"
                                    : "📋 News";
        buf_init(&b, 0);
        if (p->line_count > shown)
                buf_addf(&b, "%s in all, the last ones:", tools_text(d, p));
        for (size_t i = 0; i < shown; i++) {
                buf_addstr(&b, b.len ? "\n" : "");
                add_line(&b, page_line(p, i));
        }
        add_notes(&b, p);
        d->card.body = keep(d, &b);
        if (p->failed > 0)
                add_field(d, "Failed", number(d, (int64_t)p->failed), true);
}

/* ---- what else happens ---- */

static void add_totals(struct draft *d, const struct page *p)
{
        add_field(d, "Tokens Used", number(d, p->tokens), true);
        add_field(d, "Cost", dollars(d, p->cost_microusd), true);
        add_field(d, "Time", duration(d, p->took_ms), true);
}

static void draw_turn(struct draft *d, const struct page *p)
{
        bool aborted = p->outcome && strcmp(p->outcome, "aborted") == 0;
        bool failed = p->outcome && !aborted;

        d->card.title = aborted  ? "⏹️ Turn Aborted"
                        : failed ? "❌ Turn Failed"
                                 : "✅ Turn Completed";
        d->card.color = aborted ? GREY : failed ? RED : GREEN;
        d->card.body = p->text   ? p->text
                       : aborted ? "The agent was stopped."
                       : failed  ? "The agent could not finish the current prompt."
                                 : "Agent has finished processing the current prompt.";
        add_field(d, "Tokens Used", arena_printf(&d->arena, "%lld", (long long)p->tokens), true);
        add_field(d, "Pending Messages", p->pending ? p->pending : "False", true);
        add_field(d, "Cost", dollars(d, p->cost_microusd), true);
        add_field(d, "Time", duration(d, p->took_ms), true);
}

static void draw_errors(struct draft *d, const struct page *p)
{
        struct buf b;

        d->card.title =
                p->errors == 1 ? "❌ Error" : arena_printf(&d->arena, "❌ %zu Errors", p->errors);
        d->card.color = RED;
        buf_init(&b, 0);
        if (p->errors == 1) {
                if (p->error)
                        session_text_add_block(&b, "", p->error);
        } else {
                for (size_t i = 0; i < page_note_count(p); i++) {
                        buf_addstr(&b, b.len ? "\n" : "");
                        session_text_add_plain(&b, page_note(p, i));
                }
        }
        d->card.body = keep(d, &b);
}

static void draw_end(struct draft *d, const struct session_row *row, const struct page *p)
{
        d->card.title = "🏁 Session Ended";
        d->card.color = GREY;
        if (p->text)
                add_plain_field(d, "Reason", p->text, true);
        add_field(d, "Turns", number(d, row->turns), true);
        add_field(d, "Tokens Used", number(d, row->tokens), true);
        add_field(d, "Cost", dollars(d, row->cost_microusd), true);
        add_field(d, "Time", duration(d, row->ended_ms - row->created_ms), true);
}

/* "⏩ 340 tool calls, 3 turns, 1 error" */
static void draw_summary(struct draft *d, const struct page *p)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "⏩ ");
        if (p->calls > 0)
                buf_addstr(&b, count_of(d, p->calls, "tool call", "tool calls"));
        if (p->turns > 0)
                buf_addf(&b, "%s%s", p->calls > 0 ? ", " : "",
                         count_of(d, p->turns, "turn", "turns"));
        if (p->errors > 0)
                buf_addf(&b, "%s%s", p->calls + p->turns > 0 ? ", " : "",
                         count_of(d, p->errors, "error", "errors"));
        if (p->calls + p->turns + p->errors == 0)
                buf_addstr(&b, "News");
        d->card.title = keep(d, &b);
        d->card.color = p->errors > 0 ? RED : p->turns > 0 ? GREEN : ORANGE;
        d->card.body =
                p->text ? p->text : "The session was faster than this chat; this sums it up.";
        if (p->calls > 0)
                add_field(d, "Tools", tools_text(d, p), false);
        if (p->failed > 0)
                add_field(d, "Failed", number(d, (int64_t)p->failed), true);
        add_block_field(d, "Last error", "", p->error);
        add_totals(d, p);
        if (p->ended)
                add_field(d, "State", "🏁 Ended", true);
}

char *session_card_page(const struct session_row *row, const struct page *p,
                        const struct session_card_place *place)
{
        struct draft d;
        struct buf b;

        draft_init(&d, row, p->time_ms, place);
        d.card.color = ORANGE;
        switch (p->kind) {
        case PAGE_WORK:
                if (p->calls == 1 && p->line_count == 1)
                        draw_call(&d, row, p);
                else
                        draw_calls(&d, p);
                break;
        case PAGE_TURN:
                draw_turn(&d, p);
                break;
        case PAGE_ERROR:
                draw_errors(&d, p);
                break;
        case PAGE_NOTICE:
                d.card.title = "📣 Notice";
                d.card.color = BLUE;
                buf_init(&b, 0);
                session_text_add_plain(&b, p->text ? p->text : "");
                d.card.body = keep(&d, &b);
                break;
        case PAGE_END:
                draw_end(&d, row, p);
                break;
        case PAGE_SUMMARY:
                draw_summary(&d, p);
                break;
        }
        return draft_take(&d);
}

/* ---- questions ---- */

char *session_card_outcome(const struct session_approval_row *a)
{
        if (strcmp(a->state, "open") == 0)
                return NULL;
        return mem_printf("%s %s", a->state, a->decided_by ? a->decided_by : "");
}

void session_card_add_decider(struct buf *out, const char *by, const char *name)
{
        static const char *const others[][2] = {
                { "desk", "at the desk" },
                { "timeout", "because nobody answered in time" },
                { "unreachable", "because nobody could be asked" },
                { "aborted", "because the agent was stopped" },
                { SESSION_DECIDED_BY_END, "because the session has ended" },
        };

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                if (strcmp(by ? by : "desk", others[i][0]) == 0) {
                        buf_addstr(out, others[i][1]);
                        return;
                }
        }
        buf_addstr(out, "by ");
        session_text_add_plain(out, name ? name : by);
}

char *session_card_approval(const struct session_row *row, const struct session_approval_row *a,
                            const char *by, const struct session_card_place *place)
{
        bool open = strcmp(a->state, "open") == 0, allowed = strcmp(a->state, "allow") == 0;
        const char *tool = a->tool ? a->tool : "a tool";
        char *whole = session_text_input(a->content, strlen(a->content));
        char *input = session_text_short(whole, ASKED_CHARS);
        size_t length = whole ? utf8_length(whole, strlen(whole), UTF8_CODE_POINTS) : 0;
        struct draft d;
        struct buf b;

        draft_init(&d, row, open ? a->created_ms : a->ended_ms, place);
        d.card.title = arena_printf(&d.arena, "%s: %s",
                                    open      ? "✋ Approval needed"
                                    : allowed ? "✅ Allowed"
                                              : "⛔ Refused",
                                    tool);
        d.card.color = open ? AMBER : allowed ? GREEN : RED;
        buf_init(&b, 0);
        /* who decides must know that there is more, however long the reason is */
        if (open && length > ASKED_CHARS)
                buf_addf(&b,
                         "⚠️ Only the beginning of the input is shown, %d of %zu characters.\n",
                         ASKED_CHARS, length);
        if (a->reason) {
                session_text_add_plain(&b, a->reason);
        } else {
                buf_addf(&b, "The agent asks before it runs ");
                session_text_add_plain(&b, tool);
        }
        if (!open) {
                buf_addf(&b, "\n%s ", allowed ? "Allowed" : "Refused");
                session_card_add_decider(&b, a->decided_by, by);
                if (a->note) {
                        buf_addstr(&b, ": ");
                        session_text_add_plain(&b, a->note);
                } else {
                        buf_addch(&b, '.');
                }
        } else if (place->ways_to_answer) {
                buf_addf(&b, "\n%s", place->ways_to_answer);
        }
        d.card.body = keep(&d, &b);
        add_block_field(&d, "Input", language_of(tool, input), input);
        if (open && a->expires_ms > a->created_ms) {
                buf_init(&b, 0);
                buf_addf(&b, "%s after ",
                         a->fallback && strcmp(a->fallback, "allow") == 0 ? "allowed" : "refused");
                add_duration(&b, a->expires_ms - a->created_ms);
                add_field(&d, "Without an answer", keep(&d, &b), true);
        }
        free(input);
        free(whole);
        return draft_take(&d);
}

/* ---- headlines ---- */

static char *plain_line(const char *before, const char *text)
{
        char *line = session_text_line(text, HEADLINE_CHARS);
        struct buf b;

        if (!line)
                return NULL;
        buf_init(&b, 0);
        session_text_add_plain(&b, before);
        session_text_add_plain(&b, line);
        free(line);
        return buf_take(&b);
}

/* Of an answer, without its marks: it often begins with a heading. */
static char *answer_line(const char *text)
{
        char *bare = mem_strdup(text ? text + strspn(text, "#> \t\r\n") : ""), *to = bare, *line;

        for (const char *from = bare; *from; from++)
                if (*from != '*' && *from != '`')
                        *to++ = *from;
        *to = '\0';
        line = plain_line("", bare);
        free(bare);
        return line;
}

char *session_card_headline(const struct page *p)
{
        if (p->errors > 0 && p->error)
                return plain_line("❌ ", p->error);
        if (p->ended)
                return plain_line("", "🏁 The session has ended.");
        if (p->kind == PAGE_TURN && !p->text)
                return plain_line("", p->outcome ? "⏹️ Stopped." : "✅ Done.");
        return p->kind == PAGE_NOTICE ? plain_line("", p->text) : answer_line(p->text);
}

char *session_card_question(const struct session_approval_row *a)
{
        char *gist = session_text_gist(a->content, HEADLINE_CHARS), *before, *line;

        before = mem_printf("✋ %s: ", a->tool ? a->tool : "a tool");
        line = plain_line(before, gist);
        free(before);
        free(gist);
        return line;
}
