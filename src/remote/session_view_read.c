/* What a view reads, and what it stores: on store threads. */
#include <stdlib.h>
#include <string.h>

#include "base/hours.h"
#include "base/mem.h"
#include "remote/session_card.h"
#include "remote/session_find.h"
#include "remote/session_link.h"
#include "remote/session_view.h"
#include "rows/delivery_row.h"
#include "rows/person_row.h"

#define EVENTS_MAX   2000 /* read at once: other readers wait */
#define FAILURES_MAX 3    /* of messages, in a row */
#define WANTS_MAX    20

static bool same(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* ---- where it is shown ---- */

/* Everything is shown from here on in another chat, or the same one anew. */
static void start_over(struct view_round *v, const struct chat_key *chat)
{
        v->row = (struct session_view_row){
                .session = v->row.session,
                .adapter = arena_strdup(&v->arena, chat->adapter),
                .channel = arena_strdup(&v->arena, chat->channel),
                .thread = arena_strdup(&v->arena, chat->thread),
                .shown_seq = v->row.shown_seq,
                .open_tokens = v->row.open_tokens,
                .open_cost_microusd = v->row.open_cost_microusd,
        };
        v->changed = true;
}

static bool is_at(const struct session_row *s, const struct session_view_row *row,
                  const char *thread)
{
        return same(s->adapter, row->adapter) && same(s->channel, row->channel) &&
               same(s->thread, thread);
}

static void copy_row(struct view_round *v, const struct session_view_row *row)
{
        v->row = *row;
        v->row.adapter = arena_strdup(&v->arena, row->adapter);
        v->row.channel = arena_strdup(&v->arena, row->channel);
        v->row.thread = arena_strdup(&v->arena, row->thread);
        v->row.own_thread = arena_strdup(&v->arena, row->own_thread);
        v->row.root_shown = arena_strdup(&v->arena, row->root_shown);
        v->row.named = arena_strdup(&v->arena, row->named);
        v->row.error = arena_strdup(&v->arena, row->error);
}

/* Where it was shown, or will be. */
static int read_place(struct store_tx *tx, struct view_round *v, struct error *err)
{
        const struct session_row *s = v->session;
        const struct chat_key linked = { s->adapter, s->channel, s->thread };
        const struct chat_key unnamed = { v->default_adapter, v->default_channel, NULL };
        struct session_view_row *known;
        int rc = session_view_row_get(tx, s->id, &known, err);

        if (rc < 0)
                return -1;
        v->row.session = s->id;
        if (rc == 1) {
                copy_row(v, known);
                v->counted = known->shown_seq;
                free(known);
                if (s->adapter && !is_at(s, &v->row, v->row.thread) &&
                    !(v->row.own_thread && is_at(s, &v->row, v->row.own_thread)))
                        start_over(v, &linked);
        } else if (s->state != SESSION_ACTIVE || !(s->adapter || v->default_channel)) {
                v->shown_nowhere = true;
        } else {
                v->is_new = true;
                start_over(v, s->adapter ? &linked : &unnamed);
        }
        if (v->fresh && v->row.error) {
                const struct chat_key same_chat = { v->row.adapter, v->row.channel, v->row.thread };

                start_over(v, &same_chat);
        }
        return 0;
}

/* ---- what became of its deliveries ---- */

static bool is_under_way(const struct delivery_row *d)
{
        return d && (d->state == DELIVERY_QUEUED || d->state == DELIVERY_SENDING);
}

static void note_failure(struct view_round *v, const struct delivery_row *d, bool for_good)
{
        v->row.failures++;
        v->changed = true;
        if (for_good || v->row.failures >= FAILURES_MAX)
                v->row.error = arena_strdup(&v->arena, d->error ? d->error : "it was refused");
}

/* d NULL: it is so old that it was forgotten. */
static void settle_root(struct view_round *v, const struct delivery_row *d)
{
        const struct chat_key chat = { v->row.adapter, v->row.channel, v->row.thread };

        int64_t failures = v->row.failures, place = v->row.place;

        if (d && d->state == DELIVERY_FAILED) {
                note_failure(v, d, true);
        } else if (d && d->state == DELIVERY_EXPIRED) {
                start_over(v, &chat);
                v->row.place = place < 0 ? place : 0; /* it was to be in a topic, refused */
                v->row.failures = failures;
                note_failure(v, d, false);
        }
}

static void settle_thread(struct view_round *v, const struct delivery_row *d)
{
        if (v->row.own_thread || is_under_way(d))
                return;
        v->changed = true;
        if (d && d->state == DELIVERY_SENT && d->platform_id) {
                v->row.own_thread = arena_strdup(&v->arena, d->platform_id);
                v->links = true;
        } else { /* its messages are shown in the channel */
                v->row.place = d && d->state != DELIVERY_EXPIRED ? -1 : 0;
        }
}

static void settle_page(struct view_round *v, const struct delivery_row *d)
{
        if (d && d->state == DELIVERY_SENT) {
                v->changed = v->changed || v->row.failures > 0;
                v->row.failures = 0;
                return;
        }
        if (is_under_way(d))
                return;
        v->changed = true;
        if (d && d->state == DELIVERY_EXPIRED) {
                v->row.shown_seq = v->row.page_from - 1;
        } else if (d && d->state == DELIVERY_FAILED) {
                note_failure(v, d, false);
        }
        v->row.page = 0;
}

static int settle(struct store_tx *tx, struct view_round *v, int64_t id,
                  void (*fn)(struct view_round *, const struct delivery_row *), struct error *err)
{
        struct delivery_row *d;

        if (id == 0)
                return 0;
        if (delivery_row_get(tx, id, &d, err) < 0)
                return -1;
        fn(v, d);
        free(d);
        return 0;
}

/* Of the message that grows. Where it failed, another one begins with what this one lacks. */
static void settle_edit(struct view_round *v, const struct delivery_row *d)
{
        const char *missing = error_kind_name(ERR_MISSING);

        if (d->state == DELIVERY_SENT) {
                v->row.page_shown = v->row.shown_seq;
        } else if (d->state == DELIVERY_FAILED || d->state == DELIVERY_EXPIRED) {
                if (d->error_kind && strcmp(d->error_kind, missing) == 0) /* it was deleted */
                        v->row.page_shown = v->row.page_from - 1;
                v->row.shown_seq = v->row.page_shown;
                v->row.page = 0;
                v->changed = true;
        }
}

static int settle_last(struct store_tx *tx, struct view_round *v, struct error *err)
{
        struct delivery_row *d;

        if (v->row.last == 0)
                return 0;
        if (delivery_row_get(tx, v->row.last, &d, err) < 0)
                return -1;
        v->under_way = is_under_way(d);
        if (d && d->kind == DELIVER_EDIT && v->row.page > 0 && d->edits == v->row.page)
                settle_edit(v, d);
        free(d);
        return 0;
}

static int settle_all(struct store_tx *tx, struct view_round *v, struct error *err)
{
        int64_t root = v->row.root, place = v->row.place, page = v->row.page;

        if (settle_last(tx, v, err) < 0)
                return -1;
        if (v->under_way)
                return 0;
        if (settle(tx, v, page, settle_page, err) < 0 ||
            (place > 0 && settle(tx, v, place, settle_thread, err) < 0))
                return -1;
        return settle(tx, v, root, settle_root, err);
}

static int read_message(struct store_tx *tx, struct view_round *v, int64_t id, struct error *err)
{
        struct delivery_row *d;

        if (v->message_count == VIEW_MESSAGES || id <= 0)
                return 0;
        if (delivery_row_get(tx, id, &d, err) < 0)
                return -1;
        if (d && d->state == DELIVERY_SENT && d->kind == DELIVER_SEND && d->platform_id &&
            same(d->trace, v->session->trace) && same(d->adapter, v->row.adapter) &&
            same(d->channel, v->row.channel)) {
                v->messages[v->message_count].id = mem_strdup(d->platform_id);
                v->messages[v->message_count++].is_root = d->id == v->row.root;
        }
        free(d);
        return 0;
}

/* Those that still matter, and of the last round, which were not stored if the run ended then. */
static int read_inherited(struct store_tx *tx, struct view_round *v, struct error *err)
{
        struct store_stmt *s = session_approval_row_list_open(tx, v->session->id);
        struct session_approval_row asked;
        int64_t questions[VIEW_APPROVALS];
        size_t count = 0;
        int rc;

        while ((rc = session_approval_row_next(s, &asked, err)) == 1)
                questions[count++ % VIEW_APPROVALS] = asked.delivery;
        if (rc < 0 || read_message(tx, v, v->row.root, err) < 0 ||
            read_message(tx, v, v->row.page, err) < 0)
                return -1;
        for (size_t i = 0; i < count && i < VIEW_APPROVALS; i++)
                if (read_message(tx, v, questions[i], err) < 0)
                        return -1;
        for (int64_t id = v->row.last - VIEW_STEPS + 1; id <= v->row.last; id++)
                if (read_message(tx, v, id, err) < 0)
                        return -1;
        return 0;
}

/* The ids of messages that a reply can name. */
static int read_messages(struct store_tx *tx, struct view_round *v, struct error *err)
{
        if (v->row.own_thread || v->row.thread || v->row.place > 0)
                return 0;
        for (size_t i = 0; i < v->sent_count; i++)
                if (read_message(tx, v, v->sent[i], err) < 0)
                        return -1;
        if (v->inherits && read_inherited(tx, v, err) < 0)
                return -1;
        v->changed = v->changed || v->message_count > 0;
        return 0;
}

/* ---- whom it concerns ---- */

static bool are_quiet_hours(const struct person_reach *reach, int64_t now_ms)
{
        struct hours_list list;
        struct time_zone *zone;
        bool quiet;

        if (!reach->quiet_hours || hours_list_parse(reach->quiet_hours, &list) < 0)
                return false;
        zone = reach->timezone ? timezone_new(reach->timezone, NULL) : NULL;
        quiet = hours_list_end(&list, zone, now_ms) != now_ms;
        timezone_free(zone);
        return quiet;
}

static int read_wishes(struct store_tx *tx, struct view_round *v, int64_t person, struct error *err)
{
        struct person_reach *reach;
        char *wants;
        int rc = person_row_get_notify(tx, person, &wants, err);

        if (rc < 0)
                return -1;
        if (wants)
                v->person.wants = arena_printf(&v->arena, "%.*s", WANTS_MAX, wants);
        free(wants);
        rc = person_row_get_reach(tx, person, &reach, err);
        if (rc == 1)
                v->person.quiet = are_quiet_hours(reach, v->now_ms);
        free(reach);
        return rc < 0 ? -1 : 0;
}

/* Their account on the platform of the chat, which the session's identity may not be. */
static int read_account(struct store_tx *tx, struct view_round *v, int64_t person,
                        struct error *err)
{
        struct store_stmt *s = person_row_list_identities(tx, person, person);
        struct identity who;
        int64_t owner;
        int rc;

        while ((rc = person_row_next_identity(s, &who, &owner, err)) == 1) {
                if (v->account_count == VIEW_ACCOUNTS) {
                        rows_end(s);
                        break;
                }
                v->accounts[v->account_count++] =
                        (struct view_account){ arena_strdup(&v->arena, who.platform),
                                               arena_strdup(&v->arena, who.user) };
        }
        return rc < 0 ? -1 : 0;
}

static int read_name(struct store_tx *tx, struct view_round *v, const char *account,
                     int64_t *person, const char **name, struct error *err)
{
        char *found;
        int rc = session_find_person(tx, account, person, &found, err);

        *name = arena_strdup(&v->arena, found);
        free(found);
        return rc;
}

static int read_person(struct store_tx *tx, struct view_round *v, struct error *err)
{
        const char *account = v->session->identity, *colon = account ? strchr(account, ':') : NULL;
        int64_t person;

        v->person.wants = "all";
        if (!colon)
                return 0;
        v->accounts[v->account_count++] =
                (struct view_account){ arena_printf(&v->arena, "%.*s", (int)(colon - account),
                                                    account),
                                       arena_strdup(&v->arena, colon + 1) };
        if (read_name(tx, v, account, &person, &v->person.name, err) < 0)
                return -1;
        if (person == 0)
                return 0;
        return read_wishes(tx, v, person, err) < 0 ? -1 : read_account(tx, v, person, err);
}

/* ---- what happened ---- */

/* The message of a question, which may be in a chat where the session was shown before. */
static int read_asked(struct store_tx *tx, struct view_round *v, struct view_approval *a,
                      struct error *err)
{
        struct delivery_row *d;

        if (a->row->delivery == 0)
                return 0;
        if (delivery_row_get(tx, a->row->delivery, &d, err) < 0)
                return -1;
        if (d && (d->state == DELIVERY_SENT || is_under_way(d))) {
                a->adapter = arena_strdup(&v->arena, d->adapter);
                a->channel = arena_strdup(&v->arena, d->channel);
        }
        free(d);
        return 0;
}

static int read_approvals(struct store_tx *tx, struct view_round *v, struct error *err)
{
        struct store_stmt *s =
                session_approval_row_list_behind(tx, v->session->id, v->row.root, VIEW_APPROVALS);
        struct session_approval_row row;
        int64_t person;
        int rc;

        while ((rc = session_approval_row_next(s, &row, err)) == 1)
                v->approvals[v->approval_count++].row = session_approval_row_dup(&row);
        for (size_t i = 0; rc >= 0 && i < v->approval_count; i++) {
                struct view_approval *a = &v->approvals[i];

                rc = read_asked(tx, v, a, err);
                if (rc == 0)
                        rc = read_name(tx, v, a->row->decided_by, &person, &a->decider, err);
        }
        return rc;
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct view_round *v = arg;

        digest_add(&v->digest, e);
}

static int read_events(struct store_tx *tx, struct view_round *v, struct error *err)
{
        const struct bus_filter f = { .after = v->digest.upto,
                                      .streams = 1u << STREAM_SESSION,
                                      .trace = v->session->trace };
        int n = bus_read(tx, &f, EVENTS_MAX, on_event, v, NULL, err);

        v->more = n == EVENTS_MAX;
        if (n < 0)
                return -1;
        if (!v->more && v->digest.link.seq > 0) {
                v->row.shown_seq = v->digest.link.seq;
                v->row.open_tokens = v->digest.link.tokens;
                v->row.open_cost_microusd = v->digest.link.cost_microusd;
        }
        return 0;
}

/* No error may leave half of it: reading is not repeated by the store. */
static int begin(struct store_tx *tx, struct view_round *v, struct error *err)
{
        int64_t id = v->view->session;
        int rc = session_row_get(tx, id, &v->session, err);

        if (rc != 1)
                return rc;
        if (read_place(tx, v, err) < 0)
                return -1;
        if (v->shown_nowhere || v->row.error)
                return 0;
        if (settle_all(tx, v, err) < 0)
                return -1;
        if (v->under_way || v->row.error)
                return 0;
        if (read_messages(tx, v, err) < 0 || read_person(tx, v, err) < 0 ||
            read_approvals(tx, v, err) < 0)
                return -1;
        digest_init(&v->digest, v->room, v->row.page > 0 ? v->row.page_from : 0);
        v->digest.here = (struct chat_key){ v->row.adapter, v->row.channel, v->row.thread };
        v->digest.own_thread = v->row.own_thread;
        v->digest.from_link = v->is_new && v->session->adapter;
        v->digest.upto = v->row.page > 0 ? v->row.page_from - 1 : v->row.shown_seq;
        v->digest.counted = v->counted;
        v->digest.tokens = v->row.open_tokens;
        v->digest.cost_microusd = v->row.open_cost_microusd;
        return read_events(tx, v, err);
}

int view_read(struct store_tx *tx, void *arg, struct error *err)
{
        struct view_round *v = arg;

        return v->session ? read_events(tx, v, err) : begin(tx, v, err);
}

/* ---- storing ---- */

/*
 * Messages in its own thread or chat steer it, unless it was linked elsewhere or has ended
 * meanwhile.
 */
static int write_link(struct store_tx *tx, struct view_round *v, struct error *err)
{
        const struct chat_key chat = { v->row.adapter, v->row.channel, v->row.own_thread };
        struct session_row *now;
        int rc = session_row_get(tx, v->session->id, &now, err);

        if (rc == 1)
                v->session->state = now->state;
        v->linked = rc == 1 && (v->links || v->claims) && same(now->adapter, v->session->adapter) &&
                    same(now->channel, v->session->channel) &&
                    same(now->thread, v->session->thread);
        if (v->linked && v->links)
                rc = session_link_write(tx, &v->batch, now, &chat, NULL, v->now_ms, err);
        free(now);
        return rc < 0 ? -1 : 0;
}

/* Nobody was asked, or the chat cannot show it. */
static int write_settled(struct store_tx *tx, const struct session_approval_row *a,
                         struct error *err)
{
        char *shown = session_card_outcome(a);
        int rc = session_approval_row_set_shown(tx, a->id, a->delivery,
                                                shown ? shown : SESSION_APPROVAL_UNASKED, err);

        free(shown);
        return rc;
}

int view_write(struct store_tx *tx, void *arg, struct error *err)
{
        struct view_round *v = arg;

        bus_batch_reset(&v->batch);
        if (session_view_row_put(tx, &v->row, err) < 0 || write_link(tx, v, err) < 0)
                return -1;
        for (size_t i = 0; i < v->approval_count; i++)
                if (v->approvals[i].settled && write_settled(tx, v->approvals[i].row, err) < 0)
                        return -1;
        for (size_t i = 0; i < v->message_count; i++)
                if (session_message_row_insert(
                            tx,
                            &(struct session_message_row){ .session = v->row.session,
                                                           .adapter = v->row.adapter,
                                                           .channel = v->row.channel,
                                                           .message = v->messages[i].id,
                                                           .is_root = v->messages[i].is_root,
                                                           .created_ms = v->now_ms },
                            err) < 0)
                        return -1;
        return 0;
}

void view_round_free(struct view_round *v)
{
        if (!v)
                return;
        digest_release(&v->digest);
        for (size_t i = 0; i < v->approval_count; i++)
                free(v->approvals[i].row);
        for (size_t i = 0; i < v->message_count; i++)
                free(v->messages[i].id);
        bus_batch_release(&v->batch);
        arena_release(&v->arena);
        free(v->session);
        free(v);
}
