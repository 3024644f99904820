/*
 * session_chat: /sessions, /steer, /followup, /reply, /abort, /notify, /approve and /refuse, and
 * messages in the chat of a session.
 *
 * Steering runs commands on somebody's machine: only admins of the adapter, people of
 * `sessions.people` and the person the session belongs to may do it. The answer is read before the
 * decision is written; what changes in between is refused silently by the write, which must not
 * fail, because other decisions are in the same transaction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hours.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "remote/remote_private.h"
#include "remote/session_card.h"
#include "remote/session_command.h"
#include "remote/session_text.h"
#include "road/turn/approval.h"
#include "rows/delivery_row.h"
#include "rows/person_row.h"

#define SPACE        " \t\r\n\v\f"
#define LISTED       20
#define SHORT_ID     8  /* characters of an id in a list */
#define SHOWN_CHARS  80 /* of what a program calls something */
#define OLD_MS       ((int64_t)86400000)
#define REASON_BYTES 300

struct chat_command {
        struct effect effect; /* first, so that they convert */
        struct remote *remote;
        const struct incoming *in; /* outlives the commit */
        const char *args;          /* the same */
        struct arena arena;
        const char *identity; /* "discord:42"; NULL: the sender has no account */
        const char *platform;
        bool may_all;       /* an admin, or one of sessions.people */
        bool edits;         /* the chat shows there what becomes of a question */
        int64_t shown_here; /* the session of this chat; 0: none */
        enum session_action action;
        int64_t now_ms, expires_ms, most;
        char id[SESSION_COMMAND_ID_SIZE];
        /* what the write will do */
        int64_t to; /* the session that is told something; 0: none */
        const char *content;
        const char *approval, *decision, *reason; /* SESSION_DECISION: the program's id of it */
        struct {
                bool given; /* of a message that steers: it may answer a question instead */
                bool allows;
                const char *reason; /* NULL: none */
        } answer;
        const char *notify, *quiet_hours; /* NULL: unchanged */
        /* results of the write */
        struct bus_batch batch;
        const char *refusal; /* of a message that steers; NULL: none */
        bool is_gone;        /* the session: quiet for so long that it was pruned */
};

typedef int report_fn(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err);

static bool may_steer(const struct chat_command *c, const struct session_row *row)
{
        return c->may_all ||
               (row->identity && c->identity && strcmp(row->identity, c->identity) == 0);
}

/* A refusal is an answer, unless the store failed. */
static bool is_refusal(const struct error *err)
{
        return err->kind == ERR_MISSING || err->kind == ERR_CONFLICT || err->kind == ERR_LIMIT ||
               err->kind == ERR_INVALID;
}

/* NULL and blank: fallback. */
static void add_said(struct buf *out, const char *text, const char *fallback)
{
        char *line = session_text_line(text, SHOWN_CHARS);

        session_text_add_plain(out, line ? line : fallback);
        free(line);
}

/* "`ses-3` fix the build" */
static void add_name(struct buf *out, const struct session_row *row)
{
        char *name = session_card_name(row);

        buf_addf(out, "`ses-%lld` ", (long long)row->id);
        session_text_add_plain(out, name);
        free(name);
}

/* "ses-3 fix the build (pi, `0199c3f2…`)" */
static void add_listed(struct buf *out, const struct session_row *row)
{
        char *id = session_text_line(row->session, SHORT_ID);

        add_name(out, row);
        buf_addstr(out, " (");
        add_said(out, row->program, "unknown program");
        buf_addstr(out, ", ");
        session_text_add_span(out, id ? id : row->session);
        buf_addch(out, ')');
        free(id);
}

/* ---- /sessions ---- */

static int report_sessions(struct store_tx *tx, struct effect *e, struct buf *answer,
                           struct error *err)
{
        struct chat_command *c = (struct chat_command *)e;
        enum session_state active = SESSION_ACTIVE;
        struct session_filter f = { .owner = -1, .state = &active, .limit = 1000 };
        struct store_stmt *s = session_row_list(tx, &f);
        struct session_row row;
        long long first = 0;
        int shown = 0, rc;

