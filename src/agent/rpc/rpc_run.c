/*
 * rpc_run: what is sent to the program, and when a run has ended.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define BEGIN_MS   1000 /* from an accepted prompt to its run; then the program is asked */
#define SETTLE_MS  1000 /* after a run of a program that does not say that nothing follows */
#define LATE_MS    300  /* from the answer to a message that came after the run */
#define POLLS_MAX  5
#define ABORTS_MAX 3
#define NAME_CHARS 20
#define MARK_CHARS 8

struct rpc *rpc_of(struct child *c)
{
        return child_state(c);
}

/* A question is not waited for longer than a process may be idle: its session goes on anyway. */
static void set_busy(struct rpc *r)
{
        child_set_busy(r->child, r->phase != RPC_IDLE && r->phase != RPC_ASKING, r->jobs > 0);
}

/* The only place that changes the phase. */
static void enter(struct rpc *r, enum rpc_phase phase)
{
        static const char *const names[] = {
                [RPC_GREETING] = "greeting", [RPC_IDLE] = "idle",     [RPC_RUNNING] = "running",
                [RPC_SETTLING] = "settling", [RPC_ASKING] = "asking", [RPC_ABORTING] = "aborting"
        };

        log_debug("rpc", LOG_S("agent", r->dialect->name), LOG_S("from", names[r->phase]),
                  LOG_S("to", names[phase]));
        r->phase = phase;
        r->polls = 0;
        timer_stop(r->timer);
        set_busy(r);
}

void rpc_count_jobs(struct rpc *r, int change)
{
        if (change < 0 && r->jobs < (unsigned)-change)
                r->jobs = 0;
        else
                r->jobs += (unsigned)change;
        set_busy(r);
}

/* ---- commands ---- */

/* members: further ones, may be NULL. Returns its id. */
static uint64_t command(struct rpc *r, enum rpc_command what, const char *type, const char *members)
{
        uint64_t number = ++r->commands.last;
        struct buf json;
        char id[32];

        for (size_t i = 0; i < RPC_COMMANDS_MAX; i++) {
                if (r->commands.open[i].id)
                        continue;
                r->commands.open[i].id = number;
                r->commands.open[i].what = what;
                break;
        }
        snprintf(id, sizeof(id), "%" PRIu64, number);
        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "id", id);
        jsonw_str(&json, "type", type);
        if (members)
                buf_addf(&json, ",%s", members);
        jsonw_close(&json, '}');
        child_send(r->child, json.data, json.len);
        buf_release(&json);
        return number;
}

static bool waits_for(const struct rpc *r, enum rpc_command what)
{
        for (size_t i = 0; i < RPC_COMMANDS_MAX; i++)
                if (r->commands.open[i].id && r->commands.open[i].what == what)
                        return true;
        return false;
}

static void ask_state(struct rpc *r)
{
        if (!waits_for(r, RPC_STATE))
                command(r, RPC_STATE, "get_state", NULL);
}

static void add_images(struct buf *members, const struct child_file *files, size_t count)
{
        jsonw_open_member(members, "images", '[');
        for (size_t i = 0; i < count; i++) {
                if (!files[i].image)
                        continue;
                jsonw_open(members, '{');
                jsonw_str(members, "type", "image");
                jsonw_str(members, "data", files[i].image);
                jsonw_str(members, "mimeType", files[i].mime);
                jsonw_close(members, '}');
        }
        jsonw_close(members, ']');
}

/*
 * A prompt with streamingBehavior begins a run, or joins the one that is running: it cannot come at
 * the wrong moment, as "steer" could, which pi keeps for the next run when it is idle.
 */
static uint64_t send_text(struct rpc *r, enum rpc_command what, const char *text,
                          const struct child_file *files, size_t count)
{
        const struct rpc_conf *conf = child_conf(r->child);
        bool follows = strcmp(conf->while_running, "followUp") == 0;
        struct buf members;
        uint64_t id;

        buf_init(&members, 0);
        jsonw_str(&members, "message", text);
        jsonw_str(&members, "streamingBehavior", follows ? "followUp" : "steer");
        if (count > 0)
                add_images(&members, files, count);
        id = command(r, what, "prompt", members.data);
        buf_release(&members);
        return id;
}

