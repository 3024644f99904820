#include "agent/workspace/context_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workspace/context_entry.h"
#include "agent/workspace/workspace.h"
#include "base/beneath.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/channel_folder.h"
#include "rows/conversation_row.h"
#include "rows/turn_row.h"

#define RETRY_MS 5000

/* ---- steps ---- */

void context_steps_release(struct context_steps *s)
{
        for (size_t i = 0; i < s->count; i++)
                free((char *)s->items[i].body);
        free(s->items);
        free(s->adapter);
        free(s->channel);
        free(s->thread);
        *s = (struct context_steps){ 0 };
}

static void add_step(struct context_steps *s, const struct step_row *row)
{
        if (row->kind == STEP_TOOL_STARTED)
                return;
        if (s->count == s->cap) {
                s->cap = s->cap ? s->cap * 2 : 16;
                s->items = mem_realloc(s->items, s->cap * sizeof(*s->items));
        }
        s->items[s->count++] = (struct step_row){ .id = row->id,
                                                  .turn = row->turn,
                                                  .kind = row->kind,
                                                  .body = mem_strdup(row->body),
                                                  .first_kept = row->first_kept,
                                                  .time_ms = row->time_ms };
}

/* 1; 0: no such conversation; -1. */
static int read_place(struct store_tx *tx, struct context_steps *s, struct error *err)
{
        struct conversation_key *key;
        int64_t main_id = 0;
        int rc = conversation_row_get(tx, s->conversation, &key, err);

        if (rc != 1)
                return rc;
        rc = conversation_row_find_main(tx, key->chat.adapter, key->chat.channel, &main_id, err);
        s->adapter = mem_strdup(key->chat.adapter);
        s->channel = mem_strdup(key->chat.channel);
        s->thread = mem_strdup(key->chat.thread);
        s->is_main = main_id == s->conversation;
        free(key);
        return rc < 0 ? -1 : 1;
}

int context_steps_read(struct store_tx *tx, int64_t conversation, int64_t turn,
                       struct context_steps *out, struct error *err)
{
        struct history_start from = { 0 };
        struct store_stmt *list;
        struct step_row row;
        int64_t previous_turn = 0;
        int rc;

        *out = (struct context_steps){ .conversation = conversation, .is_whole = turn == 0 };
        rc = read_place(tx, out, err);
        if (rc == 1)
                rc = conversation_row_history_start(tx, conversation, &from, err);
        if (rc < 0)
                goto fail;
        list = turn > 0 ? step_row_list_turn(tx, turn)
                        : step_row_list(tx, conversation, NULL, from.turn);
        while ((rc = step_row_next(list, &row, err)) == 1)
                if (row.conversation == conversation)
                        add_step(out, &row);
        if (rc == 0 && out->count > 0 && turn > 0) {
                rc = step_row_previous(tx, conversation, out->items[0].id, &out->previous,
                                       &previous_turn, err);
                out->is_reset = previous_turn < from.turn && out->items[0].turn >= from.turn;
        }
        if (rc == 0)
                return 0;
fail:
        context_steps_release(out);
        return -1;
}

/* ---- the file ---- */

/* The folder, and the file's name in it: yours to free. */
static int open_folder(const char *dir, const struct context_steps *s, char **name,
                       struct error *err)
{
        int root = channel_folder_open_root(dir), channel = -1, folder = -1;
        char *path = channel_folder(s->adapter, s->channel);

        if (root < 0)
                error_set(err, ERR_IO, "cannot open '%s/workspace': %s", dir, strerror(errno));
        else
                channel = workspace_open_channel(root, path, err);
        if (channel >= 0 && s->is_main) {
                folder = channel;
                *name = mem_strdup("context.jsonl");
        } else if (channel >= 0) {
                /* not 0700: the agent may read it */
                if (mkdirat(channel, "contexts", 0755) == 0 || errno == EEXIST)
                        folder = beneath_open(channel, "contexts", O_PATH | O_DIRECTORY, 0);
                if (folder < 0)
                        error_set(err, ERR_IO, "cannot make the folder 'contexts' in '%s': %s",
                                  path, strerror(errno));
                *name = mem_printf("conv-%lld.jsonl", (long long)s->conversation);
                close(channel);
        }
        if (root >= 0)
                close(root);
        free(path);
        return folder;
}