        while ((rc = session_row_next(s, &row, err)) == 1) {
                if (!may_steer(c, &row) || ++shown > LISTED)
                        continue;
                first = shown == 1 ? (long long)row.id : first;
                buf_addstr(answer, shown == 1 ? "Active sessions:\n- " : "\n- ");
                add_listed(answer, &row);
                buf_addstr(answer, row.id == c->shown_here ? ", shown here" : "");
        }
        if (shown > LISTED)
                buf_addf(answer, "\n- and %d more", shown - LISTED);
        if (shown == 0)
                buf_addstr(answer, "There is no active session that you may steer.");
        else
                buf_addf(answer, "\n\n`/steer ses-%lld use the other branch` tells one something.",
                         first);
        return rc;
}

/* ---- /steer, /followup, /reply, /abort ---- */

/* Splits "ses-3 go left"; in the chat of a session its name may be left out. */
static const char *read_target(struct chat_command *c, const char **text)
{
        size_t n = strcspn(c->args, SPACE);
        const char *digits = strncmp(c->args, "ses-", 4) == 0 ? c->args + 4 : "";
        bool numbered = *digits && digits + strspn(digits, "0123456789") == c->args + n;

        *text = c->args;
        if (c->shown_here && !numbered && (n == 0 || c->action != SESSION_ABORT))
                return arena_printf(&c->arena, "ses-%lld", (long long)c->shown_here);
        *text = c->args + n + strspn(c->args + n, SPACE);
        return n > 0 ? arena_printf(&c->arena, "%.*s", (int)n, c->args) : NULL;
}

static int report_steer(struct store_tx *tx, struct effect *e, struct buf *answer,
                        struct error *err)
{
        struct chat_command *c = (struct chat_command *)e;
        struct session_caller all = { .all = true };
        const char *target = read_target(c, &c->content);
        struct session_row *row;
        int64_t waiting;

        if (!target || (c->action != SESSION_ABORT && !*c->content)) {
                buf_addstr(answer, "Say which session and what: `/steer ses-3 use the other "
                                   "branch`. `/sessions` lists them.");
                return 0;
        }
        if (session_resolve(tx, &all, target, &row, err) < 0) {
                if (!is_refusal(err))
                        return -1;
                /* who may not steer it learns nothing about it */
                buf_addstr(answer, "That did not work: ");
                session_text_add_plain(answer,
                                       c->may_all ? err->text
                                                  : "there is no such session that you may steer");
                buf_addch(answer, '.');
                return 0;
        }
        waiting = session_command_row_count(tx, row->id, c->most, err);
        if (!may_steer(c, row)) {
                buf_addstr(answer, "That did not work: there is no such session that you may "
                                   "steer.");
        } else if (row->state == SESSION_ENDED) {
                add_name(answer, row);
                buf_addstr(answer, " has ended.");
        } else if (c->action != SESSION_ABORT && strlen(c->content) > SESSION_COMMAND_MAX) {
                buf_addf(answer, "That did not work: it is longer than %d bytes.",
                         SESSION_COMMAND_MAX);
        } else if (waiting >= c->most) {
                buf_addf(answer, "%lld commands wait for it already: its program fetches none.",
                         (long long)waiting);
        } else if (waiting >= 0) {
                c->to = row->id;
                buf_addstr(answer,
                           c->action == SESSION_ABORT ? "⏳ Asked to stop: " : "⏳ Queued for ");
                add_name(answer, row);
        }
        free(row);
        return waiting < 0 ? -1 : 0;
}

/* ---- /approve, /refuse ---- */