static void abort_run(struct rpc *r)
{
        r->aborts++;
        if (r->dialect->clear_queue)
                command(r, RPC_CLEAR, r->dialect->clear_queue, NULL);
        command(r, RPC_ABORT, "abort", NULL);
}

/* ---- the end of a run ---- */

static void clear_run(struct rpc *r)
{
        free(r->run.error);
        free(r->run.refused);
        r->run.error = r->run.refused = NULL;
        r->run.began = r->run.steered = r->run.aborted = r->run.cut = r->run.spoke = false;
        buf_clear(&r->run.notices);
}

static void deliver_late(struct rpc *r)
{
        char *text = utf8_clean(r->late.text.data, r->late.text.len);
        struct turn_reply reply = { .text = text };

        buf_clear(&r->late.text);
        log_redact(text);
        if (r->late.turn > 0 && text[strspn(text, " \t\r\n")])
                agent_late_reply(child_agent(r->child), r->late.turn, &reply);
        free(text);
}

static char *describe_end(const struct rpc *r)
{
        if (r->run.error)
                return mem_printf("The agent failed: %s", r->run.error);
        if (r->run.refused)
                return mem_printf("The agent did not take a message: %s", r->run.refused);
        if (r->run.aborted)
                return mem_strdup("The run was stopped from elsewhere.");
        if (r->run.cut)
                return mem_strdup("The answer was cut off by the model's output limit.");
        return NULL;
}

bool rpc_has_turn(const struct rpc *r)
{
        return child_run(r->child) && !r->pending.files;
}

static void finish(struct rpc *r)
{
        struct child *c = r->child;
        bool stopped = r->phase == RPC_ABORTING;
        char *remark, *error;

        rpc_dialogs_release(r); /* the program answered them itself */
        rpc_question_forget(r);
        enter(r, RPC_IDLE);
        if (!stopped && !rpc_has_turn(r)) {
                deliver_late(r);
                return;
        }
        if (!r->run.spoke && !r->run.error && r->run.notices.len > 0)
                child_text(c, r->run.notices.data, r->run.notices.len);
        remark = describe_end(r);
        error = mem_strdup(r->run.error);
        if (remark)
                log_redact(remark);
        child_over(c, &(struct child_end){ .kind = error ? ERR_PROTOCOL : ERR_NONE,
                                           .remark = remark,
                                           .error = error,
                                           .untouched = !r->run.used_tools });
        free(remark);
        free(error);
}

/* pi may have carried out the prompt without a run, and says nothing then. */
static void await_begin(struct rpc *r)
{
        if (!r->dialect->tells_handled && !r->run.began && !waits_for(r, RPC_PROMPT))
                timer_start(r->timer, BEGIN_MS);
}

void rpc_asks(struct rpc *r, int64_t timeout_ms)
{
        enter(r, RPC_ASKING);
        if (timeout_ms > 0)
                timer_start(r->timer, timeout_ms);
        child_over(r->child, &(struct child_end){ .kind = ERR_NONE });
}

void rpc_asks_no_more(struct rpc *r)
{
        rpc_question_forget(r);
        if (r->phase != RPC_ASKING)
                return;
        enter(r, RPC_RUNNING);
        await_begin(r);
}

void rpc_began(struct rpc *r)
{
        if (r->phase == RPC_GREETING || r->phase == RPC_ABORTING)
                return;
        if (r->phase == RPC_ASKING)
                rpc_asks_no_more(r);
        if (r->phase == RPC_IDLE) { /* by itself */
                clear_run(r);
                buf_clear(&r->late.text);
        }
        enter(r, RPC_RUNNING);
        r->run.began = true;
}

void rpc_run_ended(struct rpc *r, bool sure)
{
        if (r->phase == RPC_ASKING)
                rpc_asks_no_more(r);
        if ((r->phase != RPC_RUNNING && r->phase != RPC_SETTLING) || !r->run.began)
                return; /* of an earlier run */
        if (!sure) {
                enter(r, RPC_SETTLING);
                timer_start(r->timer, SETTLE_MS);
        } else if (waits_for(r, RPC_STEER)) {
                enter(r, RPC_SETTLING); /* their answers go on */
        } else if (r->run.steered) {
                enter(r, RPC_SETTLING);
                ask_state(r);
        } else {
                finish(r);
        }
}

