/*
 * approval_command: decisions by a message: a pressed button, a reply, or a command.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "road/inbox/decide.h"
#include "road/turn/approval_private.h"

#define NOTE_BYTES 300

/* "/approve apr-12 always", "/refuse apr-12 too dangerous", "yes", "no" */
struct approval_command {
        struct effect effect; /* first, so that they convert */
        struct approval_change *change;
        int64_t id;
        const char *adapter; /* of the event, which outlives the command */
};

static const struct {
        const char *word;
        bool approves;
} answers[] = {
        { "yes", true }, { "y", true },  { "approve", true }, { "allow", true },
        { "no", false }, { "n", false }, { "refuse", false }, { "deny", false },
};

bool approval_is_answer(const char *text, bool *approves)
{
        size_t n = text ? strlen(text) : 0;

        while (n > 0 && (isspace((unsigned char)text[n - 1]) || strchr(".!", text[n - 1])))
                n--;
        for (size_t i = 0; i < COUNT(answers); i++) {
                if (strlen(answers[i].word) == n && strncasecmp(answers[i].word, text, n) == 0) {
                        *approves = answers[i].approves;
                        return true;
                }
        }
        return false;
}

static bool same_text(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/*
 * The open approval that the message answers without naming it: a reply to the question, or in a
 * direct chat the only question there is.
 */
static struct approval *find_answered(const struct road *r, const struct incoming *in)
{
        struct approval *only = NULL;
        unsigned here = 0;
        void *value;

        for (size_t i = 0; map_each(&r->approvals.open, &i, NULL, &value);) {
                struct approval *a = value;

                if (strcmp(a->row->adapter, in->adapter) != 0)
                        continue;
                for (unsigned k = 0; in->reply_to && k < a->message_count; k++) {
                        if (a->messages[k].id && strcmp(a->messages[k].id, in->reply_to) == 0 &&
                            strcmp(a->messages[k].channel, in->channel) == 0)
                                return a;
                }
                if (same_text(a->row->channel, in->channel) &&
                    same_text(a->row->thread, in->thread)) {
                        only = a;
                        here++;
                }
        }
        return in->chat == CHAT_DM && !in->reply_to && here == 1 ? only : NULL;
}

bool approval_is_answered_by(const struct road *r, const struct incoming *in)
{
        bool approves;

        return r->approvals.open.count > 0 && approval_is_answer(in->text, &approves) &&
               find_answered(r, in) != NULL;
}

/*
 * Everybody who holds a key writes on a trusted adapter: in the same chat they count as who asked,
 * but only the operator's terminal counts as an admin.
 */
static bool may_decide(const struct approval_row *row, const struct incoming *in, bool admin,
                       bool trusted)
{
        bool asker = row->asker && in->sender_id && strcmp(row->asker, in->sender_id) == 0;

        if (strcmp(row->adapter, in->adapter) != 0)
                return false;
        if (trusted)
                return strcmp(row->channel, in->channel) == 0 &&
                       (row->approvers == APPROVERS_ASKER || incoming_is_operators(in));
        return admin || (asker && row->approvers == APPROVERS_ASKER);
}

static char *name_of(const struct incoming *in)
{
        const char *name = in->sender_name ? in->sender_name : in->sender_username;

        if (!in->sender_id)
                return mem_strdup(name ? name : "somebody");
        return name ? mem_printf("%.80s (%s:%s)", name, in->adapter, in->sender_id)
                    : mem_printf("%s:%s", in->adapter, in->sender_id);
}

static int write_command(struct store_tx *tx, struct effect *e, struct error *err)
{
        struct approval_command *c = (struct approval_command *)e;

        return c->change ? approval_change_write(tx, c->change, err) : 0;
}

static void on_committed(struct effect *e)
{
        struct approval_command *c = (struct approval_command *)e;

        if (c->change)
                approval_change_committed(c->change);
}

static void command_free(struct effect *e)
{
        struct approval_command *c = (struct approval_command *)e;

        if (c->change)
                approval_change_free(c->change);
        free(c);
}

/* What was decided about one that is no longer open. */
static int report(struct store_tx *tx, struct effect *e, struct buf *answer, struct error *err)
{
        struct approval_command *c = (struct approval_command *)e;
        struct approval_row *row;
        int rc = approval_row_get(tx, c->id, &row, err);

        if (rc < 0)
                return -1;
        if (!row || strcmp(row->adapter, c->adapter) != 0) {
                free(row);
                buf_addf(answer, "There is no approval `apr-%lld`.", (long long)c->id);
                return 0;
        }
        buf_addf(answer, "`apr-%lld` (%s) was already ", (long long)c->id, row->title);
        approval_describe(row, answer);
        buf_addch(answer, '.');
        free(row);
        return 0;
}

/* The note, or "always". */
static const char *read_rest(const char *text, bool *always)
{
        static const char word[] = "always";

        text += strspn(text, " \t\r\n");
        *always = strncasecmp(text, word, strlen(word)) == 0 &&
                  !isalnum((unsigned char)text[strlen(word)]);
        return *always ? "" : text;
}

struct effect *approval_command_new(struct road *r, const struct approval_answer *q,
                                    struct buf *answer)
{
        struct approval_command *c = mem_zalloc(sizeof(*c));
        const struct incoming *in = q->in;
        const char *named = in->text ? strstr(in->text, "apr-") : NULL;
        char *rest = NULL, *by, *note;
        struct approval *a;
        bool always = false;
        size_t n;

        c->effect = (struct effect){ write_command, on_committed, command_free, NULL };
        c->adapter = in->adapter;
        if (named)
                c->id = strtoll(named + strlen("apr-"), &rest, 10);
        a = named ? approval_find(r, c->id) : find_answered(r, in);
        if (!a || strcmp(a->row->adapter, in->adapter) != 0) {
                c->effect.report = report;
                return &c->effect;
        }
        c->id = a->row->id;
        if (!may_decide(a->row, in, q->admin, q->trusted)) {
                buf_addf(answer, "Only %s may decide `apr-%lld`.",
                         a->row->approvers == APPROVERS_ADMINS ? "admins"
                                                               : "who asked, and admins,",
                         (long long)c->id);
                return &c->effect;
        }
        rest = (char *)read_rest(rest ? rest : "", &always);
        if (always && (!q->admin || (q->trusted && !incoming_is_operators(in)))) {
                buf_addf(answer,
                         "Only admins may allow it for the future. `/approve apr-%lld` allows it "
                         "once.",
                         (long long)c->id);
                return &c->effect;
        }
        if (a->deciding || a->row->expires_ms <= clock_wall_ms()) {
                buf_addf(answer, "`apr-%lld` is being closed.", (long long)c->id);
                return &c->effect;
        }
        n = utf8_prefix(rest, strlen(rest), UTF8_BYTES, NOTE_BYTES);
        note = utf8_clean(rest, n);
        by = name_of(in);
        c->change = approval_change_new(a, q->approves ? APPROVAL_APPROVED : APPROVAL_REFUSED, by,
                                        note, always && q->approves);
        buf_addf(answer, "`apr-%lld` (%s) is ", (long long)c->id, a->row->title);
        approval_describe(c->change->row, answer);
        buf_addch(answer, '.');
        free(note);
        free(by);
        return &c->effect;
}
