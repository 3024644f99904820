#include "remote/session_digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "remote/session_event.h"
#include "remote/session_text.h"

#define PREFIX       "session."
#define INPUT_CHARS  900 /* of the call that is shown with its input */
#define GIST_CHARS   100 /* of others */
#define OUTPUT_CHARS 500
#define ANSWER_CHARS 6000 /* a platform cuts it further */
#define ERROR_CHARS  1500
#define NOTE_CHARS   200
#define NAME_CHARS   60
#define TOOK_MAX_MS  ((int64_t)366 * 86400000) /* more is a mistake of the program */

/* ---- pages ---- */

static void call_release(struct page_call *c)
{
        free(c->id);
        free(c->tool);
        free(c->input);
        free(c->gist);
        free(c->output);
        free(c->cwd);
        free(c->warning);
        free(c->subagent);
        *c = (struct page_call){ 0 };
}

static void page_release(struct page *p)
{
        for (size_t i = 0; i < PAGE_LINES; i++)
                call_release(&p->lines[i]);
        for (size_t i = 0; i < PAGE_TOOLS; i++)
                free(p->tools[i].name);
        for (size_t i = 0; i < PAGE_NOTES; i++)
                free(p->notes[i]);
        free(p->pending);
        free(p->outcome);
        free(p->text);
        free(p->error);
        *p = (struct page){ 0 };
}

bool page_grows(const struct page *p)
{
        return p->kind == PAGE_WORK && p->calls < PAGE_FULL && p->events < PAGE_EVENTS;
}

size_t page_line_count(const struct page *p)
{
        return p->line_count < PAGE_LINES ? p->line_count : PAGE_LINES;
}

const struct page_call *page_line(const struct page *p, size_t i)
{
        return &p->lines[(p->line_count - page_line_count(p) + i) % PAGE_LINES];
}

size_t page_note_count(const struct page *p)
{
        return p->note_count < PAGE_NOTES ? p->note_count : PAGE_NOTES;
}

const char *page_note(const struct page *p, size_t i)
{
        return p->notes[(p->note_count - page_note_count(p) + i) % PAGE_NOTES];
}

static void take(char **to, char *text)
{
        if (!text)
                return;
        free(*to);
        *to = text;
}

/* NULL: a text of blanks, which says nothing. */
static void add_note(struct page *p, char *note)
{
        if (note)
                take(&p->notes[p->note_count++ % PAGE_NOTES], note);
}

static void count_tool(struct page *p, const char *name, size_t count)
{
        size_t i = 0;

        while (i + 1 < PAGE_TOOLS && p->tools[i].name && strcmp(p->tools[i].name, name) != 0)
                i++;
        if (!p->tools[i].name)
                p->tools[i].name = mem_strdup(i + 1 < PAGE_TOOLS ? name : "others");
        p->tools[i].count += count;
}

static struct page_call *add_line(struct page *p, const char *tool)
{
        struct page_call *c = &p->lines[p->line_count++ % PAGE_LINES];

        call_release(c);
        c->tool = session_text_line(tool, NAME_CHARS);
        if (!c->tool)
                c->tool = mem_strdup("tool");
        c->took_ms = -1;
        return c;
}

/* ---- room ---- */

/* A page becomes a part of the summary before it. */
static void absorb(struct page *sum, struct page *p)
{
        sum->kind = PAGE_SUMMARY;
        sum->to = p->to;
        sum->events += p->events;
        sum->time_ms = p->time_ms;
        sum->open_tokens = p->open_tokens;
        sum->open_cost_microusd = p->open_cost_microusd;
        sum->mention = sum->mention || p->mention;
        sum->calls += p->calls;
        sum->failed += p->failed;
        for (size_t i = 0; i < PAGE_TOOLS; i++)
                if (p->tools[i].name)
                        count_tool(sum, p->tools[i].name, p->tools[i].count);
        sum->turns += p->turns;
        sum->errors += p->errors;
        sum->notices += p->notices;
        sum->tokens += p->tokens;
        sum->cost_microusd += p->cost_microusd;
        sum->took_ms += p->took_ms;
        sum->ended = sum->ended || p->ended;
        take(&sum->error, p->error);
        p->error = NULL;
        if (p->kind == PAGE_TURN || p->kind == PAGE_SUMMARY) {
                take(&sum->text, p->text);
                p->text = NULL;
        }
        page_release(p);
}