void rpc_prompt_ended(struct rpc *r, uint64_t id, const char *error)
{
        if (r->phase != RPC_RUNNING || r->run.began || id != r->prompt)
                return;
        free(r->run.error);
        r->run.error = mem_strdup(error);
        finish(r);
}

static void on_timer(void *arg)
{
        struct rpc *r = arg;

        if (r->phase == RPC_ASKING)
                rpc_asks_no_more(r);
        else if (r->phase == RPC_SETTLING || (r->phase == RPC_RUNNING && !r->run.began))
                ask_state(r);
}

/* ---- answers ---- */

static void on_first_state(struct rpc *r, const json_t *data)
{
        const json_t *inputs = json_object_get(json_object_get(data, "model"), "input"), *input;
        size_t i;

        json_array_foreach(inputs, i, input)
                if (json_is_string(input) && strcmp(json_string_value(input), "image") == 0)
                        r->images = true;
        enter(r, RPC_IDLE);
        child_ready(r->child, r->file, json_int(data, "messageCount", 0) > 0);
}

static void on_state(struct rpc *r, const json_t *data)
{
        bool runs = json_flag(data, "isStreaming", false) || json_flag(data, "isCompacting", false);
        bool busy = runs || json_int(data, "pendingMessageCount", 0) > 0 ||
                    json_int(data, "queuedMessageCount", 0) > 0;

        switch (r->phase) {
        case RPC_GREETING:
                on_first_state(r, data);
                break;
        case RPC_ABORTING:
                if (waits_for(r, RPC_ABORT))
                        break; /* it was asked before */
                if (busy && r->aborts < ABORTS_MAX)
                        abort_run(r);
                else
                        finish(r);
                break;
        case RPC_RUNNING: /* a prompt whose run has not begun */
        case RPC_SETTLING:
                if ((r->run.began && r->phase == RPC_RUNNING) || waits_for(r, RPC_STEER) ||
                    waits_for(r, RPC_PROMPT))
                        break; /* what it had not read then may begin a run */
                if (!busy || (!runs && ++r->polls >= POLLS_MAX))
                        finish(r);
                else
                        timer_start(r->timer, SETTLE_MS);
                break;
        case RPC_IDLE:
        case RPC_ASKING:
                break;
        }
}

static void on_refused(struct rpc *r, uint64_t id, const char *why)
{
        if (r->phase != RPC_RUNNING && r->phase != RPC_SETTLING)
                return;
        if (id == r->prompt && !r->run.began) {
                rpc_prompt_ended(r, id, why);
        } else {
                free(r->run.refused);
                r->run.refused = mem_strdup(why);
        }
}

static void on_prompt(struct rpc *r, uint64_t id, const json_t *data)
{
        if (r->phase != RPC_RUNNING || r->run.began)
                return;
        if (strcmp(json_str(data, "disposition", ""), "handled") == 0 ||
            !json_flag(data, "agentInvoked", true))
                rpc_prompt_ended(r, id, NULL);
        else
                await_begin(r);
}

static bool take_command(struct rpc *r, const json_t *message, uint64_t *id, enum rpc_command *what)
{
        *id = strtoull(json_str(message, "id", "0"), NULL, 10);
        for (size_t i = 0; *id && i < RPC_COMMANDS_MAX; i++)
                if (r->commands.open[i].id == *id) {
                        *what = r->commands.open[i].what;
                        r->commands.open[i].id = 0;
                        return true;
                }
        return false;
}

