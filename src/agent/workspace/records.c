#include "agent/workspace/records.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/workspace/context_file.h"
#include "agent/workspace/log_file.h"
#include "base/mem.h"

#define MEBIBYTE 1048576
#define AT(f)    offsetof(struct workspace_conf, f)

static const char *const record_choices[] = { "auto", "on", "off", NULL };

/* clang-format off */
const struct setting workspace_settings[] = {
        { "user", SETTING_STRING, "\"dragoman-agent\"", 1, 64, .at = AT(user),
          .help = "If the daemon runs as root: the user that commands of agents run as, and that "
                  "owns the files of channels. If there is no such user, it is number 60990. "
                  "Takes effect after a restart." },
        { "records", SETTING_CHOICE, "\"auto\"", .choices = record_choices, .at = AT(records),
          .help = "Whether log.jsonl and context.jsonl are written for each channel: `auto` if an "
                  "agent of type builtin is configured." },
        { "logBytes", SETTING_INT, "16777216", MEBIBYTE, 1099511627776, .at = AT(log_bytes),
          .help = "A larger log.jsonl becomes log.1.jsonl, and a new one begins." },
        { "contextBytes", SETTING_INT, "16777216", MEBIBYTE, 1099511627776,
          .at = AT(context_bytes),
          .help = "A larger context.jsonl becomes context.1.jsonl, and a new one begins with what "
                  "the agent still remembers." },
        SETTING_END,
};
/* clang-format on */

struct records {
        struct loop *loop;
        struct store *store;
        struct bus *bus;
        char *dir;
        struct log_files *logs;         /* NULL: off */
        struct context_files *contexts; /* the same */
        int64_t log_bytes, context_bytes;
};

struct records *records_new(struct loop *l, struct store *s, struct bus *b, const char *dir)
{
        struct records *r = mem_zalloc(sizeof(*r));

        r->loop = l;
        r->store = s;
        r->bus = b;
        r->dir = mem_strdup(dir);
        return r;
}

static void stop(struct records *r)
{
        log_files_free(r->logs);
        context_files_free(r->contexts);
        r->logs = NULL;
        r->contexts = NULL;
}

void records_free(struct records *r)
{
        if (!r)
                return;
        stop(r);
        free(r->dir);
        free(r);
}

void records_apply(struct records *r, const struct workspace_conf *conf, bool has_builtin)
{
        bool wanted = strcmp(conf->records, "on") == 0 ||
                      (strcmp(conf->records, "auto") == 0 && has_builtin);

        if (wanted && r->logs && r->log_bytes == conf->log_bytes &&
            r->context_bytes == conf->context_bytes)
                return;
        stop(r);
        if (!wanted)
                return;
        r->log_bytes = conf->log_bytes;
        r->context_bytes = conf->context_bytes;
        r->logs = log_files_new(r->loop, r->bus, r->dir, conf->log_bytes);
        r->contexts = context_files_new(r->loop, r->store, r->bus, r->dir, conf->context_bytes);
}
