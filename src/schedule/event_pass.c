#include "schedule/event_pass.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "road/channel_folder.h"
#include "rows/conversation_row.h"
#include "rows/journal_row.h"
#include "schedule/cron.h"

#define DONE_MOST     1000 /* files kept in done/ */
#define CHATS_LISTED  50
#define MESSAGES_READ 20 /* of a chat, to learn what kind it is */
#define WHY_MAX       1000

struct event_pass *event_pass_new(int root, const char *path, const char *home_adapter,
                                  const char *home_channel, const char *only)
{
        struct event_pass *p = mem_zalloc(sizeof(*p));

        p->path = mem_strdup(path);
        p->home_adapter = mem_strdup(home_adapter);
        p->home_channel = mem_strdup(home_channel);
        p->only = mem_strdup(only);
        p->folder = (struct event_folder){ root, p->path, home_adapter != NULL };
        return p;
}

void event_pass_free(struct event_pass *p)
{
        for (size_t i = 0; p->plans && i < p->listing.count; i++)
                buf_release(&p->plans[i].note);
        free(p->plans);
        event_listing_release(&p->listing);
        bus_batch_release(&p->batch);
        for (size_t i = 0; i < p->adapter_count; i++) {
                free((char *)(uintptr_t)p->adapters[i].name);
                free((char *)(uintptr_t)p->adapters[i].platform);
        }
        free(p->adapters);
        free(p->path);
        free(p->home_adapter);
        free(p->home_channel);
        free(p->only);
        free(p);
}

char *event_pass_folder_of(const char *request_key)
{
        const char *end = request_key ? strrchr(request_key, '#') : NULL;

        if (!end || strncmp(request_key, "file:", 5) != 0)
                return NULL;
        while (end > request_key && *end != '/')
                end--;
        return end > request_key + 5 ? mem_strndup(request_key + 5, (size_t)(end - request_key - 5))
                                     : NULL;
}

/* ---- before the store ---- */

/* Copies: a reload may change them while the store works. */
void event_pass_add_adapter(struct event_pass *p, const char *name, const char *platform)
{
        p->adapters = mem_realloc(p->adapters, (p->adapter_count + 1) * sizeof(*p->adapters));
        p->adapters[p->adapter_count++] =
                (struct event_adapter){ mem_strdup(name), mem_strdup(platform) };
}

void event_pass_read(struct event_pass *p)
{
        p->now_ms = clock_wall_ms();
        event_folder_read(&p->folder, p->only, p->now_ms, &p->listing, &p->err);
}

void event_pass_address(struct event_pass *p)
{
        p->plans = mem_array(p->listing.count + 1, sizeof(*p->plans));
        for (size_t i = 0; i < p->listing.count; i++) {
                const struct event_entry *e = &p->listing.items[i];
                struct event_plan *plan = &p->plans[i];
                struct event_address_query q = { e->file.channel_id, p->adapters, p->adapter_count,
                                                 p->home_adapter, p->home_channel };
                char *folder;

                buf_init(&plan->note, 0);
                if (e->state != EVENT_ENTRY_READ ||
                    event_address_find(&q, &plan->adapter, &plan->channel, &plan->problem) < 0)
                        continue;
                folder = channel_folder(plan->adapter, plan->channel);
                plan->has_folder = faccessat(p->folder.root, folder, F_OK, 0) == 0;
                free(folder);
        }
}

/* ---- what the store knows about a chat ---- */

struct chat_facts {
        bool is_dm;
        char *agent; /* that its file names, or that talked there last; may be NULL */
};

/* The kind of chat, by the last messages that came from it. */
static int read_kind(struct store_tx *tx, const struct event_plan *plan, bool *is_dm,
                     struct error *err)
{
        struct journal_range range = { .before = INT64_MAX,
                                       .adapter = plan->adapter,
                                       .channel = plan->channel };
        struct store_stmt *s = journal_row_scan(tx, &range);
        struct journal_row row;
        int rc = 1;

        *is_dm = false;
        for (unsigned i = 0; i < MESSAGES_READ && rc == 1; i++) {
                struct incoming *in;

                rc = journal_row_next(s, &row, err);
                if (rc != 1 || strcmp(row.type, EVENT_MESSAGE_RECEIVED) != 0)
                        continue;
                journal_row_read_payload(s, &row);
                in = incoming_from_row(&row, NULL); /* NULL: only its key is left */
                if (!in)
                        continue;
                *is_dm = in->chat == CHAT_DM;
                incoming_free(in);
                break;
        }
        if (rc == 1)
                rows_end(s);
        return rc < 0 ? -1 : 0;
}