void rpc_answered(struct rpc *r, const json_t *message)
{
        const json_t *data = json_object_get(message, "data");
        bool good = json_flag(message, "success", false);
        const char *why = json_str(message, "error", "it gave no reason");
        enum rpc_command what;
        uint64_t id;

        if (!take_command(r, message, &id, &what)) {
                if (!good && id && id == r->prompt) /* omp accepts, and then refuses */
                        on_refused(r, id, why);
                return;
        }
        switch (what) {
        case RPC_STATE:
                if (good)
                        on_state(r, data);
                else if (r->phase == RPC_GREETING)
                        child_refused(r->child, ERR_PROTOCOL,
                                      "The agent could not be started. Please tell the operator.",
                                      why);
                else
                        finish(r);
                break;
        case RPC_PROMPT:
                if (good)
                        on_prompt(r, id, data);
                else
                        on_refused(r, id, why);
                break;
        case RPC_STEER:
                if (!good)
                        on_refused(r, id, why);
                if (r->phase == RPC_SETTLING && !waits_for(r, RPC_STEER))
                        timer_start(r->timer, LATE_MS); /* its own run may begin */
                break;
        case RPC_ABORT:
                if (r->phase == RPC_ABORTING)
                        ask_state(r);
                break;
        case RPC_CLEAR:
        case RPC_NEGOTIATE:
                break;
        }
}

void rpc_greeted(struct rpc *r, const json_t *message)
{
        const json_t *versions = json_object_get(message, "supportedProtocolVersions"), *version;
        size_t i;

        if (r->phase != RPC_GREETING || !r->dialect->greets)
                return;
        json_array_foreach(versions, i, version)
                if (r->dialect->chunks && json_integer_value(version) == 2)
                        command(r, RPC_NEGOTIATE, "negotiate_protocol", "\"protocolVersion\":2");
        ask_state(r);
}

/* ---- what the child asks for ---- */

/* As a word of its own, or with a value behind "=". */
static bool has_word(const struct rpc_conf *conf, const char *word)
{
        size_t n = strlen(word);

        for (size_t i = 0; i < conf->child.command.count; i++)
                if (strncmp(conf->child.command.items[i], word, n) == 0 &&
                    strchr("=", conf->child.command.items[i][n]))
                        return true;
        return false;
}

/*
 * The file of the session: its name ends with a mark of the folder, because a program that resumes
 * a session works in the session's folder, not where it is started.
 */
static char *session_file(const struct child *c)
{
        const char *session = child_session(c), *folder = child_folder(c);
        char hash[SHA256_HEX_SIZE], name[NAME_CHARS + 1], *end, *file;
        size_t n = strlen(session);

        crypto_sha256_hex(folder, strlen(folder), hash);
        end = mem_printf("-%.*s.jsonl", MARK_CHARS, hash);
        if (n >= strlen(end) && strcmp(session + n - strlen(end), end) == 0) {
                free(end);
                return mem_strdup(session);
        }
        file = mem_printf("%s%s", id_random_text(name, NAME_CHARS), end);
        free(end);
        return file;
}

static void add_words(struct child *c, struct child_words *words)
{
        struct rpc *r = rpc_of(c);
        const struct rpc_conf *conf = child_conf(c);
        char *path;

        r->dialect = rpc_dialect_of(child_agent(c));
        r->file = session_file(c);
        if (!has_word(conf, "--mode")) { /* omp has "rpc-ui" as well */
                child_add_word(words, "--mode");
                child_add_word(words, "rpc");
        }
        for (const char *const *w = r->dialect->words; *w; w++)
                child_add_word(words, *w);
        if (conf->model) {
                child_add_word(words, "--model");
                child_add_word(words, conf->model);
        }
        path = mem_printf("%s/sessions", child_home(c));
        child_add_word(words, "--session-dir");
        child_add_word(words, path);
        free(path);
        path = mem_printf("%s/sessions/%s", child_home(c), r->file);
        child_add_word(words, r->dialect->resume);
        child_add_word(words, path);
        free(path);
}

static void started(struct child *c)
{
        const struct rpc_conf *conf = child_conf(c);
        struct rpc *r = rpc_of(c);

        r->child = c;
        r->timer = timer_new(child_agent(c)->loop, on_timer, r);
        rpc_frames_init(&r->frames, (size_t)conf->child.line_kb << 10);
        buf_init(&r->run.notices, (size_t)64 << 10);
        buf_init(&r->late.text, (size_t)conf->child.answer_kb << 10);
        LIST_INIT(&r->dialogs);
        if (!r->dialect->greets)
                ask_state(r);
}