static void decide(struct chat_command *c, const struct session_row *row,
                   const struct session_approval_row *a, const char *rest, const char *by,
                   struct buf *answer)
{
        buf_addf(answer, "`sap-%lld` (", (long long)a->id);
        add_said(answer, a->tool, "a tool");
        buf_addstr(answer, ") ");
        if (strcmp(a->state, "open") != 0) {
                buf_addf(answer, "was already %s ",
                         strcmp(a->state, "allow") == 0 ? "allowed" : "refused");
                session_card_add_decider(answer, a->decided_by, by);
        } else if (row->state == SESSION_ENDED) {
                buf_addstr(answer, "is void: its session has ended");
        } else {
                c->to = row->id;
                c->content = "";
                c->approval = arena_strdup(&c->arena, a->approval);
                rest += strspn(rest, SPACE);
                if (*rest)
                        c->reason = arena_printf(
                                &c->arena, "%.*s",
                                (int)utf8_prefix(rest, strlen(rest), UTF8_BYTES, REASON_BYTES),
                                rest);
                buf_addf(answer, "is %s",
                         strcmp(c->decision, "allow") == 0 ? "allowed" : "refused");
        }
        buf_addch(answer, '.');
}

/* Does the message refer to the one that asks, as a pressed button does? 1, 0 or -1. */
static int refers_to(struct store_tx *tx, const struct incoming *in,
                     const struct session_approval_row *a, struct error *err)
{
        struct delivery_row *d = NULL;
        int rc;

        if (!in->reply_to || a->delivery == 0)
                return 0;
        rc = delivery_row_get(tx, a->delivery, &d, err);
        if (rc == 1)
                rc = d->platform_id && strcmp(d->platform_id, in->reply_to) == 0;
        free(d);
        return rc;
}

/* Where the question shows what was decided, nothing else needs to say it. */
static int decide_openly(struct store_tx *tx, struct chat_command *c, const struct session_row *row,
                         const struct session_approval_row *a, const char *rest, struct buf *answer,
                         struct error *err)
{
        int64_t person;
        char *by;
        int shows = refers_to(tx, c->in, a, err);

        if (shows < 0 || session_find_person(tx, a->decided_by, &person, &by, err) < 0)
                return -1;
        decide(c, row, a, rest, by, answer);
        free(by);
        if (c->to > 0 && shows && c->edits)
                buf_clear(answer);
        return 0;
}

/* "sap-3 too dangerous" */
static int report_decision(struct store_tx *tx, struct effect *e, struct buf *answer,
                           struct error *err)
{
        struct chat_command *c = (struct chat_command *)e;
        struct session_approval_row *a = NULL;
        struct session_row *row = NULL;
        char *rest = NULL;
        long long id = strncmp(c->args, "sap-", 4) == 0 ? strtoll(c->args + 4, &rest, 10) : 0;
        int rc = session_approval_row_get(tx, id, &a, err);

        if (rc == 1)
                rc = session_row_get(tx, a->session, &row, err);
        if (rc >= 0 && row && may_steer(c, row))
                rc = decide_openly(tx, c, row, a, rest ? rest : "", answer, err);
        else if (rc >= 0)
                buf_addf(answer, "There is no question `sap-%lld` that you may decide.", id);
        free(a);
        free(row);
        return rc < 0 ? -1 : 0;
}

/* "yes", "no", "no, because it is needed". */
static void read_answer(struct chat_command *c)
{
        const char *text = c->in->text + strspn(c->in->text, SPACE);
        size_t word = strcspn(text, ",;:.");
        char *first;

        c->answer.given = approval_is_answer(text, &c->answer.allows);
        if (c->answer.given || !text[word])
                return;
        first = arena_printf(&c->arena, "%.*s", (int)word, text);
        text += word + 1;
        text += strspn(text, SPACE);
        c->answer.given =
                *text && approval_is_answer(first, &c->answer.allows) && !c->answer.allows;
        if (c->answer.given)
                c->answer.reason = arena_printf(
                        &c->arena, "%.*s",
                        (int)utf8_prefix(text, strlen(text), UTF8_BYTES, REASON_BYTES), text);
}