/* "nothing has been said in 'tg/43' yet (did you mean 'tg/42'?)" */
static int describe_unknown(struct store_tx *tx, struct event_plan *plan, const char *file,
                            struct error *err)
{
        struct store_stmt *s = conversation_row_list_channels(tx, plan->adapter, CHATS_LISTED);
        const char *names[CHATS_LISTED + 1] = { NULL }, *channel, *nearest;
        size_t n = 0;
        int rc;

        while ((rc = conversation_row_next_channel(s, &channel, err)) == 1)
                names[n++] = mem_strdup(channel);
        nearest = settings_nearest(plan->channel, names);
        buf_addf(&plan->note, "%s: channelId: nothing has been said in '%s/%.100s' yet", file,
                 plan->adapter, plan->channel);
        if (nearest)
                buf_addf(&plan->note, " (did you mean '%s/%.100s'?)", plan->adapter, nearest);
        for (size_t i = 0; !nearest && i < n && i < 8; i++)
                buf_addf(&plan->note, "%s'%s/%.60s'", i == 0 ? "; known chats are " : ", ",
                         plan->adapter, names[i]);
        for (size_t i = 0; i < n; i++)
                free((char *)(uintptr_t)names[i]);
        return rc;
}

/*
 * A chat of an adapter that is not configured: a mistake, unless it is known from earlier. Then the
 * adapter may come back, and the file waits. 0, or -1.
 */
static int judge_gone_adapter(struct store_tx *tx, struct event_plan *plan,
                              const struct event_entry *e, struct error *err)
{
        const char *slash = strchr(e->file.channel_id, '/');
        char *adapter = mem_strndup(e->file.channel_id, (size_t)(slash - e->file.channel_id));
        int rc = conversation_row_knows(tx, adapter, slash + 1, err);

        free(adapter);
        plan->verdict = rc == 1 ? EVENT_LATER : EVENT_BROKEN;
        return rc < 0 ? -1 : 0;
}

/* 1; 0: plan->note says why the event is refused; -1. */
static int read_facts(struct store_tx *tx, const struct event_pass *p, struct event_plan *plan,
                      const struct event_entry *e, struct chat_facts *out, struct error *err)
{
        int rc = plan->has_folder ? 1
                                  : conversation_row_knows(tx, plan->adapter, plan->channel, err);

        *out = (struct chat_facts){ 0 };
        if (rc == 0)
                return describe_unknown(tx, plan, e->name, err);
        if (rc < 0 || read_kind(tx, plan, &out->is_dm, err) < 0)
                return -1;
        rc = conversation_row_find_agent(tx, plan->adapter, plan->channel, e->file.agent,
                                         &out->agent, err);
        if (rc == 0 && e->file.agent && p->home_adapter) {
                /* an agent must not borrow the rights of another one */
                buf_addf(&plan->note,
                         "%s: agent: '%.60s' does not take part in this chat; an event of a chat "
                         "can only name an agent that does (agent may be left out)",
                         e->name, e->file.agent);
                return 0;
        }
        if (rc == 0 && e->file.agent)
                out->agent = mem_strdup(e->file.agent);
        return rc < 0 ? -1 : 1;
}

/* ---- rows ---- */

/* Active rows of this folder. */
struct known_rows {
        struct schedule_row **items;
        size_t count;
};

static void known_release(struct known_rows *k)
{
        for (size_t i = 0; i < k->count; i++)
                free(k->items[i]);
        free(k->items);
}

static int known_read(struct store_tx *tx, const struct event_pass *p, struct known_rows *out,
                      struct error *err)
{
        struct store_stmt *s =
                schedule_row_list_files(tx, p->home_adapter, p->home_channel, p->only);
        char *prefix = mem_printf("file:%s/", p->path);
        struct schedule_row row;
        int rc;

