#include <string.h>

#include "agent/child/child_private.h"
#include "agent/sandbox/egress.h"
#include "base/mem.h"

#define AT(field) offsetof(struct child_sandbox, field)

static const char *const kinds[] = { "bwrap", "host", NULL };
const char *const child_approvers[] = { "asker", "admins", NULL };

const struct setting child_sandbox_settings[] = {
        { "kind", SETTING_CHOICE, "\"bwrap\"", .choices = kinds, .at = AT(kind),
          .help = "`bwrap` (bubblewrap: it sees its folder, the system's programs and what is "
                  "listed here) or `host` (no sandbox: it can do whatever Dragoman's user can)." },
        { "hosts", SETTING_STRINGS, "[]", .at = AT(hosts),
          .help = "Servers that it may reach over HTTP and HTTPS, such as `api.anthropic.com` or "
                  "`*.example.org:8080`; no other network exists inside." },
        { "readOnly", SETTING_STRINGS, "[]", .at = AT(read_only),
          .help = "Further files and folders that it may read, such as `/opt/agents`; "
                  "`OUTSIDE:INSIDE` gives one another path. In folders that agents can change no "
                  "link is followed." },
        { "writable", SETTING_STRINGS, "[]", .at = AT(writable),
          .help = "Further files and folders that it may change, such as "
                  "`/srv/agents/claude:/home/agent/.claude`." },
        { "debuggers", SETTING_BOOL, "false", .at = AT(debuggers),
          .help = "Permit `ptrace` inside, which debuggers and `strace` need." },
        { "memoryMb", SETTING_INT, "0", 0, 1048576, .at = AT(memory_mb),
          .help = "The most memory of a process, in MiB; 0: no limit." },
        { "totalMb", SETTING_INT, "4096", 64, 16777216, .at = AT(total_mb),
          .help = "The most memory of it and everything that it starts, in MiB; more ends it." },
        { "processes", SETTING_INT, "512", 8, 65536, .at = AT(processes),
          .help = "The most processes of a sandbox; with `host` this needs delegated control "
                  "groups (systemd: `Delegate=yes`)." },
        { "fileMb", SETTING_INT, "4096", 1, 1048576, .at = AT(file_mb),
          .help = "The largest file that it may write, in MiB." },
        { "diskMb", SETTING_INT, "0", 0, 16777216, .at = AT(disk_mb),
          .help = "The largest size of a folder that Dragoman made for it, in MiB; above it, it "
                  "is ended. 0: no limit." },
        SETTING_END
};

static int check_paths(struct settings_source *src, const char *path, const char *key,
                       const struct setting_list *list, struct error *err)
{
        for (size_t i = 0; i < list->count; i++) {
                const char *inside = strchr(list->items[i], ':');

                if (list->items[i][0] != '/' || (inside && inside[1] != '/'))
                        return settings_member_error(src, path, key, err,
                                                     "'%s' is not an absolute path, nor "
                                                     "OUTSIDE:INSIDE with two of them",
                                                     list->items[i]);
        }
        return 0;
}

static int check_sandbox(struct settings_source *src, const char *path,
                         const struct child_conf *conf, struct error *err)
{
        const struct child_sandbox *s = &conf->sandbox;
        bool inside = strcmp(s->kind, "bwrap") == 0;
        struct error why;

        if (!inside && s->hosts.count + s->read_only.count + s->writable.count > 0)
                return settings_member_error(src, path, "kind", err,
                                             "'host' has no limits: remove 'hosts', 'readOnly' and "
                                             "'writable', or use \"bwrap\"");
        if (s->disk_mb > 0 && !inside)
                return settings_member_error(src, path, "diskMb", err,
                                             "needs a sandbox: use \"kind\": \"bwrap\"");
        if (s->disk_mb > 0 && conf->cwd[0] == '/')
                return settings_member_error(src, path, "diskMb", err,
                                             "is the size of a folder that Dragoman makes, and not "
                                             "of '%s' (cwd)",
                                             conf->cwd);
        for (size_t i = 0; i < s->hosts.count; i++)
                if (egress_check_entry(s->hosts.items[i], &why) < 0)
                        return settings_member_error(src, path, "hosts", err, "%s", why.text);
        if (s->read_only.count + s->writable.count > CHILD_PATHS_MAX)
                return settings_member_error(src, path, "readOnly", err,
                                             "more than %d files and folders, with 'writable'",
                                             CHILD_PATHS_MAX);
        return check_paths(src, path, "readOnly", &s->read_only, err) < 0
                       ? -1
                       : check_paths(src, path, "writable", &s->writable, err);
}

int child_check_conf(struct settings_source *src, const char *path, const void *settings,
                     struct error *err)
{
        const struct child_conf *conf = settings;
        char *at;
        int rc;

        if (conf->command.count == 0 || !conf->command.items[0][0])
                return settings_member_error(src, path, "command", err,
                                             "is empty: write the program and its arguments, such "
                                             "as [\"opencode\", \"acp\"]");
        if (conf->env.count + conf->pass_env.count > CHILD_ENV_MAX)
                return settings_member_error(src, path, "env", err,
                                             "more than %d variables, with 'passEnv'",
                                             CHILD_ENV_MAX);
        if (strcmp(conf->cwd, "conversation") != 0 && strcmp(conf->cwd, "rule") != 0 &&
            conf->cwd[0] != '/')
                return settings_member_error(src, path, "cwd", err,
                                             "'%s' is neither \"conversation\", \"rule\" nor an "
                                             "absolute path",
                                             conf->cwd);
        at = mem_printf("%s.sandbox", path);
        rc = check_sandbox(src, at, conf, err);
        free(at);
        return rc;
}