/*
 * The open question that the message answers: the one that it replies to, else the only one of the
 * session. A message in a thread of Slack always replies to its root. 0 or -1; *out NULL: none.
 */
static int find_question(struct store_tx *tx, const struct chat_command *c,
                         struct session_approval_row **out, struct error *err)
{
        const struct incoming *in = c->in;
        bool replies = in->reply_to && !(in->thread && strcmp(in->thread, in->reply_to) == 0);
        struct store_stmt *s = session_approval_row_list_open(tx, c->to);
        struct session_approval_row a;
        size_t count = 0;
        int rc, meant = 0;

        while (meant == 0 && (rc = session_approval_row_next(s, &a, err)) == 1) {
                meant = refers_to(tx, in, &a, err);
                if (meant == 1 || count++ == 0) {
                        free(*out);
                        *out = session_approval_row_dup(&a);
                }
        }
        if (meant != 0)
                rows_end(s);
        if (meant == 0 && (replies || count > 1)) {
                free(*out);
                *out = NULL;
        }
        return rc < 0 || meant < 0 ? -1 : 0;
}

/* *asked is the question that *row is the decision of now; NULL: it steers. 0 or -1. */
static int take_answer(struct store_tx *tx, const struct chat_command *c,
                       struct session_command_row *row, struct session_approval_row **asked,
                       struct error *err)
{
        if (!c->answer.given)
                return 0;
        if (find_question(tx, c, asked, err) < 0)
                return -1;
        if (!*asked)
                return 0;
        row->action = SESSION_DECISION;
        row->content = "";
        row->approval = (*asked)->approval;
        row->decision = c->answer.allows ? "allow" : "deny";
        row->reason = c->answer.reason;
        return 0;
}

/* ---- /notify ---- */

static const char *const notify_words[] = { "all", "errors", "end", "mentions", "off", NULL };

/* "errors", "errors 22:00-07:00", "22:00-07:00" */
static bool read_notify(struct chat_command *c)
{
        const char *p = c->args;
        struct hours hours;

        while (*p) {
                size_t n = strcspn(p, SPACE);
                const char *word = arena_printf(&c->arena, "%.*s", (int)n, p), *known = NULL;

                for (size_t i = 0; notify_words[i]; i++)
                        known = strcasecmp(word, notify_words[i]) == 0 ? notify_words[i] : known;
                if (known)
                        c->notify = known;
                else if (hours_parse(word, &hours) == 0)
                        c->quiet_hours = word;
                else
                        return false;
                p += n + strspn(p + n, SPACE);
        }
        return true;
}

static int report_notify(struct store_tx *tx, struct effect *e, struct buf *answer,
                         struct error *err)
{
        struct chat_command *c = (struct chat_command *)e;
        struct identity_row who = { 0 };
        char *stored = NULL;

        if (!c->identity) {
                buf_addstr(answer, "That did not work: there is no account here to keep it for.");
                return 0;
        }
        if (!read_notify(c)) {
                c->notify = c->quiet_hours = NULL;
                buf_addstr(answer, "Say what you want to hear of sessions: `/notify all`, "
                                   "`errors`, `end`, `mentions` or `off`, and perhaps quiet hours: "
                                   "`/notify errors 22:00-07:00`.");
                return 0;
        }
        if (person_row_get_identity(tx, &(struct identity){ c->platform, c->in->sender_id }, &who,
                                    err) < 0 ||
            (who.person > 0 && person_row_get_notify(tx, who.person, &stored, err) < 0))
                return -1;
        buf_addf(answer, "Of sessions you hear: %s.",
                 c->notify ? c->notify
                 : stored  ? stored
                           : "all");
        if (c->quiet_hours)
                buf_addf(answer, " Your quiet hours are %s.", c->quiet_hours);
        free(stored);
        return 0;
}