        *out = (struct known_rows){ 0 };
        while ((rc = schedule_row_next(s, &row, err)) == 1) {
                if (!row.request_key || strncmp(row.request_key, prefix, strlen(prefix)) != 0 ||
                    (p->only && strcmp(row.name, p->only) != 0))
                        continue;
                out->items = mem_realloc(out->items, (out->count + 1) * sizeof(*out->items));
                out->items[out->count++] = schedule_row_dup(&row);
        }
        free(prefix);
        if (rc < 0)
                known_release(out);
        return rc;
}

/* The row of a file that is not immediate; NULL: none. */
static struct schedule_row *known_find(const struct known_rows *k, const char *name)
{
        for (size_t i = 0; i < k->count; i++)
                if (strcmp(k->items[i]->name, name) == 0 && k->items[i]->kind != SCHEDULE_IMMEDIATE)
                        return k->items[i];
        return NULL;
}

/* Texts that a row borrows. */
struct row_texts {
        char *key, *options, *zone, *by;
};

static void texts_release(struct row_texts *t)
{
        free(t->key);
        free(t->options);
        free(t->zone);
        free(t->by);
}

/* -1: plan->note says why there is no next time. */
static int set_next(const struct event_pass *p, struct event_plan *plan, struct schedule_row *row)
{
        struct time_zone *zone;
        struct error err;
        struct cron cron;

        row->next_ms = row->kind == SCHEDULE_ONE_SHOT ? row->at_ms : p->now_ms;
        if (row->kind != SCHEDULE_PERIODIC)
                return 0;
        zone = timezone_new(row->timezone, &err);
        if (!zone || cron_parse(row->cron, &cron, &err) < 0)
                buf_addf(&plan->note, "%s: %s", row->name, err.text);
        else
                row->next_ms = cron_next(&cron, zone, p->now_ms);
        if (plan->note.len == 0 && row->next_ms == 0)
                buf_addf(&plan->note, "%s: schedule: '%s' is never due in the next 100 years",
                         row->name, row->cron);
        timezone_free(zone);
        return plan->note.len > 0 ? -1 : 0;
}

static void make_row(const struct event_pass *p, const struct event_plan *plan,
                     const struct event_entry *e, const struct chat_facts *facts,
                     struct row_texts *texts, struct schedule_row *row)
{
        const struct event_file *f = &e->file;

        *texts = (struct row_texts){
                .key = mem_printf("file:%s/%s#%s", p->path, e->name, e->mark),
                .options = event_file_options(f, facts->is_dm, facts->agent),
                .zone = f->timezone         ? mem_strdup(f->timezone)
                        : p->conf->timezone ? mem_strdup(p->conf->timezone)
                                            : timezone_system_name(),
                .by = !p->home_adapter ? mem_strdup("operator")
                      : facts->agent   ? mem_printf("agent %s", facts->agent)
                                       : mem_strdup("agent of the chat"),
        };
        *row = (struct schedule_row){
                .source = "file",
                .name = e->name,
                .request_key = texts->key,
                .kind = f->kind,
                .action = SCHEDULE_TURN,
                .adapter = plan->adapter,
                .channel = plan->channel,
                .thread = f->thread,
                .text = f->text,
                .options = texts->options,
                .at_ms = f->at_ms,
                .cron = f->schedule,
                .timezone = f->kind == SCHEDULE_PERIODIC ? texts->zone : NULL,
                .max_age_ms =
                        (f->max_age_seconds >= 0 ? f->max_age_seconds : p->conf->max_age_seconds) *
                        1000,
                .created_ms = p->now_ms,
                .created_by = texts->by,
        };
        schedule_missed_parse(f->missed ? f->missed : p->conf->missed, &row->missed);
}

