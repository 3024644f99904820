/*
 * Any lines from an ACP agent: in the handshake, in a turn, and after it. Nothing is sent anywhere,
 * and a turn ends at most once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "agent/child/child_private.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/lines.h"

#define LINE_MAX_BYTES 65536

/* ---- the road and the registry, in the place of the real ones ---- */

static struct approval_ask_seen {
        approval_fn *done;
        void *arg;
} asked;
static bool ended;

void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                  enum agent_effect effect)
{
        (void)a;
        (void)run;
        (void)effect;
        if (ended || (reply->text && strlen(reply->text) > (4u << 20)))
                abort();
        ended = true;
}

void turn_delta(struct turn_run *run, const char *text, size_t n)
{
        (void)run;
        if (ended || text[n] != '\0')
                abort();
}

void turn_goes_on(struct turn_run *run)
{
        (void)run;
}

void turn_progress(struct turn_run *run, const char *label)
{
        (void)run;
        if (ended || !*label)
                abort();
}

void turn_drop_deadline(struct turn_run *run)
{
        (void)run;
}

bool turn_shows_details(const struct turn_run *run)
{
        (void)run;
        return true;
}

struct turn_detail *turn_detail_new(struct turn_run *run, const char *markdown)
{
        (void)run;
        if (!*markdown)
                abort();
        return NULL;
}

void turn_detail_stored(struct turn_detail *d, bool stored)
{
        (void)d;
        (void)stored;
}

bool turn_store_step(struct turn_run *run, turn_step_fn *fn, turn_step_done_fn *done, void *arg)
{
        (void)run;
        (void)fn;
        (void)done;
        (void)arg;
        return false;
}

bool turn_steer(struct turn_run *run, const struct turn_steering *s, void *arg)
{
        (void)run;
        (void)s;
        (void)arg;
        return false;
}

const char *const *turn_approval_rules(const struct turn_run *run, size_t *count)
{
        (void)run;
        *count = 0;
        return NULL;
}

void turn_ask_approval(struct turn_run *run, const struct approval_request *q, approval_fn *done,
                       void *arg)
{
        (void)run;
        (void)q;
        asked = (struct approval_ask_seen){ done, arg };
}

struct sandbox_run *sandbox_start(struct sandboxes *all, const struct sandbox_key *key,
                                  const struct sandbox_command *command,
                                  const struct sandbox_handlers *h, void *arg, struct error *err)
{
        (void)all;
        (void)key;
        (void)command;
        (void)h;
        (void)arg;
        error_set(err, ERR_REFUSED, "there is no sandbox");
        return NULL;
}

/* ---- a child without a process ---- */

static void quiet(const char *line, void *arg)
{
        (void)line;
        (void)arg;
}

static struct child *make_child(struct child_agent *o, enum child_state state)
{
        struct child *c = mem_zalloc(sizeof(*c));

        c->owner = o;
        c->name = mem_strdup("fuzz");
        c->session = mem_strdup("s");
        c->state = state;
        TAILQ_INIT(&c->turns);
        child_make_timers(c);
        c->dialect = mem_zalloc(acp_dialect.state_size);
        c->place.folder = mem_strdup("/srv");
        c->place.view = mem_zalloc(sizeof(*c->place.view));
        c->place.view->root_fd = c->place.view->channel_fd = -1;
        map_put(&o->by_name, c->name, c);
        LIST_INSERT_HEAD(&o->children, c, all);
        acp_dialect.started(c);
        return c;
}

static void begin_turn(struct child *c, struct turn_run *run)
{
        struct acp *a = child_state(c);

        c->turn = child_turn_new(c->owner, run);
        c->turn->child = c;
        a->phase = ACP_READY;
        a->session = mem_strdup("s");
        a->prompt_id = a->last_id = 7;
}

static bool on_line(void *arg, const char *line, size_t n)
{
        struct child *c = arg;
        json_t *message = json_read_lenient(line, n, NULL);
        struct approval_decision refused = { .state = APPROVAL_REFUSED, .subject = "" };

        if (json_is_object(message))
                acp_dialect.received(c, message);
        json_decref(message);
        if (asked.done && c->turn && n % 2 == 0) { /* a person answers at some time */
                struct approval_ask_seen k = asked;

                asked.done = NULL;
                k.done(k.arg, &refused);
        }
        return true;
}

static struct child_agent *make_agent(void)
{
        static struct acp_conf conf;
        static struct agent agent;
        static struct child_agent o;

        log_divert(quiet, NULL);
        conf = (struct acp_conf){ .files = true, .terminals = true };
        conf.child.sandbox.kind = (char *)(uintptr_t) "bwrap";
        conf.child.approvers = (char *)(uintptr_t) "asker";
        conf.child.start_ms = conf.child.silence_seconds = conf.child.turn_minutes = 1000;
        conf.child.cancel_ms = 1000;
        conf.child.answer_kb = 64;
        agent = (struct agent){ .name = "fuzz", .conf = &conf, .loop = loop_new() };
        o = (struct child_agent){ .agent = &agent, .conf = &conf.child, .dialect = &acp_dialect };
        map_init(&o.by_name);
        LIST_INIT(&o.children);
        LIST_INIT(&o.probes);
        o.sweep = timer_new(agent.loop, child_sweep, &o);
        return &o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static struct child_agent *o;
        static const struct incoming in = { .adapter = "tg", .channel = "7", .text = "go" };
        static const struct incoming *const inputs[] = { &in };
        struct turn_run run = { .id = 1,
                                .agent = "fuzz",
                                .key = "trn-1",
                                .trace = "t",
                                .adapter = "tg",
                                .channel = "7",
                                .inputs = inputs,
                                .input_count = 1 };
        size_t piece;
        struct lines lines;
        struct child *c;

        if (n < 2)
                return 0;
        if (!o)
                o = make_agent();
        ended = false;
        asked.done = NULL;
        c = make_child(o, data[0] % 4 == 0 ? CHILD_STARTING : CHILD_WORKING);
        if (c->state == CHILD_WORKING)
                begin_turn(c, &run);
        if (data[0] % 4 == 2) { /* people have stopped it */
                struct child_turn *t = c->turn;

                c->turn = NULL;
                c->state = CHILD_STOPPING;
                child_turn_free(t);
        }
        piece = (size_t)data[1] + 1;
        lines_init(&lines, LINE_MAX_BYTES);
        for (size_t at = 2; at < n; at += piece)
                if (lines_add(&lines, (const char *)data + at, n - at < piece ? n - at : piece,
                              on_line, c) < 0)
                        break;
        lines_release(&lines);
        acp_dialect.ended(c);
        child_free(c);
        for (int i = 0; i < 3; i++)
                loop_step(o->agent->loop, false);
        return 0;
}