static int write_notify(struct store_tx *tx, struct chat_command *c, struct error *err)
{
        struct identity_row who = { 0 };
        struct person_reach *reach = NULL;
        int rc = person_row_get_identity(tx, &(struct identity){ c->platform, c->in->sender_id },
                                         &who, err);

        if (rc != 1 || who.person == 0)
                return rc < 0 ? -1 : 0;
        if (c->notify)
                rc = person_row_set_notify(tx, who.person, c->notify, c->now_ms, err);
        if (rc >= 0 && c->quiet_hours &&
            (rc = person_row_get_reach(tx, who.person, &reach, err)) == 1) {
                reach->quiet_hours = c->quiet_hours;
                rc = person_row_set_reach(tx, who.person, reach, c->now_ms, err);
        }
        free(reach);
        return rc < 0 ? -1 : 0;
}

/* ---- the effect ---- */

/* A slash command is none, and a pressed button names the one below which it is. */
static bool is_message(const struct incoming *in)
{
        return !in->is_command && !(in->id && in->reply_to && strcmp(in->id, in->reply_to) == 0);
}

static int write_steer(struct store_tx *tx, struct chat_command *c, struct error *err)
{
        const struct incoming *in = c->in;
        char key[40];
        struct session_command_row row = {
                .command = c->id,
                .session = c->to,
                .request_key = key,
                .action = c->action,
                .content = c->action == SESSION_ABORT ? "" : c->content,
                .approval = c->approval,
                .decision = c->approval ? c->decision : NULL,
                .reason = c->reason,
                .given_by = c->identity ? c->identity : in->adapter,
                .display_name = in->sender_name ? in->sender_name : in->sender_username,
                .adapter = in->adapter,
                .channel = in->channel,
                .thread = in->thread,
                .message = is_message(in) ? in->id : NULL,
                .created_ms = c->now_ms,
                .expires_ms = c->expires_ms,
        };
        struct session_approval_row *asked = NULL;
        struct session_row *session;
        struct error refused = { 0 };
        int64_t id;
        int rc = session_row_get(tx, c->to, &session, err);

        c->is_gone = rc == 0;
        if (rc == 0)
                c->refusal = "the session is gone";
        if (rc != 1)
                return rc;
        if (strlen(row.content) > SESSION_COMMAND_MAX) { /* half of it might mean the opposite */
                c->refusal =
                        arena_printf(&c->arena, "it is longer than %d bytes", SESSION_COMMAND_MAX);
                free(session);
                return 0;
        }
        snprintf(key, sizeof(key), "event:%lld", (long long)in->event);
        rc = take_answer(tx, c, &row, &asked, &refused);
        if (rc >= 0)
                rc = session_command_queue(tx, &c->batch, session, &row, c->most, &id, &refused);
        free(session);
        free(asked);
        if (rc < 0 && is_refusal(&refused)) {
                c->refusal = arena_strdup(&c->arena, refused.text);
                return 0;
        }
        if (rc < 0)
                *err = refused;
        return rc < 0 ? -1 : 0;
}

static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct chat_command *c = (struct chat_command *)e;

        bus_batch_reset(&c->batch);
        c->refusal = NULL;
        if (c->to > 0 && write_steer(tx, c, err) < 0)
                return -1;
        return c->notify || c->quiet_hours ? write_notify(tx, c, err) : 0;
}

static void ignore_receipt(void *arg, const struct outbox_receipt *receipt)
{
        (void)arg;
        (void)receipt;
}

static void on_committed(struct effect *e)
{
        struct chat_command *c = (struct chat_command *)e;
        const struct incoming *in = c->in;
        struct buf text;
        char key[40];

        bus_publish(c->remote->env.bus, &c->batch);
        remote_wake(c->remote);
        if (c->is_gone) /* its chat is an ordinary one again */
                session_index_forget(c->remote, c->to);
        if (!c->refusal)
                return;
        buf_init(&text, 0);
        buf_addstr(&text, "That was not passed on: ");
        session_text_add_plain(&text, c->refusal);
        buf_addch(&text, '.');
        snprintf(key, sizeof(key), "session-refusal:%lld", (long long)in->event);
        outbox_submit(c->remote->env.road,
                      &(struct outgoing){ .adapter = in->adapter,
                                          .channel = in->channel,
                                          .thread = in->thread,
                                          .kind = DELIVER_SEND,
                                          .text = text.data,
                                          .reply_to = in->id,
                                          .trace = in->trace,
                                          .request_key = key },
                      ignore_receipt, NULL);
        buf_release(&text);
}