static int read_line(struct child *c, const char *line, size_t n, struct buf *out)
{
        switch (rpc_frames_read(&rpc_of(c)->frames, line, n, out)) {
        case RPC_LINE_SHORT:
                return 1;
        case RPC_LINE_NOTHING:
                return 0;
        case RPC_LINE_WHOLE:
                break;
        }
        return -1;
}

static void begin_run(struct rpc *r, const char *text, const struct child_file *files, size_t count)
{
        bool began = r->phase == RPC_RUNNING && r->run.began; /* by itself: the text joins it */

        if (began)
                deliver_late(r); /* what it said before */
        r->late.turn = child_run(r->child)->id;
        clear_run(r);
        enter(r, RPC_RUNNING);
        r->run.began = r->run.steered = began;
        r->prompt = send_text(r, began ? RPC_STEER : RPC_PROMPT, text, files, count);
}

static void forget_prompt(struct rpc *r)
{
        child_files_drop(r->pending.files);
        free(r->pending.text);
        r->pending.files = NULL;
        r->pending.text = NULL;
}

/* The run that asked goes on. */
static void answer_question(struct rpc *r)
{
        enter(r, RPC_RUNNING);
        r->run.spoke = false;
        r->late.turn = child_run(r->child)->id;
        buf_clear(&r->late.text);
        await_begin(r);
        if (!rpc_question_answer(r)) { /* what people wrote is no answer, but the agent reads it */
                char *text = child_prompt_text(r->child);

                r->run.steered = true;
                send_text(r, RPC_STEER, text, NULL, 0);
                free(text);
        }
}

static void on_files(struct child *c, const struct child_file *files, size_t count)
{
        struct rpc *r = rpc_of(c);

        r->pending.files = NULL;
        begin_run(r, r->pending.text, files, count);
        forget_prompt(r);
}

static void prompt(struct child *c)
{
        struct rpc *r = rpc_of(c);

        r->run.usage = (struct child_usage){ 0 };
        r->run.used_tools = false;
        if (r->phase == RPC_ASKING) {
                answer_question(r);
                return;
        }
        r->pending.text = child_prompt_text(c);
        r->pending.files = child_files_read(c, r->images, on_files);
}

static void steer(struct child *c, const char *text, bool idle)
{
        struct rpc *r = rpc_of(c);
        char *both;

        if (r->phase == RPC_ASKING) { /* it came before the question was seen */
                rpc_dialog_answer(r, r->question.id, NULL);
                rpc_asks_no_more(r);
                idle = false;
        }
        if (r->pending.files) {
                both = mem_printf("%s\n\n%s", r->pending.text, text);
                free(r->pending.text);
                r->pending.text = both;
        } else if (idle) {
                begin_run(r, text, NULL, 0);
        } else {
                r->run.steered = true;
                send_text(r, RPC_STEER, text, NULL, 0);
        }
}

static void cancel(struct child *c)
{
        struct rpc *r = rpc_of(c);

        if (r->pending.files && r->phase == RPC_IDLE) { /* it was not sent yet */
                forget_prompt(r);
                child_over(c, &(struct child_end){ 0 });
                return;
        }
        forget_prompt(r);
        rpc_dialogs_cancel(r); /* pi does not end a run while it asks */
        r->aborts = 0;
        enter(r, RPC_ABORTING);
        abort_run(r);
}

static void ended(struct child *c)
{
        struct rpc *r = rpc_of(c);

        free(r->file);
        if (!r->child)
                return;
        forget_prompt(r);
        rpc_question_forget(r);
        clear_run(r);
        timer_free(r->timer);
        rpc_dialogs_release(r);
        rpc_frames_release(&r->frames);
        buf_release(&r->run.notices);
        buf_release(&r->late.text);
}

const struct child_dialect rpc_child_dialect = {
        .name = "coding agent",
        .state_size = sizeof(struct rpc),
        .add_words = add_words,
        .started = started,
        .read_line = read_line,
        .received = rpc_received,
        .prompt = prompt,
        .steer = steer,
        .cancel = cancel,
        .ended = ended,
};