static bool same_text(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

/* Is it due at the same times? */
static bool same_times(const struct schedule_row *a, const struct schedule_row *b)
{
        return a->kind == b->kind && a->at_ms == b->at_ms && same_text(a->cron, b->cron) &&
               same_text(a->timezone, b->timezone);
}

static bool same_rest(const struct schedule_row *a, const struct schedule_row *b)
{
        return same_text(a->adapter, b->adapter) && same_text(a->channel, b->channel) &&
               same_text(a->thread, b->thread) && same_text(a->text, b->text) &&
               same_text(a->options, b->options) && a->missed == b->missed &&
               a->max_age_ms == b->max_age_ms;
}

/* A changed file keeps its row, and so its number and history. */
static int update_row(struct store_tx *tx, struct event_pass *p, struct event_plan *plan,
                      const struct schedule_row *old, struct schedule_row *row, struct error *err)
{
        bool moved = !same_times(old, row);

        row->id = old->id;
        row->next_ms = old->next_ms;
        if (moved && set_next(p, plan, row) < 0) {
                plan->verdict = EVENT_BROKEN;
                return 0;
        }
        if ((moved || !same_rest(old, row)) && schedule_row_update(tx, row, err) < 0)
                return -1;
        p->added = p->added || moved;
        if (strcmp(old->request_key, row->request_key) == 0)
                return 0;
        return schedule_row_set_key(tx, row->id, row->request_key, err);
}

static int insert_row(struct store_tx *tx, struct event_pass *p, struct event_plan *plan,
                      struct schedule_row *row, struct error *err)
{
        struct error why = { 0 };
        int64_t id;
        int rc = schedule_check_limits(tx, p->conf, 0, &why);

        if (rc < 0 && why.kind == ERR_LIMIT) {
                plan->verdict = EVENT_LATER;
                buf_addstr(&plan->note, why.text);
                return 0;
        }
        if (rc < 0) {
                *err = why;
                return -1;
        }
        if (set_next(p, plan, row) < 0) {
                plan->verdict = EVENT_BROKEN;
                return 0;
        }
        rc = schedule_row_insert(tx, row, &id, err);
        p->added = p->added || rc == 1;
        /* a known key that is not active has run, or was cancelled */
        if (rc == 0 || row->kind == SCHEDULE_IMMEDIATE)
                plan->verdict = EVENT_DONE;
        return rc < 0 ? -1 : 0;
}

static int write_file(struct store_tx *tx, struct event_pass *p, size_t i,
                      const struct known_rows *known, struct error *err)
{
        const struct event_entry *e = &p->listing.items[i];
        struct event_plan *plan = &p->plans[i];
        struct schedule_row *old = known_find(known, e->name), row;
        struct chat_facts facts;
        struct row_texts texts;
        int rc = read_facts(tx, p, plan, e, &facts, err);

        if (rc != 1) {
                plan->verdict = EVENT_BROKEN;
                return rc;
        }
        make_row(p, plan, e, &facts, &texts, &row);
        if (old && row.kind != SCHEDULE_IMMEDIATE)
                rc = update_row(tx, p, plan, old, &row, err);
        else
                rc = insert_row(tx, p, plan, &row, err);
        texts_release(&texts);
        free(facts.agent);
        return rc;
}

static int journal_broken(struct store_tx *tx, struct event_pass *p, const struct event_entry *e,
                          const struct event_plan *plan, struct error *err)
{
        char *key = mem_printf("broken:%s/%s#%s", p->path, e->name, e->mark);
        struct bus_event event = { .type = "schedule.broken",
                                   .adapter = p->home_adapter,
                                   .channel = p->home_channel,
                                   .key = key };
        struct buf payload;
        int rc;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "file", e->name);
        jsonw_str(&payload, "folder", p->path);
        jsonw_strn(&payload, "why", plan->note.data,
                   plan->note.len > WHY_MAX ? WHY_MAX : plan->note.len);
        jsonw_close(&payload, '}');
        event.payload = payload.data;
        rc = bus_append(tx, &p->batch, &event, NULL, err);
        buf_release(&payload);
        free(key);
        return rc < 0 ? -1 : 0;
}

static int write_entry(struct store_tx *tx, struct event_pass *p, size_t i,
                       const struct known_rows *known, struct error *err)
{
        const struct event_entry *e = &p->listing.items[i];
        struct event_plan *plan = &p->plans[i];

        plan->verdict = EVENT_KEEP;
        buf_clear(&plan->note);
        if (e->state == EVENT_ENTRY_SETTLING || (e->state == EVENT_ENTRY_READ && !e->file.enabled))
                return 0;
        if (e->state == EVENT_ENTRY_BROKEN) {
                plan->verdict = EVENT_BROKEN;
                buf_add(&plan->note, e->problem.data, e->problem.len);
        } else if (plan->problem.kind != ERR_NONE) {
                plan->verdict = EVENT_BROKEN;
                buf_addf(&plan->note, "%s: %s", e->name, plan->problem.text);
                if (plan->problem.kind == ERR_MISSING && judge_gone_adapter(tx, plan, e, err) < 0)
                        return -1;
        } else if (write_file(tx, p, i, known, err) < 0) {
                return -1;
        }
        while (plan->note.len > 0 && plan->note.data[plan->note.len - 1] == '\n')
                buf_truncate(&plan->note, plan->note.len - 1);
        return plan->verdict == EVENT_BROKEN ? journal_broken(tx, p, e, plan, err) : 0;
}