static void write_lines(const struct context_steps *s, int64_t last, bool is_new, struct buf *out)
{
        int64_t parent = s->is_reset || is_new ? 0 : last;

        if (is_new) {
                char *folder = channel_folder(s->adapter, s->channel),
                     *inside = mem_printf(WORKSPACE_INSIDE "/%s", folder),
                     *key = mem_printf("%s conv-%lld", inside, (long long)s->conversation);

                context_write_header(out, key, inside, s->items[0].time_ms);
                free(folder);
                free(inside);
                free(key);
        }
        for (size_t i = 0; i < s->count; i++) {
                const struct step_row *step = &s->items[i];

                if (step->id <= last)
                        parent = step->id;
                else if (context_write_step(out, step, parent) == 1)
                        parent = step->id;
        }
}

static int append(int folder, const char *name, const struct context_steps *s, int64_t max_bytes,
                  struct error *err)
{
        struct projection p;
        struct buf lines;
        int64_t last;
        int rc = 1;

        if (projection_open(&p, folder, name, err) < 0)
                return -1;
        last = context_line_step(p.last.data, p.last.len);
        buf_init(&lines, 0);
        if (p.size > 0 ? last < s->previous || last == 0 : s->previous > 0 && !s->is_whole)
                rc = 0;
        else
                write_lines(s, last, p.size == 0, &lines);
        if (rc == 1 && !s->is_whole && p.size + (int64_t)lines.len > max_bytes)
                rc = 0;
        if (rc == 1 && lines.len > 0 && projection_append(&p, lines.data, lines.len, err) < 0)
                rc = -1;
        buf_release(&lines);
        projection_close(&p);
        return rc;
}

int context_file_write(const char *dir, const struct context_steps *s, int64_t max_bytes,
                       struct error *err)
{
        char *name = NULL;
        int folder, rc;

        if (s->count == 0)
                return 1;
        folder = open_folder(dir, s, &name, err);
        if (folder < 0) {
                free(name);
                return -1;
        }
        rc = s->is_whole ? projection_rotate(folder, name, err) : 0;
        if (rc == 0)
                rc = append(folder, name, s, max_bytes, err);
        free(name);
        close(folder);
        return rc;
}

/* ---- the consumer: one turn after the other ---- */

struct context_job {
        struct context_files *files; /* NULL: freed */
        char *dir;
        int64_t max_bytes;
        int64_t *turns;
        size_t count, at;
        bool whole; /* the file needs all */
        int64_t conversation;
        struct context_steps steps;
        int rc; /* of context_file_write */
        struct error err;
};

struct context_files {
        struct loop *loop;
        struct store *store;
        char *dir;
        int64_t max_bytes;
        struct bus_consumer *consumer;
        struct context_job *job;
        struct timer *retry;
};

static void job_free(struct context_job *j)
{
        context_steps_release(&j->steps);
        free(j->turns);
        free(j->dir);
        free(j);
}

static int read_steps(struct store_tx *tx, void *arg, struct error *err)
{
        struct context_job *j = arg;
        struct turn_row *turn;
        int rc = turn_row_get(tx, j->turns[j->at], &turn, err);

        context_steps_release(&j->steps);
        if (rc != 1)
                return rc;
        j->conversation = turn->conversation;
        free(turn);
        return context_steps_read(tx, j->conversation, j->whole ? 0 : j->turns[j->at], &j->steps,
                                  err);
}

static void work(void *arg)
{
        struct context_job *j = arg;

        error_clear(&j->err);
        j->rc = context_file_write(j->dir, &j->steps, j->max_bytes, &j->err);
}