static void join_two(struct digest *d)
{
        size_t first = d->open_from > 0 && d->pages[0].from == d->open_from ? 1 : 0;
        struct page *sum = &d->pages[first];

        if (sum->kind != PAGE_TURN && sum->kind != PAGE_SUMMARY) {
                free(sum->text);
                sum->text = NULL;
        }
        absorb(sum, &d->pages[first + 1]);
        d->count--;
        memmove(&d->pages[first + 1], &d->pages[first + 2],
                (d->count - first - 1) * sizeof(struct page));
        d->pages[d->count] = (struct page){ 0 };
}

static struct page *begin(struct digest *d, enum page_kind kind, int64_t seq)
{
        struct page *p = &d->pages[d->count++];

        *p = (struct page){ .kind = kind, .from = seq };
        return p;
}

/* After an event. */
static void keep_room(struct digest *d)
{
        bool open = d->open_from > 0 && d->count > 0 && d->pages[0].from == d->open_from;

        while (d->count > d->room + open)
                join_two(d);
}

static struct page *work_page(struct digest *d, int64_t seq)
{
        struct page *last = d->count > 0 ? &d->pages[d->count - 1] : NULL;

        return last && page_grows(last) ? last : begin(d, PAGE_WORK, seq);
}

void digest_init(struct digest *d, size_t room, int64_t open_from)
{
        *d = (struct digest){ .room = room, .open_from = open_from };
}

void digest_release(struct digest *d)
{
        for (size_t i = 0; i < d->count; i++)
                page_release(&d->pages[i]);
        d->count = 0;
}

/* ---- events ---- */

struct said {
        const struct bus_event *event;
        const json_t *payload, *metadata;
        const char *tool, *content;
};

static struct page *add_call(struct digest *d, const struct said *s)
{
        struct page *p = work_page(d, s->event->seq);
        struct page_call *c = add_line(p, s->tool);

        c->id = mem_strdup(json_str(s->metadata, "toolCallId", NULL));
        c->input = session_text_input(s->content, INPUT_CHARS);
        c->gist = session_text_gist(s->content, GIST_CHARS);
        c->cwd = session_text_line(json_str(s->metadata, "cwd", NULL), NOTE_CHARS);
        c->subagent = session_text_line(json_str(s->metadata, "subagent", NULL), NAME_CHARS);
        if (json_flag(s->metadata, "destructive", false))
                c->warning = session_text_line(json_str(s->metadata, "reason", "destructive"),
                                               NOTE_CHARS);
        p->calls++;
        count_tool(p, c->tool, 1);
        return p;
}

static struct page_call *find_call(struct page *p, const char *id)
{
        for (size_t i = page_line_count(p); id && i > 0; i--) {
                struct page_call *c =
                        &p->lines[(p->line_count - page_line_count(p) + i - 1) % PAGE_LINES];

                if (c->id && strcmp(c->id, id) == 0)
                        return c;
        }
        return NULL;
}

/* Of a program that names no calls: the oldest of this tool that runs. */
static struct page_call *find_running(struct page *p, const char *tool)
{
        for (size_t i = 0; i < page_line_count(p); i++) {
                struct page_call *c =
                        &p->lines[(p->line_count - page_line_count(p) + i) % PAGE_LINES];

                if (c->state == CALL_RUNS && !c->id && strcmp(c->tool, tool) == 0)
                        return c;
        }
        return NULL;
}

/* Was the call on this page, and is not shown any more? */
static bool is_gone(const struct page *p)
{
        return p->line_count > PAGE_LINES;
}

static int64_t took_ms(const json_t *metadata, int64_t unknown)
{
        int64_t ms = json_int(metadata, "durationMs", unknown);

        return ms >= 0 && ms <= TOOK_MAX_MS ? ms : unknown;
}

static struct page *add_result(struct digest *d, const struct said *s)
{
        struct page *last = d->count > 0 ? &d->pages[d->count - 1] : NULL;
        struct page *p = last && last->kind == PAGE_WORK ? last : NULL;
        const char *id = json_str(s->metadata, "toolCallId", NULL);
        bool failed = json_flag(s->metadata, "isError", false);
        bool blocked = json_flag(s->metadata, "blocked", false);
        struct page_call *c = p ? find_call(p, id) : NULL;

