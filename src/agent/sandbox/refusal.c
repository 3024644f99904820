#include <stdlib.h>
#include <string.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"
#include "base/utf8.h"

#define USER_NAMESPACES                                                                         \
        "this machine forbids user namespaces: set the sysctls user.max_user_namespaces=15000 " \
        "and kernel.unprivileged_userns_clone=1, or allow them for the container or unit"
#define APPARMOR                                                                              \
        "AppArmor restricts user namespaces: load the profile bwrap-userns-restrict, or set " \
        "the sysctl kernel.apparmor_restrict_unprivileged_userns=0"

/* What bubblewrap and docker say where they do not work, and what mends it. */
static const struct {
        const char *says, *mend;
} situations[] = {
        { "Creating new namespace failed", USER_NAMESPACES },
        { "No permissions to create", USER_NAMESPACES },
        { "Can't mount proc", "the container around Dragoman masks /proc: start it with "
                              "--security-opt unmask=ALL (podman) or --security-opt "
                              "systempaths=unconfined (docker)" },
        { "Failed RTM_NEWADDR", APPARMOR },
        { "setting up uid map", APPARMOR },
        { "nknown option", "this bubblewrap is too old: 0.8.0 with --bind-fd is needed, as Debian "
                           "12 has it" },
        { "No such container", "the container does not exist: create and start it" },
        { "is not running", "the container is not running: start it" },
        { "docker daemon", "docker is not reachable: start it, and let Dragoman's user use it" },
};

static const char *mending(const char *complaint)
{
        for (size_t i = 0; i < COUNT(situations); i++)
                if (strstr(complaint, situations[i].says))
                        return situations[i].mend;
        return "see the section Sandbox of docs/AGENT.md";
}

void refusal_explain(const struct sandbox_conf *conf, const char *complaint, struct error *err)
{
        char *line = utf8_clean(complaint, strcspn(complaint, "\n"));

        line[utf8_prefix(line, strlen(line), UTF8_BYTES, 200)] = '\0';
        error_set(err, ERR_REFUSED, "the sandbox '%s' cannot be made (%s): %s", conf->kind,
                  line[0] ? line : "it said nothing", mending(complaint));
        free(line);
}