static void command_free(struct effect *e)
{
        struct chat_command *c = (struct chat_command *)e;

        bus_batch_release(&c->batch);
        arena_release(&c->arena);
        free(c);
}

static struct chat_key chat_of(const struct chat_caller *by)
{
        return (struct chat_key){ by->adapter, by->channel, by->thread };
}

static enum remote_part part(struct remote *r, const struct chat_caller *by)
{
        struct chat_key chat = chat_of(by);
        const char *owner = NULL;
        int64_t session = session_index_find(r, &chat, by->reply_to, &owner);
        char *identity;
        bool own;

        if (session == 0)
                return REMOTE_NONE;
        identity = by->sender_id ? mem_printf("%s:%s", by->platform, by->sender_id) : NULL;
        own = owner && identity && strcmp(owner, identity) == 0;
        free(identity);
        return own || by->is_admin || remote_trusts(r, by->platform, by->sender_id)
                       ? REMOTE_STEERS
                       : REMOTE_LISTENER;
}

/* Names are those of dispatch's table; "" is a message in the chat of a session. */
static const struct {
        const char *name;
        enum session_action action;
        report_fn *report;
        const char *decision;
} commands[] = {
        { "", SESSION_STEER, NULL, NULL },
        { "sessions", SESSION_STEER, report_sessions, NULL },
        { "steer", SESSION_STEER, report_steer, NULL },
        { "reply", SESSION_STEER, report_steer, NULL },
        { "followup", SESSION_FOLLOW_UP, report_steer, NULL },
        { "abort", SESSION_ABORT, report_steer, NULL },
        { "notify", SESSION_STEER, report_notify, NULL },
        { "approve", SESSION_DECISION, report_decision, "allow" },
        { "refuse", SESSION_DECISION, report_decision, "deny" },
};

static struct effect *command(struct remote *r, const struct chat_caller *by,
                              const struct incoming *in, const char *name, const char *args)
{
        struct chat_key chat = chat_of(by);
        struct chat_command *c;
        size_t i = 0;

        while (i < COUNT(commands) && strcmp(commands[i].name, name) != 0)
                i++;
        if (i == COUNT(commands))
                return NULL;
        c = mem_zalloc(sizeof(*c));
        c->effect =
                (struct effect){ write_command, on_committed, command_free, commands[i].report };
        c->action = commands[i].action;
        c->decision = commands[i].decision;
        c->remote = r;
        c->in = in;
        c->args = args;
        arena_init(&c->arena);
        c->platform = arena_strdup(&c->arena, by->platform);
        if (by->sender_id)
                c->identity = arena_printf(&c->arena, "%s:%s", by->platform, by->sender_id);
        c->edits = r->env.road && (road_abilities(r->env.road, by->adapter) & ADAPTER_EDITS);
        c->may_all = by->is_admin || remote_trusts(r, by->platform, by->sender_id);
        c->shown_here = session_index_find(r, &chat, by->reply_to, NULL);
        c->now_ms = clock_wall_ms();
        /* the daemon may have been down: it counts from when it was written */
        c->expires_ms = (in->time_ms > c->now_ms - OLD_MS && in->time_ms < c->now_ms ? in->time_ms
                                                                                     : c->now_ms) +
                        r->conf.command_seconds * 1000;
        c->most = r->conf.queued;
        session_command_id(c->id);
        if (!commands[i].report) {
                c->to = c->shown_here;
                c->content = args;
                read_answer(c);
        }
        return &c->effect;
}

void remote_contract(struct remote *r, struct road_remote *out)
{
        *out = (struct road_remote){ r, part, command };
}