        if (p && !c && !id)
                c = find_running(p, s->tool);
        if (!c && p && is_gone(p)) {
                p->failed += failed || blocked;
                return p;
        }
        if (!c) {
                p = work_page(d, s->event->seq);
                c = add_line(p, s->tool);
                c->is_late = true;
        }
        c->state = blocked ? CALL_BLOCKED : failed ? CALL_FAILED : CALL_DONE;
        c->took_ms = took_ms(s->metadata, -1);
        take(&c->output, session_text_short(s->content, OUTPUT_CHARS));
        p->failed += c->state != CALL_DONE;
        return p;
}

static char *pending_text(const json_t *pending)
{
        if (json_is_integer(pending))
                return mem_printf("%lld", (long long)json_integer_value(pending));
        if (json_is_boolean(pending))
                return mem_strdup(json_is_true(pending) ? "True" : "False");
        return NULL;
}

static struct page *add_turn(struct digest *d, const struct said *s)
{
        const json_t *usage = json_object_get(s->metadata, "usage");
        const char *outcome = json_str(s->metadata, "outcome", "completed");
        struct page *p;

        if (s->event->seq > d->counted) {
                d->tokens += session_event_tokens(usage);
                d->cost_microusd += session_event_cost(usage);
        }
        if (!json_flag(s->metadata, "final", true))
                return NULL;
        p = begin(d, PAGE_TURN, s->event->seq);
        p->turns = 1;
        p->tokens = d->tokens;
        p->cost_microusd = d->cost_microusd;
        d->tokens = d->cost_microusd = 0;
        p->took_ms = took_ms(s->metadata, 0);
        p->pending = pending_text(json_object_get(s->metadata, "pending"));
        p->text = session_text_short(s->content, ANSWER_CHARS);
        if (strcmp(outcome, "completed") != 0)
                p->outcome = session_text_line(outcome, NAME_CHARS);
        if (strcmp(outcome, "error") == 0) {
                p->errors = 1;
                p->error = session_text_line(s->content, NOTE_CHARS);
        }
        return p;
}

static struct page *add_error(struct digest *d, const struct said *s)
{
        struct page *last = d->count > 0 ? &d->pages[d->count - 1] : NULL;
        struct page *p =
                last && last->kind == PAGE_ERROR ? last : begin(d, PAGE_ERROR, s->event->seq);

        p->errors++;
        take(&p->error, session_text_short(s->content, ERROR_CHARS));
        add_note(p, session_text_line(s->content, NOTE_CHARS));
        return p;
}

static struct page *add_notice(struct digest *d, const struct said *s)
{
        struct page *p;

        if (json_flag(s->metadata, "mention", false)) {
                p = begin(d, PAGE_NOTICE, s->event->seq);
                p->text = session_text_short(s->content, ERROR_CHARS);
        } else if (!s->content[strspn(s->content, " \t\r\n")]) {
                return NULL;
        } else {
                p = work_page(d, s->event->seq);
                add_note(p, session_text_note("ℹ️", s->content, NOTE_CHARS));
        }
        p->notices++;
        return p;
}

static struct page *add_retry(struct digest *d, const struct said *s)
{
        struct page *p = work_page(d, s->event->seq);
        long long attempt = (long long)json_int(s->metadata, "attempt", 0);
        long long most = (long long)json_int(s->metadata, "maxAttempts", 0);
        char *why = session_text_line(s->content, NOTE_CHARS), *line;

        line = most > 0 ? mem_printf("Retry %lld of %lld: %s", attempt, most, why ? why : "")
                        : mem_printf("Retry: %s", why ? why : "");
        add_note(p, session_text_note("🔁", line, NOTE_CHARS));
        free(line);
        free(why);
        return p;
}

static struct page *add_compaction(struct digest *d, const struct said *s)
{
        struct page *p = work_page(d, s->event->seq);
        bool blank = !s->content[strspn(s->content, " \t\r\n")];
        const char *said = blank ? "The conversation was summarised." : s->content;