/* Does the file of this row still say that it is to happen? */
static bool is_wanted(const struct event_pass *p, const struct schedule_row *row)
{
        for (size_t i = 0; i < p->listing.count; i++) {
                const struct event_entry *e = &p->listing.items[i];

                if (strcmp(e->name, row->name) != 0)
                        continue;
                if (p->plans[i].verdict == EVENT_BROKEN || p->plans[i].verdict == EVENT_DONE)
                        return false;
                return e->state == EVENT_ENTRY_SETTLING || e->file.enabled;
        }
        return p->listing.more; /* it may be among those that were not read */
}

int event_pass_write(struct store_tx *tx, void *pass, struct error *err)
{
        struct event_pass *p = pass;
        struct known_rows known;
        int rc = 0;

        p->added = false;
        p->cancelled = 0;
        bus_batch_reset(&p->batch);
        if (known_read(tx, p, &known, err) < 0)
                return -1;
        for (size_t i = 0; rc == 0 && i < p->listing.count; i++)
                rc = write_entry(tx, p, i, &known, err);
        for (size_t i = 0; rc == 0 && i < known.count; i++) {
                const struct schedule_row *row = known.items[i];

                /* an immediate one runs: its file is moved before */
                if (row->kind == SCHEDULE_IMMEDIATE || is_wanted(p, row))
                        continue;
                /* without its key: the same file may come back, and counts again then */
                rc = schedule_row_set_key(tx, row->id, NULL, err);
                if (rc == 0)
                        rc = schedule_row_cancel(tx, row->id, "its event file is gone", p->now_ms,
                                                 err);
                p->cancelled += rc == 1;
                rc = rc < 0 ? -1 : 0;
        }
        known_release(&known);
        return rc;
}

/* ---- after the commit ---- */

static char *make_note(const struct event_pass *p, const struct event_entry *e,
                       const struct event_plan *plan)
{
        char iso[CLOCK_ISO_SIZE];

        return mem_printf("%s/%s was set aside at %s and has no effect:\n\n%s\n\n"
                          "An event file is a JSON object with \"type\" (immediate, one-shot or "
                          "periodic), \"channelId\" (adapter/channel) and \"text\"; a one-shot "
                          "one has \"at\" (2026-12-15T09:00:00+01:00), a periodic one "
                          "\"schedule\" (0 9 * * 1-5) and perhaps \"timezone\" "
                          "(Europe/Berlin). Move the mended file back to %s.\n",
                          p->path, e->name, clock_iso(p->now_ms, iso), plan->note.data, p->path);
}

static void move(const struct event_pass *p, const struct event_entry *e,
                 const struct event_plan *plan)
{
        bool broken = plan->verdict == EVENT_BROKEN;
        char *note = broken ? make_note(p, e, plan) : NULL;
        struct error err = { 0 };
        int rc = event_folder_move(&p->folder, e->name, broken ? "broken" : "done", note, &err);

        if (rc < 0)
                log_error("cannot move an event file", LOG_S("file", e->name),
                          LOG_S("folder", p->path), LOG_S("why", err.text));
        else if (rc == 1 && broken)
                log_warn("event file set aside", LOG_S("file", e->name), LOG_S("folder", p->path),
                         LOG_S("why", plan->note.data));
        free(note);
}

void event_pass_move(struct event_pass *p, int64_t done_before_ms)
{
        bool pruned = false;

        for (size_t i = 0; i < p->listing.count; i++) {
                const struct event_plan *plan = &p->plans[i];

                if (plan->verdict != EVENT_DONE && plan->verdict != EVENT_BROKEN)
                        continue;
                move(p, &p->listing.items[i], plan);
                if (plan->verdict == EVENT_DONE && !pruned)
                        event_folder_prune(&p->folder, done_before_ms, DONE_MOST);
                pruned = pruned || plan->verdict == EVENT_DONE;
        }
}