static void next_turn(struct context_files *fs);

static void wait_and_retry(struct context_files *fs, const char *why)
{
        log_warn("cannot write a conversation's file; retrying", LOG_S("error", why));
        timer_start(fs->retry, RETRY_MS);
}

static void on_worked(void *arg)
{
        struct context_job *j = arg;
        struct context_files *fs = j->files;

        if (!fs) {
                job_free(j);
                return;
        }
        if (j->rc < 0 && projection_can_retry(&j->err)) {
                wait_and_retry(fs, j->err.text);
                return;
        }
        if (j->rc < 0)
                log_warn("cannot write a conversation's file; see `dragoman workspace rebuild`",
                         LOG_S("error", j->err.text));
        if (j->rc == 0 && !j->whole) {
                j->whole = true;
        } else {
                j->whole = false;
                j->at++;
        }
        next_turn(fs);
}

static void on_read(void *arg, const struct error *err)
{
        struct context_job *j = arg;
        struct context_files *fs = j->files;

        if (!fs)
                job_free(j);
        else if (err)
                wait_and_retry(fs, err->text);
        else if (j->steps.count > 0)
                loop_work(fs->loop, work, on_worked, j);
        else {
                j->whole = false;
                j->at++;
                next_turn(fs);
        }
}

static void next_turn(struct context_files *fs)
{
        struct context_job *j = fs->job;

        if (j->at < j->count) {
                store_read(fs->store, read_steps, on_read, j);
                return;
        }
        fs->job = NULL;
        job_free(j);
        bus_consumer_ack(fs->consumer);
}

static void on_retry(void *arg)
{
        next_turn(arg);
}

/* The number of "trn-12" in the event of a turn's end; 0: it is of something else. */
static int64_t ended_turn(const struct bus_event *e)
{
        static const char *const types[] = { "turn.done", "turn.failed", "turn.cancelled",
                                             "turn.expired" };
        bool is_end = false;
        const char *id;
        int64_t turn;
        json_t *p;

        for (size_t i = 0; i < COUNT(types); i++)
                is_end = is_end || strcmp(e->type, types[i]) == 0;
        if (!is_end)
                return 0;
        p = json_read(e->payload, strlen(e->payload), NULL);
        id = json_str(p, "turnId", "");
        turn = strncmp(id, "trn-", 4) == 0 ? strtoll(id + 4, NULL, 10) : 0;
        json_decref(p);
        return turn;
}

static void on_events(void *arg, const struct bus_event *const *events, unsigned count)
{
        struct context_files *fs = arg;
        struct context_job *j = mem_zalloc(sizeof(*j));

        j->files = fs;
        j->dir = mem_strdup(fs->dir);
        j->max_bytes = fs->max_bytes;
        j->turns = mem_array(count, sizeof(*j->turns));
        for (unsigned i = 0; i < count; i++) {
                int64_t turn = ended_turn(events[i]);

                if (turn > 0)
                        j->turns[j->count++] = turn;
        }
        fs->job = j;
        next_turn(fs);
}

struct context_files *context_files_new(struct loop *l, struct store *s, struct bus *b,
                                        const char *dir, int64_t max_bytes)
{
        struct context_files *fs = mem_zalloc(sizeof(*fs));

        fs->loop = l;
        fs->store = s;
        fs->dir = mem_strdup(dir);
        fs->max_bytes = max_bytes;
        fs->retry = timer_new(l, on_retry, fs);
        fs->consumer = bus_consume(b, CONTEXT_FILE_CONSUMER, 1u << STREAM_TURN, 0, on_events, fs);
        return fs;
}

void context_files_free(struct context_files *fs)
{
        if (!fs)
                return;
        bus_consumer_stop(fs->consumer);
        if (fs->job && timer_active(fs->retry))
                job_free(fs->job);
        else if (fs->job)
                fs->job->files = NULL;
        timer_free(fs->retry);
        free(fs->dir);
        free(fs);
}