        add_note(p, session_text_note(json_flag(s->metadata, "isError", false) ? "❌" : "🗜️",
                                      said, NOTE_CHARS));
        return p;
}

static struct page *add_end(struct digest *d, const struct said *s)
{
        struct page *p = begin(d, PAGE_END, s->event->seq);

        p->ended = true;
        p->text = session_text_line(json_str(s->metadata, "reason", NULL), NOTE_CHARS);
        return p;
}

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool was_given_here(const struct digest *d, const struct bus_event *e)
{
        if (!e->adapter || !d->here.adapter || strcmp(e->adapter, d->here.adapter) != 0)
                return false;
        if (same(e->channel, d->here.channel))
                return same(e->thread, d->own_thread ? d->own_thread : d->here.thread);
        /* a thread with an id of its own may be linked without its channel */
        return e->thread && same(e->thread, d->here.channel);
}

/* What somebody told it elsewhere. */
static struct page *add_command(struct digest *d, const struct said *s)
{
        const char *by = json_str(s->payload, "displayName", NULL);
        const char *action = json_str(s->payload, "action", "");
        const char *content = json_str(s->payload, "content", "");
        struct page *p;
        char *line;

        if (was_given_here(d, s->event) || strcmp(action, "decision") == 0)
                return NULL;
        by = by ? by : json_str(s->payload, "by", "somebody");
        if (strcmp(action, "abort") == 0)
                line = mem_printf("%s asked it to stop", by);
        else
                line = mem_printf("%s: %s", by, content);
        p = work_page(d, s->event->seq);
        add_note(p, session_text_note("💬", line, NOTE_CHARS));
        free(line);
        return p;
}

/* Types that programs made up; those of ours have a second dot. */
static struct page *add_other(struct digest *d, const struct said *s)
{
        const char *type = s->event->type + strlen(PREFIX);
        struct page *p;
        char *line;

        if (strchr(type, '.'))
                return NULL;
        p = work_page(d, s->event->seq);
        line = mem_printf("%s: %s", type, s->content);
        add_note(p, session_text_note("•", line, NOTE_CHARS));
        free(line);
        return p;
}

static struct page *add_nothing(struct digest *d, const struct said *s)
{
        (void)d;
        (void)s;
        return NULL;
}

static struct page *add_link(struct digest *d, const struct said *s)
{
        if (!d->from_link)
                return NULL;
        digest_release(d);
        d->link.seq = s->event->seq;
        d->link.tokens = d->tokens;
        d->link.cost_microusd = d->cost_microusd;
        return NULL;
}

static const struct {
        const char *type;
        struct page *(*add)(struct digest *d, const struct said *s);
} kinds[] = {
        { "tool_call", add_call },
        { "tool_result", add_result },
        { "turn_end", add_turn },
        { "error", add_error },
        { "notice", add_notice },
        { "retry", add_retry },
        { "compaction", add_compaction },
        { "session_end", add_end },
        { "command.queued", add_command },
        { "chat.linked", add_link },
        /* shown by the first message, or by messages of their own */
        { "session_start", add_nothing },
        { "session_update", add_nothing },
        { "approval_request", add_nothing },
        { "approval_resolved", add_nothing },
};

void digest_add(struct digest *d, const struct bus_event *e)
{
        struct page *(*add)(struct digest *, const struct said *) = add_other;
        json_t *payload = json_read_lenient(e->payload, strlen(e->payload), NULL);
        struct said s = { .event = e,
                          .payload = payload,
                          .metadata = json_object_get(payload, "metadata"),
                          .tool = json_str(payload, "toolName", "tool"),
                          .content = json_str(payload, "content", "") };
        struct page *p;

        d->upto = e->seq;
        for (size_t i = 0; i < COUNT(kinds); i++)
                if (strcmp(e->type + strlen(PREFIX), kinds[i].type) == 0)
                        add = kinds[i].add;
        p = payload ? add(d, &s) : NULL;
        if (p) {
                p->to = e->seq;
                p->time_ms = e->time_ms;
                p->open_tokens = d->tokens;
                p->open_cost_microusd = d->cost_microusd;
                p->mention = p->mention || json_flag(s.metadata, "mention", false);
        }
        if (d->count > 0)
                d->pages[d->count - 1].events++;
        keep_room(d);
        json_decref(payload);
}
